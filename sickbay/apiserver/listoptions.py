"""The options of LIST and WATCH that concern revisions, checked as kube-apiserver does.

resourceVersion        ""  the latest           "0"  any              N  not older than N (a page: exactly N)
resourceVersionMatch   Exact, NotOlderThan: what N means
sendInitialEvents      a watch that begins with what is there and says when that is through
"""

from __future__ import annotations

from dataclasses import dataclass

from sickbay.apiserver.errors import Cause, StatusError, bad_request, internal, invalid
from sickbay.apiserver.requests import Query

EXACT, NOT_OLDER_THAN = "Exact", "NotOlderThan"


@dataclass(frozen=True, slots=True)
class ListOptions:
    version: int
    """0 when absent or "0"."""
    exact: bool
    limit: int
    token: str


def _forbidden(why: str) -> StatusError:
    cause = Cause("FieldValueForbidden", f"Forbidden: {why}", "resourceVersionMatch")
    return invalid("ListOptions", "meta.k8s.io", "", [cause])


def _check_match(match: str, version: str) -> None:
    if match and not version:
        raise _forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match not in ("", EXACT, NOT_OLDER_THAN):
        message = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
        cause = Cause("FieldValueNotSupported", message, "resourceVersionMatch")
        raise invalid("ListOptions", "meta.k8s.io", "", [cause])
    if match == EXACT and version == "0":
        raise _forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')


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
    _check_match(match, version)
    if token and version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    wanted = parse_version(version)
    exact = match == EXACT or bool(limit and wanted and not match)
    return ListOptions(wanted, exact, limit, token)


@dataclass(frozen=True, slots=True)
class WatchOptions:
    version: int
    send_initial: bool
    bookmarks: bool
    timeout: int | None
    """Seconds; None = the server's choice."""


def watch_options(query: Query) -> WatchOptions:
    """Raises StatusError (400, 422)."""
    match, send_initial = query.text("resourceVersionMatch"), query.flag("sendInitialEvents")
    if send_initial and match != NOT_OLDER_THAN:
        raise _forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
    if match and not query.text("sendInitialEvents"):
        raise _forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    try:
        version = parse_version(query.text("resourceVersion"))
    except StatusError as error:
        # Upstream's watch has no status for this.
        raise internal(error.message) from None
    bookmarks, timeout = query.flag("allowWatchBookmarks"), query.number("timeoutSeconds")
    return WatchOptions(version, send_initial, bookmarks, timeout)
