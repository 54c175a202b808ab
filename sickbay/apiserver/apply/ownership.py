"""managedFields: who set which field, and what that means for the next writer.

An applied configuration owns what it names. Naming a field that somebody else owns is a conflict when the values
differ, unless it is forced, which takes the field over; with equal values both own it. A field that a manager named
before and names no longer goes away, unless another manager owns it too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sickbay.apiserver.apply.fieldset import (
    Fields,
    changed,
    common,
    contains,
    cut,
    fields_of,
    members,
    shown,
    union,
    value_at,
    without,
)
from sickbay.apiserver.apply.merging import merged, removed
from sickbay.apiserver.apply.typed import Typed
from sickbay.apiserver.errors import Obj, StatusError

APPLY, UPDATE = "Apply", "Update"
BEFORE_FIRST_APPLY = "before-first-apply"
"""Owner of what an object held before anybody applied to it (apimachinery/pkg/util/managedfields)."""

CLIENT_SIDE, LAST_APPLIED = "kubectl-client-side-apply", "kubectl.kubernetes.io/last-applied-configuration"

_IDENTITY = (
    *("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "generateName"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"),
)
"""Fields of metadata that nobody owns."""


@dataclass(frozen=True, slots=True)
class Owner:
    """One manager's fields."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str
    fields: Fields

    def same_owner(self, other: Owner) -> bool:
        mine = (self.manager, self.operation, self.api_version, self.subresource)
        return mine == (other.manager, other.operation, other.api_version, other.subresource)

    def named(self) -> str:
        """As conflicts name it."""
        version = f" using {self.api_version}" if self.operation == UPDATE else ""
        part = f" with subresource {self.subresource!r}".replace("'", '"') if self.subresource else ""
        return f'"{self.manager}"{part}{version}'


def entries_of(obj: Obj) -> list[Owner]:
    return [
        Owner(
            raw.get("manager", ""),
            raw.get("operation", ""),
            raw.get("apiVersion", ""),
            raw.get("subresource", ""),
            raw.get("time", ""),
            raw.get("fieldsV1") or {},
        )
        for raw in obj["metadata"].get("managedFields") or ()
    ]


def as_objects(entries: Iterable[Owner]) -> list[Obj]:
    """The form and order in which managedFields hold them; owners of nothing are left out."""
    ordered = sorted(entries, key=lambda entry: (entry.operation, entry.time, entry.manager))
    return [_as_object(entry) for entry in ordered if entry.fields]


def _as_object(entry: Owner) -> Obj:
    raw = {
        "manager": entry.manager,
        "operation": entry.operation,
        "apiVersion": entry.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": entry.fields,
    }
    return raw | ({"subresource": entry.subresource} if entry.subresource else {})


def owned_part(obj: Obj) -> Obj:
    """What of an object can be owned at all."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _IDENTITY}
    rest = {key: value for key, value in obj.items() if key not in ("metadata", "apiVersion", "kind")}
    return {**rest, **({"metadata": metadata} if metadata else {})}


@dataclass(frozen=True, slots=True)
class Applied:
    obj: Obj
    entries: list[Owner]


def apply(
    place: Typed, live: Obj | None, config: Obj, applier: Owner, *, force: bool, by_kubectl: bool = False
) -> Applied:
    """The object after an apply, and its owners. `applier` comes without fields.

    `by_kubectl`: what kubectl applied in its old way, on the client's side, is the applier's already; kubectl moves it
    over before it applies. Raises StatusError(409) naming each conflict.
    """
    wanted = owned_part(config)
    mine = replace(applier, fields=fields_of(place, wanted))
    if live is None:
        return Applied(config, [mine])
    entries = entries_of(live) or _first_owner(place, live, applier, by_kubectl)
    others = [entry for entry in entries if not entry.same_owner(applier)]
    if conflicts := list(_conflicts(place, live, wanted, mine, others)):
        if not force:
            raise _refused(conflicts)
        others = _dispossessed(others, conflicts)
    before = next((entry for entry in entries if entry.same_owner(applier)), None)
    result = merged(place, live, {**wanted, "metadata": wanted.get("metadata") or {}})
    if before is not None:
        gone, kept = without(before.fields, mine.fields), mine.fields
        for other in others:
            gone, kept = without(gone, other.fields), union(kept, other.fields)
        result = removed(place, result, gone, kept)
        if before.fields == mine.fields:
            mine = before
    return Applied(result, [*others, mine])


def _first_owner(place: Typed, live: Obj, applier: Owner, by_kubectl: bool) -> list[Owner]:
    fields = fields_of(place, owned_part(live))
    old_way = LAST_APPLIED in (live["metadata"].get("annotations") or {})
    if old_way and by_kubectl:
        return [replace(applier, fields=fields)]
    manager = CLIENT_SIDE if old_way else BEFORE_FIRST_APPLY
    return [replace(applier, manager=manager, operation=UPDATE, subresource="", fields=fields)]


Conflict = tuple[Owner, tuple[str, ...]]


def _conflicts(place: Typed, live: Obj, wanted: Obj, mine: Owner, others: list[Owner]) -> Iterable[Conflict]:
    for other in others:
        for path in members(common(mine.fields, other.fields)):
            if value_at(place, wanted, path) != value_at(place, live, path) and not path[-1].startswith("k:"):
                yield other, path


def _refused(conflicts: list[Conflict]) -> StatusError:
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {entry.named()}", "field": shown(path)}
        for entry, path in conflicts
    ]
    count = f"{len(causes)} conflict" + ("s" if len(causes) > 1 else "")
    if len({cause["message"] for cause in causes}) == 1 and len(causes) == 1:
        listed = f"{causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = dict.fromkeys(cause["message"] for cause in causes)
        listed = "\n".join(
            f"{line}:\n" + "\n".join(f"- {cause['field']}" for cause in causes if cause["message"] == line)
            for line in lines
        ).replace("conflict with", "conflicts with")
    return StatusError(409, "Conflict", f"Apply failed with {count}: {listed}", details={"causes": causes})


def _dispossessed(entries: list[Owner], conflicts: list[Conflict]) -> list[Owner]:
    lost = _as_set(path for _, path in conflicts)
    return [replace(entry, fields=cut(entry.fields, lost)) for entry in entries]


def _as_set(paths: Iterable[tuple[str, ...]]) -> Fields:
    result: Fields = {}
    for path in paths:
        below = result
        for element in path:
            below = below.setdefault(element, {})
    return result


def after_update(place: Typed, new: Obj, old: Obj, writer: Owner) -> list[Any]:
    """The managedFields of an object that has some and was written by other means.

    What the writer changed becomes its own, and is lost to all others; what is gone is owned by nobody.
    """
    entries = entries_of(old)
    taken = changed(place, owned_part(new), owned_part(old))
    if not taken:
        return as_objects(entries)
    present = fields_of(place, owned_part(new))
    mine = next((entry for entry in entries if entry.same_owner(writer)), writer)
    kept = _as_set(path for path in members(union(mine.fields, taken)) if contains(present, path))
    others = [replace(entry, fields=cut(entry.fields, taken)) for entry in entries if not entry.same_owner(writer)]
    return as_objects([*others, replace(mine, fields=kept, time=writer.time)])
