"""What is served: resource types, and the group-versions under which each can be reached.

A resource is keyed by its group-resource text, `nodes` or `noderepairs.sickbay.dev`. Its objects are stored once, in
the form of its storage version; a `Served` is one way in: Events are stored as core/v1 and served as `v1` and as
`events.k8s.io/v1`, a custom resource is served under each of its versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sickbay.apiserver.errors import Cause, Obj
from sickbay.apiserver.openapi.decoding import Type, kind_type
from sickbay.apiserver.strategy import Strategy

Convert = Callable[[Obj], Obj]


def group_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


@dataclass(frozen=True, slots=True, eq=False)
class ResourceType:
    """One kind of object. `version` is the one objects are stored in."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    strategy: Strategy
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    """Paths a field selector may name besides metadata.name and metadata.namespace, with the text of an absent one."""
    versions: tuple[str, ...] = ()
    """Versions served, newest first; only `version` when empty."""
    custom: Any = None
    """The custom resource's own knowledge (schema, columns); None for built-in kinds."""

    @property
    def key(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def go_type(self) -> Type | None:
        """How a built-in kind is decoded; None for custom resources, which have their schema."""
        return kind_type(self.group, self.version, self.kind) if self.custom is None else None

    @property
    def api_version(self) -> str:
        return group_version(self.group, self.version)

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    def object_key(self, namespace: str, name: str) -> str:
        return f"{namespace}/{name}" if self.namespaced else name


def _same(obj: Obj) -> Obj:
    return obj


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """A resource as seen under one group and version."""

    type: ResourceType
    group: str
    version: str
    outward: Convert = _same
    inward: Convert = _same
    check: Callable[[Obj, Obj | None], list[Cause]] | None = None
    """What this version asks beyond the kind's own rules of a new object (old = None) and of a change."""
    cause_names: Mapping[str, str] = field(default_factory=dict)
    """What this version calls fields that causes name by their stored name."""
    renamed_fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def api_version(self) -> str:
        return group_version(self.group, self.version)

    @property
    def native(self) -> bool:
        """True where stored objects are shown as they are."""
        return self.group == self.type.group and self.version == self.type.version


class Registry:
    """All that is served at this moment. Custom resources come and go."""

    def __init__(self) -> None:
        self._types: dict[str, ResourceType] = {}
        self._served: dict[tuple[str, str, str], Served] = {}

    def add(self, resource: ResourceType, *views: Served) -> None:
        """Serve a type under its own versions and under `views`; replaces an earlier type of that key."""
        self.remove(resource.key)
        self._types[resource.key] = resource
        own = [Served(resource, resource.group, version) for version in resource.versions or (resource.version,)]
        for served in (*own, *views):
            self._served[(served.group, served.version, resource.plural)] = served

    def remove(self, key: str) -> None:
        if self._types.pop(key, None) is None:
            return
        self._served = {at: served for at, served in self._served.items() if served.type.key != key}

    def get(self, key: str) -> ResourceType:
        """Raises KeyError for what is not served."""
        return self._types[key]

    def __contains__(self, key: str) -> bool:
        return key in self._types

    def __iter__(self) -> Iterator[ResourceType]:
        return iter(self._types.values())

    def find(self, group: str, version: str, plural: str) -> Served | None:
        return self._served.get((group, version, plural))

    def served(self) -> Iterator[Served]:
        return iter(self._served.values())

    def by_kind(self, group: str, kind: str) -> ResourceType | None:
        for served in self._served.values():
            if served.group == group and served.type.kind == kind:
                return served.type
        return None
