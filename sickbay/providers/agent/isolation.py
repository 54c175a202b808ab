"""Takes cards away from the scheduler, and gives them back, as the grant on the agent's own Node says.

The device plug-in offers the cards; it has to be told. There is no common way to do that (NVIDIA's own has none at
all), so the host's means is configured: see `host.Host.isolate`. Without one a grant is reported and not followed.

Level-based: the grant as it stands is applied when the agent starts, at each change, and again after a failure. A Node
registered anew carries no grant, and what an earlier one had is given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from sickbay.api.core import Node
from sickbay.api.isolation import read_isolation
from sickbay.clock import Clock, Randomness
from sickbay.kube.backoff import Backoff
from sickbay.kube.events import NORMAL, WARNING
from sickbay.providers.agent.host import Host, HostError

log = structlog.get_logger(__name__)


class Isolator:
    """`node` gives the agent's own Node as it is known, `say` publishes an Event on it."""

    def __init__(
        self, host: Host, node: Callable[[], Node | None], clock: Clock, randomness: Randomness,
        say: Callable[[str, str, str], None],
    ) -> None:  # fmt: skip
        self._host, self._node, self._clock, self._say = host, node, clock, say
        self._backoff = Backoff(randomness, 5.0, 300.0)
        self._changed = asyncio.Event()
        self._applied: frozenset[str] | None = None
        self._told = ""

    def wake(self) -> None:
        """The Node may say something else now."""
        self._changed.set()

    async def run(self) -> None:
        """Follow the grant until cancelled."""
        while True:
            self._changed.clear()
            node = self._node()
            if node is not None and read_isolation(node) != self._applied:
                await self._apply(read_isolation(node))
            if not self._changed.is_set():
                await self._changed.wait()

    async def _apply(self, wanted: frozenset[str]) -> None:
        before = self._applied
        try:
            await self._host.isolate(wanted)
        except HostError as error:
            if wanted and str(error) != self._told:
                self._say(WARNING, "IsolationFailed", str(error))
            self._told = str(error)
            log.warning("cards not isolated", wanted=sorted(wanted), error=str(error))
            await self._pause()
            return
        self._applied, self._told = wanted, ""
        self._backoff.reset()
        if wanted:
            self._say(NORMAL, "CardsIsolated", f"not offered any more: {', '.join(sorted(wanted))}")
        elif before:
            self._say(NORMAL, "CardsReturned", f"offered again: {', '.join(sorted(before))}")

    async def _pause(self) -> None:
        """Until the next try; a change of the Node in between is judged at once."""
        changed = asyncio.create_task(self._changed.wait())
        timer = asyncio.create_task(self._clock.sleep(self._backoff.next()))
        try:
            await asyncio.wait([changed, timer], return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            timer.cancel()
        self._changed.set()
