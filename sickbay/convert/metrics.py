"""Metrics of convert. Gauges are computed from the objects as they are at the moment of the scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from sickbay.convert.sources import Sources

if TYPE_CHECKING:
    from sickbay.convert.watching import AgentWatch

KUBERNETES = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
"""Conditions of the kubelet, which has gauges of its own elsewhere."""


class ConvertMetrics(Collector):
    """`sickbay_node_condition` counts nodes by condition type, status and reason: the type is the key, the reason is
    detail, and a condition that has cleared is gone from the count at the next scrape."""

    def __init__(self, registry: CollectorRegistry, sources: Sources, watch: AgentWatch) -> None:
        self._sources = sources
        silent = Gauge("sickbay_agents_silent", "Agents without a sign of life", registry=registry)
        silent.set_function(lambda: len(watch.silent))
        registry.register(self)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield self._conditions()
        yield self._infra()

    def _conditions(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily(
            "sickbay_node_condition", "Nodes with a condition that is True or Unknown",
            labels=["type", "status", "reason"],
        )  # fmt: skip
        seen = Counter(
            (c.type, c.status, c.reason)
            for node in self._sources.nodes.all()
            for c in node.conditions
            if c.status != "False" and c.type not in KUBERNETES
        )
        for key, count in sorted(seen.items()):
            family.add_metric(key, count)
        return family

    def _infra(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily(
            "sickbay_infra_events", "InfraEvents by source and phase", labels=["source", "phase"]
        )  # fmt: skip
        seen = Counter((event.spec.source, event.status.phase) for event in self._sources.infra.all())
        for key, count in sorted(seen.items()):
            family.add_metric(key, count)
        return family
