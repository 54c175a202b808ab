"""Selectors: text forms, LabelSelectors, and the values fields compare as."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.apiserver.errors import StatusError
from sickbay.apiserver.selectors import (
    field_predicate,
    field_value,
    parse_fields,
    parse_labels,
    selector_matches,
)

LABELS = {"a": "1", "b": "x", "n": "7"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("a=1", True),
        ("a = 1", True),
        ("a!=1", False),
        ("missing!=1", True),
        ("a in (1,2),b", True),
        ("a notin (1)", False),
        ("missing notin (1)", True),
        ("!missing", True),
        ("! b", False),
        ("n>6", True),
        ("n<7", False),
        ("b>1", False),
        ("missing<1", False),
        ("example.com/key=v", False),
        ("", True),
    ],
)
def test_text_selectors(text: str, matches: bool) -> None:
    assert all(requirement.matches(LABELS) for requirement in parse_labels(text)) is matches


@pytest.mark.parametrize("text", ["a in b", "a==b==c", "=", "a=b c", "a=-x", "n>x", "a in (b", "(a)", ","])
def test_unreadable_text_is_refused(text: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_labels(text)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchLabels": None, "matchExpressions": None}, True),
        ({"matchExpressions": [{"key": "b", "operator": "In", "values": ["x", "y"]}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["x"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, False),
        ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}, False),
    ],
)
def test_label_selectors_of_objects(selector: dict[str, Any] | None, matches: bool) -> None:
    assert selector_matches(selector, LABELS) is matches


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("spec.on", "true"),
        ("spec.off", "false"),
        ("spec.n", "3"),
        ("spec.s", "x"),
        ("spec.none", ""),
        ("spec.s.deep", ""),
    ],
)
def test_field_values_are_text(path: str, text: str) -> None:
    assert field_value({"spec": {"on": True, "off": False, "n": 3, "s": "x", "none": None}}, path) == text


def test_an_absent_field_compares_as_its_default() -> None:
    predicate = field_predicate(parse_fields("spec.unschedulable=false"), {"spec.unschedulable": "false"})
    assert predicate({"spec": {}})
    assert not predicate({"spec": {"unschedulable": True}})


def test_field_terms_without_a_sign_are_refused() -> None:
    with pytest.raises(StatusError, match="can't understand 'x'"):
        parse_fields("a=b,x")
