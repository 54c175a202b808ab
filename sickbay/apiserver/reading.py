"""GET of one object, LIST and WATCH."""

from __future__ import annotations

from dataclasses import dataclass

from sickbay.apiserver.calls import Answer, ResourceCall, WatchStream, encode
from sickbay.apiserver.errors import Obj, StatusError, bad_request, internal, method_not_allowed, no_such_path
from sickbay.apiserver.listing import Page, check_kept, page, selection, too_large
from sickbay.apiserver.listoptions import WatchOptions, list_options, parse_version, watch_options
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
    if target.subresource and target.subresource not in request.view.type.subresources:
        raise no_such_path()
    if target.subresource not in ("", "status"):
        raise method_not_allowed()
    obj = store.get(request.key, target.name, target.namespace)
    _check_version(store, request)
    form = wanted_form(request.call.accept)
    if form:
        table = TableView(store, request.view, form, request.call.query.text("includeObject"))
        return Answer(200, encode(table.single(obj)))
    return Answer(200, object_json(store, request.view, obj))


def _check_version(store: Store, request: ResourceCall) -> None:
    query = request.call.query
    if query.present("export"):
        raise bad_request("the export parameter, deprecated since v1.14, is no longer supported")
    try:
        wanted = parse_version(query.text("resourceVersion"))
    except StatusError as error:
        # Upstream's GET has no status for this.
        raise internal(error.message) from None
    if wanted > store.revision:
        raise too_large(wanted, store.revision)


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
    options = list_options(request.call.query)
    if options.version > store.revision:
        raise too_large(options.version, store.revision)
    exact = options.version if options.exact else 0
    return page(store.table(request.key), store.revision, chosen, options.limit, options.token, exact)


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
    options: WatchOptions
    form: str
    include_object: str
    expired: Obj | None = None


def watch(store: Store, request: ResourceCall, chosen: Filter) -> WatchStream:
    """Raises StatusError. A revision that is no longer kept is told in the stream, as the real server does."""
    query = request.call.query
    options = watch_options(query)
    table = store.table(request.key)
    initial: list[Entry] = []
    refused: Obj | None = None
    since = options.version
    if options.send_initial:
        initial = table.select(chosen)
    if options.send_initial or options.version == 0:
        since = store.revision
    try:
        check_kept(table, since)
    except StatusError as error:
        refused = error.body()
    plan = WatchPlan(
        request.view,
        chosen,
        since,
        initial,
        options,
        wanted_form(request.call.accept),
        query.text("includeObject"),
        refused,
    )
    return WatchStream(plan)
