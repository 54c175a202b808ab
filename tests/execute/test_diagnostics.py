"""Diagnostics within Validate: which answers confirm a node, which condemn it, and which do neither."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.providers.base import ActState, Ambiguous, Observation, Permanent, Transient
from tests.execute.kit import Bench

CLEARED = [{"type": "test.fault", "clearedAt": "2027-03-01T07:00:00Z"}]
PASS = Observation(ActState.DONE, "done", {"result": "pass"})
FAIL = Observation(ActState.DONE, "bandwidth", {"result": "fail"})
BROKE = Observation(ActState.FAILED, "no such command")
ABSENT = Observation(ActState.ABSENT)
PENDING = Observation(ActState.RUNNING, "0/1 nodes: Insufficient nvidia.com/gpu", begun=False)


def opened(level: str = "2", timeout: float = 3600, does: tuple[str, ...] = ("Diagnose",), **args: str) -> Bench:
    bench = Bench()
    bench.backend.does = does
    current = {"args": {"soak": "2m", "level": level, **args}}
    bench.open("Validate", timeout=timeout, faults=CLEARED, current=current)
    return bench


def answers(bench: Bench, *observations: Any) -> None:
    bench.backend.observations = list(observations)


async def test_without_a_level_nothing_is_asked() -> None:
    bench = opened("0")
    assert (await bench.shift().to_end())["state"] == "Done"
    assert bench.backend.looks == bench.backend.acts == []


async def test_a_pass_and_the_soak_confirm_the_node() -> None:
    bench = opened()
    answers(bench, ABSENT, PASS)
    report = await bench.shift().to_end()
    assert report["state"] == "Done"
    assert report["proof"]["diagnosed"] == "2@boot-1"
    (act,) = bench.backend.acts
    assert act.args == {"level": "2"}
    assert act.key.endswith("/Validate/1")
    assert bench.clock.monotonic() >= 120


async def test_further_checks_go_along() -> None:
    bench = opened("0", checks="nccl")
    answers(bench, ABSENT, PASS)
    assert (await bench.shift().to_end())["state"] == "Done"
    assert bench.backend.acts[0].args["checks"] == "nccl"


async def test_a_failure_is_the_end() -> None:
    bench = opened()
    answers(bench, ABSENT, FAIL)
    report = await bench.shift().to_end()
    assert (report["state"], "bandwidth" in report["message"]) == ("Failed", True)


@pytest.mark.parametrize(
    "answer", [BROKE, Observation(ActState.DONE, "says so"), Observation(ActState.DONE, "x", {"result": "skipped"})]
)
@pytest.mark.case("P132")
async def test_what_found_nothing_is_tried_again_and_never_passes(answer: Observation) -> None:
    bench = opened()
    answers(bench, *([ABSENT, answer] * 3))
    report = await bench.shift().to_end()
    assert report["state"] == "Unknown"
    assert report["message"].startswith("not confirmed")
    assert [key.partition("/")[2] for key in bench.backend.sent] == ["Validate/1", "Validate.2/1", "Validate.3/1"]


async def test_a_later_try_may_pass() -> None:
    bench = opened()
    answers(bench, ABSENT, BROKE, ABSENT, PASS)
    assert (await bench.shift().to_end())["state"] == "Done"


@pytest.mark.case("P133")
async def test_what_nobody_begins_is_given_up_with_the_reason() -> None:
    bench = opened()
    answers(bench, *([ABSENT, *[PENDING] * 31] * 3))
    report = await bench.shift().to_end()
    assert report["state"] == "Unknown"
    assert "not begun within 5m: 0/1 nodes: Insufficient nvidia.com/gpu" in report["message"]


async def test_the_ceiling_ends_it_unconfirmed() -> None:
    bench = opened(timeout=600)
    answers(bench, ABSENT)  # from then on it runs
    report = await bench.shift().to_end()
    assert report["state"] == "Unknown"
    assert 600 <= bench.clock.monotonic() <= 615


async def test_no_back_end_for_it_is_unconfirmed_too() -> None:
    bench = opened(timeout=300, does=("RebootNode",))
    report = await bench.shift().to_end()
    assert (report["state"], "cannot be run" in report["message"]) == ("Unknown", True)


@pytest.mark.parametrize("error", [Permanent("refused"), Transient("busy")])
async def test_a_refusal_is_a_try_that_found_nothing(error: Exception) -> None:
    bench = opened()
    bench.backend.submits = [error]
    answers(bench, ABSENT, ABSENT, PASS)
    assert (await bench.shift().to_end())["state"] == "Done"
    assert len(bench.backend.sent) == 2


async def test_a_lost_answer_is_looked_up_under_its_key() -> None:
    bench = opened()
    bench.backend.submits = [Ambiguous("lost")]
    answers(bench, ABSENT, PASS)
    assert (await bench.shift().to_end())["state"] == "Done"
    assert len(bench.backend.sent) == 1


async def test_a_pass_does_not_outlive_the_boot_it_was_made_in() -> None:
    bench = opened()
    answers(bench, ABSENT, PASS, ABSENT, PASS)
    shift = bench.shift()
    await shift.looks(lambda: "diagnosed" in (bench.report.get("proof") or {}))
    bench.boots("boot-2")
    await shift.to_end()
    assert bench.report["proof"]["diagnosed"] == "2@boot-2"


async def test_another_leader_goes_on_with_the_same_run() -> None:
    bench = opened()
    answers(bench, ABSENT, Observation(ActState.RUNNING, "under way"))
    first = bench.shift()
    await first.look()
    await first.look()
    answers(bench, PASS)
    assert (await bench.shift().to_end())["state"] == "Done"
    assert len(bench.backend.sent) == 1
