"""What of a pool's windows and limits can be accepted and then never let anything begin."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from sickbay.api.duration import parse_duration
from sickbay.api.repair_pool import RepairPool, RepairPoolSpec, Window
from sickbay.api.words import WindowKind
from sickbay.decide import windows

Said = tuple[bool, str, str]
"""Whether it is an error, the path, and the words."""

_LEAP_YEAR = datetime(2024, 1, 1)
"""Begin of four years that hold every date there is."""


def pool(found: RepairPool) -> Iterator[Said]:
    """All that is to be said of a pool's windows and counts."""
    for i, window in enumerate(found.spec.windows):
        yield from _window(window, f"spec.windows[{i}]")
    if found.spec.rule:
        yield from _nothing(found.spec)
    yield from _unbound(found.spec)


def _window(window: Window, path: str) -> Iterator[Said]:
    denies = window.kind == WindowKind.DENY
    so = "it denies nothing" if denies else "nothing would ever start"
    try:
        cron = windows.parse_cron(window.cron)
        windows.zone(window.zone)
    except ValueError as error:
        yield True, path, f"{error}; nothing would ever start"
        return
    if not any(cron.on(_LEAP_YEAR + timedelta(days=day)) for day in range(4 * 366)):
        yield not denies, f"{path}.cron", f"{window.cron!r} never comes: {so}; correct day and month"
    if not parse_duration(window.duration):
        yield not denies, f"{path}.duration", f"{window.duration} has no time in it: {so}; make it longer"


def _nothing(spec: RepairPoolSpec) -> Iterator[Said]:
    """Counts of nothing; each is legal, and stops a pool for good."""
    if spec.max_unavailable in (0, "0%"):
        yield False, "spec.maxUnavailable", "0: no node in service is ever taken out"
    if spec.max_parallel_repairs == 0:
        yield False, "spec.maxParallelRepairs", "0: no act that disrupts a node ever begins; use a Hold to stop a pool"
    if spec.max_parallel_validations == 0:
        yield False, "spec.maxParallelValidations", "0: no node is ever validated, so none returns; use at least 1"
    if spec.breaker.max_nodes == 0:
        yield False, "spec.breaker.maxNodes", "0: the first faulty node opens the breaker; use at least 1"


def _unbound(spec: RepairPoolSpec) -> Iterator[Said]:
    most, parallel = spec.max_unavailable, spec.max_parallel_repairs
    if isinstance(most, int) and isinstance(parallel, int) and parallel > most > 0:
        yield False, "spec.maxParallelRepairs", f"{parallel} can never bind: maxUnavailable is {most}"
