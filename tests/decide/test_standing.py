"""What stands on the objects that people write: types that match too much or fail, hidden entries, overlaps, taints."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from sickbay.api.core import Node
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule
from sickbay.decide import daemonsets, polarity, slots, standing
from sickbay.decide.tally import Facts, Tally
from sickbay.decide.typeguard import TypeGuard
from tests.decide.made import at, catalogue, fault_type, node, pool, procedure, typed


def with_meta(obj: dict, generation: int = 1, annotations: dict | None = None, conditions: list | None = None) -> dict:
    meta = {**obj["metadata"], "generation": generation, "annotations": annotations or {}}
    return {**obj, "metadata": meta, "status": {"conditions": conditions or []}}


def limited(name: str = "train", **breaker) -> RepairPool:
    return pool(name=name, breaker={"threshold": "20%", "maxNodes": 10, **breaker}, maxParallelRepairs=1)


def judged(obj: dict, matched: int, size: int = 20, guard: TypeGuard | None = None) -> TypeGuard:
    guard = guard or TypeGuard()
    name = obj["metadata"]["name"]
    guard.judge([obj], [limited()], lambda: ({name: Counter(train=matched)}, {"train": size}))
    return guard


@pytest.mark.parametrize(
    ("matched", "size", "aside"),
    [
        pytest.param(4, 20, False, id="as many as the breaker bears"),
        pytest.param(5, 20, True, id="one more"),
        pytest.param(11, 1000, True, id="above maxNodes"),
        pytest.param(2, 3, False, id="a small pool bears two"),
        pytest.param(0, 0, False, id="an empty pool"),
    ],
)
def test_a_type_that_matches_more_than_the_breaker_bears_is_set_aside(matched, size, aside):
    guard = judged(with_meta(fault_type()), matched, size)
    assert ("test.reboot" in guard.set_aside) is aside


def test_the_message_names_the_share_and_the_way_to_confirm_it():
    text = judged(with_meta(fault_type(), generation=7), 10).set_aside["test.reboot"]
    assert "matches 10 of 20 nodes (50 %) of pool train" in text
    assert "sickbay.dev/confirm-match=7" in text


def test_the_first_sight_counts_and_later_sickness_is_the_breakers_business():
    guard = judged(with_meta(fault_type()), 0)
    assert judged(with_meta(fault_type()), 20, guard=guard).set_aside == {}


def test_another_generation_is_seen_for_the_first_time():
    guard = judged(with_meta(fault_type()), 0)
    assert judged(with_meta(fault_type(), generation=2), 20, guard=guard).set_aside != {}


@pytest.mark.parametrize(
    ("annotations", "aside"),
    [
        pytest.param({"sickbay.dev/confirm-match": "2"}, False, id="this generation"),
        pytest.param({"sickbay.dev/confirm-match": "1"}, True, id="an earlier one"),
        pytest.param({"sickbay.dev/confirm-match": "true"}, True, id="no generation"),
        pytest.param({}, True, id="nobody"),
    ],
)
def test_only_a_word_about_this_generation_confirms(annotations, aside):
    obj = with_meta(fault_type(), 2, annotations)
    assert ("test.reboot" in judged(obj, 20).set_aside) is aside


def test_the_verdict_on_the_object_outlives_the_process():
    said = standing.of_type(
        with_meta(fault_type()), "", judged(with_meta(fault_type()), 20).set_aside["test.reboot"], {}
    )
    status = standing.status(with_meta(fault_type()), said, at(0))
    again = with_meta(fault_type(), conditions=status["conditions"])
    assert judged(again, 0).set_aside != {}, "a new process with fewer sick nodes does not forget it"
    assert polarity.aside(again) != ""


def test_an_expression_that_fails_is_told_with_node_and_error_until_it_works_again():
    guard = TypeGuard()
    guard.note("n1", {"test.cel": "no such key: batch"})
    said = {
        kind: (holds, text)
        for kind, holds, _, text in standing.of_type(with_meta(fault_type()), "", "", guard.failing["test.cel"])
    }
    assert said["ExpressionFailed"][0] and "n1: no such key: batch" in said["ExpressionFailed"][1]
    assert said["Valid"][0], "elsewhere it works"
    guard.news.clear()
    guard.note("n1", {})
    assert (guard.failing["test.cel"], guard.news) == ({}, {"test.cel"})


def test_a_type_that_cannot_be_used_says_why():
    problem = "spec.match is missing"
    said = standing.of_type(with_meta(fault_type()), problem, "", {})
    assert said[0] == ("Valid", False, "Incomplete", problem)


def test_a_condition_keeps_its_time_while_it_says_the_same():
    said = standing.of_type(with_meta(fault_type()), "", "", {})
    first = standing.status(with_meta(fault_type()), said, at(0))
    obj = {**with_meta(fault_type()), "status": first}
    assert standing.status(obj, said, at(60)) is None
    later = standing.status(obj, standing.of_type(obj, "", "matches all", {}), at(60))
    times = {c["type"]: c["lastTransitionTime"] for c in later["conditions"]}
    assert times["MatchesTooMany"] != times["Valid"]


def entry(name: str, **faults) -> dict:
    return {"name": name, "faults": faults, "procedure": procedure()}


@pytest.mark.parametrize(
    ("entries", "hidden"),
    [
        pytest.param([entry("all"), entry("gpu", classes=["GPU"])], ["gpu"], id="behind one that matches all"),
        pytest.param([entry("gpu", classes=["GPU"]), entry("all")], [], id="the narrow one first"),
        pytest.param([entry("all"), entry("none", names=["no.such"])], [], id="matches nothing at all"),
    ],
)
def test_entries_that_are_never_reached_are_named(entries, hidden):
    rule = msgspec.convert({"metadata": {"name": "r"}, "spec": {"rules": entries}}, RepairRule)
    assert standing.unreachable(rule.spec.rules, catalogue().types) == hidden
    said = standing.of_rule(rule, catalogue().types, lambda _: "prefix")
    assert said[1][1] is (not hidden)


def test_a_prefix_that_nobody_configured_makes_the_rule_invalid():
    rule = msgspec.convert({"spec": {"approvalPrefix": "acme", "rules": [entry("all")]}}, RepairRule)
    (valid, _) = standing.of_rule(rule, {name: typed(fault_type(name)) for name in ()}, lambda _: "")
    assert (valid[1], "acme" in valid[3]) == (False, True)


SKIP = {"timeout": "1m", "onTimeout": "Skip"}


@pytest.mark.parametrize(
    ("steps", "faults", "act"),
    [
        pytest.param(["Quarantine", {"step": "Repair", "action": "RebootNode"}], ["test.service"], "RebootNode",
                     id="the rule's own act takes the node down"),
        pytest.param(["Quarantine", "Repair"], ["test.reset"], "RebootNode", id="a later remedy of the fault does"),
        pytest.param(["Quarantine", "Repair"], ["test.service"], "", id="a service is restarted"),
        pytest.param(["Quarantine", {"step": "Repair", "action": "ResetGPU"}], ["test.reboot"], "", id="a device only"),
        pytest.param(["Quarantine", "Unquarantine"], ["test.reboot"], "", id="nothing is done"),
        pytest.param(["Quarantine", "Repair"], ["no.such"], "", id="no fault comes to it"),
    ],
)  # fmt: skip
def test_an_entry_that_may_skip_quarantine_and_take_the_node_down_makes_its_rule_invalid(steps, faults, act):
    held = {**entry("skips", names=faults), "procedure": procedure(*steps, Quarantine=SKIP)}
    rule = msgspec.convert({"metadata": {"name": "r"}, "spec": {"rules": [held]}}, RepairRule)
    (_, holds, reason, text), _ = standing.of_rule(rule, catalogue().types, lambda _: "prefix")
    assert (holds, reason) == (not act, "InvalidEntry" if act else "AsExpected")
    assert (f"entry skips: onTimeout Skip would go to {act}" in text) is bool(act)


def test_escalating_or_draining_first_keeps_the_rule_valid():
    escalates = {**entry("a", names=["test.reboot"]), "procedure": procedure(Quarantine={"timeout": "1m"})}
    rule = msgspec.convert({"metadata": {"name": "r"}, "spec": {"rules": [escalates]}}, RepairRule)
    assert standing.of_rule(rule, catalogue().types, lambda _: "prefix")[0][1]


# --- pools


def test_two_pools_with_rules_on_one_node_both_say_so_and_the_older_owns_it():
    tally = Tally()
    tally.put("n1", Facts(("old",), rivals=("old", "new")))
    tally.put("n2", Facts(("old",)))
    for name in ("old", "new"):
        assert "1 belong to old" in tally.of(name).overlap(name)
    assert tally.put("n1", Facts(("old",))) == {"old", "new"}, "both look again when it is over"
    assert tally.of("new").overlap("new") == ""


def test_an_envelope_is_no_rival():
    old, envelope = pool(name="old"), pool(name="roof", rule=None)
    assert slots.rivals([old, envelope], node(labels={"pool": "train"})) == ()


def daemon_set(name: str = "plugin", **pod) -> dict:
    return {"metadata": {"name": name, "namespace": "kube-system"}, "spec": {"template": {"spec": pod}}}


def nodes(**labels: str) -> list[Node]:
    return [node(labels={"pool": "train", **labels})]


EQUAL = [{"key": "sickbay.dev/quarantine", "operator": "Equal", "value": "GPU"}]
IB = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
    {"matchExpressions": [{"key": "net", "operator": "In", "values": ["ib"]}]}]}}  # fmt: skip


@pytest.mark.parametrize(
    ("pod", "named"),
    [
        pytest.param({}, True, id="tolerates nothing"),
        pytest.param({"tolerations": [{"operator": "Exists"}]}, False, id="tolerates everything"),
        pytest.param({"tolerations": [{"key": "sickbay.dev/quarantine", "operator": "Exists"}]}, False, id="the key"),
        pytest.param({"tolerations": EQUAL}, True, id="one value of three"),
        pytest.param({"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}, True, id="another effect"),
        pytest.param({"nodeSelector": {"pool": "other"}}, False, id="not on these nodes"),
        pytest.param({"affinity": {"nodeAffinity": IB}}, False, id="not on these nodes by affinity"),
    ],
)
def test_daemon_sets_that_would_not_come_back_are_named(pod, named):
    assert daemonsets.intolerant([daemon_set(**pod)], nodes()) == (["kube-system/plugin"] if named else [])


def test_many_names_are_cut_and_counted():
    text = daemonsets.message([f"kube-system/d{n:02}" for n in range(13)])
    assert text.endswith("kube-system/d09 and 3 more")
