"""Our marks on a node: what was there before comes back, and what others did meanwhile stays."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.meta import ObjectMeta
from sickbay.api.node_repair import NodeRepair, NodeRepairSpec
from sickbay.api.nodemarks import marked_by, read_mark
from sickbay.api.repair_plan import Plan
from sickbay.apiserver import jsonpatch
from sickbay.execute.marks import clear_ops, restore_ops, set_ops

AT = "2027-03-01T08:00:00Z"
FOREIGN = st.sampled_from(["example.com/a", "example.com/b", "topology.kubernetes.io/zone", "x"])
TEXTS = st.text("ab", max_size=2)
KEEP = st.sampled_from([names.SCALE_DOWN_DISABLED, names.DO_NOT_DISRUPT])
LABELS = st.one_of(st.none(), st.dictionaries(FOREIGN, TEXTS, max_size=3))
ANNOTATIONS = st.dictionaries(st.one_of(FOREIGN, KEEP), st.sampled_from(["true", "false", ""]), max_size=4)
TAINTS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["example.com/hold", "nvidia.com/gpu", names.QUARANTINE]),
            "effect": st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
        },
        optional={"value": st.sampled_from(["v", "GPU"]), "timeAdded": st.just(AT)},
    ),
    max_size=4,
    unique_by=lambda t: (t["key"], t["effect"]),
)
NODES = st.builds(
    lambda labels, annotations, taints, cordon: raw(labels, annotations, taints, cordon),
    LABELS,
    st.one_of(st.none(), ANNOTATIONS),
    st.one_of(st.none(), TAINTS),
    st.booleans(),
)


def raw(labels: Any = None, annotations: Any = None, taints: Any = None, cordon: bool = False) -> dict[str, Any]:
    node: dict[str, Any] = {"metadata": {"name": "n", "uid": "node-uid", "resourceVersion": "7"}, "spec": {}}
    if labels is not None:
        node["metadata"]["labels"] = labels
    if annotations is not None:
        node["metadata"]["annotations"] = annotations
    if taints is not None:
        node["spec"]["taints"] = taints
    if cordon:
        node["spec"]["unschedulable"] = True
    return node


def struct(node: dict[str, Any]) -> Node:
    return msgspec.convert(node, Node)


def repair(uid: str = "r1") -> NodeRepair:
    plan = Plan(approval_prefix=names.APPROVAL_PREFIXES["sickbay"])
    return NodeRepair(metadata=ObjectMeta(name=f"n-{uid}", uid=uid), spec=NodeRepairSpec(plan=plan))


def applied(node: dict[str, Any], ops: list[dict[str, Any]]) -> dict[str, Any]:
    return jsonpatch.apply(copy.deepcopy(node), ops)


def marked(node: dict[str, Any], taint: str = "", uid: str = "r1") -> dict[str, Any]:
    return applied(node, set_ops(struct(node), repair(uid), taint, AT)[0])


def cleared(node: dict[str, Any], uid: str = "r1") -> dict[str, Any]:
    mark = read_mark(struct(node))
    return applied(node, clear_ops(struct(node), mark.prior if mark else None, repair(uid)))


def ours(taint: dict[str, Any]) -> bool:
    return (taint["key"], taint["effect"]) == (names.QUARANTINE, "NoSchedule")


def facts(node: dict[str, Any]) -> dict[str, Any]:
    """What must be the same after as before; an empty map is an absent one, as the API server stores it."""
    taints = [{"value": "", **t} for t in node["spec"].get("taints") or []]
    return {
        "labels": node["metadata"].get("labels") or {},
        "annotations": node["metadata"].get("annotations") or {},
        "taints": sorted(taints, key=lambda t: (t["key"], t["effect"])),
        "unschedulable": bool(node["spec"].get("unschedulable")),
    }


@given(node=NODES, taint=st.sampled_from(["", "GPU", "Node"]))
@pytest.mark.case("R01")
@pytest.mark.case("R05")
@pytest.mark.case("N13")
def test_marks_set_and_cleared_give_the_node_back_as_it_was(node: dict[str, Any], taint: str) -> None:
    held = marked(node, taint)
    assert held["spec"]["unschedulable"] is True
    assert marked_by(struct(held), "r1")
    for key in (names.SCALE_DOWN_DISABLED, names.DO_NOT_DISRUPT):
        assert held["metadata"]["annotations"][key] == "true"
    if taint:
        before = [t.get("value", "") for t in node["spec"].get("taints") or [] if ours(t)]
        assert [t.get("value", "") for t in held["spec"]["taints"] if ours(t)] == (before or [taint])
    assert facts(cleared(held)) == facts(node)


@given(node=NODES, taint=st.sampled_from(["", "GPU"]), labels=st.dictionaries(FOREIGN, TEXTS, max_size=2),
       annotations=st.dictionaries(FOREIGN, TEXTS, max_size=2), dropped=st.lists(FOREIGN, max_size=2),
       new=st.sampled_from(["", "NoSchedule", "NoExecute"]))  # fmt: skip
def test_what_others_change_meanwhile_survives(
    node: dict[str, Any],
    taint: str,
    labels: dict[str, str],
    annotations: dict[str, str],
    dropped: list[str],
    new: str,
) -> None:
    def meddle(target: dict[str, Any]) -> dict[str, Any]:
        target = copy.deepcopy(target)
        meta, spec = target["metadata"], target["spec"]
        meta["labels"] = {k: v for k, v in (meta.get("labels") or {}).items() if k not in dropped} | labels
        kept = {k: v for k, v in (meta.get("annotations") or {}).items() if k not in dropped}
        meta["annotations"] = kept | annotations
        if new:
            spec["taints"] = [{"key": "example.com/new", "effect": new}, *(spec.get("taints") or [])]
        return target

    assert facts(cleared(meddle(marked(node, taint)))) == facts(meddle(node))


@given(node=NODES, taint=st.sampled_from(["", "GPU"]))
def test_setting_marks_twice_keeps_the_first_record(node: dict[str, Any], taint: str) -> None:
    again = marked(marked(node, taint), taint)
    assert facts(cleared(again)) == facts(node)


@given(node=NODES, taint=st.sampled_from(["", "GPU"]))
def test_the_leftover_mark_of_an_ended_incident_does_not_become_what_was_before(
    node: dict[str, Any], taint: str
) -> None:
    left_behind = marked(node, taint, uid="r0")
    held = marked(left_behind, taint, uid="r1")
    assert marked_by(struct(held), "r1")
    assert facts(cleared(held)) == facts(node)


def test_a_leftover_mark_on_a_node_that_a_person_has_uncordoned_and_cordoned_is_not_undone() -> None:
    left_behind = marked(raw())
    del left_behind["spec"]["unschedulable"]
    held = marked(left_behind, uid="r1")
    assert facts(cleared(held)) == facts(raw())


@pytest.mark.parametrize("prior", [None, "true", "false"])
@pytest.mark.case("R43")
def test_the_users_own_scale_down_disabled_comes_back(prior: str | None) -> None:
    annotations = {} if prior is None else {names.SCALE_DOWN_DISABLED: prior}
    held = marked(raw(annotations=annotations))
    assert held["metadata"]["annotations"][names.SCALE_DOWN_DISABLED] == "true"
    assert facts(cleared(held))["annotations"] == annotations


@pytest.mark.parametrize("now", ["false", None], ids=["changed", "removed"])
def test_a_keep_away_mark_that_a_person_has_changed_meanwhile_is_theirs(now: str | None) -> None:
    held = marked(raw(annotations={names.SCALE_DOWN_DISABLED: "true"}))
    if now is None:
        del held["metadata"]["annotations"][names.SCALE_DOWN_DISABLED]
    else:
        held["metadata"]["annotations"][names.SCALE_DOWN_DISABLED] = now
    expected = {} if now is None else {names.SCALE_DOWN_DISABLED: now}
    assert facts(cleared(held))["annotations"] == expected


def test_a_persons_uncordon_is_not_taken_back() -> None:
    held = marked(raw(cordon=False), "GPU")
    del held["spec"]["unschedulable"]
    assert facts(cleared(held)) == facts(raw())


@pytest.mark.parametrize("lift", [True, False], ids=["ours", "theirs"])
@pytest.mark.parametrize("taken", ["removed", "spoilt", "of-a-repair-that-is-not-there"])
def test_a_cordon_without_our_mark_goes_unless_it_is_somebody_elses(taken: str, lift: bool) -> None:
    held = marked(raw(), "GPU")
    prior = read_mark(struct(held)).prior  # type: ignore[union-attr]
    if taken == "removed":
        del held["metadata"]["annotations"][names.QUARANTINE]
    else:
        other = '{"repair":"x","uid":"other"}' if taken.startswith("of") else "{"
        held["metadata"]["annotations"][names.QUARANTINE] = other
    after = facts(applied(held, clear_ops(struct(held), prior, repair(), lift, astray=True)))
    assert after == facts(raw(cordon=not lift))


def test_quarantine_takes_off_a_stamp_that_tells_of_something_before_it() -> None:
    node = raw(annotations={names.CHANGED_BY: '{"user":"ann","what":"unschedulable"}'})
    assert names.CHANGED_BY not in marked(node)["metadata"]["annotations"]


def test_a_cordon_of_an_admin_survives() -> None:
    assert facts(cleared(marked(raw(cordon=True))))["unschedulable"] is True


@pytest.mark.parametrize("own", ["true", "false"])
def test_a_node_that_was_never_marked_is_not_touched(own: str) -> None:
    """Cancelled before Quarantine wrote anything: there is nothing to take back, not even what looks like ours."""
    taint = {"key": names.QUARANTINE, "value": "GPU", "effect": "NoSchedule"}
    node = raw(annotations={names.SCALE_DOWN_DISABLED: own, names.DO_NOT_DISRUPT: "true"}, taints=[taint], cordon=True)
    assert clear_ops(struct(node), None, repair()) == []


def test_the_marks_of_another_incident_are_not_ours_to_clear() -> None:
    held = marked(raw(), "GPU", uid="r2")
    assert clear_ops(struct(held), None, repair("r1")) == []


def test_a_question_of_ours_that_still_stands_goes_with_the_marks_and_only_that() -> None:
    prefix = names.APPROVAL_PREFIXES["sickbay"]
    asked, foreign = (names.approval_label(p, "Drain") for p in (prefix, names.APPROVAL_PREFIXES["ack"]))
    inquiry = {"repair": "n-r1", "uid": "r1", "step": "Drain", "attempt": 1, "nodeUID": "node-uid"}
    held = marked(raw(labels={foreign: "approved"}))
    held["metadata"]["labels"][asked] = "inquiring"
    held["metadata"]["annotations"][names.INQUIRY] = msgspec.json.encode(inquiry).decode()
    assert facts(cleared(held)) == facts(raw(labels={foreign: "approved"}))


def test_an_answered_question_with_its_stamp_goes_with_the_marks_in_one_patch() -> None:
    asked = names.approval_label(names.APPROVAL_PREFIXES["sickbay"], "Unquarantine")
    inquiry = msgspec.json.encode({"uid": "r1", "step": "Unquarantine", "attempt": 1}).decode()
    held = marked(raw(), "GPU")
    held["metadata"].setdefault("labels", {})[asked] = "approved"
    held["metadata"]["annotations"] |= {names.INQUIRY: inquiry, names.CHANGED_BY: '{"user":"ann"}'}
    prior = read_mark(struct(held)).prior  # type: ignore[union-attr]
    ops = clear_ops(struct(held), prior, repair("r1"))
    assert len({op["path"] for op in ops}) == len(ops), "a key that is removed twice makes the server refuse all"
    assert facts(applied(held, ops)) == facts(raw())


def test_the_stamp_of_who_answered_goes_with_the_question_also_where_the_node_was_never_marked() -> None:
    asked = names.approval_label(names.APPROVAL_PREFIXES["sickbay"], "Unquarantine")
    inquiry = msgspec.json.encode({"uid": "r1", "step": "Unquarantine", "attempt": 1}).decode()
    node = raw(labels={asked: "approved"}, annotations={names.INQUIRY: inquiry, names.CHANGED_BY: "{}"})
    after = facts(applied(node, clear_ops(struct(node), None, repair("r1"))))
    assert after == facts(raw())


@pytest.mark.parametrize(
    ("uncordoned", "stays"), [pytest.param(True, False, id="lifted"), pytest.param(False, True, id="only-unmarked")]
)
def test_a_foreign_cordon_that_was_lifted_meanwhile_does_not_come_back_with_our_mark(
    uncordoned: bool, stays: bool
) -> None:
    before = raw(cordon=True)
    held = marked(before)
    prior = read_mark(struct(held)).prior
    taken = raw(cordon=not uncordoned)
    record = repair("r1")
    record.status.prior = prior
    restored = applied(taken, restore_ops(struct(taken), record, "2027-03-01T09:00:00Z"))
    assert read_mark(struct(restored)).prior.unschedulable is stays
    assert struct(restored).unschedulable


@pytest.mark.parametrize("uid", ["r2", ""])
def test_the_question_of_another_incident_stays(uid: str) -> None:
    text = msgspec.json.encode({"uid": uid, "step": "Drain"}).decode()
    held = marked(raw(annotations={names.INQUIRY: text}))
    assert facts(cleared(held))["annotations"] == {names.INQUIRY: text}


@pytest.mark.parametrize("text", ["", "nonsense", "[]", "7", "{}", '{"uid": 7}', '{"prior": {"taints": 3}}'])
def test_a_mark_that_cannot_be_read_is_no_mark(text: str) -> None:
    node = raw(annotations={names.QUARANTINE: text})
    assert read_mark(struct(node)) is None
    assert not marked_by(struct(node), "")
    assert marked_by(struct(marked(node)), "r1")


def test_lifecycle_conditions_of_others_are_recorded_and_ours_are_not() -> None:
    node = raw()
    theirs = {"type": "DrainInProgress", "status": "False", "reason": "Other", "message": "m"}
    own = {"type": "Drained", "status": "True", "reason": "Sickbay", "message": ""}
    node["status"] = {"conditions": [theirs, own, {"type": "Ready", "status": "True"}]}
    _, prior = set_ops(struct(node), repair(), "", AT)
    assert [(c.type, c.status, c.reason, c.message) for c in prior.conditions] == [tuple(theirs.values())]
