"""Conditions from InfraEvents: what an event causes, and what ends it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sickbay.api.core import Node
from sickbay.api.infra_event import InfraEvent
from sickbay.convert import announced
from sickbay.convert.folding import missing
from sickbay.convert.wanted import changes
from tests.convert.made import at, event, node, stamp


def made(*phases: str, id_: str = "e-1", **more: Any) -> InfraEvent:
    found = event(*phases, id_=id_, **more)
    assert found is not None
    return found


def says(seen: Node, *events: InfraEvent, now: float = 600) -> dict[str, tuple[str, str]]:
    return {w.type: (w.status, w.reason) for w in announced.conditions(seen, events, at(now))}


AZURE_REBOOT = {"source": "azure", "type_": "Reboot"}


@pytest.mark.parametrize(
    ("phases", "status"),
    [
        (["Inquiring"], ("True", "Inquiring")),
        (["Scheduled"], ("True", "Scheduled")),
        (["Scheduled", "Executing"], ("True", "Executing")),
        (["Scheduled", "Executed"], ("False", "Completed")),
        (["Scheduled", "Avoided"], ("False", "Avoided")),
        (["Scheduled", "Canceled"], ("False", "Cancelled")),
        (["Scheduled", "Failed"], ("True", "Failed")),
        (["Scheduled", "Pondering"], ("True", "Scheduled")),
        (["Pondering"], ("False", "Answered")),
    ],
)
def test_what_a_phase_says_about_the_node(phases: list[str], status: tuple[str, str]) -> None:
    assert says(node(), made(*phases)) == {"InfraReboot": status}


@pytest.mark.case("P036")
def test_the_end_of_an_event_releases_what_it_caused_and_nothing_else() -> None:
    over, other = made("Scheduled", "Canceled"), made("Scheduled", id_="e-2")
    disk = made("Inquiring", id_="e-3", type_="SystemMaintenance.IsolateErrorDisk")
    assert says(node(), over, other, disk) == {
        "InfraReboot": ("True", "Scheduled"),
        "InfraDiskRepair": ("True", "Inquiring"),
    }
    assert says(node(), over, made("Scheduled", "Avoided", id_="e-2"), disk)["InfraReboot"] == ("False", "Avoided")


@pytest.mark.case("P046")
def test_a_freeze_and_a_terminate_are_two_conditions() -> None:
    freeze = made("Scheduled", source="azure", type_="Freeze", id_="A7")
    terminate = made("Scheduled", source="azure", type_="Terminate", id_="A8")
    assert says(node(), freeze, terminate) == {
        "InfraFreeze": ("True", "Scheduled"),
        "InfraTerminate": ("True", "Scheduled"),
    }


def test_an_event_of_another_node_of_the_same_name_says_nothing() -> None:
    """kubernetes/kubernetes#141365: the new node inherits the state of the old."""
    assert says(node(uid="u-2"), made("Executing")) == {}


def test_billing_and_unknown_types_are_no_conditions() -> None:
    assert says(node(), made("Scheduled", type_="AccountUnbalanced.Stop")) == {}
    assert says(node(), made("Scheduled", type_="SystemMaintenance.Levitate")) == {}


@pytest.mark.parametrize(
    ("phases", "not_before", "boot", "status"),
    [
        pytest.param(["Executing"], None, "b-2", "False", id="booted while it ran"),
        pytest.param(["Scheduled"], 300, "b-2", "False", id="booted, and its time has come"),
        pytest.param(["Scheduled"], 90000, "b-2", "True", id="booted by chance, days before"),
        pytest.param(["Executing"], None, "b-1", "True", id="not booted"),
        pytest.param(["Executing"], None, "", "True", id="boot not known"),
    ],
)
def test_a_boot_answers_an_event_whose_time_has_come(
    phases: list[str], not_before: int | None, boot: str, status: str
) -> None:
    """GKE goes on saying ONGOING for 3.5 h after the node is back (cloud-events 8.3)."""
    listed = made(*phases, not_before=stamp(not_before) if not_before is not None else None)
    assert says(node(boot=boot), listed)["InfraReboot"][0] == status
    assert says(node(boot=boot, ready="Unknown"), listed)["InfraReboot"][0] == "True"


@pytest.mark.parametrize(
    ("more", "not_before", "boot", "status"),
    [
        pytest.param({"source": "azure", "type_": "Freeze"}, None, "b-1", "False", id="a freeze leaves nothing"),
        pytest.param(AZURE_REBOOT, 5000, "b-1", "False", id="withdrawn before its time"),
        pytest.param(AZURE_REBOOT, 100, "b-1", "Unknown", id="its time had come, and no boot was seen"),
        pytest.param(AZURE_REBOOT, 100, "b-2", "False", id="booted since"),
        pytest.param(AZURE_REBOOT, None, "b-1", "Unknown", id="no time known"),
        pytest.param({}, 5000, "b-1", "Unknown", id="a provider that says the end did not say it"),
        pytest.param({}, 5000, "b-2", "False", id="that too is over after a boot"),
    ],
)
def test_what_is_left_of_an_event_that_vanished(
    more: dict[str, Any], not_before: int | None, boot: str, status: str
) -> None:
    listed = made("Scheduled", not_before=stamp(not_before) if not_before is not None else None, **more)
    (found,) = says(node(boot=boot), missing(listed, at(300))).values()
    assert found[0] == status


def test_a_condition_without_any_event_is_released() -> None:
    assert says(node(conditions={"InfraReboot": ("True", "Scheduled")})) == {"InfraReboot": ("False", "NoEvent")}


def test_conditions_that_never_were_bad_are_not_made_and_repetition_writes_nothing() -> None:
    over = announced.conditions(node(), [made("Scheduled", "Canceled")], at(600))
    assert changes(node(), over, stamp(0)) == []
    wanted = announced.conditions(node(), [made("Scheduled")], at(600))
    (first,) = changes(node(), wanted, stamp(0))
    standing = msgspec.structs.replace(
        node(), status=msgspec.structs.replace(node().status, conditions=[*node().conditions, first])
    )
    assert changes(standing, wanted, stamp(60)) == []


def test_the_date_stands_in_the_message() -> None:
    (wanted,) = announced.conditions(node(), [made("Scheduled", not_before=stamp(7200))], at(0))
    assert f"not before {stamp(7200)}" in wanted.message
