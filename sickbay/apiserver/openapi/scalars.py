"""Scalars as Go's types read them: what JSON value each takes.

A time that is none, or a quantity that is none, would be kept here and break the first controller that reads it; the
real server refuses both.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sickbay.api import quantity
from sickbay.apiserver.openapi.schemas import MICRO_TIME, Schema

Fits = Callable[[Any], bool]


class Scalar(NamedTuple):
    needs: str
    exact: type | None
    """Values of this very type fit without a closer look; None where each is looked at."""
    fits: Fits


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and float(value).is_integer()


def _fits_in(bits: int) -> Fits:
    least, beyond = -(1 << bits - 1), 1 << bits - 1
    return lambda value: (type(value) is int or _is_integer(value)) and least <= value < beyond


_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d([.,]\d+)?([Zz]|[+-]\d\d:\d\d)")
_MICRO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d{6}(Z|[+-]\d\d:\d\d)")


@lru_cache(maxsize=16384)
def _reads(shape: re.Pattern[str], text: str) -> bool:
    """Whether a text has the shape, and the moment exists."""
    if not shape.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(f"{text[:10]}T{text[11:19]}")
    except ValueError:
        return False
    return True


def _is_time(value: Any) -> bool:
    return isinstance(value, str) and _reads(_TIME, value)


def _is_micro_time(value: Any) -> bool:
    return isinstance(value, str) and _reads(_MICRO, value)


@lru_cache(maxsize=4096)
def _is_amount(text: str) -> bool:
    try:
        quantity.parse(text)
    except ValueError:
        return False
    return True


def _is_quantity(value: Any) -> bool:
    return _is_amount(value) if isinstance(value, str) else _is_number(value)


def _is_base64(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


_PLAIN = {
    "string": Scalar("a text", str, lambda value: isinstance(value, str)),
    "boolean": Scalar("true or false", bool, lambda value: isinstance(value, bool)),
    "integer": Scalar("a whole number", int, _is_integer),
    "number": Scalar("a number", float, _is_number),
}
_FORMATS = {
    ("integer", "int32"): Scalar("a whole number", None, _fits_in(32)),
    ("integer", "int64"): Scalar("a whole number", None, _fits_in(64)),
    ("string", "date-time"): Scalar("a time such as 2026-01-31T12:00:00Z", None, _is_time),
    ("string", "byte"): Scalar("bytes in base64", None, _is_base64),
}
_MICRO_TIME = Scalar("a time with microseconds such as 2026-01-31T12:00:00.000000Z", None, _is_micro_time)
_QUANTITY = Scalar("a quantity such as 8, 500m or 64Gi", None, _is_quantity)
_EITHER = Scalar(
    "a text or a whole number", str, lambda value: isinstance(value, str) or _FORMATS["integer", "int32"].fits(value)
)


def scalar_of(schema: Schema, name: str = "") -> Scalar | None:
    """None for what is no scalar. `name` is that of the schema, where it has one."""
    if name == MICRO_TIME:
        return _MICRO_TIME
    if schema.get("format") == "int-or-string":
        return _EITHER
    if "oneOf" in schema:
        return _QUANTITY
    kind = schema.get("type")
    return _FORMATS.get((str(kind), str(schema.get("format", "")))) or _PLAIN.get(str(kind))
