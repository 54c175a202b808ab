"""An informer that starts when somebody first asks: most clusters never need what it would hold."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from sickbay.kube.informer import Informer

T = TypeVar("T")


class OnDemand(Generic[T]):
    """`run` keeps the cache current once somebody has asked."""

    def __init__(self, informer: Informer[T]) -> None:
        self.informer = informer
        self._asked = asyncio.Event()

    async def run(self) -> None:
        await self._asked.wait()
        await self.informer.run()

    def ask(self) -> bool:
        """True when the cache is there. The first question starts it."""
        self._asked.set()
        return self.informer.synced.is_set()

    async def read_afresh(self) -> None:
        """For a new leader: what is there may be old."""
        if self.informer.synced.is_set():
            await self.informer.read_afresh()
