"""The one protobuf message clients send to this server whatever it offers: DeleteOptions.

kubectl deletes with protobuf bodies. Kubernetes wraps a message in `runtime.Unknown` behind four magic bytes; field
numbers are those of apimachinery's generated.proto. Answers are always JSON, which every client accepts too.
"""

from __future__ import annotations

from collections.abc import Iterator

from sickbay.apiserver.errors import Obj, bad_request

MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def is_protobuf(body: bytes) -> bool:
    return body.startswith(MAGIC)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
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
                    raise bad_request("the protobuf body is cut off")
                yield tag >> 3, message[position : position + size]
                position += size
            case other:
                raise bad_request(f"the protobuf body has a field of wire type {other}, which DeleteOptions never has")


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise bad_request("the protobuf body is cut off")


def _text(value: int | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def delete_options(body: bytes) -> Obj:
    """Raises StatusError(400) for what is no DeleteOptions."""
    raw = next((value for number, value in _fields(body[len(MAGIC) :]) if number == 2), b"")
    if not isinstance(raw, bytes):
        raise bad_request("the protobuf body is no runtime.Unknown")
    options: Obj = {}
    dry_run: list[str] = []
    for number, value in _fields(raw):
        if number == 1 and isinstance(value, int):
            options["gracePeriodSeconds"] = value
        elif number == 2 and isinstance(value, bytes):
            names = {1: "uid", 2: "resourceVersion"}
            options["preconditions"] = {names[n]: _text(v) for n, v in _fields(value) if n in names}
        elif number == 3:
            options["orphanDependents"] = bool(value)
        elif number == 4:
            options["propagationPolicy"] = _text(value)
        elif number == 5:
            dry_run.append(_text(value))
    if dry_run:
        options["dryRun"] = dry_run
    return options
