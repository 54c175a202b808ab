"""What all API structs have in common.

Objects come from many writers and versions, and one odd object must never blind a controller: every field has a
default, unknown fields are ignored, enumerations are plain text, and `null` for a list, map or struct reads as empty.
Limits (lengths, patterns, enumerations) are written beside the field with `says`, end up in the CRD, and are never
enforced when decoding: refusing is the API server's business.

Encoding leaves out what equals the default.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Optional, TypeVar, cast

import msgspec

T = TypeVar("T")

if TYPE_CHECKING:
    Nullable = Annotated[T, "null reads as the default"]
else:
    Nullable = Optional[T]  # noqa: UP045 - a generic alias needs the subscriptable form

# Words that Kubernetes writes in capitals when they are not the first word of a field's name.
_CAPITALS = {"id", "uid", "ip", "ips", "uuid"}


def camel(name: str) -> str:
    """The JSON name of an attribute: `provider_id` is providerID, `node_uid` nodeUID, `for_` for."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.upper() if word in _CAPITALS else word.capitalize() for word in rest)


def says(description: str = "", *, required: bool = False, default: Any = None, **schema: Any) -> msgspec.Meta:
    """Describe a field for people and for the CRD: description, OpenAPI keywords, and what the schema needs beside.

    `default` is the schema's default where it differs from the attribute's own (`...` = none at all). `enum` takes an
    enumeration of `words`, or a list.
    """
    if "enum" in schema:
        schema["enum"] = list(dict.fromkeys(str(member) for member in schema["enum"]))
    extra = {"required": required, "default": default}
    return msgspec.Meta(description=description or None, extra_json_schema=schema, extra=extra)


class Rule(msgspec.Struct, frozen=True):
    """A CEL rule the API server judges an object by. `self` is the struct it stands on."""

    rule: str
    problem: str
    remedy: str
    field: str = ""
    """JSON path below the struct that it is about, such as `.breaker`; empty = the struct itself."""
    optional_old_self: bool = False

    @property
    def message(self) -> str:
        return f"{self.problem}; {self.remedy}"


class _Tolerant:
    """Reads null for a list, map or struct as the field's default."""

    __slots__ = ()

    def __post_init__(self) -> None:
        cls = type(self)
        values = _VALUES.get(cls) or _values(cls)
        if None in values(self):
            for name, empty in _CONTAINERS[cls]:
                if getattr(self, name) is None:
                    msgspec.structs.force_setattr(cast(msgspec.Struct, self), name, empty())


class Part(_Tolerant, msgspec.Struct, omit_defaults=True, rename=camel):
    """Base of the structs of our own kinds."""

    RULES: ClassVar[tuple[Rule, ...]] = ()


class CorePart(_Tolerant, msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename=camel):
    """Base of the Kubernetes kinds kept by the ten thousand: immutable and unseen by the garbage collector.

    They hold text, numbers and each other, so no reference cycle can arise.
    """

    RULES: ClassVar[tuple[Rule, ...]] = ()


_CONTAINERS: dict[type[Any], tuple[tuple[str, Callable[[], Any]], ...]] = {}


_VALUES: dict[type[Any], Callable[[Any], tuple[Any, ...]]] = {}
"""What reads these fields of an object in one go: it is done for every object that is read, and finds a null in few."""


def _values(cls: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    containers = _CONTAINERS[cls] = _containers(cls)
    names = [name for name, _ in containers]
    # attrgetter gives a tuple for two names or more.
    found = _VALUES[cls] = attrgetter(*names, names[0]) if names else lambda _: ()
    return found


def _containers(cls: type[Any]) -> tuple[tuple[str, Callable[[], Any]], ...]:
    """The fields whose default is made afresh for each object: lists, maps and structs."""
    return tuple((f.name, f.default_factory) for f in msgspec.structs.fields(cls) if callable(f.default_factory))
