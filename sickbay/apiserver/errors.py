"""Refusals of the API server, shaped as `metav1.Status` like those of kube-apiserver.

    StatusError            everything the server refuses; carries code, reason, message and details
      made by not_found, already_exists, conflict, invalid, bad_request, forbidden, expired, ...

Clients branch on `code` and `reason`; people read `message`. The texts are those of Kubernetes' own
`apimachinery/pkg/api/errors`, because tools (kubectl among them) match on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason of an `Invalid` answer: `FieldValueRequired` and the like, with the path of the field."""

    reason: str
    message: str
    field: str

    @property
    def text(self) -> str:
        return f"{self.field}: {self.message}"


class StatusError(Exception):
    """A refused request."""

    def __init__(
        self, code: int, reason: str, message: str, *, details: Obj | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after

    def body(self) -> Obj:
        status: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None or self.retry_after is not None:
            status["details"] = dict(self.details or {})
        if self.retry_after is not None:
            status["details"]["retryAfterSeconds"] = self.retry_after
        status["code"] = self.code
        return status


class Undecodable(StatusError):
    """An object whose fields do not have the types its kind needs: a bad request, or an invalid patch."""

    def __init__(self, message: str) -> None:
        super().__init__(400, "BadRequest", message)

    def of_patch(self) -> StatusError:
        """The same where a patch made the object so."""
        cause = Cause("FieldValueInvalid", f'Invalid value: "the patched object": {self.message}', "patch")
        return invalid("", "", "", [cause])


def split_key(resource: str) -> tuple[str, str]:
    """`noderepairs.sickbay.dev` -> (`sickbay.dev`, `noderepairs`)."""
    plural, _, group = resource.partition(".")
    return group, plural


def _details(resource: str, name: str) -> Obj:
    group, plural = split_key(resource)
    details = {"name": name, "group": group, "kind": plural}
    return {key: value for key, value in details.items() if value}


def not_found(resource: str, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{resource} "{name}" not found', details=_details(resource, name))


def no_such_path() -> StatusError:
    """An API path that nothing serves."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(resource: str, name: str, *, ends: bool = False) -> StatusError:
    """`ends`: the one that is there is on its way out."""
    message = f'{"object is being deleted: " if ends else ""}{resource} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details=_details(resource, name))


def conflict(resource: str, name: str, why: str = "") -> StatusError:
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {resource} "{name}": {why}'
    return StatusError(409, "Conflict", message, details=_details(resource, name))


def forbidden(resource: str, name: str, why: str, causes: list[Obj] | None = None) -> StatusError:
    subject = f'{resource} "{name}"' if name else resource
    details = _details(resource, name)
    if causes:
        details["causes"] = causes
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {why}", details=details)


def invalid(kind: str, group: str, name: str, causes: list[Cause]) -> StatusError:
    """422 with one cause for each field. `causes` must not be empty."""
    texts = list(dict.fromkeys(cause.text for cause in causes))
    joined = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    subject = f"{kind}.{group}" if group else kind
    details: Obj = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in details.items() if value}
    details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    return StatusError(422, "Invalid", f'{subject} "{name}" is invalid: {joined}', details=details)


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def unprocessable() -> StatusError:
    """A JSON patch that does not apply, a failed `test` among them. The real server does not say which operation."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, details={})


def expired(message: str) -> StatusError:
    """410: the resourceVersion or continue token is older than what is kept."""
    return StatusError(410, "Expired", message)


def unsupported_media_type(accepted: tuple[str, ...]) -> StatusError:
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return StatusError(415, "UnsupportedMediaType", message)


def unsupported_patch() -> StatusError:
    """A PATCH whose media type is that of no patch."""
    return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})


def not_acceptable(accepted: tuple[str, ...]) -> StatusError:
    message = "406: Not Acceptable\n\nAvailable representations: " + ", ".join(accepted)
    return StatusError(406, "NotAcceptable", message, details={})


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, details={})


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def too_many_requests(message: str, retry_after: int, causes: list[Obj] | None = None) -> StatusError:
    details: Obj | None = {"causes": causes} if causes else None
    return StatusError(429, "TooManyRequests", message, details=details, retry_after=retry_after or None)


def internal(message: str) -> StatusError:
    """An error upstream's code has no status for; it comes out as a bare 500."""
    return StatusError(500, "", message)
