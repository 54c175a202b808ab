"""The next rung of the remedy ladder, judged from the attempts on record."""

from __future__ import annotations

from collections import Counter

from sickbay.api.actions import ACTIONS
from sickbay.api.fault_type import Rung
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_step import MOST_ATTEMPTS


def next_rung(repair: NodeRepair) -> Rung | None:
    """The first rung with attempts left in this generation of the plan; None when the ladder is used up.

    An act that was tried under an earlier generation (for another fault) does not count: the new fault has evidence
    of its own, later than that act. All count for the most that one repair may do.
    """
    attempts = repair.status.step("Repair").attempts
    if len(attempts) >= MOST_ATTEMPTS:
        return None
    plan = repair.spec.plan
    planned = plan.step("Repair")
    tried: Counter[str] = Counter()
    for attempt in attempts:
        if attempt.plan_generation == plan.generation:
            tried[attempt.action] += 1
    for rung in planned.ladder if planned is not None else ():
        if rung.action not in ACTIONS:
            return rung  # a newer version's remedy: execute refuses it by name and people are told
        allowed = max(1, rung.attempts or 1)
        if tried[rung.action] < allowed:
            return rung
        tried[rung.action] -= allowed
    return None
