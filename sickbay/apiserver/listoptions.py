"""The options of LIST and WATCH that concern revisions, checked as kube-apiserver does.

resourceVersion        ""  the latest           "0"  any              N  not older than N (a page: exactly N)
resourceVersionMatch   Exact, NotOlderThan: what N means
sendInitialEvents      a watch that begins with what is there and says when that is through
"""

from __future__ import annotations

from dataclasses import dataclass

from sickbay.apiserver.errors import Cause, StatusError, bad_request, internal, invalid
from sickbay.apiserver.metadata import unsupported_value
from sickbay.apiserver.requests import Query

EXACT, NOT_OLDER_THAN = "Exact", "NotOlderThan"


@dataclass(frozen=True, slots=True)
class ListOptions:
    version: int
    """0 when absent or "0"."""
    exact: bool
    limit: int
    token: str


def _forbidden(why: str, field: str = "resourceVersionMatch") -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {why}", field)


def _unsupported(match: str, *supported: str) -> Cause:
    return unsupported_value("resourceVersionMatch", match, *supported)


def _refuse(causes: list[Cause]) -> None:
    if causes:
        raise invalid("ListOptions", "meta.k8s.io", "", causes)


def _check_list(query: Query, match: str, version: str, token: str) -> None:
    """apimachinery/pkg/apis/meta/internalversion/validation."""
    causes: list[Cause] = []
    if match:
        if not version:
            causes.append(_forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if token:
            causes.append(_forbidden("resourceVersionMatch is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER_THAN):
            causes.append(_unsupported(match, EXACT, NOT_OLDER_THAN, ""))
        if match == EXACT and version == "0":
            causes.append(_forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if query.present("sendInitialEvents"):
        causes.append(_forbidden("sendInitialEvents is forbidden for list", "sendInitialEvents"))
    _refuse(causes)


def parse_version(text: str) -> int:
    """A resourceVersion of the query; 0 when absent. Raises StatusError(400)."""
    if not text:
        return 0
    if not text.isdigit():
        why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise bad_request(f'resourceVersion: Invalid value: "{text}": {why}')
    return int(text)


def list_options(query: Query) -> ListOptions:
    """Raises StatusError (400, 422) for options that contradict each other."""
    match, version, token = query.text("resourceVersionMatch"), query.text("resourceVersion"), query.text("continue")
    limit = query.number("limit") or 0
    query.number("timeoutSeconds")  # nothing here takes so long, but a client that sends nonsense is told
    _check_list(query, match, version, token)
    if token and version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    wanted = parse_version(version)
    exact = match == EXACT or bool(limit and wanted and not match)
    return ListOptions(wanted, exact, limit, token)


@dataclass(frozen=True, slots=True)
class WatchOptions:
    version: int
    send_initial: bool
    """Whether the watch begins with what is there."""
    marks_end: bool
    """Whether a bookmark says when that is through."""
    bookmarks: bool
    timeout: int | None
    """Seconds; None = the server's choice."""


def _check_watch(query: Query, match: str) -> None:
    causes: list[Cause] = []
    asked = query.present("sendInitialEvents")
    if asked and match != NOT_OLDER_THAN:
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(_forbidden(why))
    if match and not asked:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(_forbidden(why))
    if match not in ("", NOT_OLDER_THAN):
        causes.append(_unsupported(match, NOT_OLDER_THAN))
    if query.text("continue"):
        causes.append(_forbidden("resourceVersionMatch is forbidden when continue is provided"))
    _refuse(causes)


def watch_options(query: Query) -> WatchOptions:
    """Raises StatusError (400, 422)."""
    timeout = query.number("timeoutSeconds")
    _check_watch(query, query.text("resourceVersionMatch"))
    try:
        version = parse_version(query.text("resourceVersion"))
    except StatusError as error:
        # Upstream's watch has no status for this.
        raise internal(error.message) from None
    initial, bookmarks = query.flag("sendInitialEvents"), query.flag("allowWatchBookmarks")
    if not query.present("sendInitialEvents"):
        initial = version == 0
    marks_end = bookmarks and (query.flag("sendInitialEvents") or not query.text("resourceVersion"))
    return WatchOptions(version, initial, marks_end and initial, bookmarks, timeout)
