"""Regular expressions that people bring: RE2, searched for, and never the end of a process."""

from __future__ import annotations

import pytest

from sickbay.api.pattern import Pattern, PatternError


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^Fan[0-9]+$", "Fan12", True),
        ("^Fan[0-9]+$", "Fan12 failed", False),
        ("an1", "Fan12", True),
        ("^NvidiaXID79Error$", "NvidiaXID79Error", True),
        ("^NvidiaXID79Error$", "NvidiaXID79Errors", False),
        ("^NvidiaXID79Error$", "NvidiaXID79Error\n", False),
        ("(?i)fan", "FAN", True),
        ("^.*$", "anything\nat all", True),
        ("", "anything", True),
        ('"\\\\$', 'says "\\', True),
        ("é+", "née", True),
        ("\U0001f600", "ok \U0001f600", True),
        ("a", "a\ud800", False),
    ],
)
def test_a_pattern_is_searched_for_as_its_author_anchored_it(pattern, text, found):
    assert Pattern.compile(pattern).found_in(text) is found


@pytest.mark.parametrize("pattern", ["^([A-Za-z]+)+$", "^(a|a)*$", "^(.*a){20}$", "(x+x+)+y"])
def test_no_pattern_takes_longer_than_the_text_is_long(pattern):
    # An engine that backtracks would not come back from the first of these in a lifetime.
    assert Pattern.compile(pattern).found_in("a" * 15 + "x" * 20_000 + "_") is False


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("(", "missing )"),
        ("(?=a)", "(?="),
        (r"(a)\1", r"\1"),
        ("a{5000}", "repetition size"),
    ],
)
def test_what_is_no_pattern_is_refused_with_the_place_in_it(pattern, says):
    with pytest.raises(PatternError) as caught:
        Pattern.compile(pattern)
    assert says in str(caught.value)
    assert "value.matches" not in str(caught.value)
