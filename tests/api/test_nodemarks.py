"""Our annotations on a Node can be written by anybody: what cannot be read is no mark and no question."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.nodemarks import Inquiry, QuarantineMark, marked_by, read_inquiry, read_mark

READERS = [(names.QUARANTINE, read_mark), (names.INQUIRY, read_inquiry)]


def node(key: str, text: str) -> Node:
    return msgspec.convert({"metadata": {"name": "a", "annotations": {key: text}}}, Node)


def test_a_mark_is_read_as_it_was_written() -> None:
    mark = QuarantineMark(repair="a-1", uid="u", node_uid="n", at="2027-03-01T08:00:00Z")
    found = node(names.QUARANTINE, msgspec.json.encode(mark).decode())
    assert read_mark(found) == mark
    assert json.loads(found.annotations[names.QUARANTINE])["nodeUID"] == "n"
    assert marked_by(found, "u")
    assert not marked_by(found, "v")


def test_a_question_is_read_as_it_was_written() -> None:
    asked = Inquiry(repair="a-1", uid="u", step="Drain", attempt=2, node_uid="n", groups=["sre"], by="PeopleAndJobs")
    assert read_inquiry(node(names.INQUIRY, msgspec.json.encode(asked).decode())) == asked


@pytest.mark.parametrize(("key", "read"), READERS, ids=["mark", "inquiry"])
@pytest.mark.parametrize("text", ["", "{}", "null", "[]", "{", '{"uid": 5}', '{"uid": ""}', '"u"', '{"repair": "a"}'])
def test_what_names_no_repair_is_none(key: str, read: Any, text: str) -> None:
    assert read(node(key, text)) is None
    assert not marked_by(node(key, text), "")


def test_a_node_without_annotations_has_neither() -> None:
    bare = msgspec.convert({"metadata": {"name": "a"}}, Node)
    assert read_mark(bare) is None
    assert read_inquiry(bare) is None


@given(
    st.text()
    | st.recursive(st.none() | st.integers() | st.text(), lambda x: st.dictionaries(st.text(), x)).map(json.dumps)
)
def test_any_text_is_a_mark_or_none(text: str) -> None:
    for key, read in READERS:
        found = read(node(key, text))
        assert found is None or found.uid
