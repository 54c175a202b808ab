"""Drain: one pass at a time, each from a fresh list of what is on the node.

A pass evicts what may go now and comes back; it never waits inside. A pod that a budget holds is tried again after a
growing pause, and named in the report with its budget. The drain is done when a fresh list shows nothing left to move;
when it takes too long is decide's judgement (the step's deadline, from our own start).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from sickbay.api import kinds, names
from sickbay.api.core import Node, Pod
from sickbay.api.node_repair import BlockingPod
from sickbay.api.repair_rule import DrainOptions
from sickbay.api.words import PodState, PodWhy, ReportState, WaitsFor
from sickbay.clock import Clock, parse_time, rfc3339
from sickbay.execute import lifecycle
from sickbay.execute.budgets import covering, never_allows
from sickbay.execute.podfilter import Drain as Terms
from sickbay.execute.podfilter import Fate, Judged, judge, unreachable
from sickbay.execute.progress import Look, Progress, done
from sickbay.kube import errors
from sickbay.kube.client import Client

PASS = 5.0
"""Seconds between two passes."""
RETRY_FIRST, RETRY_MOST = 5.0, 60.0
"""Seconds until a blocked pod is tried again: doubled from the first to the most, so many blocked pods stay cheap."""
EVICTIONS_PER_PASS = 20


@dataclass
class _Blocked:
    pause: float
    next_try: float
    why: PodWhy
    pdb: str


class Drain:
    """Empties nodes. Only the pauses of blocked pods are kept in memory; a restart merely tries them sooner."""

    def __init__(
        self, client: Client, clock: Clock, check: Callable[[], None], observe: Callable[[Node], None]
    ) -> None:
        self._client = client
        self._clock = clock
        self._check = check
        self._observe = observe
        self._blocked: dict[str, _Blocked] = {}

    async def look(self, look: Look) -> Progress:
        node = await lifecycle.show(self._client, look, names.DRAIN_IN_PROGRESS, "True", "drained for a repair")
        self._observe(node)
        listing = await self._client.list(kinds.POD, fields=f"spec.nodeName={look.node.name}")
        if listing.malformed:
            return Progress(ReportState.IN_PROGRESS, f"a pod cannot be read: {listing.malformed[0]}", again=PASS)
        judged = [judge(pod, self._terms(look)) for pod in listing.items]
        staying = [j for j in judged if j.fate in (Fate.WAITS, Fate.GOES, Fate.ENDING)]
        if not staying:
            return await self._done(look, judged)
        if look.current.waits_for != WaitsFor.CLEAR_PROOF:
            await self._evict(look, [j for j in judged if j.fate is Fate.GOES])
        return Progress(ReportState.IN_PROGRESS, _summary(staying), pods=[self._told(j) for j in staying], again=PASS)

    def _terms(self, look: Look) -> Terms:
        started = look.repair.status.step(look.current.step).started
        return Terms(
            options=look.step.options or DrainOptions(),
            started=parse_time(started) if started else look.now,
            now=look.now,
            unreachable=unreachable(look.node),
        )

    async def _done(self, look: Look, judged: list[Judged]) -> Progress:
        node = await lifecycle.show(self._client, look, names.DRAINED, "True", "nothing is left to move")
        look = replace(look, node=node)
        self._observe(await lifecycle.show(self._client, look, names.DRAIN_IN_PROGRESS, "False", "drained"))
        kept = [f"{j.pod.namespace}/{j.pod.name}" for j in judged if j.fate is Fate.PROTECTED]
        note = f"; protected and left: {', '.join(kept[:5])}" if kept else ""
        return done(f"nothing is left to move{note}", {"pods": "0"})

    async def _evict(self, look: Look, going: list[Judged]) -> None:
        """Evict the lowest priority group; the next one follows when that is gone."""
        if not going:
            return
        lowest = min(j.priority for j in going)
        now = self._clock.monotonic()
        due = [j for j in going if j.priority == lowest and self._is_due(j.pod, now)]
        for each in due[:EVICTIONS_PER_PASS]:
            self._check()
            await self._evict_one(each)

    def _is_due(self, pod: Pod, now: float) -> bool:
        blocked = self._blocked.get(pod.uid)
        return blocked is None or now >= blocked.next_try

    async def _evict_one(self, judged: Judged) -> None:
        pod = judged.pod
        try:
            await self._client.evict(pod.name, pod.namespace, pod.uid, judged.grace)
        except (errors.NotFound, errors.Conflict):
            pass  # gone, or another pod has its name: the next list tells
        except errors.TooManyRequests as refusal:
            if refusal.budget:
                await self._note_budget(pod)
            else:
                self._block(pod, PodWhy.BUSY, "")
            return
        except errors.ApiError:
            self._block(pod, PodWhy.ERROR, await self._budget_names(pod))
            return
        self._blocked.pop(pod.uid, None)

    async def _note_budget(self, pod: Pod) -> None:
        budgets = await self._client.list(kinds.PDB, pod.namespace)
        holding = covering(pod, budgets.items)
        never = next((b for b in holding if never_allows(b)), None)
        named = never or next(iter(holding), None)
        self._block(pod, PodWhy.NEVER if never else PodWhy.BUSY, named.metadata.name if named is not None else "")

    async def _budget_names(self, pod: Pod) -> str:
        """Two budgets on one pod: the API server refuses to judge, so both are named."""
        try:
            budgets = await self._client.list(kinds.PDB, pod.namespace)
        except errors.ApiError:
            return ""
        return ",".join(b.metadata.name for b in covering(pod, budgets.items))[:253]

    def _block(self, pod: Pod, why: PodWhy, pdb: str) -> None:
        before = self._blocked.get(pod.uid)
        pause = RETRY_FIRST if before is None else min(before.pause * 2, RETRY_MOST)
        self._blocked[pod.uid] = _Blocked(pause, self._clock.monotonic() + pause, why, pdb)
        if len(self._blocked) > 10_000:
            self._blocked.pop(next(iter(self._blocked)))

    def _told(self, judged: Judged) -> BlockingPod:
        pod, name = judged.pod, f"{judged.pod.namespace}/{judged.pod.name}"
        if judged.fate is Fate.ENDING:
            return BlockingPod(pod=name, state=PodState.TERMINATING)
        if judged.fate is Fate.WAITS:
            until = rfc3339(judged.until) if judged.until is not None else None
            return BlockingPod(pod=name, state=PodState.WAITING, why=PodWhy.WAIT, until=until)
        blocked = self._blocked.get(pod.uid)
        if blocked is None:
            return BlockingPod(pod=name, state=PodState.EVICTING)
        until = rfc3339(self._clock.now() + timedelta(seconds=max(0.0, blocked.next_try - self._clock.monotonic())))
        return BlockingPod(pod=name, state=PodState.BLOCKED, why=blocked.why, pdb=blocked.pdb, until=until)


def _summary(staying: list[Judged]) -> str:
    named = ", ".join(f"{j.pod.namespace}/{j.pod.name}" for j in staying[:3])
    more = f" and {len(staying) - 3} more" if len(staying) > 3 else ""
    return f"{len(staying)} pods are left: {named}{more}"
