"""The webhook that Alertmanager calls: `POST /alerts`, with a bearer token.

It answers 200 only when what the message says stands on the Nodes; anything else makes Alertmanager send it again. A
replica that does not lead answers 503, as does one that cannot write.
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
from sickbay.convert.notice import Undecodable
from sickbay.kube import errors
from sickbay.kube.leadership import NotLeading

log = structlog.get_logger(__name__)

Take = Callable[[list[Alert]], Awaitable[int]]
"""Writes what alerts say; returns how many concern a node and a fault type. Raises NotLeading and ApiError."""


class _TooLarge(Exception):
    pass


def app(take: Take, token: Callable[[], str], registry: CollectorRegistry) -> Starlette:
    """The application. `token` is asked at each request, so that a Secret may be renewed; an empty one lets nobody in.

    Raises nothing of its own to the server.
    """
    counted = Counter("sickbay_convert_alert_messages", "Messages of Alertmanager", ["answer"], registry=registry)

    async def alerts(request: Request) -> Response:
        status, text = await _answer(request, take, token)
        counted.labels(str(status)).inc()
        return PlainTextResponse(f"{text}\n", status_code=status)

    return Starlette(routes=[Route("/alerts", alerts, methods=["POST"])])


async def _answer(request: Request, take: Take, token: Callable[[], str]) -> tuple[int, str]:
    if not _allowed(request.headers.get("authorization", ""), token()):
        return 401, "a bearer token is needed: see --alerts-token-file"
    try:
        taken = await take(decode(await _body(request)))
    except _TooLarge:
        return 413, f"more than {payload.BODY_MAX} bytes are not read"
    except Undecodable as error:
        return 400, str(error)
    except (NotLeading, ClientDisconnect):
        return 503, "this replica does not lead: send it again"
    except errors.ApiError as error:
        log.warning("alerts not written", error=str(error))
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
