"""A service is bad when two looks say so or it restarts again and again; what is not in use is not watched."""

from __future__ import annotations

import pytest

from sickbay.detect.systemd import read_show
from sickbay.detect.units import ITEMS, Service, ServiceJudge


def run(states: list[Service], unit: str = "kubelet", nvswitch: bool = True) -> list[bool | None]:
    """What each look says of the service: bad, well, or nothing."""
    judge, out = ServiceJudge(nvswitch), list[bool | None]()
    for number, service in enumerate(states):
        judged = judge.judge({unit: service}, number * 30.0)
        out.append(judged[0].bad if judged else None)
    return out


UP, DOWN, GONE = Service(works=True, state="active"), Service(works=False, state="failed"), Service()


def restarts(*counts: int) -> list[Service]:
    return [Service(works=True, state="active", restarts=count) for count in counts]


@pytest.mark.parametrize(
    ("states", "says"),
    [
        pytest.param([UP, UP], [False, False], id="well"),
        pytest.param([UP, DOWN, UP], [False, None, False], id="a restart was met"),
        pytest.param([DOWN, DOWN, DOWN, UP], [None, True, True, False], id="down, then up"),
        pytest.param([DOWN, GONE, DOWN], [None, None, None], id="a look that saw nothing confirms nothing"),
        pytest.param(restarts(0, 1, 2, 3, 3), [False, False, False, True, True], id="crash loop"),
        pytest.param(restarts(3, 3, 3), [False, False, False], id="old restarts"),
        pytest.param(restarts(9, 0, 1, 2), [False, False, False, False], id="started by hand"),
    ],
)
def test_what_looks_amount_to(states: list[Service], says: list[bool | None]) -> None:
    assert run(states) == says


def test_a_crash_loop_that_has_ended_is_over_after_five_minutes() -> None:
    assert run(restarts(0, 3, *[3] * 12))[-1] is False


def test_the_fabric_manager_matters_only_where_there_is_a_switch() -> None:
    assert run([DOWN, DOWN], "nvidia-fabricmanager") == [None, True]
    assert run([DOWN, DOWN], "nvidia-fabricmanager", nvswitch=False) == [None, None]


def test_an_unknown_unit_says_nothing() -> None:
    assert run([DOWN, DOWN], "chronyd") == [None, None]


def block(**facts: str) -> str:
    known = {"Id": "kubelet.service", "LoadState": "loaded", "UnitFileState": "enabled", "ActiveState": "active"}
    return "\n".join(
        f"{key}={value}" for key, value in (known | {"SubState": "running", "NRestarts": "2"} | facts).items()
    )


@pytest.mark.parametrize(
    ("facts", "works"),
    [
        pytest.param({}, True, id="active"),
        pytest.param({"ActiveState": "reloading"}, True, id="reloading"),
        pytest.param({"ActiveState": "failed"}, False, id="failed"),
        pytest.param({"ActiveState": "activating", "SubState": "auto-restart"}, False, id="about to restart"),
        pytest.param({"ActiveState": "inactive"}, False, id="enabled and stopped"),
        pytest.param({"ActiveState": "inactive", "UnitFileState": "disabled"}, None, id="not in use"),
        pytest.param({"LoadState": "not-found", "ActiveState": "inactive", "UnitFileState": ""}, None, id="not there"),
        pytest.param({"LoadState": "masked", "ActiveState": "failed"}, None, id="masked"),
    ],
)
def test_the_words_of_systemd(facts: dict[str, str], works: bool | None) -> None:
    assert read_show(block(**facts))["kubelet"].works is works


def test_units_are_told_apart() -> None:
    text = f"{block()}\n\n{block(Id='containerd.service', ActiveState='failed', SubState='failed')}\n"
    found = read_show(text)
    assert (found["kubelet"].works, found["kubelet"].restarts) == (True, 2)
    assert (found["containerd"].works, found["containerd"].state) == (False, "failed (failed)")


@pytest.mark.parametrize("text", ["", "\n\n", "rubbish", "Id=", "Id=x.service\nNRestarts=[not set]"])
def test_odd_output_is_no_fault(text: str) -> None:
    assert all(service.works is None for service in read_show(text).values())


def test_every_watched_service_is_in_the_catalogue() -> None:
    from sickbay.detect.items import items

    assert set(ITEMS.values()) <= set(items())
