"""JSON patch on plain documents: copies, never changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sickbay.apiserver import jsonpatch
from sickbay.apiserver.jsonpatch import PatchFailed, PatchMalformed, apply, same

DOCUMENT = {"a": {"b": [1, {"c": 2}], "x/y": 3, "m~n": 4}, "untouched": {"big": [1, 2, 3]}}


@pytest.mark.parametrize(
    ("operation", "pointer", "expected"),
    [
        ({"op": "replace", "path": "/a/b/1/c", "value": 9}, ["a", "b", 1, "c"], 9),
        ({"op": "add", "path": "/a/b/-", "value": 9}, ["a", "b"], [1, {"c": 2}, 9]),
        ({"op": "add", "path": "/a/b/1", "value": 9}, ["a", "b"], [1, 9, {"c": 2}]),
        ({"op": "add", "path": "/a/x~1y", "value": 9}, ["a", "x/y"], 9),
        ({"op": "add", "path": "/a/m~0n", "value": 9}, ["a", "m~n"], 9),
        ({"op": "remove", "path": "/a/b/-1"}, ["a", "b"], [1]),
        ({"op": "copy", "from": "/a/b/0", "path": "/a/d"}, ["a", "d"], 1),
        ({"op": "move", "from": "/a/x~1y", "path": "/a/b/0"}, ["a", "b"], [3, 1, {"c": 2}]),
        ({"op": "add", "path": "", "value": {"whole": 1}}, [], {"whole": 1}),
        ({"op": "add", "path": "/a/n", "value": None}, ["a", "n"], None),
    ],
)
def test_operations(operation: dict[str, Any], pointer: list[str | int], expected: Any) -> None:
    value: Any = apply(DOCUMENT, [operation])
    for key in pointer:
        value = value[key]
    assert value == expected


def test_the_original_is_never_changed_and_what_a_patch_leaves_alone_is_shared() -> None:
    before = copy.deepcopy(DOCUMENT)
    after = apply(DOCUMENT, [{"op": "replace", "path": "/a/b/1/c", "value": 9}, {"op": "remove", "path": "/a/b/0"}])
    assert before == DOCUMENT
    assert after["untouched"] is DOCUMENT["untouched"]
    assert after["a"]["b"] == [{"c": 9}]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a/b/0", "value": True},
        {"op": "test", "path": "/a/b", "value": [1]},
        {"op": "remove", "path": "/nope"},
        {"op": "remove", "path": "/a/b/9"},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "/a/b/word", "value": 1},
        {"op": "add", "path": "/a/x~1y/z", "value": 1},
        {"op": "add", "path": "no-slash", "value": 1},
        {"op": "replace", "path": "/a/nope/deep", "value": 1},
        {"op": "copy", "from": "/nope", "path": "/x"},
        {"op": "dance", "path": "/a"},
        {"op": "add"},
        {},
    ],
)
def test_what_does_not_apply_fails(operation: dict[str, Any]) -> None:
    with pytest.raises(PatchFailed):
        apply(DOCUMENT, [operation])


@pytest.mark.parametrize("patch", [{}, "x", [1], [{"path": 5, "op": "add"}], [{"path": "/a", "op": 5}]])
def test_what_is_no_patch_is_malformed(patch: Any) -> None:
    with pytest.raises(PatchMalformed):
        apply(DOCUMENT, patch)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, True, False),
        (0, False, False),
        (1, 1.0, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"b": 1}, False),
        ([1, {"x": None}], [1, {"x": None}], True),
        ([1], [1, 2], False),
        (None, "", False),
    ],
)
def test_equality_is_that_of_json(one: Any, other: Any, equal: bool) -> None:
    assert same(one, other) is equal


keys = st.text(alphabet="ab/~-0", min_size=1, max_size=3)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(keys, values, min_size=1, max_size=4), values, st.data())
def test_adding_and_taking_back_gives_the_same_document(
    document: dict[str, Any], value: Any, data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(["fresh", *document]))
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")
    kept = copy.deepcopy(document)
    changed = apply(document, [{"op": "add", "path": pointer, "value": value}])
    assert same(changed[key], value)
    undo = (
        {"op": "replace", "path": pointer, "value": document[key]}
        if key in document
        else {"op": "remove", "path": pointer}
    )
    assert same(apply(changed, [undo]), kept)
    assert same(document, kept)


def test_ten_thousand_operations_are_the_limit() -> None:
    operations = [{"op": "add", "path": "/n", "value": 1}] * jsonpatch.MAX_OPERATIONS
    assert apply({}, operations) == {"n": 1}
    with pytest.raises(jsonpatch.PatchTooLong):
        apply({}, [*operations, operations[0]])
