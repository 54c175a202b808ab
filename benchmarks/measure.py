"""What all benchmarks measure by: CPU seconds of this process, and a bare loop to compare machines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of one call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def bare_loop() -> None:
    """A million steps that do nothing else."""
    total = 0
    for step in range(1_000_000):
        total += step
