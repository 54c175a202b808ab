"""Fault types in force: objects merged over entries, field by field; a mistake in one blinds no other."""

from __future__ import annotations

import pytest

from sickbay.decide import catalogue
from tests.decide.made import fault_type


def built(*objects):
    return catalogue.build(objects)


def test_a_complete_type_of_ones_own_is_usable():
    found = built(fault_type("test.mine"))
    assert found.get("test.mine").spec.clears_by == "reboot"
    assert "test.mine" not in found.problems


@pytest.mark.parametrize("key", ["class", "severity", "scope", "match", "remedy", "clearsBy"])
def test_a_type_that_is_not_complete_is_set_aside_with_the_field(key):
    broken = fault_type("test.broken")
    del broken["spec"][key]
    found = built(broken, fault_type("test.fine"))
    assert found.get("test.broken") is None
    assert f"spec.{key} is missing" in found.problems["test.broken"]
    assert found.get("test.fine") is not None


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        pytest.param({"match": [{"cel": "node.metadata.("}]}, "", id="an-expression-that-does-not-compile"),
        pytest.param(
            {"match": [{"condition": {"type": "X", "status": "True", "reason": "("}}]},
            "FaultType test.broken: spec.match[0].condition.reason: '(' is not a regular expression: missing )",
            id="a-pattern-that-is-none",
        ),
        pytest.param(
            {"match": [{"cel": "true"}, {"condition": {"type": "X", "reason": r"(a)\1"}}]},
            "spec.match[1].condition.reason: '(a)\\\\1' is not a regular expression: invalid escape sequence: \\1; "
            "correct it; the syntax is that of RE2",
            id="a-pattern-that-backtracks",
        ),
        pytest.param({"scope": "Domain"}, "domain", id="a-domain-without-its-label"),
        pytest.param({"remedy": [{"action": "RebootNode", "attempts": "many"}]}, "", id="a-count-that-is-none"),
        pytest.param({"for": "soon"}, "soon", id="a-for-that-is-no-duration"),
        pytest.param({"remedy": [{"action": "RebootNode", "timeout": "late"}]}, "late", id="a-timeout-that-is-none"),
        pytest.param({"validation": {"soak": "wet"}}, "wet", id="a-soak-that-is-none"),
        pytest.param({"validation": {"ceiling": "high"}}, "high", id="a-ceiling-that-is-none"),
    ],
)
def test_a_type_that_cannot_be_used_is_set_aside_with_the_reason(spec, word):
    found = built(fault_type("test.broken", **spec), fault_type("test.fine"))
    assert found.get("test.broken") is None
    assert word in found.problems["test.broken"]
    assert found.by_condition["TestFine"]
    assert "test.broken" not in [name for tests in found.by_condition.values() for name, _ in tests]


def test_objects_are_merged_field_by_field_in_their_order():
    change = {"metadata": {"name": "test.mine"}, "spec": {"severity": "Info", "labels": {"a": "1"}}}
    found = built(fault_type("test.mine"), change).get("test.mine").spec
    assert (found.severity, found.labels, found.clears_by) == ("Info", {"a": "1"}, "reboot")


def test_null_takes_a_field_away_again():
    change = {"metadata": {"name": "test.mine"}, "spec": {"clearsBy": None}}
    assert "spec.clearsBy" in built(fault_type("test.mine"), change).problems["test.mine"]


def test_an_empty_list_is_meant():
    change = {"metadata": {"name": "test.mine"}, "spec": {"remedy": []}}
    assert built(fault_type("test.mine"), change).get("test.mine").spec.remedy == []


def test_a_type_may_match_in_several_ways():
    match = [
        {"condition": {"type": "A", "status": "True"}},
        {"condition": {"type": "B", "status": "False"}},
        {"cel": "false"},
        {"event": {"reason": "X"}},
    ]
    found = built(fault_type("test.mine", match=match))
    assert [name for name, _ in found.by_condition["A"]] == ["test.mine"]
    assert [test.status for _, test in found.by_condition["B"]] == ["False"]
    assert [name for name, _ in found.by_cel] == ["test.mine"]


def test_an_object_without_a_spec_is_named():
    assert "spec.class" in built({"metadata": {"name": "test.empty"}}).problems["test.empty"]
