"""Processes of ours on a real API server: each with its own client, clock, randomness and identity.

They run as tasks in the test's own loop, built from what the command line builds them from. What a process does to
the world goes through its connection, so a crash is made there: from that moment on nothing it sends arrives, not even
the farewell of a cancelled task. Frozen, it sends nothing either, but lives on and may believe whatever it likes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import httpx2

from sickbay.clock import Randomness, SystemClock
from sickbay.kube.client import Client
from sickbay.kube.lease import LeaseTimes
from tests.support.controlplane import ControlPlane

QUICK = LeaseTimes(duration=3, deadline=2.0, period=0.5)
"""Times of the leaders' Leases in these tests, in seconds."""

Main = Callable[[Client, SystemClock, Randomness, str], Coroutine[Any, Any, None]]


class _Line(httpx2.AsyncBaseTransport):
    """A connection that can be cut."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner
        self.cut = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.cut:
            raise httpx2.ConnectError("the process is dead or frozen")
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class Process:
    """See the module. `main` builds the component and runs it until it is cancelled."""

    def __init__(
        self, plane: ControlPlane, component: str, identity: str, token: Callable[[], str], main: Main
    ) -> None:
        self.component, self.identity = component, identity
        self._plane, self._token, self._main = plane, token, main
        self._line: _Line | None = None
        self._task: asyncio.Task[None] | None = None
        self.problems: list[BaseException] = []
        """What made a run of it end by itself: a bug."""

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        assert not self.running, f"{self.component} runs already"
        arguments = self._plane.connection(self._token())
        verify = arguments.pop("verify")
        self._line = _Line(httpx2.AsyncHTTPTransport(verify=verify, trust_env=False))
        http = httpx2.AsyncClient(transport=self._line, **arguments)
        self._task = asyncio.create_task(self._run(http), name=f"{self.component}")

    async def stop(self) -> None:
        """Asked to end: it may say goodbye."""
        await self._end()

    async def crash(self) -> None:
        """Dead at once: what it had not sent is never sent, and its Lease is left to run out."""
        if self.running:
            self.freeze()
        await self._end()

    def freeze(self) -> None:
        """Cut off: it runs on and reaches nobody."""
        assert self._line is not None
        self._line.cut = True

    def thaw(self) -> None:
        assert self._line is not None
        self._line.cut = False

    async def _run(self, http: httpx2.AsyncClient) -> None:
        clock, randomness = SystemClock(), Randomness()
        try:
            await self._main(Client(http, f"sickbay-{self.component}", clock), clock, randomness, self.identity)
            raise RuntimeError(f"{self.component} returned, though nobody asked it to")
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.problems.append(error)
        finally:
            await http.aclose()

    async def _end(self) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
