"""The report as a claim.

Before anything is done for an attempt, `report: {state: Claimed, attempt, planGeneration, term}` is written by a patch
that names the version it read. Whoever wins that write acts; everybody else reads the claim and keeps off. A leader of
a later term that finds a claim without a result first writes its own term into it, then looks up what became of it.

A `Claims` lives for one term. What it did not claim itself in this term is somebody else's claim, even when the record
carries this term already: the answer to the write that took it over may have been lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from sickbay.api import kinds
from sickbay.api.node_repair import NodeRepair, Prior
from sickbay.api.objectnames import act_key
from sickbay.api.patches import merge_diff
from sickbay.api.repair_step import Report
from sickbay.api.words import ReportState
from sickbay.execute.attempt import is_current
from sickbay.execute.guard import Stopped
from sickbay.execute.progress import Progress
from sickbay.kube.client import Client

REWRITE_AFTER = timedelta(seconds=10)
"""A report whose meaning has not changed is written at most this often."""


@dataclass(frozen=True)
class Claim:
    repair: NodeRepair
    resumed: bool
    """Somebody else (a process that died, a leader of an earlier term) claimed it first, and may have acted."""


class LaterTerm(Exception):
    """A leader of a later term has claimed the attempt: our time is over."""


class Claims:
    """Writes reports in one term. `check` raises when we do not lead; `observe` takes in what was written."""

    def __init__(
        self, client: Client, term: int, check: Callable[[], None], observe: Callable[[NodeRepair], None]
    ) -> None:
        self.term = term
        self._client = client
        self._check = check
        self._observe = observe
        self._mine: set[tuple[str, int]] = set()
        self._written: dict[str, datetime] = {}

    async def claim(self, repair: NodeRepair, proof: dict[str, str]) -> Claim:
        """Make the current attempt ours. Raises Conflict when somebody was quicker, LaterTerm when it is not for us.

        `proof` is what a fresh claim records for comparison afterwards.
        """
        current, generation = repair.status.current, repair.spec.plan.generation
        key = act_key(repair.metadata.uid, current.step, current.attempt), generation
        if not is_current(repair):
            self._mine.add(key)
            fresh = Report(
                state=ReportState.CLAIMED,
                attempt=current.attempt,
                plan_generation=generation,
                term=self.term,
                proof=proof,
            )
            return Claim(await self._write(repair, fresh), resumed=False)
        report = repair.status.step(current.step).report
        if report.term > self.term:
            raise LaterTerm(f"term {report.term} has claimed it, ours is {self.term}")
        if report.term == self.term:
            return Claim(repair, resumed=key not in self._mine)
        self._mine.discard(key)
        taken = msgspec.structs.replace(report, term=self.term)
        return Claim(await self._write(repair, taken), resumed=True)

    async def report(self, repair: NodeRepair, progress: Progress, now: datetime) -> NodeRepair:
        """Write what a look found, where it says something new."""
        old = repair.status.step(repair.status.current.step).report
        new = msgspec.structs.replace(
            old,
            state=progress.state,
            message=progress.message[:2048],
            waits_for="",
            lost_to="",
            proof={**old.proof, **progress.proof},
            pods=progress.pods[:32],
            offers=progress.offers[:64],
        )
        prior = progress.prior if progress.prior != repair.status.prior else None
        return await self._write_news(repair, old, new, now, prior)

    async def stopped(self, repair: NodeRepair, by: Stopped, now: datetime) -> NodeRepair:
        """Write what keeps us from acting. An attempt that is not claimed stays so."""
        current, why, waits_for = repair.status.current, str(by), by.waits_for
        old = repair.status.step(current.step).report
        if is_current(repair):
            new = msgspec.structs.replace(old, message=why[:2048], waits_for=waits_for, lost_to=by.lost_to[:512])
        else:
            new = Report(
                attempt=current.attempt,
                plan_generation=repair.spec.plan.generation,
                message=why[:2048],
                waits_for=waits_for,
                lost_to=by.lost_to[:512],
            )
        return await self._write_news(repair, old, new, now)

    async def record(self, repair: NodeRepair, prior: Prior) -> NodeRepair:
        """Write what stood on the node before us, where that is something else by now."""
        self._check()
        before = msgspec.to_builtins(repair.status.prior) if repair.status.prior is not None else {}
        return await self._patch(repair, {"prior": merge_diff(before, msgspec.to_builtins(prior))})

    def keep(self, uids: set[str]) -> None:
        """Forget all repairs but these."""
        self._mine = {key for key in self._mine if key[0].partition("/")[0] in uids}
        self._written = {uid: at for uid, at in self._written.items() if uid in uids}

    def forget(self, repair: NodeRepair) -> None:
        self._written.pop(repair.metadata.uid, None)

    async def _write_news(
        self, repair: NodeRepair, old: Report, new: Report, now: datetime, prior: Prior | None = None
    ) -> NodeRepair:
        if new == old and prior is None:
            return repair
        last = self._written.get(repair.metadata.uid)
        if prior is None and _meaning(new) == _meaning(old) and last is not None and now - last < REWRITE_AFTER:
            return repair
        written = await self._write(repair, new, prior)
        self._written[repair.metadata.uid] = now
        return written

    async def _write(self, repair: NodeRepair, report: Report, prior: Prior | None = None) -> NodeRepair:
        self._check()
        step = repair.status.current.step
        old = msgspec.to_builtins(repair.status.step(step).report)
        status: dict[str, object] = {"steps": {step: {"report": merge_diff(old, msgspec.to_builtins(report))}}}
        if prior is not None:
            before = msgspec.to_builtins(repair.status.prior) if repair.status.prior is not None else {}
            status["prior"] = merge_diff(before, msgspec.to_builtins(prior))
        return await self._patch(repair, status)

    async def _patch(self, repair: NodeRepair, status: dict[str, object]) -> NodeRepair:
        meta = {"resourceVersion": repair.metadata.resource_version, "uid": repair.metadata.uid}
        body = {"metadata": meta, "status": status}
        written = await self._client.patch_merge(kinds.NODE_REPAIR, repair.metadata.name, body, subresource="status")
        self._observe(written)
        return written


def _meaning(report: Report) -> tuple[object, ...]:
    """What is told at once; a changed wording can wait."""
    pods = [(pod.pod, pod.state, pod.why) for pod in report.pods]
    offers = [(offer.job.uid, offer.until) for offer in report.offers]
    stopped = report.waits_for, report.lost_to
    return report.state, report.attempt, report.plan_generation, stopped, report.proof, pods, offers
