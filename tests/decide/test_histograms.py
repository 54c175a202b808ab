"""Our histograms keep exact sums, and their buckets fit what they measure."""

from __future__ import annotations

from itertools import pairwise

import pytest
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.utils import floatToGoString

from sickbay.api.actions import ACTIONS
from sickbay.decide import metrics as decide_metrics
from sickbay.kube import metrics as kube_metrics
from sickbay.recover import metrics as recover_metrics

LIMITS = {
    "steps": (decide_metrics.STEP_SECONDS, 2.5, max(a.timeout for a in ACTIONS.values()).total_seconds()),
    "releases of jobs": (recover_metrics.SECONDS, 2.0, 86400.0),
    "requests": (kube_metrics._SECONDS, 4.0, 60.0),
}
"""Upper bounds, the largest ratio of two neighbours, and the longest that is measured."""


@pytest.mark.case("P198")
@pytest.mark.parametrize("what", LIMITS)
def test_neighbouring_limits_are_close_and_the_last_one_bears_the_longest(what: str) -> None:
    limits, ratio, longest = LIMITS[what]
    assert all(later / sooner <= ratio for sooner, later in pairwise(limits))
    assert limits[-1] >= longest


@pytest.mark.case("P198")
@pytest.mark.parametrize("seconds", [70.6, 0.4, 3661.25, 13.5 * 86400])
def test_the_mean_is_exact_and_the_bucket_around_it_narrow(seconds: float) -> None:
    registry = CollectorRegistry()
    histogram = Histogram("sickbay_test_seconds", "", registry=registry, buckets=decide_metrics.STEP_SECONDS)
    histogram.observe(seconds)
    read = registry.get_sample_value
    assert (read("sickbay_test_seconds_sum"), read("sickbay_test_seconds_count")) == (seconds, 1.0)
    above = next(limit for limit in decide_metrics.STEP_SECONDS if limit >= seconds)
    below = max((limit for limit in decide_metrics.STEP_SECONDS if limit < seconds), default=0)
    assert read("sickbay_test_seconds_bucket", {"le": floatToGoString(above)}) == 1.0
    assert not below or above / below <= (1.5 if 30 <= seconds <= 300 else 2.5)
