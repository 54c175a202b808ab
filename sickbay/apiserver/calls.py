"""One API call, as the endpoints see it, and the answers they give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sickbay.apiserver import protobuf
from sickbay.apiserver.errors import Obj, bad_request, unsupported_media_type
from sickbay.apiserver.requests import Query, Target
from sickbay.apiserver.resources import Served
from sickbay.apiserver.texts import read_json, read_yaml
from sickbay.apiserver.writes import Caller

JSON_TYPE = "application/json"
_BODY_TYPES = (JSON_TYPE, "application/yaml")
_UNDERSTOOD = (*_BODY_TYPES, protobuf.MEDIA_TYPE)
encode = msgspec.json.Encoder().encode


class Call(msgspec.Struct, frozen=True):
    """`view` and `target` belong together: the resource version the path names."""

    method: str
    path: str
    query: Query
    headers: Mapping[bytes, bytes]
    body: bytes
    caller: Caller

    @property
    def content_type(self) -> str:
        value = self.headers.get(b"content-type", b"").decode("latin-1")
        return value.partition(";")[0].strip().lower()

    @property
    def accept(self) -> str:
        return self.headers.get(b"accept", b"").decode("latin-1")


class ResourceCall(msgspec.Struct, frozen=True):
    """A call to one resource."""

    call: Call
    target: Target
    view: Served

    @property
    def key(self) -> str:
        return self.view.type.key


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    content_type: bytes = b"application/json"


class WatchStream(msgspec.Struct, frozen=True):
    """An answer that goes on: `app` lets `watching` feed it."""

    watch: Any
    headers: tuple[tuple[bytes, bytes], ...] = ()


def json_answer(status: int, content: Any) -> Answer:
    return Answer(status, encode(content))


def decode_body(call: Call) -> Obj:
    """The object in the body. Raises StatusError: 400 for what is no object, 415 for another media type."""
    kind = call.content_type
    if protobuf.is_protobuf(call.body):
        return protobuf.decode(call.body, _UNDERSTOOD)
    if kind and kind not in _BODY_TYPES:
        raise unsupported_media_type(_UNDERSTOOD)
    content = decode(call.body, yaml_allowed=kind == "application/yaml")
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise bad_request("the request body must be an object")
    return content


def decode(body: bytes, *, yaml_allowed: bool = False) -> Any:
    """Raises StatusError(400) with the place of the mistake."""
    try:
        return read_yaml(body) if yaml_allowed else read_json(body)
    except ValueError as error:
        raise bad_request(f"the request body cannot be read: {error}") from None


def decode_patch(call: Call) -> Any:
    """Raises StatusError(400)."""
    try:
        return read_json(call.body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from None
