"""Tables: what `kubectl get` prints. Columns come from the kind, or from a CRD's printer columns."""

from __future__ import annotations

from functools import lru_cache

from sickbay.apiserver.columns import CREATED_AT, NAME, Column, custom_columns
from sickbay.apiserver.errors import Obj, not_acceptable
from sickbay.apiserver.listing import Page
from sickbay.apiserver.printers import PRINTERS
from sickbay.apiserver.resources import ResourceType, Served
from sickbay.apiserver.store import Store
from sickbay.apiserver.workload_printers import WORKLOAD_PRINTERS

TABLE, PARTIAL = "Table", "PartialObjectMetadata"


def columns_of(kind: ResourceType) -> list[Column]:
    if kind.custom is not None:
        return custom_columns(kind.custom.columns)
    return PRINTERS.get(kind.key) or WORKLOAD_PRINTERS.get(kind.key) or [NAME, CREATED_AT]


_JSON = ("application/json", "*/*", "")
_OFFERED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")


def wanted_form(accept: str) -> str:
    """The first form the client accepts: "" for the object itself, `Table`, or `PartialObjectMetadata`.

    Raises StatusError(406) when nothing the client accepts is JSON.
    """
    for part in accept.replace(" ", "").split(","):
        media, _, parameters = part.partition(";")
        if media not in _JSON:
            continue
        values = dict(entry.partition("=")[::2] for entry in parameters.split(";"))
        form = values.get("as", "")
        if not form:
            return ""
        if values.get("g") == "meta.k8s.io" and values.get("v") == "v1":
            return TABLE if form == TABLE else PARTIAL
    raise not_acceptable(_OFFERED)


@lru_cache(maxsize=256)
def check_accept(accept: str) -> None:
    """Raises StatusError(406) when nothing the client accepts is JSON, whatever it asks for."""
    media = (part.partition(";")[0] for part in accept.replace(" ", "").split(","))
    if not any(name in _JSON for name in media):
        raise not_acceptable(_OFFERED)


class TableView:
    """Objects of one resource in another form than their own."""

    def __init__(self, store: Store, view: Served, form: str, include_object: str = "") -> None:
        self._store = store
        self._view = view
        self._form = form
        self._include = include_object or "Metadata"
        self._columns = columns_of(view.type)

    def single(self, obj: Obj) -> Obj:
        if self._form == PARTIAL:
            return _partial(obj)
        return self._table([obj], {"resourceVersion": obj["metadata"]["resourceVersion"]})

    def listing(self, found: Page) -> Obj:
        meta: Obj = {"resourceVersion": str(found.revision)}
        if found.continue_token:
            meta["continue"] = found.continue_token
        if found.remaining:
            meta["remainingItemCount"] = found.remaining
        objects = [entry.obj for entry in found.entries]
        if self._form == PARTIAL:
            return {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": meta,
                "items": [_partial(obj) for obj in objects],
            }
        return self._table(objects, meta)

    def bookmark(self, mark: Obj) -> Obj:
        if self._form == PARTIAL:
            return _partial(mark)
        table = self._table([], {"resourceVersion": mark["metadata"]["resourceVersion"]})
        table["rows"] = [{"cells": [], "object": _partial(mark)}]
        return table

    def _table(self, objects: list[Obj], meta: Obj) -> Obj:
        now = self._store.clock.now()
        rows = [
            {"cells": [column.cell(obj, now) for column in self._columns], "object": self._object(obj)}
            for obj in objects
        ]
        definitions = [column.definition() for column in self._columns]
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": meta,
            "columnDefinitions": definitions,
            "rows": rows,
        }

    def _object(self, obj: Obj) -> Obj | None:
        if self._include == "None":
            return None
        if self._include == "Object":
            return {**self._view.outward(obj), "apiVersion": self._view.api_version}
        return _partial(obj)


def _partial(obj: Obj) -> Obj:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
