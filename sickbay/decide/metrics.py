"""Metrics of decide. Gauges are computed from the objects as they are, so no restart can make them lie.

They are told by the replica that leads, and by it alone, so that a sum over replicas counts nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from sickbay.api import names
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import BreakerState
from sickbay.clock import parse_time
from sickbay.decide.sources import Sources

HOUR, DAY = 3600, 86400
STEP_SECONDS = (
    1, 2, 5, 10, 15, 30, 45, 60, 75, 90, 120, 150, 180, 240, 300, 450, 600, 900, 1200, 1800, 2700,
    HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 16 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY,
)  # fmt: skip
"""Upper bounds of the histogram: from a cordon (a second) to hardware that comes after two weeks, the longest time of a
remedy. Each is at most 2.5 times the one before, and between half a minute and five, where most steps end, 1.5 times: a
quantile read from them is wrong by no more than that. The sum is exact."""


class DecideMetrics(Collector):
    """Counters of what decide has brought to an end, and gauges of what is."""

    def __init__(self, registry: CollectorRegistry, sources: Sources, leads: Callable[[], bool]) -> None:
        self._sources, self._leads = sources, leads
        self._repairs = Counter("sickbay_repairs", "Ended repairs by outcome", ["outcome"], registry=registry)
        self._steps = Histogram(
            "sickbay_repair_step_seconds", "Time from a step's start to its end", ["step"],
            buckets=STEP_SECONDS, registry=registry,
        )  # fmt: skip
        registry.register(self)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        quarantined = GaugeMetricFamily("sickbay_nodes_quarantined", "Nodes that carry our quarantine mark", labels=[])
        breakers = GaugeMetricFamily(
            "sickbay_breaker_open",
            "1 while the breaker of the pool is Open; half open and closed are 0",
            labels=["pool"],
        )
        if self._leads():
            quarantined.add_metric([], sum(names.QUARANTINE in n.annotations for n in self._sources.nodes.all()))
            for pool in self._sources.pools.all():
                breakers.add_metric([pool.metadata.name], float(pool.status.breaker.state == BreakerState.OPEN))
        yield quarantined
        yield breakers

    def transition(self, before: NodeRepair, after: NodeRepair) -> None:
        """Count what a look has brought to an end."""
        if after.ended and not before.ended:
            self._repairs.labels(after.status.outcome or "none").inc()
        for name, step in after.status.steps.items():
            if step.finished and step.started and before.status.step(name).finished != step.finished:
                self._steps.labels(name).observe((parse_time(step.finished) - parse_time(step.started)).total_seconds())
