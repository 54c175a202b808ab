"""Which service is restarted where the ladder does not say."""

from __future__ import annotations

import pytest

from sickbay.api.fault_type import Rung
from sickbay.decide.servicename import arguments
from tests.decide.made import fault_type, typed


def reading(name: str, *conditions: str):
    return typed(fault_type(name, match=[{"condition": {"type": c, "status": "True"}} for c in conditions]))


@pytest.mark.parametrize(
    ("fault", "service"),
    [
        pytest.param(
            reading("service.containerd", "ContainerRuntimeUnavailable"), "containerd", id="a-built-in-ladder"
        ),
        pytest.param(reading("site.runtime", "ContainerRuntimeUnhealthy"), "containerd", id="a-condition-it-reads"),
        pytest.param(reading("site.strange", "SiteStrange"), "kubelet", id="anything-else"),
        pytest.param(None, "kubelet", id="by-hand"),
    ],
)
def test_the_service_is_that_of_the_built_in_entry_and_otherwise_the_kubelet(fault, service):
    assert arguments(Rung(action="RestartService"), fault) == {"service": service}


def test_what_a_rung_says_itself_holds():
    assert arguments(Rung(action="RestartService", args={"service": "acmed"}), None) == {"service": "acmed"}
    assert arguments(Rung(action="RebootNode"), None) == {}
