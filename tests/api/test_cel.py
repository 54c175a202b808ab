"""CEL behind our wall: the API server's answers, and an error wherever there is no answer."""

from datetime import UTC, datetime, timedelta

import pytest

from sickbay.api.cel import CelError, Program, Variables
from sickbay.api.core import Node, NodeStatus, ObjectMeta


def evaluate(text, **variables):
    return Program.compile(text, variables).evaluate(**variables)


VALUES = [
    ("self.a == 1", {"a": 1}, True),
    ("has(self.a)", {}, False),
    ("has(self.a)", {"a": None}, True),
    ("self.?a.orValue(3)", {}, 3),
    ("self.labels[?'x'].orValue('') == 'bad'", {"labels": {"x": "bad"}}, True),
    ("self.?metadata.labels[?'x'].orValue('')", {}, ""),
    ("type(self.a) == type(self.b)", {"a": "5%", "b": 3}, False),
    ("self.a == 1.0", {"a": 1}, True),
    ("self.exists_one(x, x == 1)", [1, 1], False),
    ("size('ÿ')", {}, 1),
    ("[false, self.x].exists(v, v) || true", {"x": False}, True),
    ("self.all(x, 1 / x > 5 || x == 0) || true", [0, 1], True),
    ("duration('90s')", {}, timedelta(seconds=90)),
    ("timestamp('2026-01-02T03:04:05Z')", {}, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ("cel.bind(x, 2, x * x)", {}, 4),
    ("math.greatest(1, 5, 3)", {}, 5),
    ("'a,b'.split(',')", {}, ["a", "b"]),
    ("base64.encode(b'x')", {}, "eA=="),
]


@pytest.mark.parametrize(("text", "self_", "value"), VALUES, ids=[v[0] for v in VALUES])
def test_an_expression_has_the_value_the_api_server_gives_it(text, self_, value):
    assert evaluate(text, self=self_) == value


ERRORS = [
    ("self.b", {}, "Key not found"),
    ("self.b == 'x'", {"a": 1}, "Key not found"),
    ("self.a.b", {"a": None}, "a"),
    ("self[3]", [1], "index"),
    ("1 / self", 0, "divide by zero"),
    ("self < 'x'", 1, "overload"),
    ("self.matches('(')", "x", "regular expression"),
    ("optional.of(1)", {}, "orValue"),
    ("self", 2**70, "out of range"),
    ("self", object(), "object"),
    (
        "self.map(a, self.map(b, self.map(c, self.map(d, self.map(e, e))))).size() > 0",
        list(range(40)),
        "budget",
    ),
]


@pytest.mark.parametrize(("text", "self_", "message"), ERRORS, ids=[e[0] for e in ERRORS])
def test_an_expression_without_a_value_is_an_error_and_never_reads_as_true(text, self_, message):
    with pytest.raises(CelError, match=message):
        evaluate(text, self=self_)


@pytest.mark.parametrize(
    ("text", "place"),
    [("1 +", "1:4"), ("nod.metadata", "undeclared reference to 'nod.metadata'"), ("quantify('1')", "quantify")],
)
def test_what_does_not_compile_names_the_place_on_one_line(text, place):
    with pytest.raises(CelError, match=place) as error:
        Program.compile(text, ["node"])
    assert "\n" not in str(error.value)
    assert text in str(error.value)


def test_a_program_is_compiled_once_whatever_the_order_of_its_variables():
    assert Program.compile("a && b", ["b", "a"]) is Program.compile("a && b", ["a", "b"])


def test_variables_are_converted_once_for_all_programs_of_the_same_names():
    shared = Variables(node={"x": 1})
    assert Program.compile("node.x", ["node"]).evaluate_in(shared) == 1
    assert Program.compile("node.x + 1", ["node"]).evaluate_in(shared) == 2


def test_variables_of_other_names_are_refused():
    with pytest.raises(CelError, match="about node; given: object"):
        Program.compile("node.x", ["node"]).evaluate(object={})


def test_a_struct_is_seen_as_its_json():
    node = Node(metadata=ObjectMeta(labels={"a": "b"}), status=NodeStatus(allocatable={"nvidia.com/gpu": "8"}))
    assert evaluate("node.metadata.labels.a", node=node) == "b"
    assert evaluate("has(node.spec.unschedulable)", node=node) is False
    assert evaluate("int(node.status.allocatable['nvidia.com/gpu']) < 9", node=node) is True


@pytest.mark.parametrize(("text", "holds"), [("self", True), ("!self", False)])
def test_a_condition_holds_or_not(text, holds):
    assert Program.compile(text, ["self"]).holds(Variables(self=True)) is holds


@pytest.mark.parametrize("text", ["'true'", "1", "null", "[true]"])
def test_a_condition_that_is_no_boolean_is_an_error(text):
    with pytest.raises(CelError, match="not a boolean"):
        Program.compile(text, ["self"]).holds(Variables(self=True))


QUANTITIES = [
    ("quantity('8').isGreaterThan(quantity('7'))", True),
    ("quantity('1Gi').isGreaterThan(quantity('1G'))", True),
    ("quantity('500m').isLessThan(quantity('1'))", True),
    ("quantity('1k').compareTo(quantity('1000'))", 0),
    ("quantity('1').sub(quantity('2')).sign()", -1),
    ("quantity('1').add(quantity('500m')).asApproximateFloat()", 1.5),
    ("quantity('3k').asInteger()", 3000),
    ("quantity('500m').isInteger()", False),
    ("isQuantity('1Gi')", True),
    ("isQuantity('1Gb')", False),
]


@pytest.mark.parametrize(("text", "value"), QUANTITIES, ids=[q[0] for q in QUANTITIES])
def test_quantities_compare_and_add_as_in_kubernetes(text, value):
    assert evaluate(text, self={}) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("quantity('1Gb')", "1Gb"),
        ("quantity('500m').asInteger()", "not an integer"),
        ("{'a': 'b'}.isLessThan(quantity('1'))", "not a quantity"),
    ],
)
def test_what_is_no_quantity_is_an_error(text, message):
    with pytest.raises(CelError, match=message):
        evaluate(text, self={})


@pytest.mark.parametrize(
    ("text", "value"),
    [("[1, 2].sum()", 3), ("[2, 1].min()", 1), ("[2, 1].max()", 2), ("[1, 2].isSorted()", True)],
)
def test_lists_sum_and_compare_as_in_kubernetes(text, value):
    assert evaluate(text, self={}) == value
