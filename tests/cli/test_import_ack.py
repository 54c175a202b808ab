"""ACK's settings become a rule and pools; what has no counterpart is told, and contradictions are refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from sickbay.api.validate import validate
from sickbay.decide import catalogue
from sickbay.decide.imports.ack import Imported, RefusedError, Words, import_ack
from tests.cli.conftest import command

ACK = "intervention.autorepair.node.k8s.aliyun.com"
CATALOGUE = catalogue.build()


def label(key: str, value: str) -> dict[str, str]:
    return {"key": key, "value": value}


def asks(key: str = f"{ACK}/drain-node", question: str = "inquiring", answer: str = "approved") -> dict[str, Any]:
    pair = {"inquiring_label": label(key, question), "approved_label": label(key, answer)}
    return {"enable": True, "type": "label", **pair}


def policy(*steps: dict[str, Any], incidents: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    rule = {"incidents": incidents or [{"name": "NvidiaXID79Error", "type": "gpu"}], "repair_procedure": list(steps)}
    found = {"policy_id": "r-1", "name": "gpu-repair", "resource_type": "nodepool", "resource_sub_type": "ess"}
    return {**found, "resource_ids": ["np1"], "rules": [rule], **more}


def pool(management: dict[str, Any] | None = None, **auto: Any) -> dict[str, Any]:
    info = {"nodepool_id": "np1", "name": "train", "type": "ess"}
    return {"nodepool_info": info, "management": {**(management or {}), "auto_repair_policy": auto}}


DRAIN = {"name": "Drain"}


def done(*documents: Any, **words: Any) -> Imported:
    given = [(f"f{i}.json", copy.deepcopy(document)) for i, document in enumerate(documents)]
    made = import_ack(given, Words(**words), CATALOGUE)
    for manifest in made.manifests:
        assert validate(manifest["kind"], manifest) == []
    return made


def kind(made: Imported, wanted: str) -> dict[str, Any]:
    (found,) = (m for m in made.manifests if m["kind"] == wanted)
    return found


def notes(made: Imported) -> list[str]:
    return [str(note) for note in made.notes]


def steps(made: Imported, entry: int = 0) -> list[str]:
    return [step["step"] for step in kind(made, "RepairRule")["spec"]["rules"][entry]["procedure"]]


def test_policy_and_pool_become_a_rule_and_a_pool_that_follows_it_in_observe() -> None:
    made = done(policy(DRAIN), pool(auto_repair_policy_id="r-1", max_parallel_repairing_nodes="3"))
    rule, train = kind(made, "RepairRule"), kind(made, "RepairPool")
    assert rule["spec"]["approvalPrefix"] == "ack"
    assert rule["spec"]["rules"][0]["faults"] == {"names": ["gpu.xid.79"]}
    assert (train["spec"]["mode"], train["spec"]["rule"]) == ("Observe", rule["metadata"]["name"])
    assert train["spec"]["nodeSelector"] == {"matchLabels": {"alibabacloud.com/nodepool-id": "np1"}}
    assert (train["spec"]["maxParallelRepairs"], train["spec"]["freezeOnFailure"]) == (3, True)


def test_a_drain_brings_its_cordon_along() -> None:
    assert steps(done(policy(DRAIN))) == ["Quarantine", "Drain"]


def test_a_step_that_asks_becomes_a_gate_by_people_and_nothing_is_said_of_acks_own_labels() -> None:
    made = done(policy({**DRAIN, "intervention": asks(question="Inquiring", answer="Approved")}))
    assert kind(made, "RepairRule")["spec"]["rules"][0]["procedure"][1]["approval"] == {"by": "People"}
    assert not [note for note in notes(made) if "_label" in note]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param(
            policy({**DRAIN, "intervention": asks("k8s.aliyun.com/incident")}),
            ("inquiring_label", "k8s.aliyun.com/incident", f"{ACK}/drain-node=inquiring"),
            id="a question of one's own",
        ),
        pytest.param(
            policy({**DRAIN, "intervention": asks(answer="go")}),
            ("approved_label", '"go"', f"{ACK}/drain-node=approved"),
            id="an answer of one's own",
        ),
        pytest.param(
            policy({**DRAIN, "intervention": asks("alibabacloud.com/node-needrepair")}),
            ("approved_label", "alibabacloud.com/node-needrepair", "deleting the label"),
            id="the legacy label",
        ),
        pytest.param(
            policy({**DRAIN, "intervention": {**asks(), "type": "call"}}),
            ("intervention.type", "call", "by a label"),
            id="another kind of intervention",
        ),
        pytest.param(
            policy({**DRAIN, "config": {"timeout": 600}}),
            ("rules[0].repair_procedure[0].config.timeout", "600", "left out"),
            id="a config key",
        ),
        pytest.param(
            policy(DRAIN, {"name": "RestartECS"}),
            ("rules[0].repair_procedure[1].name", "RestartECS", "--step RestartECS=Repair:ACTION"),
            id="an unknown step",
        ),
        pytest.param(
            policy(DRAIN, DRAIN), ("repair_procedure[1].name", "Drain", "a second Drain"), id="a step given twice"
        ),
        pytest.param(
            policy(DRAIN, incidents=[{"name": "Node.FaultNeedReboot.HOST", "type": "system"}]),
            ("rules[0].incidents[0].name", "Node.FaultNeedReboot.HOST", "--incident Node.FaultNeedReboot.HOST=FAULT"),
            id="an unknown incident",
        ),
        pytest.param(
            policy(DRAIN, incidents=[{"name": "NvidiaXID79Error", "conditions": [{"type": "DoorOpen"}]}]),
            ("incidents[0].conditions[0]", "DoorOpen", "write a FaultType"),
            id="a condition nobody reads",
        ),
        pytest.param(
            policy(DRAIN, incidents=[{"name": "NvidiaXID79Error", "events": [{"type": "Warning"}]}]),
            ("incidents[0].events", "Warning", "match.event"),
            id="events",
        ),
        pytest.param(policy(DRAIN, window="night"), ("window", "night", "unknown"), id="an unknown key"),
        pytest.param(
            policy(DRAIN, resource_sub_type="edge"), ("resource_sub_type", "edge", "no counterpart"), id="another kind"
        ),
        pytest.param(policy(DRAIN), ("repair_procedure", "no step returns the node"), id="nothing returns the node"),
        pytest.param(pool({"auto_upgrade": True}), ("management.auto_upgrade", "true", "no counterpart"), id="switch"),
        pytest.param(pool({"auto_repair": False}), ("auto_repair", "false", "starts in Observe"), id="switched off"),
        pytest.param(
            pool(auto_repair_policy_id="r-9"), ("auto_repair_policy_id", "r-9", "not among"), id="a policy elsewhere"
        ),
        pytest.param(
            pool(max_parallel_repairing_nodes="2", max_unhealthy_nodes_threshold="20%"),
            ("max_parallel_repairing_nodes", "20%", "LimitsFit"),
            id="units that cannot be compared",
        ),
        pytest.param(pool(restart_node=False), ("restart_node", "false", "gate by People"), id="no restart"),
        pytest.param(pool(), ("NvidiaXID44Error", "only records it"), id="a condition that asks for nothing here"),
    ],
)
def test_what_has_no_counterpart_is_told_with_field_and_value(document: Any, words: tuple[str, ...]) -> None:
    found = notes(done(document))
    assert any(all(word in note for word in words) for note in found), found


def test_steps_and_incidents_mean_what_the_user_says_they_mean() -> None:
    document = policy(DRAIN, {"name": "RestartECS"}, incidents=[{"name": "Node.FaultNeedReboot.HOST"}])
    made = done(
        document,
        incidents={"Node.FaultNeedReboot.HOST": ("pcie.aer.fatal",)},
        steps={"RestartECS": ("Repair", "RebootNode")},
    )
    (entry,) = kind(made, "RepairRule")["spec"]["rules"]
    assert entry["faults"] == {"names": ["pcie.aer.fatal"]}
    assert entry["procedure"][-1] == {"step": "Repair", "action": "RebootNode"}
    assert not [note for note in notes(made) if "unknown step" in note or "no fault type" in note]


def test_an_unknown_incident_never_matches_a_fault_of_the_catalogue() -> None:
    made = done(policy(DRAIN, incidents=[{"name": "Node.FaultNeedReboot.HOST"}]))
    (entry,) = kind(made, "RepairRule")["spec"]["rules"]
    assert entry["faults"] == {"labels": {"ack-incident": "Node.FaultNeedReboot.HOST"}}
    assert not any("ack-incident" in (t.spec.labels or {}) for t in CATALOGUE.types.values())


def test_a_condition_of_an_incident_is_a_fault_type_that_reads_it() -> None:
    incident = {"name": "gpu", "conditions": [{"type": "NvidiaXID48Error", "status": "True"}]}
    (entry,) = kind(done(policy(DRAIN, incidents=[incident])), "RepairRule")["spec"]["rules"]
    assert entry["faults"] == {"names": ["gpu.xid.48"]}


def test_a_card_that_is_quarantined_is_isolation_of_the_pool_and_no_entry_of_the_rule() -> None:
    document = policy(DRAIN)
    isolating = {"incidents": [{"name": "NvidiaXID48Error"}], "repair_procedure": [{"name": "QuarantineGPU"}]}
    document["rules"].append(isolating)
    made = done(document)
    assert len(kind(made, "RepairRule")["spec"]["rules"]) == 1
    assert kind(made, "RepairPool")["spec"]["deviceIsolation"] == {"faults": ["gpu.xid.48"]}


def test_approval_of_the_pool_gates_the_first_step_that_disturbs_anybody() -> None:
    made = done(policy(DRAIN), pool(auto_repair_policy_id="r-1", approval_required=True))
    procedure = kind(made, "RepairRule")["spec"]["rules"][0]["procedure"]
    assert procedure == [{"step": "Quarantine"}, {"step": "Drain", "approval": {"by": "People"}}]


def test_pools_that_differ_in_approval_follow_rules_of_their_own() -> None:
    other = pool(auto_repair_policy_id="r-1")
    other["nodepool_info"] = {"nodepool_id": "np2", "name": "serve"}
    made = done(policy(DRAIN, resource_ids=[]), pool(auto_repair_policy_id="r-1", approval_required=True), other)
    followed = {m["metadata"]["name"]: m["spec"]["rule"] for m in made.manifests if m["kind"] == "RepairPool"}
    assert followed == {"train": "gpu-repair-approval", "serve": "gpu-repair"}
    assert {m["metadata"]["name"] for m in made.manifests if m["kind"] == "RepairRule"} == set(followed.values())


@pytest.mark.parametrize(
    ("auto", "spec"),
    [
        pytest.param({}, {}, id="nothing given: the defaults of ours"),
        pytest.param(
            {"max_unhealthy_nodes_threshold": "30%"},
            {"breaker": {"threshold": "30%", "maxNodes": "30%"}},
            id="a share",
        ),
        pytest.param(
            {"max_parallel_repairing_nodes": "20"},
            {"maxParallelRepairs": 20, "breaker": {"maxNodes": 20}},
            id="many at once, without a breaker",
        ),
        pytest.param(
            {"max_parallel_repairing_nodes": 10, "max_unhealthy_nodes_threshold": "10"},
            {"maxParallelRepairs": 10, "breaker": {"threshold": 10, "maxNodes": 10}},
            id="counts, one of them as a number",
        ),
    ],
)
def test_limits_of_the_pool(auto: dict[str, Any], spec: dict[str, Any]) -> None:
    found = kind(done(policy(DRAIN), pool(auto_repair_policy_id="r-1", **auto)), "RepairPool")["spec"]
    assert {key: found[key] for key in ("maxParallelRepairs", "breaker") if key in found} == spec


def test_without_a_policy_the_pool_follows_managed_repair() -> None:
    made = done(pool(approval_required=True))
    components, machine = kind(made, "RepairRule")["spec"]["rules"]
    assert components["procedure"] == [{"step": "Repair", "approval": {"by": "People"}}]
    assert "service.kubelet" in components["faults"]["names"]
    assert [s["step"] for s in machine["procedure"]] == ["Quarantine", "Drain", "Repair", "Unquarantine"]
    drain = machine["procedure"][1]
    assert (drain["timeout"], drain["onTimeout"], drain["approval"]) == ("30m", "Continue", {"by": "People"})
    assert "gpu.xid.79" in machine["faults"]["names"]


def test_nothing_that_disturbs_a_workload_is_repaired_without_a_drain() -> None:
    from sickbay.api.actions import ACTIONS

    components, _ = kind(done(pool()), "RepairRule")["spec"]["rules"]
    first = {CATALOGUE.types[name].spec.remedy[0].action for name in components["faults"]["names"]}  # type: ignore[index]
    assert not any(ACTIONS[action].disruptive for action in first)


@pytest.mark.case("P086")
@pytest.mark.parametrize(
    ("documents", "keys"),
    [
        pytest.param([pool({"enable": False, "auto_repair": True})], ("management.enable", "auto_repair"), id="off"),
        pytest.param(
            [pool(max_parallel_repairing_nodes="30%", max_unhealthy_nodes_threshold="20%")],
            ("max_parallel_repairing_nodes: 30%", "max_unhealthy_nodes_threshold: 20%"),
            id="more repairs than the breaker bears",
        ),
        pytest.param(
            [
                policy({**DRAIN, "intervention": {"enable": False}}),
                pool(auto_repair_policy_id="r-1", approval_required=True),
            ],
            ("approval_required: true", "rules[0].repair_procedure[0].intervention.enable: false"),
            id="somebody is to be asked, and nobody is",
        ),
        pytest.param(
            [policy(DRAIN, {"name": "RestartECS"}), pool(auto_repair_policy_id="r-1", restart_node=False)],
            ("restart_node: false", "rules[0].repair_procedure[1].name: RestartECS"),
            id="no restart, and a step that restarts",
        ),
        pytest.param(
            [policy({**DRAIN, "intervention": asks(answer="inquiring")})],
            ("inquiring_label", "approved_label"),
            id="a question that answers itself",
        ),
        pytest.param(
            [policy(DRAIN), pool(auto_repair_policy_id="r-2")],
            ("auto_repair_policy_id: r-2", "resource_ids"),
            id="two policies for one pool",
        ),
    ],
)
def test_contradicting_settings_are_refused_with_both_keys_named(documents: list[Any], keys: tuple[str, str]) -> None:
    with pytest.raises(RefusedError) as refused:
        done(*documents, steps={"RestartECS": ("Repair", "RebootNode")})
    assert "contradiction" in str(refused.value)
    assert all(key in str(refused.value) for key in keys)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        pytest.param(["x"], "not a mapping", id="a list"),
        pytest.param({"a": 1}, "neither an AutoRepairPolicy (rules) nor a node pool (management)", id="something else"),
        pytest.param({"management": {"enable": True}}, "nodepool_info.nodepool_id: missing", id="a pool without id"),
        pytest.param({"rules": []}, "name: missing", id="a policy without a name"),
        pytest.param(policy(DRAIN, rules="x"), "rules: x: not a list", id="rules that are none"),
        pytest.param(policy({"name": "Pray"}), "--step NAME=STEP", id="nothing that can be written"),
        pytest.param(pool(approval_required="maybe"), "neither true nor false", id="neither yes nor no"),
        pytest.param(pool(max_parallel_repairing_nodes="few"), "neither a count nor a percentage", id="no limit"),
        pytest.param(pool(max_unhealthy_nodes_threshold="0.5%"), "neither a count", id="a share of a percent"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(document: Any, says: str) -> None:
    with pytest.raises(RefusedError) as refused:
        done(document)
    assert says in str(refused.value)
    assert str(refused.value).startswith("f0.json")


@pytest.mark.parametrize(
    "wrapped",
    [
        pytest.param({"items": [policy(DRAIN)]}, id="a list of policies"),
        pytest.param({"body": policy(DRAIN), "statusCode": 200}, id="an answer of the SDK"),
        pytest.param({"body": {"items": [policy(DRAIN)]}}, id="both"),
    ],
)
def test_answers_are_unwrapped(wrapped: Any) -> None:
    assert steps(done(wrapped)) == ["Quarantine", "Drain"]


def test_two_pools_of_one_name_are_refused() -> None:
    with pytest.raises(RefusedError, match="two of RepairPool train"):
        done(policy(DRAIN), pool(auto_repair_policy_id="r-1"), pool(auto_repair_policy_id="r-1"))


async def test_the_command_prints_manifests_that_check_accepts_and_tells_the_rest_on_standard_error(
    tmp_path: Path,
) -> None:
    one, two = tmp_path / "policy.json", tmp_path / "pool.yaml"
    one.write_text(json.dumps(policy({**DRAIN, "config": {"timeout": 600}, "intervention": asks()})))
    two.write_text(yaml.safe_dump(pool(auto_repair_policy_id="r-1", max_parallel_repairing_nodes="2")))
    answer = await command("import", "ack", str(one), str(two))
    assert answer.code == 0, answer.err
    assert [m["kind"] for m in yaml.safe_load_all(answer.out)] == ["RepairRule", "RepairPool"]
    assert "&" not in answer.out
    assert f"note: {one}: rules[0].repair_procedure[0].config.timeout: 600" in answer.err
    made = tmp_path / "made.yaml"
    made.write_text(answer.out)
    assert "1 file, 0 errors" in (await command("check", str(made))).out


@pytest.mark.parametrize(
    ("text", "options", "code", "says"),
    [
        pytest.param("a: [", [], 1, "f.yaml:1: not YAML", id="not YAML"),
        pytest.param("", [], 1, "is empty", id="empty"),
        pytest.param("{}", ["--step", "X=Pray"], 2, "write NAME=STEP with a step of", id="no step"),
        pytest.param("{}", ["--step", "X=Drain:RebootNode"], 2, "only Repair has an action", id="an action elsewhere"),
        pytest.param("{}", ["--incident", "X"], 2, "write NAME=FAULT", id="no fault"),
        pytest.param("{management: {enable: false, auto_repair: true}, nodepool_id: n}", [], 1, "contradiction",
                     id="contradiction"),
    ],
)  # fmt: skip
async def test_a_mistake_is_an_error_without_manifests(
    tmp_path: Path, text: str, options: list[str], code: int, says: str
) -> None:
    file = tmp_path / "f.yaml"
    file.write_text(text)
    answer = await command("import", "ack", str(file), *options)
    assert (answer.code, answer.out) == (code, "")
    assert says in answer.err
    assert "Traceback" not in answer.err
