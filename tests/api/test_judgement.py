"""The table of good and bad objects, judged without a server: by the schema and rules of the CRDs themselves."""

import copy

import pytest

from sickbay.api.crds import schemas
from sickbay.api.patches import apply_merge
from sickbay.api.structural import unknown_fields, validate
from tests.api.judge import admitted, judged, judged_bad
from tests.api.objects import BAD, GOOD, MINIMAL


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good.id)
def test_a_good_object_is_accepted(good):
    manifest = good.manifest("x")
    assert unknown_fields(schemas()[good.kind], manifest) == []
    stored, violations = judged(good.kind, manifest)
    assert violations == []
    for _, patch in good.then:
        stored, violations = judged(good.kind, apply_merge(stored, patch), stored)
        assert violations == []


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.id)
def test_a_bad_object_is_refused_where_it_is_bad_and_told_what_to_do(bad):
    violations = judged_bad(bad, "x")
    assert any(v.path == bad.path and bad.text in v.message for v in violations), violations


def test_every_rule_of_every_kind_is_broken_by_a_bad_object():
    """A rule nobody can break is no rule: each message must occur in the table."""
    broken = "\n".join(bad.text for bad in BAD)
    unbroken = [
        (kind, rule["message"])
        for kind, schema in schemas().items()
        for rule in rules_of(schema)
        if not any(text in rule["message"] for text in broken.splitlines())
    ]
    assert unbroken == []


def test_every_kind_has_its_least_object():
    assert set(MINIMAL) == set(schemas())


def test_an_object_that_breaks_a_rule_in_a_part_left_alone_may_be_changed_elsewhere():
    schema = schemas()["RepairPool"]
    old = admitted(schema, {"spec": {"nodeSelector": {"matchLabels": {"a": "b"}}, "cancelHold": "1 day"}})
    new = copy.deepcopy(old)
    new["spec"]["mode"] = "Act"
    assert validate(schema, new, old) == []
    assert [v.path for v in validate(schema, new)] == ["spec.cancelHold"]


def rules_of(schema):
    yield from schema.get("x-kubernetes-validations", ())
    for below in schema.get("properties", {}).values():
        yield from rules_of(below)
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from rules_of(schema[key])
