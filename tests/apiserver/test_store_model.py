"""Whatever is written, watches and pages tell the same story as the objects themselves."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sickbay.apiserver.errors import StatusError
from sickbay.apiserver.listing import page, selection
from sickbay.apiserver.store import Store
from sickbay.apiserver.table import Watcher
from sickbay.clock import Randomness, SystemClock

NAMES = st.sampled_from(["a", "b", "c", "d"])
COLOURS = st.sampled_from(["red", "blue", None])
SELECTORS = ("", "colour=red", "colour!=red", "!colour")
Obj = dict[str, Any]


class Follower:
    """A client that lists once and then believes its watch."""

    def __init__(self, store: Store, labels: str) -> None:
        self.labels = labels
        self.objects = {obj["metadata"]["name"]: obj for obj in store.list("configmaps", "default", labels=labels)}
        chosen = selection(store.type("configmaps"), "default", labels)
        self.watcher: Watcher = store.watch("configmaps", chosen)

    def catch_up(self) -> None:
        for event in self.watcher.drain():
            obj, name = event.entry.obj, event.entry.obj["metadata"]["name"]
            if event.type == "ADDED":
                assert name not in self.objects
                self.objects[name] = obj
            elif event.type == "MODIFIED":
                assert int(self.objects[name]["metadata"]["resourceVersion"]) < event.entry.revision
                self.objects[name] = obj
            else:
                del self.objects[name]


class Clients(RuleBasedStateMachine):
    """Random writes; followers that started at any moment; pages begun at any moment."""

    @initialize()
    def begin(self) -> None:
        self.store = Store(SystemClock(), Randomness(0), history=1000)
        self.followers = [Follower(self.store, labels) for labels in SELECTORS]
        self.moments: list[tuple[str, list[Obj], str, list[Obj]]] = []

    @rule(name=NAMES, colour=COLOURS)
    def create(self, name: str, colour: str | None) -> None:
        labels = {"colour": colour} if colour else {}
        try:
            self.store.create("configmaps", {"metadata": {"name": name, "labels": labels}}, "default")
        except StatusError as error:
            assert error.reason == "AlreadyExists"

    @rule(name=NAMES, colour=COLOURS, finalizer=st.sampled_from([None, ["a.b/c"], []]))
    def change(self, name: str, colour: str | None, finalizer: list[str] | None) -> None:
        metadata: Obj = {"labels": {"colour": colour}}
        if finalizer is not None:
            metadata["finalizers"] = finalizer
        try:
            self.store.patch("configmaps", name, {"metadata": metadata}, namespace="default")
        except StatusError as error:
            assert error.code in (404, 422)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        try:
            self.store.delete("configmaps", name, "default")
        except StatusError as error:
            assert error.code == 404

    @rule(labels=st.sampled_from(SELECTORS))
    def follow(self, labels: str) -> None:
        self.followers.append(Follower(self.store, labels))

    @rule(which=st.integers(0, 30))
    def catch_up(self, which: int) -> None:
        self.followers[which % len(self.followers)].catch_up()

    @rule(labels=st.sampled_from(SELECTORS))
    def begin_pages(self, labels: str) -> None:
        chosen = selection(self.store.type("configmaps"), "default", labels)
        found = page(self.store.table("configmaps"), self.store.revision, chosen, limit=1)
        expected = self.store.list("configmaps", "default", labels=labels)
        if found.continue_token:
            self.moments.append((labels, [entry.obj for entry in found.entries], found.continue_token, expected))
        else:
            assert [entry.obj for entry in found.entries] == expected

    @rule()
    def go_on_with_pages(self) -> None:
        if not self.moments:
            return
        labels, seen, token, expected = self.moments.pop(0)
        chosen = selection(self.store.type("configmaps"), "default", labels)
        while token:
            found = page(self.store.table("configmaps"), self.store.revision, chosen, limit=1, token=token)
            seen += [entry.obj for entry in found.entries]
            token = found.continue_token
        assert seen == expected

    @invariant()
    def a_watch_from_the_start_replays_to_the_present(self) -> None:
        store = getattr(self, "store", None)
        if store is None:
            return
        replayed: dict[str, Obj] = {}
        for event in store.watch("configmaps", since=4).drain():
            if event.type == "DELETED":
                del replayed[event.entry.key]
            else:
                replayed[event.entry.key] = event.entry.obj
        assert replayed == {key: entry.obj for key, entry in store.table("configmaps").entries.items()}

    def teardown(self) -> None:
        for follower in getattr(self, "followers", ()):
            follower.catch_up()
            present = self.store.list("configmaps", "default", labels=follower.labels)
            assert follower.objects == {obj["metadata"]["name"]: obj for obj in present}


TestClients = Clients.TestCase
TestClients.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)
