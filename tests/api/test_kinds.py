"""Our own kinds as structs: where they live, what they default to, and that nothing is lost on the way through."""

import msgspec
import pytest

from sickbay.api import kinds, names
from sickbay.api.crds import schemas
from sickbay.api.fault_selector import FaultSelector
from sickbay.api.fault_type import FaultType
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import Approval, DrainOptions, ProcedureStep, RepairRule
from sickbay.api.structural import default
from sickbay.api.words import Phase, Step
from tests.api.objects import FULL_ENTRY, FULL_FAULT, FULL_POOL, FULL_REPAIR, GOOD, MINIMAL, REPAIR_STATUS, manifest

STRUCTS = {kind.kind: kind.struct for kind in kinds.OWN}

PATHS = [
    (kinds.NODE, ("", "", ""), "/api/v1/nodes"),
    (kinds.NODE, ("", "n", ""), "/api/v1/nodes/n"),
    (kinds.NODE, ("ignored", "n", "status"), "/api/v1/nodes/n/status"),
    (kinds.POD, ("", "", ""), "/api/v1/pods"),
    (kinds.POD, ("ml", "", ""), "/api/v1/namespaces/ml/pods"),
    (kinds.POD, ("ml", "a", "eviction"), "/api/v1/namespaces/ml/pods/a/eviction"),
    (kinds.NODE_REPAIR, ("", "r", "status"), "/apis/sickbay.dev/v1alpha1/noderepairs/r/status"),
    (kinds.JOB_RECOVERY, ("ml", "j", ""), "/apis/sickbay.dev/v1alpha1/namespaces/ml/jobrecoveries/j"),
    (kinds.LEASE, ("x", "l", ""), "/apis/coordination.k8s.io/v1/namespaces/x/leases/l"),
]


@pytest.mark.parametrize(("kind", "place", "path"), PATHS, ids=[p[2] for p in PATHS])
def test_a_kind_knows_its_path(kind, place, path):
    assert kind.path(*place) == path


def test_an_object_of_a_namespaced_kind_needs_its_namespace():
    with pytest.raises(ValueError, match="Pod 'a' is namespaced"):
        kinds.POD.path("", "a")


def test_a_kind_can_be_read_raw():
    raw = kinds.NODE.raw
    assert raw.struct is dict
    assert raw.path("", "n") == kinds.NODE.path("", "n")


def test_a_kind_names_its_version_and_resource():
    assert (kinds.NODE.api_version, kinds.NODE.resource) == ("v1", "nodes")
    assert (kinds.HOLD.api_version, kinds.HOLD.resource) == (names.API_VERSION, "holds.sickbay.dev")


def decode(kind, obj):
    return msgspec.convert(obj, STRUCTS[kind])


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good.id)
def test_nothing_of_an_object_is_lost_in_its_struct(good):
    """Written again and defaulted by the server, it is the object that was read, but for what is null or empty."""
    made = good.manifest("x")
    schema = schemas()[good.kind]
    written = msgspec.to_builtins(decode(good.kind, made))
    assert thin(default(schema, written)) == thin(default(schema, made))


def thin(value):
    """Without nulls and what says nothing: false, zero, empty text, lists and maps."""
    if isinstance(value, dict):
        kept = {key: thin(below) for key, below in value.items()}
        return {key: below for key, below in kept.items() if below not in (None, False, 0, "", [], {})}
    return [thin(element) for element in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", STRUCTS)
@pytest.mark.parametrize(
    "odd",
    [{}, {"metadata": None, "spec": None, "status": None}, {"spec": {}, "status": {}, "surprise": 1}],
    ids=["empty", "nulls", "unknown"],
)
def test_an_odd_object_decodes(kind, odd):
    made = decode(kind, odd)
    assert (made.kind, made.api_version) == (kind, names.API_VERSION)
    assert made.name == "" and made.labels == {} and not made.deleting


@pytest.mark.parametrize("kind", STRUCTS)
def test_every_field_of_a_kind_may_be_null(kind):
    decode(kind, nulled(schemas()[kind]))


def nulled(schema):
    properties = schema.get("properties", {})
    containers = {"object", "array"}
    return {
        name: nulled(below) if "properties" in below else None
        for name, below in properties.items()
        if below.get("type") in containers and name != "metadata"
    }


@pytest.mark.parametrize("kind", [kind for kind in STRUCTS if kind != "FaultType"])
def test_struct_and_api_server_have_the_same_defaults(kind):
    made = manifest(kind, "x", MINIMAL[kind])
    assert decode(kind, made).spec == decode(kind, default(schemas()[kind], made)).spec


def test_an_unknown_word_from_a_newer_version_decodes():
    repair = decode("NodeRepair", {"status": {"phase": "Meditating", "current": {"waitsFor": "Moon"}}})
    assert repair.status.phase == "Meditating"
    assert repair.status.phase not in set(Phase)


def test_a_repair_is_read_with_its_plan_and_reports():
    repair = decode("NodeRepair", {"spec": FULL_REPAIR, "status": REPAIR_STATUS})
    assert repair.spec.node.boot_id == "b1"
    assert repair.spec.plan.step("Quarantine").approval == Approval()
    assert repair.spec.plan.step("Drain").approval is None
    assert repair.spec.plan.step("Repair").action == "RebootNode"
    assert repair.spec.plan.step("Nothing") is None
    assert repair.status.step("Drain").report.pods[0].pdb == "keep"
    assert repair.status.step("Repair").state == ""
    assert repair.status.condition("WouldQuarantine").status == "False"


@pytest.mark.parametrize(
    ("phase", "outcome", "ended"),
    [
        ("Running", "", False),
        ("NeedsHuman", "", False),
        ("Succeeded", "Repaired", True),
        ("Cancelled", "Denied", True),
        ("Failed", "GaveUp", True),
        ("WouldAct", "", False),
        ("WouldAct", "Observed", True),
        ("Meditating", "", False),
    ],
)
def test_a_repair_has_ended_when_there_is_no_way_on(phase, outcome, ended):
    repair = NodeRepair()
    repair.status.phase, repair.status.outcome = phase, outcome
    assert repair.ended is ended


def test_a_gate_with_only_defaults_is_a_gate():
    step = msgspec.to_builtins(ProcedureStep(step="Drain", approval=Approval()))
    assert step == {"step": "Drain", "approval": {"reminders": ["15m", "1h", "4h"]}}
    assert msgspec.convert({"step": "Drain", "approval": {}}, ProcedureStep).approval == Approval()
    assert "approval" not in msgspec.to_builtins(ProcedureStep(step="Drain"))


def test_no_reminders_is_written_out_since_the_default_has_some():
    assert msgspec.to_builtins(Approval(reminders=[])) == {"reminders": []}
    assert msgspec.convert({"reminders": []}, Approval).reminders == []
    assert msgspec.convert({}, Approval).reminders == ["15m", "1h", "4h"]


def test_the_defaults_of_a_drain_are_filled_in_on_drain_only():
    drain = ProcedureStep(step=Step.DRAIN).resolved()
    assert (drain.timeout, drain.on_timeout, drain.options) == ("30m", "Escalate", DrainOptions())
    given = ProcedureStep(step=Step.DRAIN, timeout="1h", on_timeout="RollBack").resolved()
    assert (given.timeout, given.on_timeout) == ("1h", "RollBack")
    assert ProcedureStep(step=Step.REPAIR).resolved().timeout is None


def test_a_rule_is_read_with_its_steps():
    rule = decode("RepairRule", {"spec": {"rules": [FULL_ENTRY]}})
    entry = rule.spec.rules[0]
    assert [step.step for step in entry.procedure] == list(Step)
    assert entry.step("Drain").options.protect[0].namespaces == ["kube-system"]
    assert entry.step("Quarantine").before[0].job.pod_template == "save"
    assert RepairRule().spec.approval_prefix == "sickbay"


def test_a_fault_type_tells_not_given_from_given_empty():
    empty = decode("FaultType", {"spec": {"remedy": [], "labels": {}, "isolateDevice": False, "domain": ""}})
    assert msgspec.to_builtins(empty.spec) == {"remedy": [], "labels": {}, "isolateDevice": False, "domain": ""}
    assert msgspec.to_builtins(FaultType().spec) == {}
    full = decode("FaultType", {"spec": FULL_FAULT})
    assert (full.spec.class_, full.spec.for_, full.spec.remedy[1].action) == ("GPU", "0s", "PowerCycle")
    assert msgspec.to_builtins(full.spec) == FULL_FAULT


def test_a_pool_without_a_rule_is_an_envelope():
    assert decode("RepairPool", {"spec": {**FULL_POOL, "rule": None}}).spec.rule is None
    assert RepairPool().spec.rule is None


SELECTORS = [
    (FaultSelector(), True),
    (FaultSelector(names=["gpu.xid.79"]), True),
    (FaultSelector(names=["gpu.xid.48"]), False),
    (FaultSelector(classes=["GPU", "Node"]), True),
    (FaultSelector(classes=["Node"]), False),
    (FaultSelector(severities=["Critical"]), True),
    (FaultSelector(severities=["Info"]), False),
    (FaultSelector(labels={"a": "1"}), True),
    (FaultSelector(labels={"a": "1", "b": "2"}), False),
    (FaultSelector(names=["gpu.xid.79"], severities=["Info"]), False),
]


@pytest.mark.parametrize(("selector", "matches"), SELECTORS)
def test_a_fault_selector_matches_when_all_given_keys_do(selector, matches):
    assert selector.matches("gpu.xid.79", "GPU", "Critical", {"a": "1"}) is matches
