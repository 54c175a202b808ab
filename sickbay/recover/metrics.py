"""Metrics of the job loop."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from sickbay.api.job_recovery import JobRecovery
from sickbay.clock import parse_time

SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
"""Upper bounds of the histogram: from a restart in place to a wait for capacity."""


class RecoverMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.relandings = Counter(
            "sickbay_relandings", "Pods of a new attempt that landed on a suspect; must stay 0", registry=registry
        )
        self._verdicts = Counter(
            "sickbay_job_failures", "Failed attempts of jobs", ["kind", "verdict", "action"], registry=registry
        )
        self._released = Histogram(
            "sickbay_job_release_seconds", "From the failure seen to the new attempt let go", registry=registry,
            buckets=SECONDS,
        )  # fmt: skip

    def transition(self, before: JobRecovery, after: JobRecovery) -> None:
        """Count what a look has brought."""
        judged = {a.n for a in before.status.attempts if a.verdict}
        released = {a.n for a in before.status.attempts if a.times.queued}
        for attempt in after.status.attempts:
            times = attempt.times
            if attempt.verdict and attempt.n not in judged:
                self._verdicts.labels(after.spec.job.kind, attempt.verdict, attempt.action).inc()
            if times.queued and times.detected and attempt.n not in released:
                seconds = (parse_time(times.queued) - parse_time(times.detected)).total_seconds()
                self._released.observe(max(0.0, seconds))
