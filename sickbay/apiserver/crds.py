"""CustomResourceDefinitions: creating one makes its resource served, deleting it takes the objects along.

The real server establishes a CRD in the background within milliseconds; here it is established in the same write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sickbay.api import structural
from sickbay.apiserver.crdrules import check_change, check_definition
from sickbay.apiserver.errors import Cause, Obj
from sickbay.apiserver.resources import ResourceType
from sickbay.apiserver.strategy import SpecStatus, Strategy
from sickbay.clock import rfc3339

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store

CRDS = "customresourcedefinitions.apiextensions.k8s.io"


class CrdStrategy(SpecStatus):
    unconditional = False

    def prepare_create(self, obj: Obj, store: Store) -> None:
        now = rfc3339(store.clock.now())
        spec = default_spec(obj.get("spec") or {})
        obj["spec"] = spec
        obj["status"] = {
            "conditions": [
                _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
                _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
            ],
            "acceptedNames": spec.get("names") or {},
            "storedVersions": [version["name"] for version in spec.get("versions") or () if version.get("storage")],
        }

    def prepare_update(self, new: Obj, old: Obj) -> None:
        super().prepare_update(new, old)
        new["spec"] = default_spec(new.get("spec") or {})
        new["status"] = {**(old.get("status") or {}), "acceptedNames": new["spec"].get("names") or {}}

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        if old is not None and new.get("spec") is old.get("spec"):
            return []
        return check_definition(new) + (check_change(new, old) if old is not None else [])


def _condition(kind: str, reason: str, message: str, now: str) -> Obj:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}


def default_spec(spec: Obj) -> Obj:
    spec = dict(spec)
    names = dict(spec.get("names") or {})
    if names.get("kind"):
        names.setdefault("singular", str(names["kind"]).lower())
        names.setdefault("listKind", f"{names['kind']}List")
    spec["names"] = names
    spec.setdefault("conversion", {"strategy": "None"})
    return spec


@dataclass(frozen=True)
class CustomResource:
    """What a definition says of its objects beyond their names."""

    definition: Obj
    version: Obj

    @property
    def columns(self) -> list[Obj]:
        return list(self.version.get("additionalPrinterColumns") or ())

    @property
    def schema(self) -> Obj:
        schema: Obj = (self.version.get("schema") or {}).get("openAPIV3Schema") or {}
        return schema


class CustomStrategy(Strategy):
    """Objects of a definition: pruned, defaulted and judged by its schema.

    The generation counts every change but those of metadata (and of status, where it is a subresource).
    """

    generation = True
    unconditional = False

    def __init__(self, custom: CustomResource) -> None:
        self.custom = custom
        self.has_status = "status" in (custom.version.get("subresources") or {})

    def prepare_create(self, obj: Obj, store: Store) -> None:
        super().prepare_create(obj, store)
        shape(obj, {}, self.custom.schema)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        super().prepare_update(new, old)
        shape(new, old, self.custom.schema)

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """Only `status` is taken: not even metadata can be changed through the status endpoint."""
        status, revision = new.get("status"), new["metadata"]["resourceVersion"]
        new.clear()
        new.update(old)
        new["metadata"] = {**old["metadata"], "resourceVersion": revision}
        if status is None:
            new.pop("status", None)
        else:
            new["status"] = status
        shape(new, old, self.custom.schema)

    def appliable(self, config: Obj, subresource: str) -> Obj:
        if subresource != "status":
            return super().appliable(config, subresource)
        identity = {key: value for key, value in (config.get("metadata") or {}).items() if key in ("name", "namespace")}
        return {**{key: config[key] for key in ("apiVersion", "kind", "status") if key in config}, "metadata": identity}

    def changes_generation(self, new: Obj, old: Obj) -> bool:
        ignored = {"metadata", "status"} if self.has_status else {"metadata"}
        fields = (new.keys() | old.keys()) - ignored
        return any(new.get(field) != old.get(field) for field in fields)

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        found = structural.validate(self.custom.schema, new, old)
        return [Cause(violation.reason, violation.message, violation.path or "<nil>") for violation in found]


def shape(new: Obj, old: Obj, schema: Obj) -> None:
    """Prune and default what changed; parts shared with the stored version are in shape already."""
    kept = {key: value for key, value in new.items() if key in old and value is old[key]}
    changed = {key: value for key, value in new.items() if key not in kept}
    shaped = structural.default(schema, structural.prune(schema, changed))
    for key in changed.keys() - shaped.keys():
        del new[key]
    new.update({key: value for key, value in shaped.items() if key not in kept})


def resource_type(definition: Obj) -> ResourceType:
    spec = definition["spec"]
    names = spec["names"]
    served = [version for version in spec["versions"] if version.get("served", True)]
    storage = next(version for version in spec["versions"] if version.get("storage"))
    custom = CustomResource(definition, storage)
    fields = {entry["jsonPath"].lstrip("."): "" for entry in storage.get("selectableFields") or ()}
    return ResourceType(
        spec["group"],
        storage["name"],
        names["plural"],
        names["kind"],
        spec["scope"] == "Namespaced",
        CustomStrategy(custom),
        singular=names.get("singular", ""),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(key for key in ("status", "scale") if key in (storage.get("subresources") or {})),
        fields=fields,
        versions=tuple(version["name"] for version in served),
        custom=custom,
    )


def definition_changed(store: Store, definition: Obj) -> None:
    """Serve what the definition says now."""
    store.serve(resource_type(definition))


def definition_gone(store: Store, definition: Obj) -> None:
    """Stop serving, and remove the objects."""
    store.unserve(definition["metadata"]["name"])
