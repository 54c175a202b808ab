"""The store, called directly: sharing, hooks, dry runs, history, watchers."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from sickbay.apiserver.errors import StatusError
from sickbay.apiserver.listing import page, selection
from sickbay.apiserver.store import MERGE, STRATEGIC, Store
from sickbay.apiserver.table import MAX_PENDING, Filter
from sickbay.apiserver.writes import Caller, Write
from sickbay.clock import Randomness, SystemClock

KUBELET = Caller("system:node:n", ("system:nodes",), "kubelet/1")


def node(name: str = "n", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name} | metadata, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def test_what_is_given_is_copied_and_what_is_handed_out_is_kept(store: Store) -> None:
    given = node(labels={"a": "b"})
    first = store.create("nodes", given)
    given["metadata"]["labels"]["a"] = "changed"
    kept = copy.deepcopy(first)
    second = store.patch("nodes", "n", {"metadata": {"labels": {"c": "d"}}})
    assert first == kept
    assert second["metadata"]["labels"] == {"a": "b", "c": "d"}
    assert second["status"] is first["status"]
    assert store.get("nodes", "n") is second


def test_an_object_that_is_not_json_is_refused(store: Store) -> None:
    with pytest.raises(StatusError, match="the object is not JSON"):
        store.create("nodes", {"metadata": {"name": "n"}, "spec": {"when": object()}})


def test_versions_rise_over_all_resources(store: Store) -> None:
    versions = [
        int(obj["metadata"]["resourceVersion"])
        for obj in (
            store.create("nodes", node("a")),
            store.create("configmaps", {"metadata": {"name": "c"}}, "default"),
            store.patch("nodes", "a", {"spec": {"unschedulable": True}}),
            store.delete("nodes", "a").obj,
        )
    ]
    assert versions == list(range(versions[0], versions[0] + 4))
    assert store.revision == versions[-1]


def test_the_same_seed_gives_the_same_cluster() -> None:
    def cluster() -> list[str]:
        store = Store(SystemClock(), Randomness(7))
        names = [store.create("nodes", {"metadata": {"generateName": "n-"}})["metadata"] for _ in range(3)]
        return [f"{meta['name']} {meta['uid']}" for meta in names]

    assert cluster() == cluster()


def test_an_unknown_resource_is_not_found(store: Store) -> None:
    with pytest.raises(StatusError) as refused:
        store.get("unicorns.example.com", "u")
    assert refused.value.code == 404
    assert store.find("unicorns.example.com", "u") is None


class Recorder:
    """Keeps what the hooks were told."""

    def __init__(self, store: Store) -> None:
        self.before: list[Write] = []
        self.after: list[Write] = []
        store.before_write(self.before.append)
        store.after_write(self.after.append)

    def verbs(self) -> list[tuple[str, str, str, str]]:
        return [(write.verb, write.resource, write.name, write.subresource) for write in self.after]


def test_hooks_see_every_write_before_and_after(store: Store) -> None:
    recorder = Recorder(store)
    store.create("nodes", node(), caller=KUBELET)
    store.patch("nodes", "n", {"status": {"phase": "X"}}, MERGE, subresource="status", caller=KUBELET)
    store.update("nodes", store.get("nodes", "n") | {"spec": {"unschedulable": True}}, caller=KUBELET)
    store.delete("nodes", "n", caller=KUBELET)
    assert recorder.verbs() == [
        ("create", "nodes", "n", ""),
        ("patch", "nodes", "n", "status"),
        ("update", "nodes", "n", ""),
        ("delete", "nodes", "n", ""),
    ]
    assert {(write.user, write.user_agent, write.kind) for write in recorder.after} == {
        ("system:node:n", "kubelet/1", "Node")
    }
    created, patched, updated, deleted = recorder.after
    assert (created.old, deleted.new) == (None, None)
    assert patched.old is created.new
    assert updated.new is not None
    assert updated.new["spec"] == {"unschedulable": True}
    befores = [(write.old is not None, write.new is not None) for write in recorder.before]
    assert befores == [(False, True), (True, False), (True, True), (True, False)]


def test_a_write_that_changes_nothing_is_reported_as_such(store: Store) -> None:
    store.create("nodes", node())
    recorder = Recorder(store)
    store.patch("nodes", "n", {"metadata": {"labels": None}})
    [write] = recorder.after
    assert write.old is write.new


def test_evictions_and_bindings_are_reported_under_their_own_names(store: Store) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    store.create("pods", pod, "default")
    recorder = Recorder(store)
    store.bind("p", "default", "n1")
    store.evict("p", "default")
    assert recorder.verbs() == [("create", "pods", "p", "binding"), ("evict", "pods", "p", "eviction")]


def test_a_hook_may_refuse_a_write_which_then_never_was(store: Store) -> None:
    def refuse(write: Write) -> None:
        if write.name == "forbidden":
            raise StatusError(500, "InternalError", "injected")

    store.before_write(refuse)
    revision = store.revision
    with pytest.raises(StatusError, match="injected"):
        store.create("nodes", node("forbidden"))
    assert (store.find("nodes", "forbidden"), store.revision) == (None, revision)


def test_a_hook_may_write_first_and_the_write_is_judged_after_it(store: Store) -> None:
    store.create("nodes", node())
    stale = store.get("nodes", "n")
    meddled: list[str] = []

    def meddle(write: Write) -> None:
        if write.user == "us" and not meddled:
            meddled.append(write.name)
            store.patch("nodes", "n", {"metadata": {"labels": {"theirs": "1"}}})

    store.before_write(meddle)
    with pytest.raises(StatusError) as refused:
        store.update("nodes", stale | {"spec": {"unschedulable": True}}, caller=Caller("us"))
    assert refused.value.code == 409
    assert store.get("nodes", "n")["metadata"]["labels"] == {"theirs": "1"}


def test_a_dry_run_reaches_neither_hooks_after_nor_watchers_nor_the_revision(store: Store) -> None:
    store.create("nodes", node())
    recorder, watcher, revision = Recorder(store), store.watch("nodes"), store.revision
    store.create("nodes", node("other"), dry_run=True)
    store.patch("nodes", "n", {"metadata": {"labels": {"a": "b"}}}, dry_run=True)
    store.delete("nodes", "n", dry_run=True)
    assert (recorder.after, watcher.drain(), store.revision) == ([], [], revision)


def test_a_watcher_is_rung_once_it_has_something(store: Store) -> None:
    watcher = store.watch("nodes")
    rings: list[int] = []
    watcher.on_ready = lambda: rings.append(1)
    store.create("nodes", node())
    assert len(rings) == 1
    assert [(event.type, event.entry.key) for event in watcher.drain()] == [("ADDED", "n")]
    assert watcher.drain() == []
    watcher.close()
    store.create("nodes", node("other"))
    assert watcher.drain() == []


@pytest.mark.parametrize("fields", ["", "metadata.name=n"])
def test_watchers_of_one_name_and_of_all_see_the_same_of_it(store: Store, fields: str) -> None:
    kind = store.type("nodes")
    watcher = store.watch("nodes", selection(kind, fields=fields))
    store.create("nodes", node())
    store.patch("nodes", "n", {"spec": {"unschedulable": True}})
    store.delete("nodes", "n")
    assert [event.type for event in watcher.drain()] == ["ADDED", "MODIFIED", "DELETED"]
    watcher.close()
    assert store.table("nodes").watchers() == []


def test_a_watch_by_a_field_sees_objects_come_to_its_value_and_leave_it(store: Store) -> None:
    kind = store.type("pods")
    watchers = {
        value: store.watch("pods", selection(kind, fields=f"spec.nodeName={value}")) for value in ("", "n1", "n2")
    }
    store.create("pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}, "default")
    store.bind("p", "default", "n1")
    store.delete("pods", "p", "default", grace=0)
    seen = {value: [event.type for event in watcher.drain()] for value, watcher in watchers.items()}
    assert seen == {"": ["ADDED", "DELETED"], "n1": ["ADDED", "DELETED"], "n2": []}


def test_a_field_that_compares_as_something_while_absent_triggers_by_that(store: Store) -> None:
    kind = store.type("nodes")
    schedulable = store.watch("nodes", selection(kind, fields="spec.unschedulable=false"))
    store.create("nodes", node())
    store.patch("nodes", "n", {"spec": {"unschedulable": True}})
    store.patch("nodes", "n", {"spec": {"unschedulable": None}})
    assert [event.type for event in schedulable.drain()] == ["ADDED", "DELETED", "ADDED"]


def test_a_watcher_that_nobody_reads_is_ended(store: Store) -> None:
    watcher = store.watch("nodes")
    store.create("nodes", node())
    change = next(store.table("nodes").changes_since(store.revision - 1))
    for _ in range(MAX_PENDING):
        watcher.offer(change)
    assert watcher.closed
    assert watcher.drain() == []


def test_history_is_a_ring_and_what_fell_out_is_gone() -> None:
    store = Store(SystemClock(), Randomness(1), history=3)
    start = store.revision
    for number in range(5):
        store.create("nodes", node(f"n{number}"))
    with pytest.raises(StatusError) as refused:
        store.watch("nodes", since=start)
    assert (refused.value.code, refused.value.reason) == (410, "Expired")
    kept = store.watch("nodes", since=start + 2).drain()
    assert [event.entry.key for event in kept] == ["n2", "n3", "n4"]


def test_a_table_can_be_seen_as_it_was(store: Store) -> None:
    store.create("nodes", node("a"))
    store.create("nodes", node("b"))
    then = store.revision
    before = {key: entry.obj for key, entry in store.table("nodes").entries.items()}
    store.patch("nodes", "a", {"spec": {"unschedulable": True}})
    store.delete("nodes", "b")
    store.create("nodes", node("b"))
    store.create("nodes", node("c"))
    assert {key: entry.obj for key, entry in store.table("nodes").at(then).items()} == before


def test_a_page_after_compaction_has_expired(store: Store) -> None:
    for number in range(4):
        store.create("nodes", node(f"n{number}"))
    first = page(store.table("nodes"), store.revision, Filter(), limit=2)
    store.create("nodes", node("late"))
    store.compact()
    with pytest.raises(StatusError) as refused:
        page(store.table("nodes"), store.revision, Filter(), limit=2, token=first.continue_token)
    assert (refused.value.code, refused.value.reason) == (410, "Expired")
    assert "You must start a new list without the continue parameter" in refused.value.message


def test_disconnecting_ends_every_watch_of_the_resource(store: Store) -> None:
    nodes, pods = store.watch("nodes"), store.watch("pods")
    store.disconnect("nodes")
    assert (nodes.closed, pods.closed) == (True, False)
    store.disconnect()
    assert pods.closed


def test_lists_are_in_key_order_and_can_be_narrowed(store: Store) -> None:
    store.create("namespaces", {"metadata": {"name": "a"}})
    for namespace, name in (("default", "z"), ("a", "y"), ("default", "b")):
        store.create("configmaps", {"metadata": {"name": name, "labels": {"l": name}}}, namespace)
    every = [(obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in store.list("configmaps")]
    assert every == [("a", "y"), ("default", "b"), ("default", "z")]
    assert [obj["metadata"]["name"] for obj in store.list("configmaps", "default", labels="l!=b")] == ["z"]
    assert [obj["metadata"]["name"] for obj in store.list("configmaps", fields="metadata.name=y")] == ["y"]


def test_a_namespace_does_not_leak_into_one_with_a_longer_name(store: Store) -> None:
    for name in ("team", "team-a", "team-b", "team0"):
        store.create("namespaces", {"metadata": {"name": name}})
        store.create("configmaps", {"metadata": {"name": "c"}}, name)
    assert [obj["metadata"]["namespace"] for obj in store.list("configmaps", "team")] == ["team"]


def test_conditions_are_patched_without_copying_the_rest(store: Store) -> None:
    store.create("nodes", node(annotations={"a": "b"}) | {"spec": {"providerID": "x"}})
    before = store.get("nodes", "n")
    body = {"status": {"conditions": [{"type": "Bad", "status": "True"}]}}
    after = store.patch("nodes", "n", body, STRATEGIC, subresource="status")
    assert after["spec"] is before["spec"]
    assert after["metadata"]["annotations"] is before["metadata"]["annotations"]
    assert [entry["type"] for entry in after["status"]["conditions"]] == ["Bad", "Ready"]
