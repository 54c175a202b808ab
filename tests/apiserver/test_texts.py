"""Bodies as text: what is read, and what would cost more than it says."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.apiserver.jsonpatch import PatchFailed, apply
from sickbay.apiserver.texts import MAX_DEPTH, read_json, read_yaml


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize("read", [read_json, read_yaml])
def test_what_is_nested_as_deeply_as_allowed_is_read(read: Any) -> None:
    value = read(nested(MAX_DEPTH))
    for _ in range(MAX_DEPTH):
        value = value["a"]
    assert value == 1


@pytest.mark.parametrize("read", [read_json, read_yaml])
@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 1_000, 100_000])
def test_what_is_nested_more_deeply_is_refused(read: Any, levels: int) -> None:
    with pytest.raises(ValueError, match="nested more than"):
        read(nested(levels))


def test_aliases_that_multiply_are_refused() -> None:
    lines = [b"a: &a [x,x,x,x,x,x,x,x,x,x]"]
    lines += [b"%c: &%c [%s]" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 10)) for i in range(8)]
    with pytest.raises(ValueError, match="values"):
        read_yaml(b"\n".join(lines))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"a: 2026-01-31", {"a": "2026-01-31"}),
        (b"1: b", {"1": "b"}),
        (b"base: &x {a: 1}\nother: *x", {"base": {"a": 1}, "other": {"a": 1}}),
        (b"", None),
    ],
)
def test_yaml_becomes_json(text: bytes, value: Any) -> None:
    assert read_yaml(text) == value


@pytest.mark.parametrize("text", [b"a: [", b"{a: &x [*x]}", b"!!python/object:os.system {}"])
def test_yaml_that_is_none_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        read_yaml(text)


def test_copies_that_multiply_do_not_apply() -> None:
    patch = [{"op": "copy", "from": "/a", "path": f"/a/c{n}"} for n in range(30)]
    with pytest.raises(PatchFailed, match="copies"):
        apply({"a": {"text": "x" * 1000}}, patch)


def test_a_patch_cannot_nest_deeper_step_by_step() -> None:
    value = read_json(nested(MAX_DEPTH - 1))
    with pytest.raises(PatchFailed, match="nested"):
        apply({"a": {"b": 1}}, [{"op": "add", "path": "/a/b", "value": value}])
