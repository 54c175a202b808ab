"""A leader that loses its lease in the middle of a look stops there: that is no failure of a worker."""

from __future__ import annotations

import httpx2

from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.store import Store
from sickbay.apiserver.transport import InProcessTransport
from sickbay.apiserver.writes import SYSTEM
from sickbay.clock import Randomness, SystemClock
from sickbay.decide.controller import DecideController
from sickbay.kube.client import Client
from sickbay.kube.leadership import NotLeading


async def test_a_look_that_finds_the_lease_gone_ends_without_an_error(monkeypatch):
    clock = SystemClock()
    transport = InProcessTransport(ApiServer(Store(clock, Randomness(1)), anonymous=SYSTEM))
    async with httpx2.AsyncClient(transport=transport, base_url="http://ours") as http:
        controller = DecideController(Client(http, clock, Randomness(2)), clock, Randomness(3))

        async def lost(_: str) -> float | None:
            raise NotLeading("term 1 is over")

        monkeypatch.setitem(controller._look, "pool", lost)
        assert await controller._reconcile(("pool", "train")) is None
