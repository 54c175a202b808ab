"""What a request asks for: path and query, read once.

/api/v1/nodes/a/status                                   core group
/apis/apps/v1/namespaces/x/daemonsets/a                  named groups
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl, unquote

from sickbay.apiserver.errors import Cause, bad_request, invalid


@dataclass(frozen=True, slots=True)
class Target:
    """A path below /api or /apis that names a resource."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


@lru_cache(maxsize=16384)
def parse_target(path: str) -> Target | None:
    """None for paths that name no resource (discovery, health)."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if rest[0] == "namespaces" and len(rest) >= 3 and (group or rest[2] not in ("status", "finalize")):
        return _below(group, version, rest[1], rest[2:])
    if rest[0] == "namespaces" and len(rest) > 3:
        return _below(group, version, rest[1], rest[2:])
    return _below(group, version, "", rest)


def _below(group: str, version: str, namespace: str, rest: list[str]) -> Target | None:
    if len(rest) > 3 or not all(rest):
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    return Target(group, version, plural, namespace, name, subresource)


class Query:
    """The query parameters, typed on the way out."""

    def __init__(self, raw: bytes) -> None:
        pairs = parse_qsl(raw.decode("ascii", "replace"), keep_blank_values=True) if raw else ()
        self._values: Mapping[str, str] = dict(pairs)

    def text(self, key: str) -> str:
        return self._values.get(key, "")

    def flag(self, key: str) -> bool:
        return self._values.get(key, "").lower() in ("1", "true")

    def number(self, key: str) -> int | None:
        """None when absent. Raises StatusError(400) for what is no number."""
        text = self._values.get(key, "")
        if not text:
            return None
        try:
            return int(text)
        except ValueError:
            raise bad_request(f'the query parameter {key} must be a whole number, not "{text}"') from None

    def dry_run(self, options: str = "CreateOptions") -> bool:
        """Raises StatusError(422), which names the kind of `options`, for a value other than All."""
        value = self._values.get("dryRun", "")
        if value not in ("", "All"):
            message = f'Unsupported value: ["{value}"]: supported values: "All"'
            raise invalid(options, "meta.k8s.io", "", [Cause("FieldValueNotSupported", message, "dryRun")])
        return value == "All"
