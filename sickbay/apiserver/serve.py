"""Serve the API server over HTTP, from within the running event loop.

Loopback and plain HTTP unless told otherwise. A token goes over HTTPS only: kubectl and other Go clients send no
credentials over plain HTTP, so there give the app an `anonymous` identity, or give `serve` a certificate.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
import uvicorn

from sickbay.apiserver.app import ApiServer, Receive, Send, refusal, send_answer
from sickbay.apiserver.errors import StatusError
from sickbay.apiserver.housekeeping import Housekeeper

_log = structlog.get_logger(__name__)
STOP_SECONDS = 2
"""Time for answers under way when the server is told to stop; then their connections are cut."""


class CannotServe(Exception):
    """The address cannot be listened on; the text names it and the remedy."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """PEM files of the server's certificate and its key."""

    certificate: Path
    key: Path


_MISTAKE = StatusError(500, "InternalError", "Internal error occurred: a mistake of the server's; its log says which")


class Shield:
    """The app as it is served to others: a mistake of ours is one failed request, told in the log."""

    def __init__(self, app: ApiServer) -> None:
        self._app = app

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            _log.exception("a request failed by a mistake of the server's", path=scope.get("path", ""))
            if begun:
                raise
            await send_answer(refusal(_MISTAKE), send)


class _Server(uvicorn.Server):
    """Says when it has started, and leaves the process's signals alone."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class RunningServer:
    """A server that answers until it is closed."""

    def __init__(
        self,
        app: ApiServer,
        server: _Server,
        task: asyncio.Task[None],
        url: str,
        keeper: asyncio.Task[None] | None = None,
    ) -> None:
        self.url = url
        self._keeper = keeper
        self._app = app
        self._server = server
        self._task = task

    async def close(self) -> None:
        """End all watches, answer what is under way, stop listening. Safe to call twice."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        self._server.should_exit = True
        self._app.store.disconnect()
        await asyncio.wait([self._task])

    async def __aenter__(self) -> RunningServer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def serve(
    app: ApiServer,
    host: str = "127.0.0.1",
    port: int = 0,
    certificate: Certificate | None = None,
    housekeeping: bool = True,
) -> RunningServer:
    """Start serving; port 0 takes a free one. Raises CannotServe when the address is taken or not ours.

    `housekeeping`: collect garbage and let Events expire as long as it is served. The simulator has its own parts.
    """
    listener = _listen(host, port)
    config = uvicorn.Config(
        Shield(app),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=STOP_SECONDS,
        ssl_certfile=certificate.certificate if certificate else None,
        ssl_keyfile=certificate.key if certificate else None,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    started = asyncio.create_task(server.listening.wait())
    await asyncio.wait([task, started], return_when=asyncio.FIRST_COMPLETED)
    started.cancel()
    if task.done():
        listener.close()
        await task
    scheme = "https" if certificate else "http"
    keeper = asyncio.create_task(Housekeeper(app.store).run()) if housekeeping else None
    return RunningServer(app, server, task, f"{scheme}://{_printed(host)}:{listener.getsockname()[1]}", keeper)


def _printed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise CannotServe(
            f"cannot listen on {_printed(host)}:{port}: {error.strerror or error}. Choose another port (0 takes a free"
            " one) or stop what holds it"
        ) from None
    listener.setblocking(False)
    return listener
