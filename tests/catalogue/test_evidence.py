"""What the built-in fault types are recognised by: states that somebody judges, never a number that only ever rises."""

from __future__ import annotations

import pytest

from sickbay.convert.alerts import Alert, asks_for
from sickbay.decide import catalogue
from sickbay.detect.gpus import GpuStatus

TYPES = catalogue.build().types


@pytest.mark.case("P191")
def test_no_alert_over_a_gauge_is_a_fault_by_itself() -> None:
    """DCGM keeps the last XID in a gauge for ever: an alert over it fires on, a week after the event."""
    matches = [m.alert for t in TYPES.values() for m in t.spec.match or () if m.alert is not None]
    fires = Alert(
        fingerprint="f", firing=True, starts="2027-02-22T08:00:00Z", summary="XID 45",
        labels={"alertname": "GpuXid", "__name__": "DCGM_FI_DEV_XID_ERRORS", "gpu": "4", "node": "node-78"},
    )  # fmt: skip
    assert not any(asks_for(match, fires) for match in matches)


@pytest.mark.case("P191")
def test_the_agent_takes_codes_from_the_events_and_asks_no_device_for_its_last_one() -> None:
    assert [name for name in GpuStatus.__annotations__ if "xid" in name.lower()] == []
