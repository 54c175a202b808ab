"""What a request wants to do, in the words authorization speaks."""

from __future__ import annotations

import msgspec

from sickbay.apiserver.calls import Call
from sickbay.apiserver.requests import Target

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
    return Attributes(_verb(call, target.name), target.group, target.plural, target.subresource, namespace, target.name)


def _verb(call: Call, name: str) -> str:
    if call.method == "GET":
        return "get" if name else "watch" if call.query.flag("watch") else "list"
    if call.method == "DELETE":
        return "delete" if name else "deletecollection"
    return _VERBS.get(call.method, call.method.lower())


def of_path(call: Call) -> Attributes:
    return Attributes(_VERBS.get(call.method, call.method.lower()), path=call.path)
