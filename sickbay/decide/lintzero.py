"""Durations of nothing that are legal, and under which something can never happen or happens at once.

Only what stands in the file is judged; the defaults are all longer than that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sickbay.api.duration import parse_duration

Said = tuple[bool, str, str]
"""Whether it is an error, the path, and the words."""

_STEP = "spec.rules[].procedure[]"
_HOOK = "no hook can be done in no time; give it some, such as 10m"
NOTHING: Mapping[str, Mapping[str, tuple[bool, str]]] = {
    "RepairRule": {
        f"{_STEP}.approval.timeout": (True, "nobody can answer in no time; give them some, such as 24h"),
        f"{_STEP}.approval.reminders[]": (True, "people would be reminded as they are asked; leave it out"),
        f"{_STEP}.timeout": (True, "no pod can leave in no time; give them some, such as 30m"),
        f"{_STEP}.before[].timeout": (True, _HOOK),
        f"{_STEP}.after[].timeout": (True, _HOOK),
        f"{_STEP}.options.grace.max": (True, "every pod would be killed at once; give them some, such as 10m"),
        f"{_STEP}.options.waitFor[].timeout": (False, "these pods are not waited for; make it longer or leave it out"),
        f"{_STEP}.ceiling": (True, "no validation can pass in no time; give it some, such as 30m"),
    },
    "RepairPool": {
        "spec.breaker.cooldown": (
            False,
            "the breaker is half open as soon as it opens; use a time such as 15m",
        ),
        "spec.storm.window": (False, "no storm is ever seen; give it some time, such as 60s; nodes 0 switches it off"),
        "spec.budgets.perNode.window": (False, "no repair falls into it, so the budget never binds; make it longer"),
        "spec.cancelHold": (False, "a person's cancel is followed by the next repair at once; make it longer"),
    },
    "FaultType": {
        "spec.remedy[].timeout": (True, "no act can be done in no time; give it some, such as 15m"),
        "spec.validation.ceiling": (True, "no validation can pass in no time; give it some, such as 30m"),
        "spec.ceiling": (False, "the urgency is over at once; use urgency Now, or make it longer"),
        "spec.match[].event.window": (True, "no two events fall into it; make it longer, such as 10m"),
    },
    "RecoveryPolicy": {
        "spec.hang.stall": (True, "every job would count as stalled; give it some time, such as 15m"),
        "spec.hang.phases[].max": (True, "the phase is over at once; make it longer"),
        "spec.budget.window": (False, "no restart falls into it, so the budget never binds; make it longer"),
        "spec.noFitDeadline": (False, "people are asked as soon as there is no room; make it longer"),
        "spec.exclusions.expire": (False, "a suspect is kept away from for no time; make it longer"),
        "spec.checkpoint.window": (True, "no checkpoint can be written in no time; give it some, such as 10m"),
    },
}
"""By kind and path (without numbers): whether it is an error, and what follows from it."""


def durations(kind: str, body: Mapping[str, Any]) -> Iterator[Said]:
    """All that is to be said of an object whose schema is kept."""
    told = NOTHING.get(kind, {})
    for path, value in _values(body, ""):
        wrong, text = told.get(re.sub(r"\[\d+\]", "[]", path), (False, ""))
        if text and isinstance(value, str) and not parse_duration(value):
            yield wrong, path, f"{value}: {text}"


def _values(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _values(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _values(inner, f"{path}[{i}]")
    else:
        yield path, value
