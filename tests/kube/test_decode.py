"""One odd object never hides the others; a stream is cut into lines wherever its chunks end."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.api.core import Node
from sickbay.kube import decode, errors
from tests.kube.scripted import node


def raw(obj: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(obj).encode())


BAD_CONDITION = node("bad") | {"status": {"conditions": [{"type": "Ready", "status": 5}]}}


@pytest.mark.parametrize(
    ("odd", "name"),
    [
        pytest.param(BAD_CONDITION, "bad", id="a field of another type"),
        pytest.param(node("bad") | {"spec": "text"}, "bad", id="a section of another type"),
        pytest.param({"metadata": {"name": 5}}, "", id="a name that is a number"),
        pytest.param({"metadata": {}}, "", id="no name"),
        pytest.param({}, "", id="nothing at all"),
        pytest.param("text", "", id="no object"),
        pytest.param(None, "", id="null"),
    ],
)
def test_an_odd_item_is_set_aside_under_its_name_and_the_others_are_read(odd: Any, name: str) -> None:
    items, malformed = decode.decode_items(Node, [raw(node("a")), raw(odd), raw(node("b"))])
    assert [item.name for item in items] == ["a", "b"]
    assert [each.identity.name for each in malformed] == [name]
    assert malformed[0].error


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"status": {"conditions": [{"type": "Ready"}]}}, id="condition without status"),
        pytest.param({"status": {"conditions": None}}, id="null list"),
        pytest.param({"status": None}, id="null section"),
        pytest.param({"metadata": {"name": "a", "labels": None}}, id="null labels"),
        pytest.param({"status": {"images": [{"names": None}]}}, id="null image names"),
        pytest.param({"status": {"conditions": [{"type": "CorruptDockerOverlay2", "status": "False"}]}}, id="new type"),
        pytest.param({"futureField": [1, {"x": None}]}, id="unknown field"),
    ],
)
def test_what_real_nodes_have_carried_decodes(odd: dict[str, Any]) -> None:
    items, malformed = decode.decode_items(Node, [raw(node("a") | odd)])
    assert not malformed
    assert items[0].name == "a"


def test_a_kind_without_struct_gives_plain_dicts() -> None:
    items, malformed = decode.decode_items(dict, [raw(node("a")), raw([]), raw({"metadata": []})])
    assert items == [node("a")]
    assert len(malformed) == 2


def test_a_malformed_single_object_is_named_in_the_error() -> None:
    with pytest.raises(errors.MalformedObject, match=r"bad: .*conditions"):
        decode.decode_object(Node, raw(BAD_CONDITION))
    with pytest.raises(errors.MalformedObject, match="without a readable name"):
        decode.decode_object(Node, raw([]))


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"items": {}}', b"\xff", b""])
def test_an_answer_that_is_no_list_is_an_error(body: bytes) -> None:
    with pytest.raises(errors.MalformedObject, match="not a list"):
        decode.decode_page(body)


def test_a_list_without_items_or_metadata_is_empty() -> None:
    assert decode.decode_page(b'{"items": null}') == decode.Page([], "", "")
    assert decode.decode_page(b"{}") == decode.Page([], "", "")


@pytest.mark.parametrize("line", [b"text", b'{"type": "ADDED"}', b"[]", b'{"type": 5, "object": {}}', b"\xff\xff"])
def test_a_line_that_is_no_event_is_an_error(line: bytes) -> None:
    with pytest.raises(errors.MalformedObject, match="no event"):
        decode.decode_line(line)


@given(
    lines=st.lists(st.binary(min_size=1, max_size=40).filter(lambda b: b"\n" not in b and b.strip()), max_size=12),
    cuts=st.lists(st.integers(0, 500), max_size=20),
)
def test_lines_come_out_whole_wherever_the_chunks_end(lines: list[bytes], cuts: list[int]) -> None:
    text = b"".join(each + b"\n" for each in lines)
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    splitter = decode.LineSplitter()
    found = [line for start, end in itertools.pairwise(edges) for line in splitter.feed(text[start:end])]
    assert found == lines


def test_a_rest_without_an_end_is_kept_back_and_blank_lines_are_skipped() -> None:
    splitter = decode.LineSplitter()
    assert splitter.feed(b"one\n\n \ntw") == [b"one"]
    assert splitter.feed(b"o") == []
    assert splitter.feed(b"\n") == [b"two"]


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    splitter = decode.LineSplitter(limit=10)
    splitter.feed(b"12345")
    with pytest.raises(errors.MalformedObject, match="longer than 10 bytes"):
        splitter.feed(b"678901")


def test_long_lines_within_the_limit_pass() -> None:
    splitter = decode.LineSplitter()
    big = b"x" * (2 * 1024 * 1024)
    assert splitter.feed(big) == []
    assert splitter.feed(b"y\n") == [big + b"y"]
