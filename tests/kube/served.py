"""Our own API server in process, for tests of what talks to it."""

from __future__ import annotations

from typing import Any

import httpx2

from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.store import Store
from sickbay.apiserver.transport import InProcessTransport
from sickbay.apiserver.writes import SYSTEM
from sickbay.clock import Clock, Randomness
from sickbay.kube.client import Client


class Cut(httpx2.AsyncBaseTransport):
    """A connection that can be cut and slowed down, before the server sees a request or after it has answered."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, clock: Clock) -> None:
        self._inner = inner
        self._clock = clock
        self.down = False
        self.lose_answers = 0
        self.delay = 0.0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.delay:
            await self._clock.sleep(self.delay)
        if self.down:
            raise httpx2.ConnectError("no route to host")
        response = await self._inner.handle_async_request(request)
        if self.lose_answers:
            self.lose_answers -= 1
            await response.aclose()
            raise httpx2.ReadError("connection reset")
        return response


class Server:
    """A store, its API, and clients whose connections can be cut one by one."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.store = Store(clock, Randomness(11))
        self.app = ApiServer(self.store, anonymous=SYSTEM)

    def client(self, user_agent: str = "sickbay-test", clock: Clock | None = None) -> tuple[Client, Cut]:
        cut = Cut(InProcessTransport(self.app), self.clock)
        http = httpx2.AsyncClient(transport=cut, base_url="http://api")
        return Client(http, user_agent, clock or self.clock), cut

    def get(self, resource: str, name: str, namespace: str = "") -> dict[str, Any]:
        return self.store.get(resource, name, namespace)
