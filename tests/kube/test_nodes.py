"""Writing Nodes: what is foreign survives us, and what we undo is as it was before."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.api.core import Node, NodeCondition, Taint
from sickbay.api.kinds import NODE
from sickbay.apiserver import jsonpatch
from sickbay.clock import Clock
from sickbay.kube import errors, nodes
from tests.kube.served import Server

NOW, LATER = "2027-03-01T08:00:00Z", "2027-03-01T09:00:00Z"

keys = st.sampled_from(
    ["a", "sickbay.dev/quarantine", "example.com/b", "x~y", "x~1y", "intervention.sickbay.dev/drain-node", ""]
).filter(bool)
values = st.text("abc/~ä", max_size=4)
maps = st.one_of(st.none(), st.dictionaries(keys, values, max_size=5))
changes = st.dictionaries(keys, st.one_of(st.none(), values), max_size=5)
effects = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
foreign_taints = st.lists(
    st.builds(
        lambda key, effect, value, more: {"key": key, "effect": effect} | value | more,
        keys,
        effects,
        st.sampled_from([{}, {"value": "v"}]),
        st.sampled_from([{}, {"timeAdded": NOW}, {"fieldOfTheFuture": [1, {"x": None}]}]),
    ),
    max_size=5,
    unique_by=lambda t: (t["key"], t["effect"]),
)
our_taints = st.builds(lambda key, effect, value: Taint(key=key, effect=effect, value=value), keys, effects, values)


def raw_node(labels: Any = None, annotations: Any = None, taints: Any = None, cordoned: bool = False) -> dict[str, Any]:
    """A Node as the server has it, with fields that our struct does not know."""
    node: dict[str, Any] = {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "7", "managedFields": [{"manager": "kubelet"}]},
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": "x:///1"},
        "status": {"images": [{"names": ["i"]}]},
    }
    for section, field, value in (
        ("metadata", "labels", labels),
        ("metadata", "annotations", annotations),
        ("spec", "taints", taints),
        ("spec", "unschedulable", cordoned or None),
    ):
        if value is not None:
            node[section][field] = value
    return node


def struct(raw: dict[str, Any]) -> Node:
    return msgspec.convert(raw, Node)


def applied(raw: dict[str, Any], ops: list[nodes.Op]) -> dict[str, Any]:
    before = copy.deepcopy(raw)
    result: dict[str, Any] = jsonpatch.apply(copy.deepcopy(raw), ops)
    assert raw == before
    return result


def pruned(raw: dict[str, Any]) -> dict[str, Any]:
    """As the server stores it: empty maps and lists and a false flag are left out."""
    return {section: {k: v for k, v in content.items() if v not in ({}, [], False)} for section, content in raw.items()}


@given(current=maps, wanted=changes, which=st.sampled_from(["labels", "annotations"]))
def test_labels_and_annotations_get_their_values_and_all_others_stay(
    current: dict[str, str] | None, wanted: dict[str, str | None], which: str
) -> None:
    raw = raw_node(**{which: current})
    build = nodes.label_ops if which == "labels" else nodes.annotation_ops
    after = applied(raw, build(struct(raw), wanted))
    expected = {k: v for k, v in (current or {}).items() if k not in wanted}
    expected |= {k: v for k, v in wanted.items() if v is not None}
    assert after["metadata"].get(which, {}) == expected
    after["metadata"].pop(which, None)
    raw["metadata"].pop(which, None)
    assert after == raw, "nothing else changes"


@given(current=maps, wanted=changes)
def test_undoing_a_change_of_annotations_gives_the_node_as_it_was(
    current: dict[str, str] | None, wanted: dict[str, str | None]
) -> None:
    raw = raw_node(annotations=current)
    prior = {key: (current or {}).get(key) for key in wanted}
    changed = applied(raw, nodes.annotation_ops(struct(raw), wanted))
    restored = applied(changed, nodes.annotation_ops(struct(changed), prior))
    assert pruned(restored) == pruned(raw)


@given(current=maps)
def test_what_is_already_so_is_not_written(current: dict[str, str] | None) -> None:
    node = struct(raw_node(labels=current))
    assert nodes.label_ops(node, dict(current or {})) == []
    assert nodes.label_ops(node, {"not/there": None}) == []


@given(foreign=foreign_taints, ours=st.lists(our_taints, max_size=3))
def test_foreign_taints_are_never_rewritten(foreign: list[dict[str, Any]], ours: list[Taint]) -> None:
    raw = raw_node(taints=foreign or None)
    after = applied(raw, nodes.taint_ops(struct(raw), add=ours))
    own = {(t.key, t.effect): t for t in ours}
    found = after["spec"].get("taints", [])
    assert [t for t in found if (t["key"], t["effect"]) not in own] == [
        t for t in foreign if (t["key"], t["effect"]) not in own
    ]
    assert {(t["key"], t["effect"]): t.get("value", "") for t in found if (t["key"], t["effect"]) in own} == {
        key: taint.value for key, taint in own.items()
    }
    after["spec"].pop("taints", None)
    raw["spec"].pop("taints", None)
    assert after == raw


@given(foreign=foreign_taints, ours=our_taints)
def test_a_taint_that_is_taken_away_again_leaves_the_others_as_they_were(
    foreign: list[dict[str, Any]], ours: Taint
) -> None:
    foreign = [t for t in foreign if (t["key"], t["effect"]) != (ours.key, ours.effect)]
    raw = raw_node(taints=foreign or None)
    tainted = applied(raw, nodes.taint_ops(struct(raw), add=[ours]))
    cleared = applied(tainted, nodes.taint_ops(struct(tainted), remove=[(ours.key, ours.effect)]))
    assert pruned(cleared) == pruned(raw)


@given(taints=foreign_taints, data=st.data())
def test_several_taints_leave_at_once(taints: list[dict[str, Any]], data: st.DataObject) -> None:
    leaving = data.draw(st.lists(st.sampled_from(taints), unique_by=str)) if taints else []
    raw = raw_node(taints=taints or None)
    pairs = [(t["key"], t["effect"]) for t in leaving]
    after = applied(raw, nodes.taint_ops(struct(raw), remove=[*pairs, ("absent", "NoSchedule")]))
    assert after["spec"].get("taints", []) == [t for t in taints if t not in leaving]


def test_a_taint_both_set_and_taken_away_is_set() -> None:
    ours = Taint(key="k", effect="NoSchedule", value="v")
    raw = raw_node(taints=[{"key": "k", "effect": "NoSchedule", "value": "v"}])
    assert nodes.taint_ops(struct(raw), add=[ours], remove=[("k", "NoSchedule")]) == []


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("wanted", [True, False])
def test_a_node_is_cordoned_and_uncordoned_only_where_it_is_not_so_already(before: bool, wanted: bool) -> None:
    raw = raw_node(cordoned=before)
    ops = nodes.unschedulable_ops(struct(raw), wanted)
    assert bool(ops) == (before != wanted)
    assert applied(raw, ops)["spec"].get("unschedulable", False) == wanted
    assert "unschedulable" not in applied(raw, ops)["spec"] or wanted


def test_an_explicit_false_is_cordoned_too() -> None:
    raw = raw_node()
    raw["spec"]["unschedulable"] = False
    assert applied(raw, nodes.unschedulable_ops(struct(raw), True))["spec"]["unschedulable"] is True


def test_a_node_that_was_not_read_from_the_server_cannot_be_guarded() -> None:
    with pytest.raises(ValueError, match="not read from the API server"):
        nodes.guard_ops(Node())


@pytest.mark.parametrize(
    ("key", "token"), [("a", "a"), ("a/b", "a~1b"), ("a~b", "a~0b"), ("~1", "~01"), ("a/b~c/d", "a~1b~0c~1d")]
)
def test_keys_are_escaped_for_pointers(key: str, token: str) -> None:
    assert nodes.escape(key) == token


def ready(status: str = "True", reason: str = "Fine", message: str = "", since: str = NOW) -> NodeCondition:
    return NodeCondition(type="X", status=status, reason=reason, message=message, last_transition_time=since)


@pytest.mark.parametrize(
    ("old", "new", "since"),
    [
        pytest.param(None, ("True", "Bad", "m"), LATER, id="first time"),
        pytest.param(ready(), ("True", "Other", ""), NOW, id="another reason"),
        pytest.param(ready(), ("True", "Fine", "more"), NOW, id="another message"),
        pytest.param(ready(), ("False", "Fine", ""), LATER, id="another status"),
        pytest.param(ready(since=""), ("True", "Other", ""), LATER, id="a time that was missing"),
        pytest.param(ready(), ("True", "Fine", ""), None, id="the same again"),
    ],
)
def test_the_transition_time_moves_only_with_the_status(
    old: NodeCondition | None, new: tuple[str, str, str], since: str | None
) -> None:
    node = Node() if old is None else msgspec.convert({"status": {"conditions": [msgspec.to_builtins(old)]}}, Node)
    wanted = nodes.condition(node, "X", *new, now=LATER)
    assert (wanted.last_transition_time if wanted else None) == since
    if wanted:
        assert wanted.last_heartbeat_time == LATER


def test_a_heartbeat_is_written_where_it_is_asked_for() -> None:
    node = msgspec.convert({"status": {"conditions": [msgspec.to_builtins(ready())]}}, Node)
    beat = nodes.condition(node, "X", "True", "Fine", "", now=LATER, heartbeat=True)
    assert beat is not None
    assert (beat.last_heartbeat_time, beat.last_transition_time) == (LATER, NOW)


# -- on an API server


@pytest.fixture
async def server(clock: Clock) -> Server:
    return Server(clock)


async def read_node(server: Server, **more: Any) -> Node:
    client, _ = server.client()
    return await client.create(NODE, raw_node(**more) | {"metadata": {"name": "n", "labels": more.get("labels") or {}}})


async def test_a_patch_goes_through_on_the_node_as_it_was_read(server: Server) -> None:
    client, _ = server.client()
    node = await read_node(server, taints=[{"key": "theirs", "effect": "NoSchedule"}])
    ops = nodes.annotation_ops(node, {"sickbay.dev/quarantine": "{}"}) + nodes.unschedulable_ops(node, True)
    ops += nodes.taint_ops(node, add=[Taint(key="sickbay.dev/quarantine", value="GPU", effect="NoSchedule")])
    written = await nodes.patch_node(client, node, ops)
    assert written.unschedulable
    assert written.annotations == {"sickbay.dev/quarantine": "{}"}
    # The server taints every new node until it is ready.
    keys = [t.key for t in written.taints if t.key != "node.kubernetes.io/not-ready"]
    assert keys == ["theirs", "sickbay.dev/quarantine"]
    assert server.get("nodes", "n")["spec"]["podCIDR"] == "10.0.0.0/24"


async def test_a_patch_on_a_node_that_changed_meanwhile_is_a_conflict_and_changes_nothing(server: Server) -> None:
    client, _ = server.client()
    node = await read_node(server)
    await client.patch_merge(NODE, "n", {"metadata": {"labels": {"theirs": "1"}}})
    with pytest.raises(errors.Conflict):
        await nodes.patch_node(client, node, nodes.unschedulable_ops(node, True))
    assert "unschedulable" not in server.get("nodes", "n")["spec"]


async def test_a_patch_for_a_node_made_anew_under_its_name_is_a_conflict(server: Server) -> None:
    client, _ = server.client()
    node = await read_node(server)
    await client.delete(NODE, "n", uid=node.uid)
    await read_node(server)
    with pytest.raises(errors.Conflict):
        await nodes.patch_node(client, node, nodes.unschedulable_ops(node, True))


async def test_nothing_to_write_sends_nothing(server: Server) -> None:
    client, cut = server.client()
    node = await read_node(server)
    cut.down = True
    assert await nodes.patch_node(client, node, []) is node


async def test_conditions_are_set_and_removed_one_by_one(server: Server) -> None:
    client, _ = server.client()
    node = await read_node(server)
    theirs = NodeCondition(type="Ready", status="True", reason="KubeletReady", message="ok", last_transition_time=NOW)
    bad = ready("True", "Bad", "broken")
    await nodes.set_conditions(client, "n", [theirs, bad])
    written = await nodes.set_conditions(client, "n", [ready("False", "", "")], uid=node.uid)
    assert written.condition("Ready") == theirs
    cleared = written.condition("X")
    assert cleared is not None
    assert (cleared.status, cleared.reason, cleared.message) == ("False", "", "")
    after = await nodes.set_conditions(client, "n", [], remove=["X", "NeverThere"])
    assert [c.type for c in after.conditions] == ["Ready"]
    assert server.get("nodes", "n")["status"]["images"] == [{"names": ["i"]}]


async def test_conditions_for_a_node_made_anew_under_its_name_are_a_conflict(server: Server) -> None:
    client, _ = server.client()
    node = await read_node(server)
    await client.delete(NODE, "n", uid=node.uid)
    await read_node(server)
    with pytest.raises(errors.Conflict):
        await nodes.set_conditions(client, "n", [ready()], uid=node.uid)
    assert server.get("nodes", "n")["status"].get("conditions", []) == []
