"""An event loop on which simulated time runs a fixed factor faster than real time, with real sockets.

The demo runs on it: the same world that tests run on virtual time, slow enough for a person to watch and open to
kubectl over HTTP. It is not deterministic; tests do not use it.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any

from sickbay.clock import Clock, SystemClock


class _PacedSelector(selectors.DefaultSelector):
    """Waits the real time that a simulated time-out stands for."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self._factor = factor

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(timeout if timeout is None else timeout / self._factor)


class PacedLoop(asyncio.SelectorEventLoop):
    """`factor` simulated seconds pass in one real second."""

    def __init__(self, factor: float, clock: Clock | None = None) -> None:
        self._real = clock or SystemClock()
        self._begun = self._real.monotonic()
        self.factor = factor
        super().__init__(_PacedSelector(factor))

    def time(self) -> float:
        """Simulated seconds since the loop was made."""
        return (self._real.monotonic() - self._begun) * self.factor

    def call_at_rest(self, callback: Callable[[], Any]) -> None:
        """Real time never rests; soon is as good."""
        self.call_soon(callback)

    def call_first(self, callback: Callable[[], Any]) -> None:
        self.call_soon(callback)

    def call_first_at(self, when: float, callback: Callable[[], Any]) -> None:
        self.call_at(when, callback)
