"""Counters and histograms of our own are read as those of prometheus_client are."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from sickbay.kube.tallies import Counts, Spreads

BOUNDS = (0.1, 1.0, 5.0)


def shown(registry: CollectorRegistry) -> list[str]:
    """What a scrape gets; when a series began aside, which only prometheus_client tells."""
    lines = generate_latest(registry).decode().splitlines()
    return [line for line in lines if "_created" not in line]


def test_a_counter_reads_as_usual() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    for counter in (
        Counts("sickbay_things", "Things", ["kind", "code"], ours),
        Counter("sickbay_things", "Things", ["kind", "code"], registry=theirs),
    ):
        counter.labels("a", "200").inc()
        counter.labels("a", "200").inc(2)
        counter.labels("b", "0")
    assert shown(ours) == shown(theirs)
    assert ours.get_sample_value("sickbay_things_total", {"kind": "a", "code": "200"}) == 3


@pytest.mark.parametrize("values", [(), (0.05,), (0.1, 1.0, 5.0), (0.3, 7.0, 100.0, 0.0)], ids=str)
def test_a_histogram_reads_as_usual(values: tuple[float, ...]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    for histogram in (
        Spreads("sickbay_wait_seconds", "Waits", ["queue"], ours, BOUNDS),
        Histogram("sickbay_wait_seconds", "Waits", ["queue"], registry=theirs, buckets=BOUNDS),
    ):
        series = histogram.labels("decide")
        for value in values:
            series.observe(value)
    assert shown(ours) == shown(theirs)


def test_a_name_is_registered_once() -> None:
    registry = CollectorRegistry()
    Counts("sickbay_things", "Things", [], registry)
    with pytest.raises(ValueError, match="sickbay_things"):
        Counts("sickbay_things", "Things", [], registry)
