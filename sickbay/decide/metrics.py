"""Metrics of decide. Gauges are computed from the objects as they are, so no restart can make them lie."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sickbay.api import names
from sickbay.api.node_repair import NodeRepair
from sickbay.clock import parse_time
from sickbay.decide.sources import Sources

STEP_SECONDS = (1, 5, 15, 60, 180, 600, 1800, 3600, 6 * 3600, 24 * 3600)
"""Upper bounds of the histogram: from a cordon (a second) to an approval overnight."""


class DecideMetrics:
    def __init__(self, registry: CollectorRegistry, sources: Sources) -> None:
        self._repairs = Counter("sickbay_repairs", "Ended repairs by outcome", ["outcome"], registry=registry)
        self._steps = Histogram(
            "sickbay_repair_step_seconds", "Time from a step's start to its end", ["step"],
            buckets=STEP_SECONDS, registry=registry,
        )  # fmt: skip
        quarantined = Gauge("sickbay_nodes_quarantined", "Nodes that carry our quarantine mark", registry=registry)
        quarantined.set_function(lambda: sum(names.QUARANTINE in n.annotations for n in sources.nodes.all()))

    def transition(self, before: NodeRepair, after: NodeRepair) -> None:
        """Count what a look has brought to an end."""
        if after.ended and not before.ended:
            self._repairs.labels(after.status.outcome or "none").inc()
        for name, step in after.status.steps.items():
            if step.finished and step.started and before.status.step(name).finished != step.finished:
                self._steps.labels(name).observe((parse_time(step.finished) - parse_time(step.started)).total_seconds())
