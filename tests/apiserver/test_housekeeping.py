"""Namespaces that end, dependents without owners, Events that expire."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sickbay.apiserver.errors import StatusError
from sickbay.apiserver.housekeeping import EVENT_LIFE, Housekeeper, last_seen
from sickbay.apiserver.store import Store
from sickbay.clock import Randomness, rfc3339, rfc3339_micro

START = datetime(2026, 1, 1, tzinfo=UTC)
CONFIG_MAPS = "configmaps"


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.moment = START

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return (self.moment - START).total_seconds()

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(clock: Clock) -> Store:
    return Store(clock, Randomness(1))


def owner_of(obj: dict[str, Any], *, blocks: bool = False) -> dict[str, Any]:
    meta = obj["metadata"]
    reference = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": meta["name"], "uid": meta["uid"]}
    return reference | ({"blockOwnerDeletion": True} if blocks else {})


def make(store: Store, name: str, *owners: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
    body: dict[str, Any] = {"metadata": {"name": name}}
    if owners:
        body["metadata"]["ownerReferences"] = list(owners)
    return store.create(CONFIG_MAPS, body, namespace)


def names(store: Store, namespace: str = "default") -> list[str]:
    return [obj["metadata"]["name"] for obj in store.list(CONFIG_MAPS, namespace)]


def test_a_dependent_goes_with_its_last_owner(kept: Store) -> None:
    first, second = make(kept, "first"), make(kept, "second")
    make(kept, "child", owner_of(first), owner_of(second))
    grandchild = owner_of(kept.get(CONFIG_MAPS, "child", "default"))
    make(kept, "grandchild", grandchild)
    housekeeper = Housekeeper(kept)
    kept.delete(CONFIG_MAPS, "first", "default")
    housekeeper.step()
    assert names(kept) == ["child", "grandchild", "second"]
    kept.delete(CONFIG_MAPS, "second", "default")
    housekeeper.step()
    assert names(kept) == []


def test_an_owner_of_the_same_name_is_another_owner(kept: Store) -> None:
    make(kept, "child", owner_of(make(kept, "owner")))
    kept.delete(CONFIG_MAPS, "owner", "default")
    make(kept, "owner")
    Housekeeper(kept).step()
    assert names(kept) == ["owner"]


def test_owners_may_be_of_other_kinds_and_scopes(kept: Store) -> None:
    node = kept.create("nodes", {"metadata": {"name": "n"}})
    make(kept, "child", owner_of(node))
    housekeeper = Housekeeper(kept)
    housekeeper.step()
    assert names(kept) == ["child"]
    kept.delete("nodes", "n")
    housekeeper.step()
    assert names(kept) == []


def test_a_finalizer_of_the_dependent_is_respected(kept: Store) -> None:
    make(kept, "child", owner_of(make(kept, "owner")))
    kept.patch(CONFIG_MAPS, "child", {"metadata": {"finalizers": ["a.b/c"]}}, namespace="default")
    kept.delete(CONFIG_MAPS, "owner", "default")
    Housekeeper(kept).step()
    child = kept.get(CONFIG_MAPS, "child", "default")
    assert child["metadata"]["deletionTimestamp"]
    kept.patch(CONFIG_MAPS, "child", {"metadata": {"finalizers": None}}, namespace="default")
    assert names(kept) == []


@pytest.mark.parametrize("blocks", [True, False])
def test_foreground_deletion_waits_for_those_that_block(kept: Store, blocks: bool) -> None:
    owner = make(kept, "owner")
    make(kept, "child", owner_of(owner, blocks=blocks))
    kept.patch(CONFIG_MAPS, "child", {"metadata": {"finalizers": ["a.b/c"]}}, namespace="default")
    housekeeper = Housekeeper(kept)
    kept.delete(CONFIG_MAPS, "owner", "default", propagation="Foreground")
    housekeeper.step()
    assert kept.get(CONFIG_MAPS, "child", "default")["metadata"]["deletionTimestamp"]
    assert ("owner" in names(kept)) is blocks
    kept.patch(CONFIG_MAPS, "child", {"metadata": {"finalizers": None}}, namespace="default")
    housekeeper.step()
    assert names(kept) == []


def test_orphans_lose_the_reference_and_stay(kept: Store) -> None:
    owner, other = make(kept, "owner"), make(kept, "other")
    make(kept, "child", owner_of(owner), owner_of(other))
    kept.delete(CONFIG_MAPS, "owner", "default", propagation="Orphan")
    Housekeeper(kept).step()
    assert names(kept) == ["child", "other"]
    [reference] = kept.get(CONFIG_MAPS, "child", "default")["metadata"]["ownerReferences"]
    assert reference["name"] == "other"


def test_a_namespace_goes_when_it_is_empty(kept: Store) -> None:
    kept.create("namespaces", {"metadata": {"name": "team"}})
    make(kept, "a", namespace="team")
    make(kept, "held", namespace="team")
    kept.patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": ["a.b/c"]}}, namespace="team")
    housekeeper = Housekeeper(kept)
    kept.delete("namespaces", "team")
    housekeeper.step()
    assert names(kept, "team") == ["held"]
    assert kept.get("namespaces", "team")["status"]["phase"] == "Terminating"
    with pytest.raises(StatusError, match="being terminated"):
        make(kept, "late", namespace="team")
    kept.patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": None}}, namespace="team")
    housekeeper.step()
    assert kept.find("namespaces", "team") is None
    make(kept, "untouched")


def test_a_finalizer_of_ones_own_keeps_a_namespace(kept: Store) -> None:
    kept.create("namespaces", {"metadata": {"name": "team", "finalizers": ["a.b/c"]}})
    kept.delete("namespaces", "team")
    housekeeper = Housekeeper(kept)
    housekeeper.step()
    assert kept.get("namespaces", "team")["spec"]["finalizers"] == []
    kept.patch("namespaces", "team", {"metadata": {"finalizers": None}})
    assert kept.find("namespaces", "team") is None


def event(name: str, **fields: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    return {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "type": "Normal"} | fields


def test_events_expire_an_hour_after_they_were_last_seen(kept: Store, clock: Clock) -> None:
    later = START + timedelta(minutes=30)
    kept.create("events", event("created"), "default")
    kept.create("events", event("counted", lastTimestamp=rfc3339(later), count=2), "default")
    modern = {"reportingComponent": "c", "reportingInstance": "i", "action": "A", "eventTime": rfc3339_micro(START)}
    series = {"count": 2, "lastObservedTime": rfc3339_micro(later + timedelta(minutes=1))}
    kept.create("events", event("modern", series=series, **modern), "default")
    housekeeper = Housekeeper(kept)
    left = []
    for minutes in (59, 61, 91, 92):
        clock.moment = START + timedelta(minutes=minutes)
        housekeeper.step()
        left.append([obj["metadata"]["name"] for obj in kept.list("events")])
    assert left == [["counted", "created", "modern"], ["counted", "modern"], ["modern"], []]
    assert timedelta(hours=1) == EVENT_LIFE


def test_an_event_without_times_was_seen_when_it_was_made() -> None:
    assert last_seen({"metadata": {"creationTimestamp": rfc3339(START)}}) == START


async def test_a_deletion_wakes_the_housekeeper(timed_store: Store) -> None:
    make(timed_store, "child", owner_of(make(timed_store, "owner")))
    running = asyncio.ensure_future(Housekeeper(timed_store).run())
    await asyncio.sleep(1)  # noqa: TID251 - virtual
    timed_store.delete(CONFIG_MAPS, "owner", "default")
    await asyncio.sleep(1)  # noqa: TID251 - virtual
    assert names(timed_store) == []
    running.cancel()
    await asyncio.wait([running])


async def test_events_expire_while_nothing_is_deleted(timed_store: Store) -> None:
    timed_store.create("events", event("e"), "default")
    running = asyncio.ensure_future(Housekeeper(timed_store).run())
    await asyncio.sleep(EVENT_LIFE.total_seconds() - 120)  # noqa: TID251 - virtual
    assert len(timed_store.list("events")) == 1
    await asyncio.sleep(300)  # noqa: TID251 - virtual
    assert timed_store.list("events") == []
    running.cancel()
    await asyncio.wait([running])
