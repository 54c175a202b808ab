"""GET of one object, LIST and WATCH."""

from __future__ import annotations

from dataclasses import dataclass

from sickbay.apiserver.calls import Answer, ResourceCall, WatchStream, encode
from sickbay.apiserver.errors import Obj, StatusError, bad_request, invalid, method_not_allowed
from sickbay.apiserver.listing import Page, check_kept, page, selection, too_large
from sickbay.apiserver.metadata import invalid_value
from sickbay.apiserver.resources import Served
from sickbay.apiserver.store import Store
from sickbay.apiserver.table import Entry, Filter
from sickbay.apiserver.tables import TableView, wanted_form

INITIAL_END = "k8s.io/initial-events-end"


def object_json(store: Store, view: Served, obj: Obj) -> bytes:
    """An object as one version shows it; from the stored text where there is one."""
    if view.native:
        meta = obj["metadata"]
        entry = store.table(view.type.key).entries.get(view.type.object_key(meta.get("namespace", ""), meta["name"]))
        if entry is not None and entry.obj is obj:
            return entry.json()
    return encode(shown(view, obj))


def shown(view: Served, obj: Obj) -> Obj:
    if view.native:
        return obj
    return {**view.outward(obj), "apiVersion": view.api_version}


def entry_json(view: Served, entry: Entry) -> bytes:
    return entry.json() if view.native else encode(shown(view, entry.obj))


def get(store: Store, request: ResourceCall) -> Answer:
    target = request.target
    if target.subresource not in ("", "status"):
        raise method_not_allowed()
    obj = store.get(request.key, target.name, target.namespace)
    form = wanted_form(request.call.accept)
    if form:
        table = TableView(store, request.view, form, request.call.query.text("includeObject"))
        return Answer(200, encode(table.single(obj)))
    return Answer(200, object_json(store, request.view, obj))


def list_or_watch(store: Store, request: ResourceCall) -> Answer | WatchStream:
    query, target = request.call.query, request.target
    chosen = selection(
        request.view.type, target.namespace, query.text("labelSelector"), query.text("fieldSelector"), request.view
    )
    if query.flag("watch"):
        return watch(store, request, chosen)
    found = _page(store, request, chosen)
    form = wanted_form(request.call.accept)
    if form:
        table = TableView(store, request.view, form, query.text("includeObject"))
        return Answer(200, encode(table.listing(found)))
    return Answer(200, list_json(request.view, found))


def _page(store: Store, request: ResourceCall, chosen: Filter) -> Page:
    query = request.call.query
    match, version = query.text("resourceVersionMatch"), query.text("resourceVersion")
    token, limit = query.text("continue"), query.number("limit") or 0
    if match and not version:
        raise _options_invalid(
            "resourceVersionMatch", match, "resourceVersionMatch is forbidden unless resourceVersion is provided"
        )
    if match not in ("", "Exact", "NotOlderThan"):
        raise _options_invalid("resourceVersionMatch", match, 'supported values: "Exact", "NotOlderThan"')
    if token and version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    wanted = parse_version(version)
    if wanted > store.revision:
        raise too_large(wanted, store.revision)
    exact = wanted if match == "Exact" else 0
    return page(store.table(request.key), store.revision, chosen, limit, token, exact)


def _options_invalid(field: str, value: str, why: str) -> Exception:
    return invalid("ListOptions", "meta.k8s.io", "", [invalid_value(field, value, why)])


def parse_version(text: str) -> int:
    """A resourceVersion of the query; 0 when absent. Raises StatusError(400)."""
    if not text:
        return 0
    if not text.isdigit():
        raise bad_request(f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text)


def list_json(view: Served, found: Page) -> bytes:
    """The list, put together from the texts of its items. Items of built-in kinds carry no kind of their own."""
    builtin = view.type.custom is None
    meta: Obj = {"resourceVersion": str(found.revision)}
    if found.continue_token:
        meta["continue"] = found.continue_token
    if found.remaining:
        meta["remainingItemCount"] = found.remaining
    head = encode({"kind": f"{view.type.kind}List", "apiVersion": view.api_version, "metadata": meta})
    items = (_item_json(view, entry, builtin) for entry in found.entries)
    return head[:-1] + b',"items":[' + b",".join(items) + b"]}"


def _item_json(view: Served, entry: Entry, builtin: bool) -> bytes:
    if view.native:
        return entry.bare_json() if builtin else entry.json()
    obj = shown(view, entry.obj)
    return encode({key: value for key, value in obj.items() if key not in ("kind", "apiVersion")} if builtin else obj)


@dataclass(frozen=True, slots=True)
class WatchPlan:
    """A watch that is about to begin: what comes first, and what follows."""

    view: Served
    chosen: Filter
    since: int
    initial: list[Entry]
    bookmarks: bool
    mark_initial_end: bool
    timeout: int | None
    form: str
    include_object: str
    expired: Obj | None = None


def watch(store: Store, request: ResourceCall, chosen: Filter) -> WatchStream:
    """Raises StatusError(400). A revision that is no longer kept is told in the stream, as the real server does."""
    query = request.call.query
    version = parse_version(query.text("resourceVersion"))
    send_initial = query.flag("sendInitialEvents")
    table = store.table(request.key)
    initial: list[Entry] = []
    refused: Obj | None = None
    since = version
    if send_initial or version == 0:
        initial, since = table.select(chosen), store.revision
    try:
        check_kept(table, since, store.revision)
    except StatusError as error:
        if error.code != 410:
            raise
        refused = error.body()
    return WatchStream(
        WatchPlan(
            request.view,
            chosen,
            since,
            initial,
            query.flag("allowWatchBookmarks"),
            send_initial,
            query.number("timeoutSeconds"),
            wanted_form(request.call.accept),
            query.text("includeObject"),
            refused,
        )
    )
