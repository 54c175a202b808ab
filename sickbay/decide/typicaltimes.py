"""How long the steps of a repair take: measured where there are records, otherwise as published.

A forecast needs durations that no record of Observe has. The median of the cluster's own repairs is the best there is;
where fewer than `ENOUGH` have been done, the values here stand in, and whoever shows the forecast says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import median

from sickbay.api.actions import ACTIONS
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import Step, StepState
from sickbay.clock import parse_time

ENOUGH = 3
"""Records below which a median says nothing."""
ANSWER = timedelta(minutes=30)
"""A person answers a question during working hours; an assumption, and set by the user."""


def _minutes(n: float) -> timedelta:
    return timedelta(minutes=n)


STEPS: dict[str, timedelta] = {
    Step.QUARANTINE: timedelta(seconds=1),
    Step.DRAIN: _minutes(5),
    Step.UNQUARANTINE: timedelta(seconds=1),
}
"""A cordon is one write. Five minutes cover a drain that no budget blocks; its deadline is 30m."""
ACTS: dict[str, timedelta] = {
    "None": timedelta(0),
    "RestartApplication": _minutes(2),
    "SetDeviceConfig": _minutes(1),
    "RestartService": _minutes(1),
    "RestartDevicePlugin": _minutes(1),
    "ResetGPU": _minutes(2),
    "ResetFabric": _minutes(5),
    "RebootNode": _minutes(10),
    "PowerCycle": _minutes(15),
    "RecoverDomain": _minutes(30),
    "Custom": _minutes(15),
    "ReprovisionNode": _minutes(60),
    "RedeployNode": _minutes(30),
    "RepairHardware": timedelta(days=1),
    "ContactSupport": timedelta(days=1),
    "ReplaceNode": timedelta(hours=4),
}
"""Published: a reboot takes 1-3 minutes in a virtual machine and about 30 on bare metal, a tray 1-4 hours to change.
A day for hardware is an assumption: what is known are waits for parts from hours to weeks."""


@dataclass(frozen=True)
class Times:
    """Durations by step, by act, and of a person's answer."""

    steps: Mapping[str, timedelta] = field(default_factory=lambda: dict(STEPS))
    acts: Mapping[str, timedelta] = field(default_factory=lambda: dict(ACTS))
    answer: timedelta = ANSWER
    measured: frozenset[str] = frozenset()
    """Steps and acts whose duration is the median of records."""

    def act(self, name: str) -> timedelta:
        return self.acts.get(name, _minutes(15))

    def validate(self, soak: timedelta) -> timedelta:
        """The checks hold from the start, so that the soak is what is waited for."""
        return soak + _minutes(1)


def typical(repairs: Iterable[NodeRepair], answer: timedelta, given: Mapping[str, timedelta]) -> Times:
    """Medians of what was carried out, below what the user has given, over what is published."""
    steps: dict[str, list[float]] = {}
    acts: dict[str, list[float]] = {}
    for repair in repairs:
        for name, status in repair.status.steps.items():
            if name in STEPS and status.state == StepState.DONE and status.started and status.finished:
                steps.setdefault(name, []).append(_seconds(status.started, status.finished))
        for attempt in repair.status.step(Step.REPAIR).attempts:
            if attempt.state == StepState.DONE and attempt.started and attempt.ended:
                acts.setdefault(attempt.action, []).append(_seconds(attempt.started, attempt.ended))
    known_steps, known_acts = _medians(steps), {k: v for k, v in _medians(acts).items() if k in ACTIONS}
    return Times(
        steps={**STEPS, **known_steps},
        acts={**ACTS, **known_acts, **given},
        answer=answer,
        measured=frozenset((known_steps.keys() | known_acts.keys()) - given.keys()),
    )


def _seconds(start: str, end: str) -> float:
    return max(0.0, (parse_time(end) - parse_time(start)).total_seconds())


def _medians(found: Mapping[str, list[float]]) -> dict[str, timedelta]:
    return {name: timedelta(seconds=round(median(each))) for name, each in found.items() if len(each) >= ENOUGH}
