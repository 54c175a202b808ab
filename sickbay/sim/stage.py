"""What the simulated parts of a world share: the API server's store, the clock, the machines, the seed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from sickbay.apiserver.store import Store
from sickbay.clock import Clock, Randomness
from sickbay.sim.journal import Journal
from sickbay.sim.machine import Machine


@dataclass(slots=True)
class Stage:
    loop: asyncio.AbstractEventLoop
    """Its time must be the monotonic time of `clock`."""
    clock: Clock
    randomness: Randomness
    store: Store
    journal: Journal
    pace: float = 1.0
    """How much rarer than in reality heartbeats are: a run of weeks must not consist of them. Nobody judges by them."""
    machines: dict[str, Machine] = field(default_factory=dict)
    """By node name."""

    def now(self) -> datetime:
        return self.clock.now()
