"""Run the hooks of a stage, one after the other, and report each in the record.

A hook is claimed by a conditional write before anything of it happens. What a dead process has claimed is looked at
again under the same key: the Job has its name from it, and an endpoint is sent the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec
import structlog

from sickbay.api import hooks as given
from sickbay.api import kinds
from sickbay.api.duration import parse_duration
from sickbay.api.node_repair import NodeRepair
from sickbay.api.objectnames import hook_job_name, hook_key
from sickbay.api.repair_plan import PlanStep
from sickbay.api.repair_rule import Hook
from sickbay.api.repair_step import HookReport
from sickbay.api.words import ReportState
from sickbay.clock import Clock, parse_time, rfc3339
from sickbay.execute.hooks.call import Answer, Caller
from sickbay.execute.hooks.endpoints import Endpoint
from sickbay.execute.hooks.job import Jobs, Run
from sickbay.kube import errors
from sickbay.kube.client import Client

log = structlog.get_logger(__name__)

KEPT = 32
"""Reports kept per step; the oldest go first."""


@dataclass(frozen=True)
class Outside:
    """What hooks reach: endpoints by name, and how they are called."""

    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    namespace: str = "sickbay-system"
    """Where PodTemplates are, and Jobs run."""


class Hooks:
    """Lives for one term. `check` raises when we do not lead, `observe` takes in the record as written."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        outside: Outside,
        caller: Caller,
        check: Callable[[], None],
        observe: Callable[[NodeRepair], None],
    ) -> None:
        self._client, self._clock = client, clock
        self._endpoints = outside.endpoints
        self._jobs = Jobs(client, outside.namespace)
        self._caller = caller
        self._check, self._observe = check, observe

    async def look(self, repair: NodeRepair) -> float | None:
        """One look at the stage of the current step. Returns when to look again; None when all its hooks are over.

        `repair` was read just now, under a permit. Raises ApiError and NotLeading.
        """
        stage, now = repair.status.current.stage, self._clock.now()
        for hook in given.of_stage(_step(repair), stage):
            report = given.report_of(repair, stage, hook.name)
            if report is not None and report.state in given.FINAL:
                continue
            if report is None:
                repair = await self._write(repair, self._claim(repair, hook, now))
                report = given.report_of(repair, stage, hook.name)
                assert report is not None
            return await self._go_on(repair, hook, report)
        return None

    async def tidy(self, repair: NodeRepair) -> NodeRepair:
        """Stop what runs for a stage that is over (cancelled, overtaken)."""
        current = repair.status.current
        for step, status in repair.status.steps.items():
            for report in status.hooks:
                same = (step, report.stage, report.attempt) == (current.step, current.stage, current.attempt)
                if report.state in given.FINAL or (same and current.stage):
                    continue
                if report.job:
                    self._check()
                    await self._jobs.stop(report.job)
                ended = self._ended(report, ReportState.FAILED, "no longer wanted")
                repair = await self._write(repair, ended, step)
        return repair

    async def _go_on(self, repair: NodeRepair, hook: Hook, report: HookReport) -> float:
        began = parse_time(report.started) if report.started else self._clock.now()
        left = began + parse_duration(hook.timeout) - self._clock.now()
        if left <= timedelta(0):
            return await self._too_late(repair, hook, report)
        self._check()
        answer = await self._ask(repair, hook, report, left)
        if answer.done is not None:
            state = ReportState.DONE if answer.done else ReportState.FAILED
            await self._write(repair, self._ended(report, state, answer.message))
            return 0.05
        text = answer.message[:512]
        if (report.state, report.message) != (ReportState.IN_PROGRESS, text):
            running = msgspec.structs.replace(report, state=ReportState.IN_PROGRESS.value, message=text)
            await self._write(repair, running)
        return min(answer.again, max(0.1, left.total_seconds()))

    async def _too_late(self, repair: NodeRepair, hook: Hook, report: HookReport) -> float:
        if report.job:
            self._check()
            await self._jobs.stop(report.job)
        text = f"not done within {hook.timeout}" + (f"; last: {report.message}" if report.message else "")
        await self._write(repair, self._ended(report, ReportState.FAILED, text))
        return 0.05

    async def _ask(self, repair: NodeRepair, hook: Hook, report: HookReport, left: timedelta) -> Answer:
        key = _key(repair, hook.name)
        if hook.job is not None:
            seconds = int(left.total_seconds())
            return await self._jobs.look(Run(key, hook.job.pod_template, seconds, repair, facts(repair, hook, key)))
        name = hook.call.endpoint if hook.call is not None else ""
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            return Answer(False, f"the controller's configuration has no endpoint {name!r} (--hook-endpoints)")
        return await self._caller.ask(endpoint, key, body(repair, hook, key))

    def _claim(self, repair: NodeRepair, hook: Hook, now: datetime) -> HookReport:
        current = repair.status.current
        return HookReport(
            name=hook.name,
            stage=current.stage,
            attempt=current.attempt,
            plan_generation=repair.spec.plan.generation,
            state=ReportState.CLAIMED,
            started=rfc3339(now),
            job=hook_job_name(_key(repair, hook.name)) if hook.job is not None else "",
        )

    def _ended(self, report: HookReport, state: ReportState, message: str) -> HookReport:
        ended = rfc3339(self._clock.now())
        return msgspec.structs.replace(report, state=state.value, ended=ended, message=message[:512])

    async def _write(self, repair: NodeRepair, report: HookReport, step: str = "") -> NodeRepair:
        """Put the report into the record, conditional on the version that was read. Raises Conflict."""
        self._check()
        step = step or repair.status.current.step
        mine = (report.stage, report.name, report.attempt, report.plan_generation)
        others = [
            r
            for r in repair.status.step(step).hooks
            if (r.stage, r.name, r.attempt, r.plan_generation) != mine
        ]  # fmt: skip
        kept = [*others, report][-KEPT:]
        part: dict[str, Any] = {"hooks": msgspec.to_builtins(kept)}
        if repair.status.step(step).report.waits_for:
            part["report"] = {"waitsFor": None}
        body = {
            "metadata": {"resourceVersion": repair.metadata.resource_version, "uid": repair.metadata.uid},
            "status": {"steps": {step: part}},
        }
        try:
            written = await self._client.patch_merge(
                kinds.NODE_REPAIR, repair.metadata.name, body, subresource="status"
            )
        except errors.Conflict:
            log.debug("the record has changed meanwhile", repair=repair.metadata.name, hook=report.name)
            raise
        self._observe(written)
        return written


def _step(repair: NodeRepair) -> PlanStep:
    return repair.spec.plan.step(repair.status.current.step) or PlanStep(step=repair.status.current.step)


def _key(repair: NodeRepair, hook: str) -> str:
    current = repair.status.current
    return hook_key(repair.metadata.uid, current.step, current.attempt, current.stage, hook)


def facts(repair: NodeRepair, hook: Hook, key: str) -> dict[str, str]:
    """What a hook is told, by name."""
    spec, current = repair.spec, repair.status.current
    return {
        "HOOK": hook.name,
        "KEY": key,
        "STAGE": current.stage,
        "STEP": current.step,
        "ATTEMPT": str(current.attempt),
        "ACTION": current.action,
        "REPAIR": repair.metadata.name,
        "REPAIR_UID": repair.metadata.uid,
        "POOL": spec.pool.name,
        "NODE": spec.node.name,
        "NODE_UID": spec.node.uid,
        "PROVIDER_ID": spec.node.provider_id,
        "FAULTS": ",".join(fault.type for fault in spec.faults),
    }


def body(repair: NodeRepair, hook: Hook, key: str) -> dict[str, Any]:
    """The same as one JSON object, for an endpoint."""
    spec, current = repair.spec, repair.status.current
    return {
        "hook": hook.name,
        "key": key,
        "stage": current.stage,
        "step": current.step,
        "attempt": current.attempt,
        "action": current.action,
        "repair": {"name": repair.metadata.name, "uid": repair.metadata.uid, "pool": spec.pool.name},
        "node": {"name": spec.node.name, "uid": spec.node.uid, "providerID": spec.node.provider_id},
        "faults": [{"type": fault.type, "devices": fault.devices} for fault in spec.faults],
    }
