"""What others hand over by HTTP, with a bearer token: alerts of Alertmanager (`POST /alerts`), and what a provider
announces (`POST /announcements/SOURCE`, in the provider's own form).

It answers 200 only when what the message says stands in the objects; anything else makes the sender send it again. A
replica that does not lead answers 503, as does one that cannot write. What is handed over is never a complete list:
nothing follows from what it lacks.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable

import structlog
from prometheus_client import CollectorRegistry, Counter
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sickbay.convert import payload
from sickbay.convert.alerts import Alert, decode
from sickbay.convert.clouds import PUSHED
from sickbay.convert.notice import Notice, Undecodable
from sickbay.kube import errors
from sickbay.kube.leadership import NotLeading

log = structlog.get_logger(__name__)

TakeAlerts = Callable[[list[Alert]], Awaitable[int]]
"""Writes what alerts say; returns how many concern a node and a fault type. Raises NotLeading and ApiError."""
TakeNotices = Callable[[list[Notice]], Awaitable[int]]
"""Writes what a provider announces; returns how many events that were. Raises NotLeading and ApiError."""
_Work = Callable[[bytes], Awaitable[int]]


class _TooLarge(Exception):
    pass


def app(
    take_alerts: TakeAlerts, take_notices: TakeNotices, token: Callable[[], str], registry: CollectorRegistry
) -> Starlette:
    """The application. `token` is asked at each request, so that a Secret may be renewed; an empty one lets nobody in.

    Raises nothing of its own to the server.
    """
    counted = Counter("sickbay_convert_messages", "Messages handed over", ["path", "answer"], registry=registry)

    async def answered(request: Request, path: str, work: _Work | None) -> Response:
        status, text = await _answer(request, work, token)
        counted.labels(path, str(status)).inc()
        return PlainTextResponse(f"{text}\n", status_code=status)

    async def alerts(request: Request) -> Response:
        return await answered(request, "alerts", lambda body: take_alerts(decode(body)))

    async def announcements(request: Request) -> Response:
        read = PUSHED.get(request.path_params["source"])
        return await answered(request, "announcements", None if read is None else lambda body: take_notices(read(body)))

    return Starlette(
        routes=[
            Route("/alerts", alerts, methods=["POST"]),
            Route("/announcements/{source}", announcements, methods=["POST"]),
        ]
    )


async def _answer(request: Request, work: _Work | None, token: Callable[[], str]) -> tuple[int, str]:
    if not _allowed(request.headers.get("authorization", ""), token()):
        return 401, "a bearer token is needed: see --intake-token-file"
    if work is None:
        return 404, f"no such source; known: {', '.join(sorted(PUSHED))}"
    try:
        taken = await work(await _body(request))
    except _TooLarge:
        return 413, f"more than {payload.BODY_MAX} bytes are not read"
    except Undecodable as error:
        return 400, str(error)
    except (NotLeading, ClientDisconnect):
        return 503, "this replica does not lead: send it again"
    except errors.ApiError as error:
        log.warning("what was handed over is not written", error=str(error))
        return 503, "the API server did not take it: send it again"
    return 200, f"{taken} taken"


def _allowed(header: str, token: str) -> bool:
    scheme, _, given = header.partition(" ")
    right = hmac.compare_digest(given.strip().encode(), token.encode())
    return bool(token) and scheme.lower() == "bearer" and right


async def _body(request: Request) -> bytes:
    """The body, read no further than the limit whatever its length is said to be."""
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > payload.BODY_MAX:
            raise _TooLarge
    return bytes(read)
