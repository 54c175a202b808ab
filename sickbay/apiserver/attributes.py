"""What a request wants to do, in the words authorization speaks."""

from __future__ import annotations

import msgspec

from sickbay.apiserver.calls import Call
from sickbay.apiserver.errors import StatusError
from sickbay.apiserver.metadata import segment_problems
from sickbay.apiserver.requests import Target
from sickbay.apiserver.selectors import parse_fields

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "HEAD": "get"}


class Attributes(msgspec.Struct, frozen=True):
    """`path` is set for what is no resource: discovery, health."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def of_resource(call: Call, target: Target) -> Attributes:
    # A namespace is itself in its namespace, as far as roles are concerned.
    namespace = target.name if target.plural == "namespaces" and not target.group else target.namespace
    verb = _verb(call, target.name)
    name = target.name or (_one_name(call) if verb in ("list", "watch") else "")
    return Attributes(verb, target.group, target.plural, target.subresource, namespace, name)


def _one_name(call: Call) -> str:
    """The name that a list or watch is narrowed to: a role for this one name covers it."""
    selector = call.query.text("fieldSelector")
    if "metadata.name" not in selector:
        return ""
    try:
        terms = parse_fields(selector)
    except StatusError:
        return ""
    names = [term.value for term in terms if term.equal and term.path == "metadata.name"]
    return names[0] if names and not segment_problems(names[0]) else ""


def _verb(call: Call, name: str) -> str:
    if call.method == "GET":
        return "get" if name else "watch" if call.query.flag("watch") else "list"
    if call.method == "DELETE":
        return "delete" if name else "deletecollection"
    return _VERBS.get(call.method, call.method.lower())


def of_path(call: Call) -> Attributes:
    return Attributes(call.method.lower(), path=call.path)
