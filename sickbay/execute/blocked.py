"""Pods that would not go: why, when they are tried again, and what people have been told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sickbay.api.core import Pod
from sickbay.api.repair_step import BlockingPod, Report
from sickbay.api.words import PodState, PodWhy
from sickbay.clock import Clock, rfc3339
from sickbay.execute.progress import Told

RETRY_FIRST, RETRY_MOST = 5.0, 60.0
"""Seconds until a pod is tried again: doubled from the first to the most, so many blocked pods stay cheap."""
TROUBLE = 3
"""Failures of a kind that may pass by itself (a server error) before people are told."""

UNREADY = "; it is not ready itself: unhealthyPodEvictionPolicy AlwaysAllow on the budget would let it go"
"""Without that word the eviction API keeps a pod that is not ready too, while its budget is short (KEP-3017)."""


@dataclass
class _Block:
    next_try: float
    until: str
    """The same moment, for people."""
    pause: float = 0.0
    tries: int = 0
    why: str = ""
    """A `PodWhy`; empty: nothing is wrong with the pod, the server asked us to wait."""
    pdb: str = ""
    error: str = ""
    unready: bool = False
    """The pod itself is not ready, and its budget does not let such pods go."""
    told: bool = False


class Blocked:
    """Those of one drain, by pod UID. In memory only; after a restart the record tells what people know already."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._blocks: dict[str, _Block] = {}

    def remember(self, pods: list[Pod], report: Report) -> None:
        """Take from the record what an earlier process found; those pods are tried at once."""
        known = {entry.pod: entry for entry in report.pods if entry.state == PodState.BLOCKED}
        for pod in pods:
            entry = known.get(f"{pod.namespace}/{pod.name}")
            if entry is not None and pod.uid not in self._blocks:
                now = self._clock.monotonic()
                self._blocks[pod.uid] = _Block(now, entry.until or "", why=entry.why, pdb=entry.pdb, told=True)

    def due(self, pod: Pod) -> bool:
        block = self._blocks.get(pod.uid)
        return block is None or self._clock.monotonic() >= block.next_try

    def next_due(self, pods: list[Pod]) -> float | None:
        """Seconds until the first of these pods is tried again; None when none is blocked."""
        moments = [block.next_try for pod in pods if (block := self._blocks.get(pod.uid)) is not None]
        return max(0.0, min(moments) - self._clock.monotonic()) if moments else None

    def note(
        self, pod: Pod, why: str, pdb: str = "", error: str = "", at_least: float = 0.0, unready: bool = False
    ) -> None:
        """The pod did not go."""
        block = self._blocks.setdefault(pod.uid, _Block(0.0, ""))
        block.pause = max(at_least, min(block.pause * 2, RETRY_MOST) if block.pause else RETRY_FIRST)
        block.next_try = self._clock.monotonic() + block.pause
        block.until = rfc3339(self._clock.now() + timedelta(seconds=block.pause))
        block.tries += 1
        if (block.why, block.pdb) != (why, pdb):
            block.told = False
        block.why, block.pdb, block.error, block.unready = why, pdb, error, unready

    def gone(self, pod: Pod) -> None:
        self._blocks.pop(pod.uid, None)

    def entry(self, pod: Pod) -> BlockingPod:
        """The pod as the report shows it."""
        name, block = f"{pod.namespace}/{pod.name}", self._blocks.get(pod.uid)
        if block is None or not block.why:
            return BlockingPod(pod=name, state=PodState.EVICTING)
        return BlockingPod(
            pod=name, state=PodState.BLOCKED, why=block.why, pdb=block.pdb[:253], until=block.until or None
        )

    def news(self, pods: list[Pod]) -> tuple[Told, ...]:
        """What people have to be told, once: the pod, and what holds it."""
        told = []
        for pod in pods:
            block = self._blocks.get(pod.uid)
            if block is None or block.told or not block.why:
                continue
            if block.why == PodWhy.ERROR and not block.pdb and block.tries < TROUBLE:
                continue
            block.told = True
            told.append(Told("DrainBlocked", f"{pod.namespace}/{pod.name} {self.reason(pod)}"))
        return tuple(told)

    def reason(self, pod: Pod) -> str:
        """Why it has not gone, in words; "" when nothing is known to be wrong."""
        block = self._blocks.get(pod.uid)
        if block is None or not block.why:
            return ""
        if block.why == PodWhy.PROTECTED:
            return f"can run nowhere else: {block.error}"
        unready = UNREADY if block.unready else ""
        if block.why == PodWhy.NEVER:
            never = "can never let it go: it allows no disruption as it is written"
            return f"is held by PodDisruptionBudget {block.pdb}, which {never}{unready}"
        if block.why == PodWhy.BUSY:
            return f"is held by PodDisruptionBudget {block.pdb or '(none found)'}{unready}"
        budgets = f" (covered by PodDisruptionBudgets {block.pdb.replace(',', ', ')})" if block.pdb else ""
        return f"cannot be evicted{budgets}: {block.error or 'the API server refuses'}"
