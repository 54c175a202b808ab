"""What `sickbay check` says of domains and cards that could never work."""

from __future__ import annotations

import pytest

from sickbay.decide import lintdomains
from tests.decide.made import catalogue, fault_type, pool, typed

RACK = "sickbay.dev/rack"
KNOWN = catalogue(
    fault_type("test.rack", scope="Domain", domain=RACK, remedy=["RecoverDomain"], clears_by="condition"),
    fault_type("test.card", scope="Device", isolateDevice=True),
)


@pytest.mark.parametrize(
    ("spec", "path", "words", "error"),
    [
        pytest.param({"maxUnavailable": 4, "domains": [{"key": RACK, "size": 18}]}, "spec.domains[0].size",
                     "a group of 18 can never fit into maxUnavailable 4", True, id="a-group-above-the-pools-limit"),
        pytest.param({"maxUnavailable": 4, "domains": [{"key": RACK, "size": 18, "minUsable": 16}]},
                     "spec.domains[0].size", "can never fit", False, id="where-groups-are-rare-a-warning"),
        pytest.param({"maxUnavailable": 4, "domains": [{"key": "zone", "maxUnavailable": 4}]},
                     "spec.domains[0].maxUnavailable", "4 can never bind", False, id="above-the-pools-limit"),
        pytest.param({"domains": [{"key": "zone", "size": 4, "maxUnavailable": 4}]},
                     "spec.domains[0].maxUnavailable", "4 can never bind", False, id="as-many-as-there-are"),
        pytest.param({"domains": [{"key": RACK, "size": 18, "maxUnavailable": 2}]},
                     "spec.domains[0].maxUnavailable", "a group for test.rack can never", False, id="below-a-group"),
        pytest.param({"deviceIsolation": {"faults": ["test.typo"]}}, "spec.deviceIsolation.faults[0]",
                     "no fault type", False, id="a-fault-nobody-knows"),
        pytest.param({"deviceIsolation": {"faults": ["test.reboot"]}}, "spec.deviceIsolation.faults[0]",
                     "does not say isolateDevice", False, id="a-fault-that-isolates-nothing"),
    ],
)  # fmt: skip
def test_what_can_never_work_is_named_where_it_stands(spec, path, words, error):
    assert [(e, p) for e, p, text in lintdomains.pool(pool(**spec), KNOWN) if words in text] == [(error, path)]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="nothing-said"),
        pytest.param(
            {"maxUnavailable": 18, "domains": [{"key": RACK, "size": 18, "minUsable": 16}]}, id="a-group-fits"
        ),
        pytest.param({"domains": [{"key": "zone", "maxUnavailable": "10%", "pacing": "Pack"}]}, id="a-share"),
        pytest.param({"deviceIsolation": {"faults": ["test.card"]}}, id="a-card"),
    ],
)
def test_what_works_is_not_mentioned(spec):
    assert list(lintdomains.pool(pool(**spec), KNOWN)) == []


def test_a_domains_remedy_on_a_nodes_fault_is_named():
    (said,) = lintdomains.fault_type(typed(fault_type(remedy=["RecoverDomain", "RebootNode"])))
    assert "RecoverDomain takes a whole domain down" in said[2]
    assert not list(lintdomains.fault_type(KNOWN.types["test.rack"]))
