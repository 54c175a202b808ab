"""Cells: ages, typed values and the JSON paths that find them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sickbay.apiserver.columns import age, human_duration, typed
from sickbay.apiserver.jsonpath import BadPath, every, first
from sickbay.apiserver.workload_printers import selector_text

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE, "10m"),
        (179 * MINUTE, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 59 * MINUTE, "7h59m"),
        (8 * HOUR, "8h"),
        (47 * HOUR, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 3 * HOUR, "2d3h"),
        (8 * DAY, "8d"),
        (729 * DAY, "729d"),
        (730 * DAY, "2y"),
        (740 * DAY, "2y10d"),
        (9 * 365 * DAY, "9y"),
    ],
)
def test_durations_read_as_kubectl_prints_them(seconds: int, text: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(
    ("moment", "text"),
    [("2025-12-31T23:59:00Z", "60s"), ("", "<unknown>"), (None, "<unknown>"), ("soon", "<invalid>")],
)
def test_ages(moment: str | None, text: str) -> None:
    assert age(moment, NOW) == text


@pytest.mark.parametrize(
    ("value", "kind", "cell"),
    [
        (None, "string", None),
        ("x", "string", "x"),
        (5, "string", "5"),
        (True, "string", "true"),
        ({"a": [1]}, "string", '{"a":[1]}'),
        (5, "integer", 5),
        ("5", "integer", None),
        (True, "integer", None),
        (1.5, "number", 1.5),
        (True, "boolean", True),
        ("yes", "boolean", None),
        ("2025-12-31T23:59:00Z", "date", "60s"),
    ],
)
def test_cells_have_the_type_of_their_column(value: Any, kind: str, cell: Any) -> None:
    found = typed(value, kind, NOW)
    assert found == cell
    assert type(found) is type(cell)


OBJECT = {
    "metadata": {"labels": {"a.b/c": "dotted", "plain": "p"}},
    "status": {
        "conditions": [{"type": "Ready", "status": "True", "n": 1}, {"type": "Valid", "status": "False", "ok": True}],
        "list": [1, 2, 3],
        "null": None,
    },
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".status.list", [[1, 2, 3]]),
        ("{.status.list[0]}", [1]),
        (".status.list[-1]", [3]),
        (".status.list[7]", []),
        (".status.list[*]", [1, 2, 3]),
        (".status.conditions[*].type", ["Ready", "Valid"]),
        ('.status.conditions[?(@.type=="Valid")].status', ["False"]),
        (".status.conditions[?(@.type=='Valid')].status", ["False"]),
        ('.status.conditions[?(@.type != "Valid")].status', ["True"]),
        (".status.conditions[?(@.n==1)].type", ["Ready"]),
        (".status.conditions[?(@.ok==true)].type", ["Valid"]),
        ("metadata.labels.plain", ["p"]),
        (r".metadata.labels.a\.b/c", ["dotted"]),
        (".metadata.labels['a.b/c']", ["dotted"]),
        ('.metadata.labels["plain"]', ["p"]),
        (".status.null", []),
        (".status.list.deep", []),
        (".metadata.labels.*", ["dotted", "p"]),
    ],
)
def test_json_paths(path: str, values: list[Any]) -> None:
    assert every(OBJECT, path) == values
    assert first(OBJECT, path) == (values[0] if values else None)


@pytest.mark.parametrize("path", [".a[", ".a[x]", ".a[?(@.b)]", "..a"])
def test_paths_that_cannot_be_read_say_where(path: str) -> None:
    with pytest.raises(BadPath, match="cannot read the JSON path"):
        every(OBJECT, path)


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (None, "<none>"),
        ({}, "<none>"),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        (
            {
                "matchExpressions": [
                    {"key": "k", "operator": "In", "values": ["y", "x"]},
                    {"key": "l", "operator": "NotIn", "values": ["z"]},
                    {"key": "m", "operator": "Exists"},
                    {"key": "n", "operator": "DoesNotExist"},
                ]
            },
            "k in (x,y),l notin (z),m,!n",
        ),
    ],
)
def test_selectors_as_text(selector: dict[str, Any] | None, text: str) -> None:
    assert selector_text(selector) == text
