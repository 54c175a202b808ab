"""The report as a claim.

Before anything is done for an attempt, `report: {state: Claimed, attempt, planGeneration, term}` is written by a patch
that names the version it read. Whoever wins that write acts; everybody else reads the claim and keeps off. A leader of
a later term that finds a claim without a result first writes its own term into it, then looks up what became of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sickbay.api import kinds
from sickbay.api.node_repair import NodeRepair, Report
from sickbay.api.patches import merge_diff
from sickbay.api.words import ReportState
from sickbay.execute.progress import Progress
from sickbay.kube.client import Client

REWRITE_AFTER = timedelta(seconds=10)
"""A report whose meaning has not changed is written at most this often."""
FINAL = (ReportState.DONE, ReportState.FAILED, ReportState.UNKNOWN)


@dataclass(frozen=True)
class Claim:
    repair: NodeRepair
    resumed: bool
    """Somebody else (an earlier term, a process that died) claimed it first."""


def is_current(repair: NodeRepair) -> bool:
    """True when the current attempt has a report."""
    report, current = repair.status.step(repair.status.current.step).report, repair.status.current
    return (
        report.state != ""
        and report.attempt == current.attempt
        and report.plan_generation == repair.spec.plan.generation
    )


def is_final(repair: NodeRepair) -> bool:
    return is_current(repair) and repair.status.step(repair.status.current.step).report.state in FINAL


class Reporter:
    """Writes reports. `check` raises when we do not lead; `observe` takes in what was written."""

    def __init__(self, client: Client, check: Callable[[], None], observe: Callable[[NodeRepair], None]) -> None:
        self._client = client
        self._check = check
        self._observe = observe
        self._written: dict[str, datetime] = {}

    async def claim(self, repair: NodeRepair, term: int, proof: dict[str, str]) -> Claim:
        """Make the current attempt ours. Raises Conflict when somebody was quicker."""
        current = repair.status.current
        report = repair.status.step(current.step).report
        if is_current(repair):
            if report.term == term:
                return Claim(repair, resumed=False)
            taken = msgspec.structs.replace(report, term=term)
            return Claim(await self._write(repair, taken, None), resumed=True)
        fresh = Report(
            state=ReportState.CLAIMED,
            attempt=current.attempt,
            plan_generation=repair.spec.plan.generation,
            term=term,
            proof=proof,
        )
        return Claim(await self._write(repair, fresh, None), resumed=False)

    async def report(self, repair: NodeRepair, progress: Progress, now: datetime) -> NodeRepair:
        """Write what a look found, where it says something new."""
        old = repair.status.step(repair.status.current.step).report
        new = msgspec.structs.replace(
            old,
            state=progress.state,
            message=progress.message[:2048],
            proof={**old.proof, **progress.proof},
            pods=progress.pods[:32],
        )
        if new == old and (progress.prior is None or progress.prior == repair.status.prior):
            return repair
        changed = new.state != old.state or [_why(p) for p in new.pods] != [_why(p) for p in old.pods]
        last = self._written.get(repair.metadata.uid)
        if not changed and last is not None and now - last < REWRITE_AFTER:
            return repair
        self._written[repair.metadata.uid] = now
        return await self._write(repair, new, progress.prior)

    def forget(self, repair: NodeRepair) -> None:
        self._written.pop(repair.metadata.uid, None)

    async def _write(self, repair: NodeRepair, report: Report, prior: Any) -> NodeRepair:
        self._check()
        step = repair.status.current.step
        old = msgspec.to_builtins(repair.status.step(step).report)
        patch = merge_diff(old, msgspec.to_builtins(report))
        status: dict[str, Any] = {"steps": {step: {"report": patch}}}
        if prior is not None:
            status["prior"] = msgspec.to_builtins(prior)
        meta = {"resourceVersion": repair.metadata.resource_version, "uid": repair.metadata.uid}
        body = {"metadata": meta, "status": status}
        written = await self._client.patch_merge(kinds.NODE_REPAIR, repair.metadata.name, body, subresource="status")
        self._observe(written)
        return written


def _why(pod: Any) -> tuple[str, str]:
    return pod.pod, pod.why
