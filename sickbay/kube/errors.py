"""What can go wrong when talking to an API server, as callers have to tell it apart.

    ConfigError                  the connection cannot be set up; the text names what is wrong and the remedy
    ApiError                     a call failed
    ├── Unauthorized      401    the credentials were not accepted
    ├── Forbidden         403    a role is missing
    ├── NotFound          404    no such object (or no such kind: `reason` is then empty or "NotFound" without a name)
    ├── AlreadyExists     409    create of a name that is taken
    ├── Conflict          409    the object is not the one, or not at the version, that the write was meant for
    ├── Gone              410    the position in the history is lost: list again
    ├── Invalid           400, 422   refused as written; repeating it will not help
    ├── TooManyRequests   429    throttled, or an eviction that a disruption budget forbids (`budget`)
    ├── ServerError       5xx    the server's own trouble; a write may or may not have been carried out
    ├── Unreachable       -      no answer: a write may or may not have been carried out
    └── MalformedObject   200    an answer whose object we cannot read

The mapping goes by HTTP status first and by `reason` of the Status object only where one status has two meanings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec


class ConfigError(Exception):
    """The connection cannot be set up as configured. The text is for people and names the remedy."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of `Status.details.causes`."""

    reason: str = ""
    message: str = ""
    field: str = ""


class ApiError(Exception):
    """A call failed. `status` is the HTTP status (0: no answer), `reason` the machine-readable word of Kubernetes."""

    def __init__(self, status: int, reason: str, message: str, causes: tuple[Cause, ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = causes

    def __str__(self) -> str:
        word = self.reason or type(self).__name__
        return f"{word} ({self.status}): {self.message}" if self.status else f"{word}: {self.message}"


class Unauthorized(ApiError):
    """401."""


class Forbidden(ApiError):
    """403."""


class NotFound(ApiError):
    """404."""


class AlreadyExists(ApiError):
    """409 on create."""


class Conflict(ApiError):
    """409: a precondition (UID, resourceVersion) or a test in a JSON patch did not hold."""


class Gone(ApiError):
    """410: the resourceVersion or the continue token is too old."""


class Invalid(ApiError):
    """400 or 422."""


class TooManyRequests(ApiError):
    """429. `retry_after` is what the server asked for, in seconds; 0 when it named nothing."""

    def __init__(
        self, status: int, reason: str, message: str, causes: tuple[Cause, ...] = (), retry_after: float = 0.0
    ) -> None:
        super().__init__(status, reason, message, causes)
        self.retry_after = retry_after

    @property
    def budget(self) -> bool:
        """Whether a PodDisruptionBudget said no (and not the server's own throttling)."""
        return any(cause.reason == "DisruptionBudget" for cause in self.causes)


class ServerError(ApiError):
    """5xx."""


class Unreachable(ApiError):
    """No answer arrived (refused, reset, timed out, silent)."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "Unreachable", message)


class MalformedObject(ApiError):
    """The server's answer holds something that does not decode as what was asked for."""

    def __init__(self, message: str) -> None:
        super().__init__(200, "MalformedObject", message)


class _StatusDetails(msgspec.Struct, gc=False, rename="camel"):
    causes: list[dict[str, str]] | None = None
    retry_after_seconds: float | None = None


class _Status(msgspec.Struct, gc=False, rename="camel"):
    code: int | None = None
    reason: str | None = None
    message: str | None = None
    details: _StatusDetails | None = None


_BY_STATUS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
}

_BODY_SHOWN = 200
"""Characters of a foreign error body (a proxy's HTML page, say) that go into the message."""


def from_response(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> ApiError:
    """The error for an answer with a status of 300 or more, or (status 0) for a Status object inside a watch."""
    parsed = _parse(body)
    code = status or parsed.code or 500
    if 300 <= code < 400:
        place = (headers or {}).get("location", "elsewhere")
        return ApiError(code, "Redirect", f"the server redirects to {place}; name the API server's own address")
    details = parsed.details or _StatusDetails()
    causes = tuple(_cause(each) for each in details.causes or ())
    reason = parsed.reason or ""
    message = parsed.message or f"HTTP status {code}"
    if code == 429:
        return TooManyRequests(code, reason, message, causes, _retry_after(headers or {}, details))
    if code == 409 and reason == "AlreadyExists":
        return AlreadyExists(code, reason, message, causes)
    if code >= 500:
        return ServerError(code, reason, message, causes)
    return _BY_STATUS.get(code, ApiError)(code, reason, message, causes)


def _parse(body: bytes) -> _Status:
    try:
        return msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        text = " ".join(body[: 4 * _BODY_SHOWN].decode("utf-8", "replace").split())
        return _Status(message=text[:_BODY_SHOWN] or None)


def _cause(raw: dict[str, str]) -> Cause:
    return Cause(raw.get("reason", ""), raw.get("message", ""), raw.get("field", ""))


def _retry_after(headers: Mapping[str, str], details: _StatusDetails) -> float:
    """Seconds, from the header or else from the Status; the API server only ever sends a number, never a date."""
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, ValueError):
        return max(0.0, details.retry_after_seconds or 0.0)
