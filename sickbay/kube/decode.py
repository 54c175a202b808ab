"""Bytes to objects, one object at a time, so that a single odd object never hides the others.

Typed models that decode a list in one go fail the whole list when one Node carries, say, a condition without a status.
Here the envelope is decoded with its items left raw, then each item alone. What does not decode is set aside under as
much of its name as can still be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, cast

import msgspec

from sickbay.kube.errors import MalformedObject
from sickbay.kube.objects import nameless

T = TypeVar("T")

LINE_LIMIT = 64 * 1024 * 1024
"""Bytes of one watch line. etcd refuses objects above 1.5 MiB by default; beyond this the stream is not a watch."""


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Named(msgspec.Struct, gc=False):
    metadata: _Meta | None = None


class _ListMeta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str | None = None
    continue_: str | None = msgspec.field(default=None, name="continue")


class _ListEnvelope(msgspec.Struct, gc=False):
    metadata: _ListMeta | None = None
    items: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class Identity(msgspec.Struct, frozen=True):
    """Which object, as far as it can be read; empty strings for what cannot."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Malformed:
    """An object that did not decode."""

    identity: Identity
    error: str


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list, items still raw."""

    items: list[msgspec.Raw]
    resource_version: str
    continue_token: str


_named: msgspec.json.Decoder[_Named] = msgspec.json.Decoder(_Named)
_envelope: msgspec.json.Decoder[_ListEnvelope] = msgspec.json.Decoder(_ListEnvelope)
_line: msgspec.json.Decoder[_Line] = msgspec.json.Decoder(_Line)
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


def decoder(struct: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of a type, built once. `dict` decodes to plain dicts."""
    found = _decoders.get(struct)
    if found is None:
        found = _decoders[struct] = msgspec.json.Decoder(struct)
    return cast("msgspec.json.Decoder[T]", found)


def identity(raw: bytes | msgspec.Raw) -> Identity:
    """Read the names of an object of which nothing else may be readable."""
    try:
        meta = _named.decode(raw).metadata or _Meta()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Identity()
    return Identity(meta.namespace or "", meta.name or "", meta.uid or "", meta.resource_version or "")


def decode_object(struct: type[T], raw: bytes | msgspec.Raw) -> T:
    """Raises MalformedObject, naming the object when its name can be read."""
    try:
        return decoder(struct).decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        who = identity(raw)
        name = f"{who.namespace}/{who.name}".lstrip("/") or "an object without a readable name"
        raise MalformedObject(f"{name}: {error}") from None


def decode_page(body: bytes) -> Page:
    """Raises MalformedObject when the answer is no list at all."""
    try:
        envelope = _envelope.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedObject(f"the answer is not a list of objects: {error}") from None
    meta = envelope.metadata or _ListMeta()
    return Page(envelope.items or [], meta.resource_version or "", meta.continue_ or "")


def decode_items(struct: type[T], raw_items: list[msgspec.Raw]) -> tuple[list[T], list[Malformed]]:
    """Each item alone; what does not decode is set aside."""
    items: list[T] = []
    malformed: list[Malformed] = []
    decode = decoder(struct).decode
    for raw in raw_items:
        try:
            obj = decode(raw)
            error = nameless(obj)
        except (msgspec.DecodeError, UnicodeDecodeError) as failure:
            error = str(failure)
        if error:
            malformed.append(Malformed(identity(raw), error))
        else:
            items.append(obj)
    return items, malformed


def decode_line(line: bytes) -> tuple[str, msgspec.Raw]:
    """Type and raw object of a watch line. Raises MalformedObject for a line that is none."""
    try:
        parsed = _line.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedObject(f"a watch line that is no event: {error}") from None
    return parsed.type, parsed.object


class LineSplitter:
    """Cuts a stream of chunks into lines. A line may span any number of chunks; the rest without an end is kept."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines completed by this chunk, without their ends and without empty ones.

        Raises MalformedObject when a line grows beyond the limit.
        """
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines:
            lines[0] = b"".join((*self._parts, lines[0]))
            self._parts, self._held = [], 0
        if rest:
            self._parts.append(rest)
            self._held += len(rest)
        if self._held > self._limit:
            raise MalformedObject(f"a watch line longer than {self._limit} bytes")
        return [line for line in lines if line.strip()]
