"""Counts, percentages and resource quantities."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.api.quantity import parse, percent, resolve

LIMITS = [
    (3, 100, 0, 3),
    (0, 100, 0, 0),
    (200, 100, 0, 200),
    ("5%", 100, 1, 5),
    ("5%", 30, 1, 1),
    ("5%", 10, 1, 1),
    ("5%", 10, 0, 0),
    ("20%", 9, 2, 2),
    ("20%", 14, 2, 2),
    ("20%", 15, 2, 3),
    ("100%", 7, 0, 7),
    ("0%", 7, 0, 0),
    ("10%", 0, 4, 4),
    (1, 100, 4, 1),
]


@pytest.mark.parametrize(("limit", "total", "least", "whole"), LIMITS)
def test_a_limit_resolves_to_whole_nodes_rounded_down_but_not_below_the_least(limit, total, least, whole):
    assert resolve(limit, total, at_least=least) == whole


@pytest.mark.parametrize("limit", ["", "5", "%", "05%", "101%", "5.5%", "-5%", "5 %", "5%\n", -1])
def test_what_is_no_limit_is_an_error_that_names_it(limit):
    shown = str(limit) if isinstance(limit, int) else repr(limit)
    with pytest.raises(ValueError, match=re.escape(shown)):
        resolve(limit, 10)


@given(st.integers(0, 100), st.integers(0, 100))
def test_percentages_order_by_size_then_text_as_the_rules_on_the_api_server_assume(one, other):
    def key(number):
        return (len(f"{number}%"), f"{number}%")

    assert (key(one) >= key(other)) == (one >= other)
    assert percent(f"{one}%") == one


QUANTITIES = [
    ("8", 8),
    (8, 8),
    (0.5, Decimal("0.5")),
    ("500m", Decimal("0.5")),
    ("1k", 1000),
    ("1Ki", 1024),
    ("1Gi", 2**30),
    ("1.5G", Decimal("1.5e9")),
    ("12e6", 12_000_000),
    ("1E3", 1000),
    ("2E", Decimal("2e18")),
    ("100n", Decimal("1e-7")),
    ("-1", -1),
    (".5", Decimal("0.5")),
    ("5.", 5),
]


@pytest.mark.parametrize(("text", "number"), QUANTITIES, ids=[repr(q[0]) for q in QUANTITIES])
def test_a_quantity_is_read(text, number):
    assert parse(text) == number


@pytest.mark.parametrize("text", ["", "x", "1Gb", "1 Gi", "Gi", "--1", "1e", "0x10", "1K", "٣"])
def test_what_is_no_quantity_is_an_error_that_names_it(text):
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        parse(text)
