"""A person's word on a condition: which it may clear, and which occurrence."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.convert import clearing
from tests.convert.made import node, stamp


def told(conditions: dict[str, Any], **words: dict[str, str]) -> Node:
    made = node(conditions=conditions, annotations={names.CLEAR: json.dumps(words)})
    raw = msgspec.to_builtins(made)
    for condition in raw["status"]["conditions"]:
        condition["lastTransitionTime"] = stamp(60)
    return msgspec.convert(raw, Node)


SEEN = {"since": stamp(60), "by": "ops-1", "reason": "runtime fixed"}


@pytest.mark.case("P032")
@pytest.mark.parametrize(
    ("type_", "said", "why_not"),
    [
        pytest.param("FrequentContainerdRestart", "True", "", id="a latched one"),
        pytest.param("KernelReady", "False", "", id="one that says what is well"),
        pytest.param("InfraTerminate", ("Unknown", "Gone"), "", id="what a vanished event left"),
        pytest.param("FrequentContainerdRestart", "False", "nothing to clear", id="good already"),
        pytest.param("Ready", "False", "mend that", id="the kubelet's own"),
        pytest.param("DetectionBlind", ("Unknown", "AgentSilent"), "mend that", id="what the agent sees"),
        pytest.param("DrainInProgress", "True", "mend that", id="our own lifecycle"),
        pytest.param("Absent", None, "no condition", id="none"),
    ],
)
def test_what_a_person_may_clear(type_: str, said: Any, why_not: str) -> None:
    found = told({type_: said} if said is not None else {}, **{type_: SEEN})
    assert why_not in clearing.refusal(found, type_)
    assert bool(clearing.refusal(found, type_)) is bool(why_not)
    assert (type_ in clearing.followed(found)) is not bool(why_not)


def test_what_the_nodes_agent_says_is_cleared_by_the_agent_only() -> None:
    standing = {"NvidiaXID79Error": ("True", "XID79")}
    assert "agent" in clearing.refusal(told({**standing, "DetectionBlind": "False"}), "NvidiaXID79Error")
    assert clearing.refusal(told(standing), "NvidiaXID79Error") == ""
    foreign = {"NvidiaXID79Error": ("True", "NodeHasXid79"), "DetectionBlind": "False"}
    assert clearing.refusal(told(foreign), "NvidiaXID79Error") == ""


@pytest.mark.parametrize("since", ["", stamp(0), stamp(61)])
def test_a_word_about_another_occurrence_clears_nothing(since: str) -> None:
    assert clearing.followed(told({"AcmeFan": "True"}, AcmeFan={**SEEN, "since": since})) == {}


def test_who_and_why_stay_in_the_condition() -> None:
    (word,) = clearing.followed(told({"AcmeFan": "True"}, AcmeFan=SEEN)).values()
    made = clearing.wanted("AcmeFan", word)
    assert (made.status, made.reason) == ("False", "ClearedByPerson")
    assert "ops-1" in made.message and "runtime fixed" in made.message
    assert clearing.wanted("KernelReady", word).status == "True"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"AcmeFan": 1}', "null", '"x"'])
def test_a_value_that_cannot_be_read_says_nothing(text: str) -> None:
    assert clearing.read(node(annotations={names.CLEAR: text})) == {}
