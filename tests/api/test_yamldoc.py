"""People's YAML: read strictly, and bounded against files that would hang or crash the reader."""

from __future__ import annotations

import pytest

from sickbay.api import yamldoc

BOMB = "\n".join(
    ["a0: &a0 [x,x,x,x,x,x,x,x,x]"] + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
)


@pytest.mark.parametrize(
    ("text", "line", "key", "says"),
    [
        pytest.param("a: 1\nb: 2\na: 3\n", 3, "a", "is given twice (first in line 1)", id="a key twice"),
        pytest.param("x: 1\n---\ns:\n  a: 1\n  'a': 3\n", 5, "a", "first in line 4", id="in a later document, quoted"),
        pytest.param("- {a: 1, b: 2, a: 3}\n", 1, "a", "is given twice", id="on one line"),
        pytest.param("? [a]\n: 1\n", 1, "", "a key must be plain text", id="a list as key"),
        pytest.param("[" * 20_000, 1, "", "nests deeper than 100 levels", id="nested in brackets"),
        pytest.param("- " * 5_000 + "a", 1, "", "nests deeper than 100 levels", id="nested in dashes"),
        pytest.param("a:\n  b: &a [*a]\n", 2, "", "*a stands inside what it names", id="a list in itself"),
        pytest.param("a: &a\n  b: {c: *a}\n", 2, "", "*a stands inside what it names", id="a mapping in itself"),
        pytest.param("a: &a\n  <<: *a\n", 2, "", "*a stands inside what it names", id="a merge of itself"),
        pytest.param(BOMB, 6, "", "stand for more than 100000 values", id="an alias bomb"),
        pytest.param("a: *nobody\n", 1, "", "found undefined alias", id="an alias of nothing"),
        pytest.param("a: 1\nb: [\n", 3, "", "not YAML", id="a bracket left open"),
        pytest.param("a: 1\nb: \x00\n", 2, "", "character #x0 may not stand in it", id="a control character"),
        pytest.param("a: 1\nb: !!python/object:os.system x\n", 2, "", "could not determine a constructor", id="a tag"),
        pytest.param("b: 1\na: !!int x\n", 2, "", "cannot be read", id="no date"),
        pytest.param(f"a: {'9' * 5000}\n", 1, "", "cannot be read", id="a number of 5,000 digits"),
        pytest.param("a: !!int x\n", 1, "", "cannot be read", id="a tag that does not fit"),
    ],
)
def test_what_is_refused_names_its_line(text, line, key, says):
    with pytest.raises(yamldoc.BadYamlError) as raised:
        yamldoc.load(text)
    assert (raised.value.line, raised.value.key) == (line, key)
    assert says in raised.value.message


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("---\n---\n# no more\n", [], id="empty documents"),
        pytest.param("a: &a {x: 1}\nb: [*a, *a]\n", [{"a": {"x": 1}, "b": [{"x": 1}] * 2}], id="alias"),
        pytest.param("a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\n", [{"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 2}}],
                     id="merge"),
        pytest.param("a: &a 1\n---\na: &a 2\nb: *a\n", [{"a": 1}, {"a": 2, "b": 2}], id="an anchor per document"),
        pytest.param("a: {x: 1}\nb: {x: 1}\n", [{"a": {"x": 1}, "b": {"x": 1}}], id="the same key in two mappings"),
        pytest.param("[" * 100 + "]" * 100, None, id="a hundred levels"),
        pytest.param(f"a: &a [{'x,' * 1000}]\nb: [{'*a,' * 99}]\n", None, id="many values by aliases"),
    ],
)  # fmt: skip
def test_what_yaml_allows_and_a_manifest_may_use_is_read(text, values):
    found = yamldoc.load(text)
    assert values is None or found == values


@pytest.mark.parametrize("text", ["2027-03-01T08:00:00Z", "2027-03-01", "2027-03-01 08:00:00 +1"])
def test_what_looks_like_a_time_is_text_as_it_is_for_kubectl(text: str) -> None:
    assert yamldoc.load(f"until: {text}\n") == [{"until": text}]
