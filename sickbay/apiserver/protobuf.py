"""Reading protobuf bodies, which Go clients send for built-in kinds whatever this server offers.

kubectl deletes with protobuf options and creates namespaces, config maps and access reviews in protobuf. Kubernetes
wraps a message in `runtime.Unknown` behind four magic bytes, with its kind and version. Answers are always JSON, which
every client accepts too. Messages that are not in the table are refused with the media types that are understood.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sickbay.apiserver.errors import Obj, bad_request, unsupported_media_type
from sickbay.apiserver.protomessages import MESSAGES, Field, known
from sickbay.clock import rfc3339, rfc3339_micro

MAGIC = b"k8s\x00"
MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CUT_OFF = "the protobuf body is cut off"


def is_protobuf(body: bytes) -> bool:
    return body.startswith(MAGIC)


def decode(body: bytes, accepted: tuple[str, ...]) -> Obj:
    """The object in a body, kind and apiVersion included. Raises StatusError: 400, or 415 for an unknown message."""
    kind = api_version = ""
    raw = b""
    for number, value in _read(body[len(MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            names = {1: "apiVersion", 2: "kind"}
            type_meta = {names[n]: _text(v) for n, v in _read(value) if n in names}
            kind, api_version = type_meta.get("kind", ""), type_meta.get("apiVersion", "")
        elif number == 2 and isinstance(value, bytes):
            raw = value
    kind = kind or "DeleteOptions"
    if not known(api_version, kind):
        raise unsupported_media_type(accepted)
    obj = _message(raw, kind)
    if api_version:
        obj |= {"kind": kind, "apiVersion": api_version}
    return obj


def _read(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values, as they stand."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        match tag & 7:
            case 0:
                value, position = _varint(message, position)
                yield tag >> 3, value
            case 2:
                size, position = _varint(message, position)
                if position + size > len(message):
                    raise bad_request(_CUT_OFF)
                yield tag >> 3, message[position : position + size]
                position += size
            case other:
                raise bad_request(f"the protobuf body has a field of wire type {other}, which Kubernetes never sends")


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message) and shift < 70:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise bad_request(_CUT_OFF)


def _text(value: int | bytes) -> str:
    try:
        return value.decode() if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError:
        raise bad_request("the protobuf body holds text that is not UTF-8") from None


def _message(raw: bytes, kind: str) -> Obj:
    fields = MESSAGES[kind]
    obj: Obj = {}
    for number, value in _read(raw):
        field = fields.get(number)
        if field is not None:
            _take(obj, field, value)
    return obj


def _take(obj: Obj, field: Field, value: int | bytes) -> None:
    if field.type.startswith("["):
        obj.setdefault(field.name, []).append(_value(field.type[1:-1], value))
        return
    if field.type.startswith("{"):
        entry = dict(_read(value)) if isinstance(value, bytes) else {}
        obj.setdefault(field.name, {})[_text(entry.get(1, b""))] = _value(field.type[1:-1], entry.get(2, b""))
        return
    read = _value(field.type, value)
    if field.keep_empty or read not in ("", 0, False, None, {}):
        obj[field.name] = read


def _value(kind: str, value: int | bytes) -> Any:
    match kind:
        case "str":
            return _text(value)
        case "int":
            # Negative numbers are sent as 64-bit two's complement.
            return value - (1 << 64) if isinstance(value, int) and value >> 63 else value
        case "bool":
            return bool(value)
        case "bytes":
            return base64.b64encode(value if isinstance(value, bytes) else b"").decode()
        case "time" | "micro" | "intstr":
            return _special(kind, dict(_read(value)) if isinstance(value, bytes) else {})
        case _:
            return _message(value if isinstance(value, bytes) else b"", kind)


def _special(kind: str, parts: dict[int, int | bytes]) -> Any:
    if kind == "intstr":
        return _text(parts.get(3, b"")) if parts.get(1) else parts.get(2, 0)
    if not parts:
        return None
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int):
        raise bad_request("the protobuf body holds a time that is none")
    moment = _EPOCH + timedelta(seconds=_value("int", seconds), microseconds=nanos // 1000)
    return rfc3339(moment) if kind == "time" else rfc3339_micro(moment)
