"""What a request asks for: path and query, read once.

/api/v1/nodes/a/status                                   core group
/apis/apps/v1/namespaces/x/daemonsets/a                  named groups
"""

from __future__ import annotations

import re
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
    deeper: bool = False
    """Whether the path goes on below the subresource, where nothing is served (a proxy, say)."""


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
    if not all(rest[:3]):
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    return Target(group, version, plural, namespace, name, subresource, len(rest) > 3)


class Query:
    """The query parameters, typed on the way out. Of a parameter given twice the first counts."""

    def __init__(self, raw: bytes) -> None:
        self._pairs = _pairs(raw) if raw else []
        self._values: Mapping[str, str] = dict(reversed(self._pairs))

    def present(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str) -> str:
        return self._values.get(key, "")

    def every(self, key: str) -> list[str]:
        """All values of a parameter that may be given more than once."""
        return [value for name, value in self._pairs if name == key]

    def flag(self, key: str) -> bool:
        """Whatever stands there but `false` and `0` counts as true, nothing at all included."""
        value = self._values.get(key)
        return value is not None and value.lower() not in ("false", "0")

    def number(self, key: str) -> int | None:
        """None when absent. Raises StatusError(400) for what is no number of 64 bits."""
        text = self._values.get(key)
        if text is None:
            return None
        if not _NUMBER.fullmatch(text) or not -_BEYOND <= int(text) < _BEYOND:
            raise bad_request(f'the query parameter {key} must be a whole number, not "{text}"')
        return int(text)

    def dry_run(self, options: str = "CreateOptions") -> bool:
        """Raises StatusError(422), which names the kind of `options`, for a value other than All."""
        values = self.every("dryRun")
        if any(value != "All" for value in values):
            listed = ",".join(f'"{value}"' for value in values)
            message = f'Unsupported value: [{listed}]: supported values: "All"'
            raise invalid(options, "meta.k8s.io", "", [Cause("FieldValueNotSupported", message, "dryRun")])
        return bool(values)


_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_BEYOND = 1 << 63


def _pairs(raw: bytes) -> list[tuple[str, str]]:
    """Name and value of each parameter; as in Go's net/url, those with a semicolon are dropped."""
    text = raw.decode("ascii", "replace")
    if ";" in text:
        text = "&".join(part for part in text.split("&") if ";" not in part)
    return parse_qsl(text, keep_blank_values=True)
