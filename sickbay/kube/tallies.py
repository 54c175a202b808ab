"""Counters and histograms for what is counted tens of thousands of times in one go.

Those of prometheus_client take a lock for each count. Here counts are plain numbers of one event loop, and are put
together when somebody reads the registry. The interface is theirs, as far as it is used: `labels(...)`, then `inc` or
`observe`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector


class Count:
    """One series of a counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:
        self.value += amount


class Counts(Collector):
    """A counter with labels."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str], registry: CollectorRegistry) -> None:
        self._name, self._documentation, self._labels = name, documentation, labels
        self._series: dict[tuple[str, ...], Count] = {}
        registry.register(self)

    def labels(self, *values: str) -> Count:
        return self._series.setdefault(values, Count())

    def describe(self) -> Iterable[Metric]:
        return [CounterMetricFamily(self._name, self._documentation, labels=self._labels)]

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, count in list(self._series.items()):
            family.add_metric(values, count.value)
        return [family]


class Spread:
    """One series of a histogram. `bounds` are the upper bounds of its buckets; what lies above counts too."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Spreads(Collector):
    """A histogram with labels."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        registry: CollectorRegistry,
        buckets: Sequence[float],
    ) -> None:
        self._name, self._documentation, self._labels = name, documentation, labels
        self._bounds = tuple(buckets)
        self._words = [*(str(float(bound)) for bound in buckets), "+Inf"]
        self._series: dict[tuple[str, ...], Spread] = {}
        registry.register(self)

    def labels(self, *values: str) -> Spread:
        return self._series.setdefault(values, Spread(self._bounds))

    def describe(self) -> Iterable[Metric]:
        return [HistogramMetricFamily(self._name, self._documentation, labels=self._labels)]

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, spread in list(self._series.items()):
            buckets = list(zip(self._words, map(float, accumulate(spread.counts)), strict=True))
            family.add_metric(values, buckets, spread.total)
        return [family]
