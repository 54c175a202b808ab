"""Manifests judged offline: where, what is wrong, and what to do."""

import copy
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sickbay.api.kinds import REPAIR_POOL
from sickbay.api.patches import apply_merge
from sickbay.api.validate import Problem, validate
from tests.api.objects import ALL_FIVE, BAD, GOOD, MINIMAL, manifest, match, procedure, step

ON_CREATE = [bad for bad in BAD if bad.then is None]
ON_CHANGE = [bad for bad in BAD if bad.then is not None]


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good.id)
def test_a_good_manifest_has_no_problems(good):
    assert validate(good.kind, good.manifest("x")) == []


@pytest.mark.parametrize("bad", ON_CREATE, ids=lambda bad: bad.id)
def test_a_bad_manifest_has_a_problem_where_it_is_bad_with_a_remedy(bad):
    problems = validate(bad.kind, bad.manifest("x"))
    found = [problem for problem in problems if problem.path == bad.path]
    assert found, problems
    assert all(problem.remedy for problem in problems)


@pytest.mark.parametrize("bad", ON_CHANGE, ids=lambda bad: bad.id)
def test_a_bad_change_has_a_problem_where_it_is_bad(bad):
    old = apply_merge(bad.manifest("x"), bad.status or {})
    assert validate(bad.kind, old) == []
    problems = validate(bad.kind, apply_merge(old, bad.then), old)
    assert bad.path in [problem.path for problem in problems]


def pool(**spec):
    return manifest("RepairPool", "p", {**MINIMAL["RepairPool"], **spec})


TOLD = [
    ("RepairPool", pool(mod="Act"), "spec.mod", "Act", "unknown field", "did you mean mode?"),
    ("RepairPool", pool(maxunavailable=1), "spec.maxunavailable", 1, "unknown field", "did you mean maxUnavailable?"),
    (
        "RepairPool",
        pool(storm={"xyz": 1}),
        "spec.storm.xyz",
        1,
        "unknown field",
        "remove it, or use one of nodes, window",
    ),
    ("RepairPool", pool(mode="act"), "spec.mode", "act", "unknown word", "did you mean Act?"),
    ("RepairPool", pool(mode="xyz"), "spec.mode", "xyz", "unknown word", "write one of Observe, Act"),
    (
        "RepairPool",
        pool(maxUnavailable="5"),
        "spec.maxUnavailable",
        "5",
        "wrong form",
        "write a count, or a whole percentage such as 20%",
    ),
    (
        "RepairPool",
        pool(cancelHold="1 day"),
        "spec.cancelHold",
        "1 day",
        "wrong form",
        "write a duration like 90s, 30m, 1h30m or 7d, largest unit first",
    ),
    ("RepairPool", pool(maxUnavailable=-1), "spec.maxUnavailable", -1, "out of bounds", "use at least 0"),
    ("RepairPool", pool(freezeOnFailure=1), "spec.freezeOnFailure", 1, "wrong type", "write a boolean"),
    ("RepairPool", pool(maxUnavailable=[1]), "spec.maxUnavailable", [1], "wrong type", "write an integer or string"),
    ("RepairPool", pool(mode=True), "spec.mode", True, "wrong type", "write one of Observe, Act"),
    ("RepairPool", pool(rule=5), "spec.rule", 5, "wrong type", 'write "5", in quotes'),
    ("RepairPool", pool(rule=True), "spec.rule", True, "wrong type", 'write "true", in quotes'),
    (
        "FaultType",
        manifest("FaultType", "f", {**MINIMAL["FaultType"], "match": [{"condition": {"type": "A", "status": True}}]}),
        "spec.match[0].condition.status",
        True,
        "wrong type",
        'write "True", in quotes',
    ),
    (
        "FaultType",
        manifest("FaultType", "f", {**MINIMAL["FaultType"], "labels": {"a.b/c": 1}}),
        "spec.labels[a.b/c]",
        1,
        "wrong type",
        'write "1", in quotes',
    ),
    (
        "RepairPool",
        pool(cancelHold=15),
        "spec.cancelHold",
        15,
        "wrong type",
        "write a duration with its unit, such as 15m or 15s",
    ),
    (
        "RepairPool",
        pool(cancelHold=False),
        "spec.cancelHold",
        False,
        "wrong type",
        "write a duration like 90s, 30m, 1h30m or 7d, largest unit first",
    ),
    ("RepairPool", pool(windows={}), "spec.windows", {}, "wrong type", "write an array"),
    ("RepairPool", pool(rule=""), "spec.rule", "", "out of bounds", "give it a value"),
    ("RepairPool", pool(domains=[{}]), "spec.domains[0].key", None, "required", "add it"),
    (
        "RepairPool",
        pool(domains=[{"key": "a"}, {"key": "a"}]),
        "spec.domains[1]",
        {"key": "a"},
        "given twice",
        "give each only once",
    ),
    (
        "RepairPool",
        pool(maxParallelRepairs=11),
        "spec.breaker.maxNodes",
        10,
        "breaker.maxNodes is below maxParallelRepairs, so repairs alone could open the breaker",
        "raise breaker.maxNodes or lower maxParallelRepairs",
    ),
    (
        "Hold",
        manifest("Hold", "h", {"scope": {"all": True}, "until": "soon"}),
        "spec.until",
        "soon",
        "wrong form",
        "write a time like 2026-11-29T12:00:00Z",
    ),
    (
        "RepairRule",
        manifest("RepairRule", "r", {"rules": []}),
        "spec.rules",
        0,
        "out of bounds",
        "give at least 1",
    ),
]


@pytest.mark.parametrize(
    ("kind", "made", "path", "value", "message", "remedy"), TOLD, ids=[f"{t[2]}-{t[4]}"[:60] for t in TOLD]
)
def test_a_problem_names_field_value_and_remedy(kind, made, path, value, message, remedy):
    assert validate(kind, made) == [Problem(path, value, message, remedy)]


@pytest.mark.parametrize("value", [2**70, "\ud800"], ids=["beyond-64-bits", "half-a-character"])
def test_a_value_no_rule_can_be_judged_for_is_told_once(value):
    problems = validate("RepairPool", pool(breaker={"threshold": value}))
    assert [problem.path for problem in problems] == ["spec.breaker.threshold"]


def test_text_that_is_none_is_told_by_the_rules_that_cannot_be_judged():
    problems = validate("RepairPool", pool(rule="\ud800"))
    assert problems and all("evaluating rule" in problem.message for problem in problems)


def test_all_problems_are_told_at_once():
    problems = validate("RepairPool", pool(mode="act", mod=1, cancelHold="x1"))
    assert {problem.path for problem in problems} == {"spec.mode", "spec.mod", "spec.cancelHold"}


IDENTITY = [
    ({"apiVersion": "sickbay.dev/v1"}, "apiVersion", "write apiVersion: sickbay.dev/v1alpha1"),
    ({"kind": "Pool"}, "kind", "write kind: RepairPool"),
    ({"metadata": None}, "metadata", "give the object a name"),
    ({"metadata": {"name": None}}, "metadata.name", "give the object a name"),
    ({"metadata": {"name": "Train"}}, "metadata.name", "lower case"),
    ({"metadata": {"name": "a" * 254}}, "metadata.name", "at most 253"),
    ({"metadata": {"name": "a\n"}}, "metadata.name", "lower case"),
    ({"metadata": {"namespace": "ml"}}, "metadata.namespace", "remove it"),
]


@pytest.mark.parametrize(("patch", "path", "remedy"), IDENTITY, ids=[i[1] + str(n) for n, i in enumerate(IDENTITY)])
def test_a_manifest_says_what_it_is_and_how_it_is_called(patch, path, remedy):
    problems = validate("RepairPool", apply_merge(pool(), patch))
    assert [problem.path for problem in problems] == [path]
    assert remedy in problems[0].remedy


def test_a_manifest_may_leave_the_name_to_the_server():
    made = pool()
    made["metadata"] = {"generateName": "train-"}
    assert validate("RepairPool", made) == []


def test_a_kind_may_be_named_or_given():
    assert validate(REPAIR_POOL, pool(mode="act")) == validate("RepairPool", pool(mode="act")) != []


def test_a_kind_that_is_not_ours_is_an_error_that_names_ours():
    with pytest.raises(KeyError, match="RepairPool, RepairRule"):
        validate("Deployment", {})


@pytest.mark.parametrize(
    "moment", [datetime(2026, 11, 29, 12, tzinfo=UTC), "2026-11-29T12:00:00Z", "2026-11-29T12:00:00.123456789+08:00"]
)
def test_a_time_may_be_written_with_and_without_quotes(moment):
    assert validate("Hold", manifest("Hold", "h", {"scope": {"all": True}, "until": moment})) == []


def test_a_date_is_no_time():
    problems = validate("Hold", manifest("Hold", "h", {"scope": {"all": True}, "until": date(2026, 11, 29)}))
    assert [(p.path, p.value) for p in problems] == [("spec.until", "2026-11-29")]


BEYOND = [
    (
        "RepairRule",
        procedure(step("Drain", options={"grace": {"min": "1h", "max": "10m"}})),
        "spec.rules[0].procedure[0].options.grace",
        "min is above max",
    ),
    (
        "RepairRule",
        procedure(step("Drain", approval={"reminders": ["4h", "1h"]})),
        "spec.rules[0].procedure[0].approval.reminders",
        "rising",
    ),
    (
        "FaultType",
        match({"condition": {"type": "A", "reason": "("}}),
        "spec.match[0].condition.reason",
        "not a regular expression",
    ),
    (
        "FaultType",
        match({"condition": {"type": "A", "reason": "(?=look)ahead"}}),
        "spec.match[0].condition.reason",
        "not a regular expression: invalid perl operator: (?=",
    ),
    (
        "FaultType",
        match({"condition": {"type": "A", "notReason": "("}}),
        "spec.match[0].condition.notReason",
        "not a regular expression",
    ),
    ("FaultType", match({"cel": "nod.x"}), "spec.match[0].cel", "undeclared reference"),
    (
        "FaultType",
        match({"object": {"apiVersion": "v1", "kind": "A", "cel": "object.", "node": "object.x"}}),
        "spec.match[0].object.cel",
        "does not compile",
    ),
    (
        "FaultType",
        match({"object": {"apiVersion": "v1", "kind": "A", "cel": "true", "node": "node.x"}}),
        "spec.match[0].object.node",
        "undeclared reference",
    ),
    (
        "RecoveryPolicy",
        {"spec": {"hang": {"phases": [{"name": "a", "from": "[", "to": "x", "max": "1m"}]}}},
        "spec.hang.phases[0].from",
        "not a regular expression",
    ),
]


@pytest.mark.parametrize(("kind", "patch", "path", "message"), BEYOND, ids=[b[2] for b in BEYOND])
def test_what_the_api_server_cannot_judge_is_judged_here(kind, patch, path, message):
    problems = validate(kind, apply_merge(manifest(kind, "x", MINIMAL[kind]), patch))
    assert [problem.path for problem in problems] == [path]
    assert message in problems[0].message


def test_a_problem_reads_as_one_line_with_a_long_value_shortened():
    text = str(validate("RepairPool", pool(rule="x" * 300))[0])
    assert text.startswith('spec.rule ("xxx') and text.endswith("; use at most 253 characters")
    assert len(text) < 150 and "\n" not in text


def test_a_problem_without_a_value_shows_none():
    rule = manifest("RepairRule", "r", {"rules": [{"procedure": ALL_FIVE}]})
    assert str(validate("RepairRule", rule)[0]) == "spec.rules[0].name: required; add it"


@pytest.mark.parametrize("spec", [None, [], "x", 7], ids=["null", "list", "text", "number"])
@pytest.mark.parametrize("kind", MINIMAL)
def test_a_manifest_of_any_shape_gives_problems_and_no_crash(kind, spec):
    made = {**manifest(kind, "x", {}), "spec": spec}
    assert [problem.path for problem in validate(kind, made)] == ["spec"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in below:
        yield from places(part, (*path, key))


def put(value, path, new):
    if not path:
        return new
    key, *rest = path
    changed = copy.copy(value)
    changed[key] = put(value[key], rest, new)
    return changed


@settings(deadline=None, max_examples=300)
@given(st.data(), st.sampled_from(GOOD), JSON)
def test_nonsense_anywhere_in_a_manifest_gives_problems_and_no_crash(data, good, nonsense):
    made = good.manifest("x")
    path = data.draw(st.sampled_from(list(places(made))[1:]))
    for problem in validate(good.kind, put(made, path, nonsense)):
        assert problem.message and problem.remedy and str(problem)
