"""/healthz, /readyz and /metrics of a process.

Liveness answers from the first moment, whatever start-up waits for: a probe that asks for more would have the kubelet
restart a process that is only waiting. Readiness says what is awaited.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator

import click
import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

Awaited = Callable[[], list[str]]
"""What start-up still waits for, in words; empty when ready."""


def app(registry: CollectorRegistry, awaited: Awaited) -> Starlette:
    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        missing = awaited()
        if missing:
            return PlainTextResponse("".join(f"waiting for {what}\n" for what in missing), status_code=503)
        return PlainTextResponse("ok\n")

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)])


class _Server(uvicorn.Server):
    """Leaves the process's signals alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def served(address: str, application: Starlette, option: str = "--listen") -> AsyncIterator[int]:
    """Serve on `host:port` while the block runs; yields the port.

    Raises ClickException, which names the option, where that cannot be.
    """
    listener = _listen(address, option)
    server = _Server(uvicorn.Config(application, log_level="warning", access_log=False, lifespan="off"))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield int(listener.getsockname()[1])
    finally:
        server.should_exit = True
        await asyncio.wait([task])


def _listen(address: str, option: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise click.ClickException(f"{option} {address!r} is no address: write host:port, such as 127.0.0.1:8080")
    host = host.strip("[]")
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, int(port)))
        listener.listen(64)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise click.ClickException(
            f"cannot listen on {address}: {reason}; choose another address with {option} (port 0 takes a free one)"
        ) from None
    listener.setblocking(False)
    return listener
