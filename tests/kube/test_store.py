"""The store never goes back, whoever brings the news in whatever order."""

from __future__ import annotations

import pytest

from sickbay.api.core import Node
from sickbay.api.meta import ObjectMeta
from sickbay.kube.store import Change, Store


def node(name: str, version: int | str, uid: str = "u", **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, uid=uid, resource_version=str(version), labels=labels))


def store_of(*nodes: Node, horizon: int = 100) -> Store[Node]:
    store: Store[Node] = Store({"pool": lambda n: [n.labels["pool"]] if "pool" in n.labels else []})
    store.replace(nodes, horizon)
    return store


def versions(store: Store[Node]) -> dict[str, str]:
    return {n.name: n.metadata.resource_version for n in store.all()}


@pytest.mark.parametrize(
    ("incoming", "taken"),
    [
        pytest.param(node("a", 101), True, id="newer"),
        pytest.param(node("a", 90), False, id="the same again"),
        pytest.param(node("a", 80), False, id="older"),
        pytest.param(node("a", 1000), True, id="numbers, not text"),
        pytest.param(node("a", 101, uid="v"), True, id="successor of that name"),
        pytest.param(node("a", 80, uid="t"), False, id="predecessor of that name"),
        pytest.param(node("b", 101), True, id="new object"),
        pytest.param(node("b", 95), False, id="deleted before the horizon"),
    ],
)
def test_only_news_is_taken_in(incoming: Node, taken: bool) -> None:
    store = store_of(node("a", 90))
    change = store.upsert(incoming)
    assert (change is not None) == taken
    assert (store.get(incoming.name) is incoming) == taken


def test_versions_that_are_no_numbers_are_taken_as_they_come() -> None:
    store = store_of(node("a", "x7"), horizon=0)
    assert store.upsert(node("a", "x3")) is not None
    assert store.upsert(node("a", "x3")) is None
    assert versions(store) == {"a": "x3"}


@pytest.mark.parametrize(
    ("uid", "version", "removed"),
    [
        pytest.param("u", 101, True, id="this object"),
        pytest.param("", None, True, id="whatever has the name"),
        pytest.param("t", 101, False, id="its predecessor"),
        pytest.param("u", 80, False, id="before it was seen alive"),
    ],
)
def test_a_deletion_takes_only_what_was_deleted(uid: str, version: int | None, removed: bool) -> None:
    known = node("a", 90)
    store = store_of(known)
    assert store.remove(("", "a"), uid, version) == (Change(known, None) if removed else None)
    assert (("", "a") in store) == (not removed)


def test_a_deletion_of_what_is_not_there_changes_nothing() -> None:
    assert store_of().remove(("", "a"), "u", 101) is None


def test_a_list_brings_takes_and_changes() -> None:
    store = store_of(node("a", 90), node("b", 91), node("c", 92))
    comparison = store.replace([node("a", 90), node("b", 110), node("d", 111)], 120)
    assert [(c.old and c.old.name, c.new and c.new.name) for c in comparison.changes] == [
        ("b", "b"),
        (None, "d"),
        ("c", None),
    ]
    assert versions(store) == {"a": "90", "b": "110", "d": "111"}
    assert store.horizon == 120
    assert comparison.missed == 0


def test_a_late_list_takes_nothing_back() -> None:
    store = store_of(node("a", 90), node("b", 91))
    store.upsert(node("a", 130))
    store.remove(("", "b"), "u", 131)
    store.upsert(node("c", 132))
    store.advance(132)
    comparison = store.replace([node("a", 90), node("b", 91)], 120)
    assert comparison.changes == []
    assert versions(store) == {"a": "130", "c": "132"}
    assert store.horizon == 132


def test_what_we_wrote_after_the_list_was_taken_stays() -> None:
    store = store_of(node("a", 90))
    store.upsert(node("b", 125))
    store.replace([node("a", 90)], 120)
    assert versions(store) == {"a": "90", "b": "125"}


def test_a_malformed_object_is_kept_because_it_exists() -> None:
    store = store_of(node("a", 90), node("b", 91))
    store.replace([node("a", 90)], 120, keep=[("", "b")])
    assert versions(store) == {"a": "90", "b": "91"}


@pytest.mark.parametrize(
    ("items", "missed"),
    [
        pytest.param([node("a", 90)], 0, id="nothing"),
        pytest.param([node("a", 95)], 1, id="a change"),
        pytest.param([], 1, id="a deletion"),
        pytest.param([node("a", 90), node("b", 95)], 1, id="a creation"),
    ],
)
def test_the_comparison_counts_what_a_watch_should_have_told(items: list[Node], missed: int) -> None:
    store = store_of(node("a", 90))
    assert store.replace(items, 100).missed == missed
    assert versions(store) == {n.name: n.metadata.resource_version for n in items}


def test_what_happened_after_the_horizon_was_not_missed() -> None:
    store = store_of(node("a", 90), node("b", 91))
    assert store.replace([node("a", 105), node("c", 106)], 110).missed == 0


def test_a_rewound_history_is_taken_as_it_is() -> None:
    store = store_of(node("a", 90), node("b", 91))
    comparison = store.reset([node("a", 5)], 10)
    assert versions(store) == {"a": "5"}
    assert store.horizon == 10
    assert len(comparison.changes) == 2
    assert store.upsert(node("a", 11)) is not None


@pytest.mark.parametrize(
    ("known", "listed", "denied"),
    [
        pytest.param(node("a", 90), node("a", 90), False, id="the same"),
        pytest.param(node("a", 90), node("a", 95), False, id="later"),
        pytest.param(node("a", 90), node("a", 80), True, id="earlier"),
        pytest.param(node("a", 90), node("a", 90, pool="x"), True, id="another at that version"),
        pytest.param(node("a", 130), node("a", 90), False, id="changed after the list was taken"),
        pytest.param(node("a", 90), node("b", 80), False, id="another object"),
    ],
)
def test_a_list_that_denies_what_was_seen_is_noticed(known: Node, listed: Node, denied: bool) -> None:
    store = store_of()
    store.reset([known], 100)
    assert store.contradicts([listed], 110) == denied


def test_indexes_follow_every_change() -> None:
    store = store_of(node("a", 90, pool="x"), node("b", 91, pool="x"), node("c", 92))
    assert [n.name for n in store.by_index("pool", "x")] == ["a", "b"]
    store.upsert(node("a", 101, pool="y"))
    store.remove(("", "b"))
    assert store.by_index("pool", "x") == []
    assert [n.name for n in store.by_index("pool", "y")] == ["a"]
    store.reset([node("c", 3, pool="x")], 5)
    assert [n.name for n in store.by_index("pool", "x")] == ["c"]
    assert store.by_index("pool", "y") == []


def test_an_index_that_was_not_declared_is_an_error() -> None:
    with pytest.raises(KeyError):
        store_of().by_index("rack", "r1")


def test_a_snapshot_does_not_change_under_its_reader() -> None:
    store = store_of(node("a", 90))
    snapshot = store.all()
    store.remove(("", "a"))
    assert [n.name for n in snapshot] == ["a"]
    assert len(store) == 0
