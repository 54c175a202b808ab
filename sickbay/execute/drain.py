"""Drain: one pass at a time, each from a fresh list of what is on the node.

A pass evicts what may go now and comes back; it never waits inside. A pod that a budget holds is tried again after a
growing pause, and named in the report with its budget. The drain is done when a fresh list shows nothing left to move;
when it takes too long is decide's judgement (the step's deadline, from our own start).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from sickbay.api import kinds, names
from sickbay.api.core import Node, Pod, PodDisruptionBudget
from sickbay.api.repair_rule import DrainOptions
from sickbay.api.repair_step import BlockingPod
from sickbay.api.words import BEFORE, NodeVolumes, PodState, PodWhy, ReportState, WaitsFor
from sickbay.clock import Clock, parse_time, rfc3339
from sickbay.execute import lifecycle
from sickbay.execute.blocked import Blocked
from sickbay.execute.budgets import covering, kept_although_unready, never_allows
from sickbay.execute.fence import Fence, taken_by_force
from sickbay.execute.offers import Recoveries, offered
from sickbay.execute.pace import Pace
from sickbay.execute.podfilter import Drain as Terms
from sickbay.execute.podfilter import Fate, Judged, judge, unreachable
from sickbay.execute.progress import Look, Progress, done
from sickbay.execute.volumes import Volumes
from sickbay.kube import errors
from sickbay.kube.client import Client

PASS, QUIET_PASS = 5.0, 10.0
"""Seconds between two passes while pods are leaving, and while all that is left waits."""
EVICTIONS_PER_PASS = 20


class Drain:
    """Empties nodes. Lives for one term."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        pace: Pace,
        observe: Callable[[Node], None],
        fence: Fence,
        volumes: Volumes,
        recoveries: Recoveries = lambda _name, _namespace: None,
    ) -> None:
        self._client = client
        self._recoveries = recoveries
        self._clock = clock
        self._pace = pace
        self._observe = observe
        self._fence, self._volumes = fence, volumes
        self._blocked: dict[str, Blocked] = {}

    async def look(self, look: Look) -> Progress:
        begun = (names.DRAIN_IN_PROGRESS, "True", "drained for a repair")
        self._observe(await lifecycle.show(self._client, look, begun))
        options = look.step.options or DrainOptions()
        node, fenced = await self._fence.stands(look, options.force.allowed)
        told = (fenced,) if fenced is not None else ()
        listing = await self._client.list(kinds.POD, fields=f"spec.nodeName={look.node.name}")
        if listing.malformed:
            bad = listing.malformed[0]
            return Progress(ReportState.IN_PROGRESS, f"pod {bad.identity.name} cannot be read: {bad.error}")
        judged = [judge(pod, _terms(look, node)) for pod in listing.items]
        blocked = self._blocked.setdefault(look.repair.metadata.uid, Blocked(self._clock))
        blocked.remember([j.pod for j in judged], look.report)
        judged = [await self._tied(each, options, node, blocked) for each in judged]
        staying = [j for j in judged if j.fate in (Fate.WAITS, Fate.BOUND, Fate.GOES, Fate.ENDING)]
        if not staying:
            return replace(await self._done(look, judged), events=told)
        judged = [_left_to_the_fence(j, node) for j in judged]
        moving = offered(look, [j.pod for j in judged if j.fate in (Fate.GOES, Fate.ENDING)], self._recoveries)
        judged = [_left_to_its_job(j, moving.kept) for j in judged]
        staying = [_left_to_its_job(j, moving.kept) for j in staying]
        moved = 0
        if look.current.waits_for != WaitsFor.CLEAR_PROOF:
            moved = await self._evict(look, judged, blocked)
        return Progress(
            ReportState.IN_PROGRESS,
            _summary(staying, blocked),
            pods=[_told(j, blocked) for j in staying],
            offers=moving.offers,
            again=PASS if moved else _quiet(staying, blocked),
            events=blocked.news([j.pod for j in staying]) + told,
        )

    async def _tied(self, judged: Judged, options: DrainOptions, node: Node, blocked: Blocked) -> Judged:
        """A pod that would be evicted and can run nowhere else, by the rule's word on such pods."""
        if judged.fate is not Fate.GOES or options.node_volumes in (None, NodeVolumes.EVICT) or unreachable(node):
            return judged  # on a machine that nobody reaches it serves nobody
        why = await self._volumes.bound(judged.pod, node)
        if why and options.node_volumes == NodeVolumes.LEAVE:
            return replace(judged, fate=Fate.PROTECTED)
        if why and blocked.due(judged.pod):
            blocked.note(judged.pod, PodWhy.PROTECTED, error=why)
        return replace(judged, fate=Fate.BOUND) if why else judged

    def forget(self, uid: str) -> None:
        """The drain of this repair is over."""
        self._blocked.pop(uid, None)

    def keep(self, uids: set[str]) -> None:
        """Forget all repairs but these."""
        self._blocked = {uid: blocked for uid, blocked in self._blocked.items() if uid in uids}

    async def _done(self, look: Look, judged: list[Judged]) -> Progress:
        empty = (names.DRAINED, "True", "nothing is left to move")
        over = (names.DRAIN_IN_PROGRESS, "False", "drained")
        self._observe(await lifecycle.show(self._client, look, empty, over))
        kept = [f"{j.pod.namespace}/{j.pod.name}" for j in judged if j.fate is Fate.PROTECTED]
        note = f"; protected and left: {', '.join(kept[:5])}" if kept else ""
        return done(f"nothing is left to move{note}", {"pods": "0"})

    async def _evict(self, look: Look, judged: list[Judged], blocked: Blocked) -> int:
        """Evict the lowest priority group; the next one follows when that is gone. Returns how many went."""
        leaving = [j for j in judged if j.fate in (Fate.GOES, Fate.ENDING)]
        lowest = min((j.priority for j in leaving), default=0)
        going = [j for j in leaving if j.fate is Fate.GOES and j.priority == lowest and blocked.due(j.pod)]
        budgets = _Budgets(self._client)
        moved = 0
        for each in going[:EVICTIONS_PER_PASS]:
            if not self._pace.take():
                break
            await look.permit()
            moved += await self._evict_one(look, each, blocked, budgets)
        return moved

    async def _evict_one(self, look: Look, judged: Judged, blocked: Blocked, budgets: _Budgets) -> bool:
        pod = judged.pod
        look.check()
        try:
            await self._client.evict(pod.name, pod.namespace, pod.uid, judged.grace)
        except (errors.NotFound, errors.Conflict):
            pass  # gone, or another pod has its name: the next list tells
        except errors.TooManyRequests as refusal:
            if not refusal.budget:
                blocked.note(pod, "", at_least=refusal.retry_after)
                return False
            holding = await budgets.of(pod)
            never = next((b for b in holding if never_allows(b)), None)
            named = never or next(iter(holding), None)
            why = PodWhy.NEVER if never is not None else PodWhy.BUSY
            name = named.metadata.name if named is not None else ""
            blocked.note(pod, why, name, unready=named is not None and kept_although_unready(pod, named))
            return False
        except errors.ApiError as error:
            # Two budgets on one pod: the API server refuses to judge, so both are named.
            holding = await budgets.of(pod)
            both = ",".join(b.metadata.name for b in holding) if len(holding) > 1 else ""
            blocked.note(pod, PodWhy.ERROR, both, str(error))
            return False
        blocked.gone(pod)
        return True


class _Budgets:
    """Disruption budgets by namespace, read once in a pass."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, list[PodDisruptionBudget]] = {}

    async def of(self, pod: Pod) -> list[PodDisruptionBudget]:
        """Those that cover the pod; none when they cannot be read: the pod stays blocked all the same."""
        if pod.namespace not in self._known:
            try:
                self._known[pod.namespace] = (await self._client.list(kinds.PDB, pod.namespace)).items
            except errors.ApiError:
                return []
        return covering(pod, self._known[pod.namespace])


def _left_to_its_job(judged: Judged, kept: dict[str, datetime]) -> Judged:
    """A rank of a gang that the job loop moves as a whole waits for that move."""
    until = kept.get(judged.pod.uid)
    return replace(judged, fate=Fate.WAITS, until=until) if until is not None and judged.fate is Fate.GOES else judged


def _left_to_the_fence(judged: Judged, node: Node) -> Judged:
    """A pod that the out-of-service taint takes away is not evicted as well."""
    taken = judged.fate is Fate.GOES and taken_by_force(judged.pod, node)
    return replace(judged, fate=Fate.ENDING) if taken else judged


def _terms(look: Look, node: Node) -> Terms:
    started = look.repair.status.step(look.current.step).started
    before = look.current.args.get(BEFORE)
    return Terms(
        options=look.step.options or DrainOptions(),
        started=parse_time(started) if started else look.now,
        now=look.now,
        unreachable=unreachable(look.node),
        fenced=any(taint.key == names.OUT_OF_SERVICE for taint in node.taints),
        before=parse_time(before) if before else None,
        devices=_sick_cards(look),
    )


def _sick_cards(look: Look) -> frozenset[str]:
    """UUIDs of the cards that are at fault; none where a fault is not of cards alone, or a card has no UUID."""
    faults = [fault for fault in look.repair.spec.faults if fault.cleared_at is None]
    cards = {device for fault in faults for device in fault.devices}
    known = all(fault.devices for fault in faults) and all(card.startswith("GPU-") for card in cards)
    return frozenset(cards) if known else frozenset()


def _quiet(staying: list[Judged], blocked: Blocked) -> float:
    """Seconds until the next pass when this one moved nothing: pods end by themselves or are due again."""
    due = blocked.next_due([j.pod for j in staying])
    return QUIET_PASS if due is None else min(QUIET_PASS, max(PASS, due))


def _told(judged: Judged, blocked: Blocked) -> BlockingPod:
    name = f"{judged.pod.namespace}/{judged.pod.name}"
    if judged.fate is Fate.ENDING:
        return BlockingPod(pod=name, state=PodState.TERMINATING)
    if judged.fate is Fate.WAITS:
        until = rfc3339(judged.until) if judged.until is not None else None
        return BlockingPod(pod=name, state=PodState.WAITING, why=PodWhy.WAIT, until=until)
    return blocked.entry(judged.pod)


def _summary(staying: list[Judged], blocked: Blocked) -> str:
    named = []
    for judged in staying[:3]:
        reason = blocked.reason(judged.pod) if judged.fate in (Fate.GOES, Fate.BOUND) else ""
        named.append(f"{judged.pod.namespace}/{judged.pod.name}" + (f" ({reason})" if reason else ""))
    more = f" and {len(staying) - 3} more" if len(staying) > 3 else ""
    return f"{len(staying)} pods are left: {', '.join(named)}{more}"
