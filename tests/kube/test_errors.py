"""HTTP answers become the errors that callers tell apart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sickbay.kube import errors


def status(**fields: Any) -> bytes:
    return json.dumps({"kind": "Status", "message": "said so"} | fields).encode()


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        pytest.param(400, "BadRequest", errors.Invalid, id="bad request"),
        pytest.param(401, "Unauthorized", errors.Unauthorized, id="unauthorized"),
        pytest.param(403, "Forbidden", errors.Forbidden, id="forbidden"),
        pytest.param(404, "NotFound", errors.NotFound, id="not found"),
        pytest.param(409, "AlreadyExists", errors.AlreadyExists, id="name taken"),
        pytest.param(409, "Conflict", errors.Conflict, id="conflict"),
        pytest.param(409, "", errors.Conflict, id="409 without a reason"),
        pytest.param(410, "Expired", errors.Gone, id="expired"),
        pytest.param(410, "Gone", errors.Gone, id="gone"),
        pytest.param(422, "Invalid", errors.Invalid, id="invalid"),
        pytest.param(429, "TooManyRequests", errors.TooManyRequests, id="throttled"),
        pytest.param(500, "InternalError", errors.ServerError, id="internal"),
        pytest.param(503, "ServiceUnavailable", errors.ServerError, id="unavailable"),
        pytest.param(504, "Timeout", errors.ServerError, id="timeout"),
        pytest.param(405, "MethodNotAllowed", errors.ApiError, id="anything else"),
    ],
)
def test_each_status_becomes_the_error_that_callers_catch(
    code: int, reason: str, expected: type[errors.ApiError]
) -> None:
    error = errors.from_response(code, status(code=code, reason=reason))
    assert type(error) is expected
    assert (error.status, error.reason, error.message) == (code, reason, "said so")


def test_a_status_inside_a_watch_carries_its_own_code() -> None:
    error = errors.from_response(0, status(code=410, reason="Expired"))
    assert isinstance(error, errors.Gone)
    assert error.status == 410


def test_a_status_inside_a_watch_without_a_code_is_the_servers_trouble() -> None:
    assert isinstance(errors.from_response(0, status()), errors.ServerError)


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [
        pytest.param({"retry-after": "7"}, {"retryAfterSeconds": 2}, 7.0, id="header wins"),
        pytest.param({}, {"retryAfterSeconds": 2}, 2.0, id="from the status"),
        pytest.param({"retry-after": "Wed, 21 Oct 2027 07:28:00 GMT"}, {}, 0.0, id="a date is none"),
        pytest.param({"retry-after": "-3"}, {}, 0.0, id="never negative"),
        pytest.param({}, None, 0.0, id="nothing said"),
    ],
)
def test_throttling_says_how_long_to_wait(headers: dict[str, str], details: Any, seconds: float) -> None:
    error = errors.from_response(429, status(code=429, details=details), headers)
    assert isinstance(error, errors.TooManyRequests)
    assert error.retry_after == seconds


def test_a_disruption_budgets_no_is_told_from_throttling() -> None:
    cause = {"reason": "DisruptionBudget", "message": "The disruption budget web needs 3 healthy pods and has 3"}
    budget = errors.from_response(429, status(code=429, details={"causes": [cause]}))
    throttled = errors.from_response(429, status(code=429))
    assert isinstance(budget, errors.TooManyRequests)
    assert isinstance(throttled, errors.TooManyRequests)
    assert budget.budget
    assert not throttled.budget
    assert budget.causes[0].message.startswith("The disruption budget web")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>\n<body>  Bad   Gateway</body></html>", id="a proxy's page"),
        pytest.param(b'{"message": "Bad Gateway", "details": "text"}', id="another JSON"),
        pytest.param(b'"Bad Gateway"', id="a JSON text"),
        pytest.param(b"\xff\xfe Bad Gateway", id="no UTF-8"),
    ],
)
def test_a_foreign_error_body_is_shown_on_one_line(body: bytes) -> None:
    error = errors.from_response(502, body)
    assert isinstance(error, errors.ServerError)
    assert "Bad Gateway" in error.message
    assert "\n" not in error.message


def test_a_long_foreign_body_is_cut_and_an_empty_one_named_by_its_status() -> None:
    assert len(errors.from_response(502, b"x" * 10_000).message) == 200
    assert errors.from_response(502, b"").message == "HTTP status 502"


def test_the_text_names_reason_status_and_message() -> None:
    assert str(errors.from_response(409, status(code=409, reason="Conflict"))) == "Conflict (409): said so"
    assert str(errors.Unreachable("GET /x: refused")) == "Unreachable: GET /x: refused"
