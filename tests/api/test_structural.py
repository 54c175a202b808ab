"""Structural schemas on a kind made up of everything they can say."""

import copy

import pytest

from sickbay.api.structural import default, prune, unknown_fields, validate
from tests.api.judge import admitted
from tests.api.widgets import ALWAYS, CASES, SCHEMA, widget


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_object_is_stored_or_refused_as_by_the_api_server(case):
    made = widget(case.name or "x", case.spec)
    before = copy.deepcopy(made)
    old = admitted(SCHEMA, widget("x", case.old)) if case.old is not None else None
    new = admitted(SCHEMA, made)
    violations = validate(SCHEMA, new, old)
    assert {v.path or "<nil>" for v in violations} - ({"<nil>"} - set(case.paths)) == set(case.paths)
    if case.stored is not None:
        assert new["spec"] == {**ALWAYS, **case.stored}
    assert made == before, "arguments are never changed"


def test_metadata_is_not_ours_to_prune():
    made = widget("x", {}) | {"metadata": {"name": "x", "anything": {"goes": 1}}, "surprise": 1}
    assert prune(SCHEMA, made) == widget("x", {}) | {"metadata": {"name": "x", "anything": {"goes": 1}}}


def test_a_default_is_not_shared_between_objects():
    one, other = default(SCHEMA, widget("x", {})), default(SCHEMA, widget("y", {}))
    one["spec"]["nested"]["deep"]["a"] = 0
    assert other["spec"]["nested"]["deep"]["a"] == 7


def test_what_is_kept_is_not_shared_with_what_was_given():
    made = widget("x", {"free": {"any": [1]}})
    prune(SCHEMA, made)["spec"]["free"]["any"].append(2)
    assert made["spec"]["free"]["any"] == [1]


def test_unknown_fields_are_named_with_those_known_in_their_place():
    spec = {"ports": [{"port": 1, "prot": "x"}], "map": {"a.b": {"z": 1}}, "free": {"x": 1, "known": {"l": 1}}}
    found = unknown_fields(SCHEMA, widget("x", spec) | {"status": {}})
    assert [(field.path, field.known) for field in found] == [
        ("spec.ports[0].prot", ("port", "protocol", "name")),
        ("spec.map[a.b].z", ("x", "y")),
        ("spec.free.known.l", ("k",)),
        ("status", ("apiVersion", "kind", "metadata", "spec")),
    ]
    assert [field.value for field in found] == ["x", 1, 1, {}]


def test_a_schema_that_became_stricter_does_not_lock_what_is_stored():
    old = widget("x", {"text": "TOO LONG", "small": 3, "said": 11})
    new = widget("x", {"text": "TOO LONG", "small": 3, "said": 11, "level": 1})
    assert validate(SCHEMA, new, old) == []
    assert {v.path for v in validate(SCHEMA, new)} >= {"spec.text", "spec.small"}


def test_a_violation_carries_value_keyword_and_limit_for_those_who_explain_it():
    violation = next(iter(validate(SCHEMA, admitted(SCHEMA, widget("x", {"word": "c"})))))
    assert (violation.value, violation.keyword, violation.limit) == ("c", "enum", ["a", "b"])
