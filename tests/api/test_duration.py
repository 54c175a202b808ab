"""Durations: Go's form plus days, read and written."""

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.api.duration import MAX_LENGTH, PATTERN, format_duration, parse_duration

READ = [
    ("0s", timedelta(0)),
    ("90s", timedelta(seconds=90)),
    ("30m", timedelta(minutes=30)),
    ("24h", timedelta(hours=24)),
    ("7d", timedelta(days=7)),
    ("1h30m", timedelta(hours=1, minutes=30)),
    ("1d12h", timedelta(days=1, hours=12)),
    ("250ms", timedelta(milliseconds=250)),
    ("1.5h", timedelta(minutes=90)),
    ("0.25d", timedelta(hours=6)),
    ("1m0.5s", timedelta(minutes=1, milliseconds=500)),
    ("1m500ms", timedelta(minutes=1, milliseconds=500)),
]


@pytest.mark.parametrize(("text", "span"), READ, ids=[r[0] for r in READ])
def test_a_duration_is_read(text, span):
    assert parse_duration(text) == span


@pytest.mark.parametrize(
    "text", ["", "5", "s", "-5s", "5 m", "1.h", ".5h", "1,5h", "5m1h", "1w", "5m5m", "5M", "٣s", "5s\n"]
)
def test_what_is_no_duration_is_an_error_that_names_it_and_the_form(text):
    with pytest.raises(ValueError, match=re.escape(repr(text))) as error:
        parse_duration(text)
    assert "1h30m" in str(error.value)


def test_a_duration_beyond_all_time_is_an_error():
    with pytest.raises(ValueError, match="too long"):
        parse_duration("9999999999d")


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(days=7), "7d"),
        (timedelta(hours=25), "1d1h"),
        (timedelta(microseconds=1999), "1ms"),
    ],
)
def test_a_duration_is_written_largest_unit_first(span, text):
    assert format_duration(span) == text


def test_a_negative_duration_cannot_be_written():
    with pytest.raises(ValueError, match="negative"):
        format_duration(timedelta(seconds=-1))


@given(st.integers(0, 10**12))
def test_what_is_written_is_read_back_and_accepted_by_the_api_server(milliseconds):
    span = timedelta(milliseconds=milliseconds)
    text = format_duration(span)
    assert parse_duration(text) == span
    assert re.search(PATTERN, text) and 2 <= len(text) <= MAX_LENGTH


@given(st.from_regex(PATTERN, fullmatch=True).filter(lambda text: 2 <= len(text) <= MAX_LENGTH and text.isascii()))
def test_what_the_api_server_accepts_is_read_or_refused_as_too_long(text):
    text = text.rstrip("\n")
    if len(text) < 2:
        return
    try:
        parse_duration(text)
    except ValueError as error:
        assert "too long" in str(error)
