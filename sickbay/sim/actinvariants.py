"""What must hold of each act of ours that reaches a machine, a pod or a back-end.

* it comes once, under a key, for an attempt that is claimed and not over, on the node of its incident
* none for a repair that has ended or is being cancelled, or whose node a person has taken back
* none that a Hold forbids; none that cannot be undone without a person's word
* pods leave only by a drain of their node, and never around their disruption budget
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sickbay.api.actions import ACTIONS
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import ENDED, Phase, Step, StepState
from sickbay.apiserver.selectors import selector_matches
from sickbay.clock import parse_time
from sickbay.sim.hand import BUDGETS, NODES, labels_of
from sickbay.sim.holdinvariants import HoldInvariants
from sickbay.sim.journal import Action
from sickbay.sim.world import World

LIVE = 5.0
"""Seconds that a permit, its claim and an answer of the API server may lie apart in any run."""


class Model(Protocol):
    """What is known of repairs and nodes (`invariants`)."""

    def repairs(self) -> list[NodeRepair]: ...

    def repair_by_uid(self, uid: str) -> NodeRepair | None: ...

    def word_given(self, repair: NodeRepair, step: str, attempt: int) -> bool:
        """Somebody has approved this attempt of the step."""
        ...

    def over_since(self, uid: str) -> float:
        """Since when the repair is over or being cancelled."""
        ...

    def taken_back(self, node: str) -> float | None:
        """Since when a person has the node of that UID back; None when nobody has."""
        ...


class ActInvariants:
    """Judges each act once. `breach` is told what breaks a rule."""

    def __init__(
        self, world: World, model: Model, holds: HoldInvariants, breach: Callable[[str], None], slack: float
    ) -> None:
        self._world, self._model, self._holds, self._breach, self._slack = world, model, holds, breach, slack
        self._acts: dict[str, list[Action]] = {}
        self._judged = 0

    def judge(self) -> None:
        actions = self._world.journal.actions
        while self._judged < len(actions):
            action = actions[self._judged]
            self._judged += 1
            if action.kind in ("Evict", "DeletePod"):
                self._pod_act(action)
            else:
                self._machine_act(action)

    def _machine_act(self, action: Action) -> None:
        what = f"{action.kind} of {action.node} under {action.key or 'no key'}"
        before = self._acts.setdefault(action.key, [])
        before.append(action)
        if not action.key or not _each_once(before):
            self._breach(f"{what} came {len(before)} times")
        holder = action.key.partition("/")[0]
        self._domain_act(what, [r for r in self._model.repairs() if r.spec.group.id == holder])
        repair = self._model.repair_by_uid(holder)
        self._holds.acted(action, repair)
        if repair is None:
            return
        if self._is_over(repair):
            self._breach(f"{what}: the repair is {repair.status.phase}")
        self._asked_first(action, what, repair)
        self._claimed(action, what, repair)
        self._still_ours(action, what, repair)
        node = self._world.store.find(NODES, action.node)
        if node is not None and node["metadata"]["uid"] != repair.spec.node.uid:
            self._breach(f"{what}: the node is another one than the repair is for")

    def _domain_act(self, what: str, members: list[NodeRepair]) -> None:
        """An act on a whole domain finds every member out of service and drained."""
        for repair in members:
            node = self._world.store.find(NODES, repair.spec.node.name)
            if repair.ended or node is None or node["metadata"]["uid"] != repair.spec.node.uid:
                continue
            if repair.status.phase == Phase.CANCELLING or not _emptied(repair):
                self._breach(f"{what}: member {repair.spec.node.name} is {repair.status.phase} and not drained for it")

    def _is_over(self, repair: NodeRepair) -> bool:
        if repair.status.phase not in (*ENDED, Phase.CANCELLING):
            return False
        return self._world.loop.time() - self._model.over_since(repair.metadata.uid) >= self._slack

    def _claimed(self, action: Action, what: str, repair: NodeRepair) -> None:
        """Somebody has written that he acts, and the record still asks for it."""
        attempt, step = int(action.key.rpartition("/")[2] or 0), repair.status.step(Step.REPAIR)
        if step.report.attempt == attempt and step.report.state and step.state == StepState.RUNNING:
            return
        ended = next((a.ended for a in step.attempts if a.n == attempt), None)
        if ended and (self._world.clock.now() - parse_time(ended)).total_seconds() <= self._slack + 1:
            return
        self._breach(f"{what}: attempt {attempt} is not claimed, or over")

    def _still_ours(self, action: Action, what: str, repair: NodeRepair) -> None:
        """Nobody has taken the node back, or deleted the record, long enough ago to have been seen."""
        back, now = self._model.taken_back(repair.spec.node.uid), self._world.loop.time()
        if back is not None and now - back > max(self._slack, LIVE):
            self._breach(f"{what}: a person took the node back at {back:g}s")
        gone = repair.metadata.deletion_timestamp
        if gone and (self._world.clock.now() - parse_time(gone)).total_seconds() > max(self._slack, LIVE) + 1:
            self._breach(f"{what}: the record was deleted at {gone}")

    def _asked_first(self, action: Action, what: str, repair: NodeRepair) -> None:
        """What cannot be undone needs a person's word, unless the pool says that nothing is lost."""
        attempt = int(action.key.rpartition("/")[2] or 0)
        acting = ACTIONS.get(repair.status.current.action)
        planned = repair.spec.plan.step(Step.REPAIR)
        if acting is None or not acting.asks_first or repair.status.current.attempt != attempt:
            return
        if (
            planned is not None
            and planned.gate_irreversible
            and not self._model.word_given(repair, Step.REPAIR, attempt)
        ):
            self._breach(f"{what}: nobody was asked before an act that cannot be undone")

    def _pod_act(self, action: Action) -> None:
        what = f"{action.kind} of pod {action.target} on {action.node}"
        mine = [r for r in self._model.repairs() if r.spec.node.name == action.node]
        open_ = [r for r in mine if not r.ended]
        for repair in open_:
            self._holds.acted(action, repair)
        # A drain that was stopped a moment ago may still have an eviction on its way.
        lately = [r for r in mine if not self._is_over(r)]
        if not any(r.status.step(Step.DRAIN).state == StepState.RUNNING for r in open_) and not (
            self._slack and any(r.status.step(Step.DRAIN).started for r in lately)
        ):
            self._breach(f"{what}: no drain of that node runs")
        if action.kind == "DeletePod":
            self._budget(action, what, open_)

    def _budget(self, action: Action, what: str, repairs: list[NodeRepair]) -> None:
        """The API server keeps budgets for evictions; a deletion goes around it."""
        for repair in repairs:
            drain = repair.spec.plan.step(Step.DRAIN)
            if drain is not None and drain.options is not None and drain.options.force.allowed:
                return
        namespace, _, name = action.target.partition("/")
        pod = self._world.store.find("pods", name, namespace)
        if pod is None:
            return
        for budget in self._world.store.list(BUDGETS, namespace):
            selected = selector_matches((budget.get("spec") or {}).get("selector"), labels_of(pod))
            if selected and not (budget.get("status") or {}).get("disruptionsAllowed"):
                self._breach(f"{what}: its budget {budget['metadata']['name']} allows no disruption")


def _emptied(repair: NodeRepair) -> bool:
    steps = [s.step for s in repair.spec.plan.steps if s.step in (Step.QUARANTINE, Step.DRAIN)]
    return all(repair.status.step(step).state in (StepState.DONE, StepState.SKIPPED) for step in steps)


def _each_once(acts: list[Action]) -> bool:
    """One act; or resets, for one attempt may concern several devices, of each device one."""
    return len(acts) == 1 or (
        all(act.kind == "ResetGPU" for act in acts) and len({act.target for act in acts}) == len(acts)
    )
