"""The columns of each kind's table.

Custom resources bring theirs as JSON paths (`additionalPrinterColumns`); built-in kinds that people look at in a
repair have the columns of kubernetes/pkg/printers/internalversion; all others show name and age.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.jsonpath import first
from sickbay.clock import parse_time

Cell = Callable[[Obj, datetime], Any]
UNKNOWN = "<unknown>"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str
    cell: Cell
    format: str = ""
    description: str = ""
    priority: int = 0

    def definition(self) -> Obj:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def human_duration(span: timedelta) -> str:
    """As kubectl prints ages (apimachinery/pkg/util/duration): two units at most, fewer as they grow."""
    seconds = int(span.total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _pair(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    years = days // 365
    return _pair(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _pair(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}{small}{small_unit}" if small else f"{big}{big_unit}"


def age(moment: Any, now: datetime) -> str:
    """The time since a Kubernetes time, as text; `<unknown>` when there is none."""
    if not isinstance(moment, str) or not moment:
        return UNKNOWN
    try:
        return human_duration(now - parse_time(moment))
    except ValueError:
        return "<invalid>"


def _age(obj: Obj, now: datetime) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def _name(obj: Obj, now: datetime) -> str:
    return str(obj["metadata"]["name"])


_NAME_TEXT = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a"
    " client to request the generation of an appropriate name automatically. Name is primarily intended for creation"
    " idempotence and configuration definition. Cannot be updated. More info:"
    " https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_AGE_TEXT = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed"
    " to be set in happens-before order across separate operations. Clients may not set this value. It is represented"
    " in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info:"
    " https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
NAME = Column("Name", "string", _name, format="name", description=_NAME_TEXT)
AGE = Column(
    "Age",
    "string",
    _age,
    description=_AGE_TEXT,
)
_CUSTOM_AGE = replace(AGE, type="date")
"""What a definition without columns shows; built-in kinds call the same cell a text."""
CREATED_AT = Column("Created At", "date", lambda obj, now: obj["metadata"].get("creationTimestamp"))


def custom_columns(columns: Iterable[Obj]) -> list[Column]:
    listed = [_custom_column(column) for column in columns]
    return [NAME, *(listed or [_CUSTOM_AGE])]


def _custom_column(column: Obj) -> Column:
    path, kind = column["jsonPath"], column.get("type", "string")

    def cell(obj: Obj, now: datetime) -> Any:
        value = first(obj, path)
        return typed(value, kind, now)

    return Column(
        column["name"],
        kind,
        cell,
        format=column.get("format", ""),
        description=column.get("description") or f"Custom resource definition column (in JSONPath format): {path}",
        priority=column.get("priority", 0),
    )


def typed(value: Any, kind: str, now: datetime) -> Any:
    """A value as a cell of a printer column's type; None where it is absent or does not fit."""
    if value is None:
        return None
    match kind:
        case "date":
            return age(value, now)
        case "integer":
            return value if isinstance(value, int) and not isinstance(value, bool) else None
        case "number":
            return value if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case _:
            return _as_text(value)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return msgspec.json.encode(value).decode()
    return str(value)
