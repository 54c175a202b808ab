"""Formats of strings and numbers that the API server checks. A format it does not know is no limit."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_GO_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_GO_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_UUID = re.compile(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")

Reader = Callable[[str], Any]
"""Reads the text. Raises ValueError for text of another format."""


def _date_time(text: str) -> datetime:
    if not _DATE_TIME.fullmatch(text):
        raise ValueError(text)
    whole, _, rest = text.upper().partition(".")
    if rest:
        digits = re.match(r"\d+", rest)
        fraction = digits[0] if digits else ""
        text = f"{whole}.{fraction[:6]:0<6}{rest[len(fraction) :]}"
    return datetime.fromisoformat(text.upper()).astimezone(UTC)


def _date(text: str) -> datetime:
    if not _DATE.fullmatch(text):
        raise ValueError(text)
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _duration(text: str) -> timedelta:
    sign, body = (-1, text[1:]) if text.startswith("-") else (1, text)
    parts = _GO_DURATION.findall(body)
    if body != "0" and (not parts or "".join(number + unit for number, unit in parts) != body):
        raise ValueError(text)
    return timedelta(seconds=sign * sum(float(number) * _GO_UNITS[unit] for number, unit in parts))


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(text) from error


def _uuid(text: str) -> str:
    if not _UUID.fullmatch(text):
        raise ValueError(text)
    return text


def _ipv4(text: str) -> str:
    return str(ipaddress.IPv4Address(text))


def _ipv6(text: str) -> str:
    return str(ipaddress.IPv6Address(text))


READERS: dict[str, Reader] = {
    "date-time": _date_time,
    "date": _date,
    "duration": _duration,
    "byte": _bytes,
    "uuid": _uuid,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
}
INTEGER_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
