"""What Holds forbid, and nobody may do at any step of any run.

    NewRepairs   no repair begins: the first step of one is not claimed
    NextStep     no further step is claimed, but those on the way back into service
    EveryAct     nothing is claimed, and no act of ours reaches a node, a pod or a back-end

A Hold counts once it has stood for `slack` seconds: Holds are read right before an act, and an act that was permitted a
moment before the Hold came may still be on its way.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from sickbay.api import holds
from sickbay.api.core import Node
from sickbay.api.hold import Hold
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import HoldLevel, Phase, ReportState, Step, StepState
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.selectors import selector_matches
from sickbay.apiserver.writes import Write
from sickbay.sim.hand import HOLDS, NODES, POOLS, labels_of
from sickbay.sim.journal import Action
from sickbay.sim.world import World

STARTS = (Step.QUARANTINE, Step.DRAIN, Step.REPAIR)


class HoldInvariants:
    """Told of writes and acts by `invariants`; `breach` is told what breaks a rule."""

    def __init__(self, world: World, breach: Callable[[str], None], slack: float) -> None:
        self._world, self._breach, self._slack = world, breach, slack
        self._since: dict[str, float] = {}

    def hold_written(self, write: Write) -> None:
        """A Hold that is changed counts as new from then on."""
        if write.new is not None:
            self._since[write.new["metadata"]["uid"]] = self._world.loop.time()

    def claimed(self, repair: NodeRepair, step: str) -> None:
        """Execute has claimed an attempt of a step."""
        level = self._level(repair.spec.node.name, [fault.type for fault in repair.spec.faults])
        releasing = repair.status.phase == Phase.CANCELLING or step not in STARTS
        forbidden = level == HoldLevel.EVERY_ACT or (
            not releasing and (level == HoldLevel.NEXT_STEP or (level != "" and _first(repair)))
        )
        if forbidden:
            self._breach(f"{repair.metadata.name}: {step} was claimed under a Hold of level {level}")

    def acted(self, action: Action, repair: NodeRepair | None) -> None:
        """An act of ours has reached a node, a pod or a back-end."""
        faults = [fault.type for fault in repair.spec.faults] if repair is not None else []
        if self._level(action.node, faults) == HoldLevel.EVERY_ACT:
            self._breach(f"{action.kind} {action.target or 'of ' + action.node} under a Hold of level EveryAct")

    def _level(self, name: str, faults: list[str]) -> str:
        found = self._world.store.find(NODES, name)
        standing = [h for h in self._world.store.list(HOLDS) if self._stands(h)]
        if found is None or not standing:
            return ""
        pools = [
            pool["metadata"]["name"]
            for pool in self._world.store.list(POOLS)
            if selector_matches((pool.get("spec") or {}).get("nodeSelector"), labels_of(found))
        ]
        node, known = msgspec.convert(found, Node), [msgspec.convert(hold, Hold) for hold in standing]
        return holds.known_level(holds.strictest(known, node, pools, faults, self._world.clock.now()))

    def _stands(self, hold: Obj) -> bool:
        since = self._since.get(hold["metadata"]["uid"], 0.0)
        return self._world.loop.time() - since > self._slack


def fresh_claim(old: NodeRepair | None, new: NodeRepair) -> str:
    """The step of which this write has claimed an attempt that nobody had claimed before; "" for none."""
    step = new.status.current.step
    report = new.status.step(step).report if step else None
    if report is None or report.state != ReportState.CLAIMED:
        return ""
    before = old.status.step(step).report if old is not None else None
    same = before is not None and (before.attempt, before.plan_generation) == (report.attempt, report.plan_generation)
    return "" if same and before is not None and before.state else step


def _first(repair: NodeRepair) -> bool:
    """Nothing has been done for this incident yet."""
    return not any(step.state == StepState.DONE or step.attempts for step in repair.status.steps.values())
