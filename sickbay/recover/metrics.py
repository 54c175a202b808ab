"""Metrics of the job loop."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from sickbay.api.job_recovery import JobRecovery
from sickbay.clock import parse_time

SECONDS = (
    1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 57600, 86400,
)  # fmt: skip
"""Upper bounds of the histogram: from a restart in place to a wait of a day for capacity. Each is at most twice the one
before: a quantile read from them is wrong by no more than that. The sum is exact."""


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
