"""The JSON paths of printer columns and selectable fields: the part of k8s.io/client-go/util/jsonpath they use.

`.status.phase`, `.metadata.labels['a/b']`, `.spec.steps[0].step`, `.status.conditions[?(@.type=="Ready")].status`,
`.spec.items[*].name`, and dots escaped with a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

Step = Callable[[Any], list[Any]]

_TOKEN = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\\])+)
      | \[\s*(?P<index>-?\d+)\s*\]
      | \[\s*(?P<star>\*)\s*\]
      | \[\s*'(?P<quoted>[^']*)'\s*\]
      | \[\s*"(?P<double>[^"]*)"\s*\]
      | \[\?\(\s*@(?P<left>[^=!<>\s]+)\s*(?P<sign>==|!=)\s*(?P<right>"[^"]*"|'[^']*'|[^)\s]+)\s*\)\]""",
    re.VERBOSE,
)


class BadPath(ValueError):
    """The text is no JSON path of the kind columns use."""


def first(obj: Any, path: str) -> Any:
    """The first value at `path`, or None."""
    found = every(obj, path)
    return found[0] if found else None


def every(obj: Any, path: str) -> list[Any]:
    """All values at `path`. Raises BadPath."""
    values = [obj]
    for step in _steps(path):
        values = [result for value in values for result in step(value)]
    return values


@lru_cache(maxsize=512)
def _steps(path: str) -> tuple[Step, ...]:
    text = path.strip().removeprefix("{").removesuffix("}")
    if text and text[0] not in ".[":
        text = f".{text}"
    steps, position = [], 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise BadPath(f"cannot read the JSON path {path!r} at {text[position:]!r}")
        steps.append(_step(found))
        position = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found["index"] is not None:
        return _indexed(int(found["index"]))
    if found["star"]:
        return _all
    if found["left"] is not None:
        return _filtered(found["left"], found["sign"], found["right"].strip("\"'"))
    name = found["field"] or found["quoted"] or found["double"] or ""
    return _named(re.sub(r"\\(.)", r"\1", name))


def _named(name: str) -> Step:
    if name == "*":
        return _all
    return lambda value: [value[name]] if isinstance(value, dict) and value.get(name) is not None else []


def _indexed(index: int) -> Step:
    return lambda value: value[index : index + 1 or None] if isinstance(value, list) else []


def _all(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list) else []


def _filtered(left: str, sign: str, right: str) -> Step:
    def step(value: Any) -> list[Any]:
        items = value if isinstance(value, list) else []
        return [item for item in items if (_text(first(item, left)) == right) == (sign == "==")]

    return step


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
