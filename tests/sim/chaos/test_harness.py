"""The harness itself: seeds replay, worlds are valid and varied, the tail finds what does not settle."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sickbay.decide.controller import DecideController
from sickbay.sim.chaos.plan import draw, text_of
from sickbay.sim.chaos.run import run
from sickbay.sim.scenario.injections import INJECTIONS
from sickbay.sim.scenario.spec import read

ODD_ONES = {"diagnostics", "evict", "progress", "podStall", "podLog", "start", "stop", "cloudEvent"}
"""Injections that no drawn world needs: what they do comes about by others."""


def test_a_seed_gives_the_same_run_again():
    first, second = run(draw(11)), run(draw(11))
    assert first.trace == second.trace
    assert first.writes == second.writes > 20


@pytest.mark.slow
def test_a_seed_gives_the_same_run_in_any_process():
    script = (
        "from sickbay.sim.chaos.plan import draw; from sickbay.sim.chaos.run import run; print(run(draw(14)).trace)"
    )
    traces = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(traces) == 1


def test_another_seed_gives_another_world():
    assert draw(1).document != draw(2).document


@pytest.mark.slow
def test_what_is_drawn_can_be_read_as_a_scenario_file_and_misses_no_injection():
    drawn: set[str] = set()
    for seed in range(60):
        drawing = draw(seed)
        (again,) = read("again", text_of(drawing.document))
        assert [entry.do for entry in again.timeline] == [entry.do for entry in drawing.scenario.timeline]
        drawn |= {entry.do for entry in again.timeline}
    # People's answers are no entries: they follow the questions.
    assert set(INJECTIONS) - drawn - {"approve", "deny"} <= ODD_ONES


@pytest.mark.slow
def test_worlds_differ_in_all_that_matters():
    documents = [draw(seed).document["spec"] for seed in range(60)]
    assert {spec["replicas"] for spec in documents} == {1, 2}
    assert {part for spec in documents for part in spec["components"]} >= {"agent", "decide", "execute", "recover"}
    crashes = [e for spec in documents for e in spec["timeline"] if e["do"] == "crash"]
    assert {key for crash in crashes for key in crash} >= {"onWrite", "onRequest", "onCall"}
    assert {crash.get("phase") for crash in crashes} == {None, "before", "lost", "after"}
    gates = [s["approval"] for spec in documents for o in spec["objects"] if o["kind"] == "RepairRule"
             for entry in o["spec"]["rules"] for s in entry["procedure"] if "approval" in s]  # fmt: skip
    assert {gate["by"] for gate in gates} == {"People", "Jobs", "PeopleAndJobs"}
    assert {gate["onTimeout"] for gate in gates} == {"Escalate", "Skip", "Abort"}


@pytest.mark.slow
def test_what_never_settles_is_a_finding(monkeypatch):
    """Decide stops looking after two minutes: what runs then runs for ever."""
    usual = DecideController._reconcile

    async def tired(self, key):
        return await usual(self, key) if self._clock.monotonic() < 120 else None

    monkeypatch.setattr(DecideController, "_reconcile", tired)
    monkeypatch.setattr("sickbay.sim.chaos.run.QUIET_MOST", 1800.0)
    texts = [finding.text for finding in run(draw(1)).findings]
    assert any("does not settle" in text for text in texts)
    assert any("beyond its deadline" in text for text in texts)
