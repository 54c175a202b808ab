"""What must hold at every step of every run, whoever wrote the scenario and whatever goes wrong in it.

A model of the world stands beside the controllers: it believes nothing they say of themselves where it can see for
itself. It is told of every write and every destructive act, and notes what breaks a rule:

* caps hold, and breakers and Holds are kept (`limitinvariants`, `holdinvariants`)
* no gated step runs without its own approval, given by somebody else after we asked
* no return without a passed validation, except a person's cancel and the rollback before Repair
* no disruption budget is broken; no pod is evicted outside a drain
* no foreign cordon, taint, label or annotation is touched
* an act on a whole domain finds every member of its group drained
* at most one destructive act per attempt, none for a repair that has ended, none on another node of the same name
* no act that cannot be undone without a person's word, unless the pool calls its data disposable
* no node is worked on by two repairs at once
* every open wait has a deadline
* no job lands on a suspect (`jobinvariants`)
* after the end the node equals the node before

What is under way when a person decides otherwise may still arrive: an act counts as forbidden once what forbids it has
stood for `slack` seconds. In a run without bad weather that is the moment between a permit and its act.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from sickbay.api import names
from sickbay.api.actions import ACTIONS
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import ENDED, Outcome, Phase, Step, StepState
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.selectors import selector_matches
from sickbay.apiserver.writes import Write
from sickbay.sim.hand import BUDGETS, HOLDS, NODES, POOLS, REPAIRS, labels_of
from sickbay.sim.history import KUBERNETES_TAINTS, OURS, Marks, marks_of
from sickbay.sim.holdinvariants import HoldInvariants, fresh_claim
from sickbay.sim.jobinvariants import JobInvariants
from sickbay.sim.journal import Action
from sickbay.sim.limitinvariants import LimitInvariants
from sickbay.sim.world import World

WAITS = (Phase.WAITING_APPROVAL, Phase.WAITING_SLOT, Phase.WAITING_JOB, Phase.RUNNING, Phase.PARKED, Phase.NEEDS_HUMAN)
KUBERNETES = ("system:node:", "system:serviceaccount:kube-system:", "system:kube-")
OWN_KEYS = (names.QUARANTINE, names.INQUIRY, names.ISOLATE, names.CHANGED_BY, names.CLEAR)
FINDINGS = (names.DEVICES,)
"""The agent's own report, which follows the faults and not the repair."""
SHARED_KEYS = (names.SCALE_DOWN_DISABLED, names.DO_NOT_DISRUPT)
"""Ours while we hold a node; what stood there before comes back."""
LIVE = 5.0
"""Seconds that a permit, its claim and an answer of the API server may lie apart in any run."""
OUR_TAINTS = (names.QUARANTINE, "node.kubernetes.io/out-of-service")


@dataclass(frozen=True, slots=True)
class Violation:
    at: float
    text: str


@dataclass(slots=True)
class _Node:
    """What the model knows of one Node, by UID."""

    before: Marks
    """The marks it would have without us: as they were when we came, and what others changed since."""
    asked: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Repair UID and attempt of the open question, by step."""
    questions: set[str] = field(default_factory=set)
    """Approval labels that we have put there. What people label without having been asked is theirs."""
    person_uncordoned: bool = False


class Invariants:
    """Watches one world. `violations` is empty as long as all is well; each kind of breach is noted once per object."""

    def __init__(self, world: World, slack: float = 0.0) -> None:
        self._world, self._slack = world, slack
        self.violations: list[Violation] = []
        self._noted: set[str] = set()
        self._nodes: dict[str, _Node] = {}
        self._approved: set[tuple[str, str, int]] = set()
        self._repair_begun: set[str] = set()
        self._validated: set[str] = set()
        self._over_since: dict[str, float] = {}
        """Since when each repair, by UID, is over or being cancelled."""
        self._acts: Counter[str] = Counter()
        self._judged = 0
        self._jobs = JobInvariants(world, self._break)
        self._limits = LimitInvariants(world, self._break, max(slack, LIVE))
        self._holds = HoldInvariants(world, self._break, max(slack, LIVE))
        world.store.after_write(self._after_write)
        world.journal.on_change.append(self._judge_acts)

    def _break(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self.violations.append(Violation(self._world.loop.time(), text))

    def _after_write(self, write: Write) -> None:
        self._judge_acts()
        if write.old is write.new:
            return
        if write.resource == NODES:
            self._limits.node_written(write)
            self._node_written(write)
        elif write.resource == HOLDS:
            self._holds.hold_written(write)
        elif write.resource == REPAIRS:
            self._repair_written(write)
        elif write.resource == POOLS and write.old is not None and write.new is not None:
            self._limits.pool_written(write.old, write.new)
        else:
            self._jobs.written(write)

    # --- nodes

    def _node_written(self, write: Write) -> None:
        if write.new is None:
            return
        first = write.old or write.new
        known = self._nodes.setdefault(write.new["metadata"]["uid"], _Node(_foreign(marks_of(first))))
        if write.old is None:
            return
        old, new = marks_of(write.old), marks_of(write.new)
        if write.user not in OURS:
            self._foreign_hand(write, known, old, new)
            return
        self._foreign_untouched(write, old, new)
        known.questions |= {k for k, v in new.labels.items() if _is_approval(k) and old.labels.get(k) != v}
        known.questions &= new.labels.keys()
        self._asked(write, known, new)
        before = old.annotations.get(names.QUARANTINE)
        if before is None and names.QUARANTINE in new.annotations:
            known.person_uncordoned = False
            record = json.loads(new.annotations[names.QUARANTINE])
            self._limits.quarantined(write.new, self._repair_by_uid(str(record.get("uid", ""))))
        if before is not None and names.QUARANTINE not in new.annotations:
            self._returned(write, known, before)

    def _foreign_hand(self, write: Write, known: _Node, old: Marks, new: Marks) -> None:
        """Somebody else changed the node: that is now part of how it should be without us."""
        if not write.user.startswith(KUBERNETES):
            known.before = _moved(known.before, _foreign(old), _foreign(new))
            known.person_uncordoned |= old.unschedulable and not new.unschedulable
            if names.QUARANTINE in old.annotations and names.QUARANTINE not in new.annotations:
                # Whoever takes our mark away and leaves the cordon has made it theirs.
                known.person_uncordoned = True
                known.before = replace(known.before, unschedulable=new.unschedulable)
        for step, (uid, attempt) in known.asked.items():
            if _answer(old, step) == "inquiring" and _answer(new, step).lower() == "approved":
                self._approved.add((uid, step, attempt))

    def _asked(self, write: Write, known: _Node, new: Marks) -> None:
        text = new.annotations.get(names.INQUIRY)
        if text is None:
            known.asked.clear()
            return
        inquiry = json.loads(text)
        step = str(inquiry.get("step", ""))
        if _answer(new, step) == "inquiring":
            known.asked[step] = (str(inquiry.get("uid", "")), int(inquiry.get("attempt", 0)))

    def _foreign_untouched(self, write: Write, old: Marks, new: Marks) -> None:
        node = f"node {write.name}"
        lost, gained = _foreign(old).taints - new.taints, _foreign(new).taints - old.taints
        for key, _, effect in sorted(lost):
            self._break(f"{node}: {write.user_agent} removed the foreign taint {key}:{effect}")
        for key, _, effect in sorted(gained):
            self._break(f"{node}: {write.user_agent} added the taint {key}:{effect}, which is not ours")
        for word, a, b in (
            ("label", _foreign(old).labels, _foreign(new).labels),
            ("annotation", _foreign(old).annotations, _foreign(new).annotations),
        ):
            for key in sorted(a.keys() | b.keys()):
                if key not in SHARED_KEYS and a.get(key) != b.get(key):
                    self._break(f"{node}: {write.user_agent} touched the foreign {word} {key}")
        if old.unschedulable and not new.unschedulable and self._cordon_was_foreign(old):
            self._break(f"{node}: {write.user_agent} lifted a cordon that is not ours")

    @staticmethod
    def _cordon_was_foreign(old: Marks) -> bool:
        record = json.loads(old.annotations.get(names.QUARANTINE) or "{}")
        return not record or bool((record.get("prior") or {}).get("unschedulable"))

    def _returned(self, write: Write, known: _Node, text: str) -> None:
        """Our quarantine was taken away by us: was the node proven well?"""
        record = json.loads(text)
        repair = self._repair_by_uid(str(record.get("uid", "")))
        if repair is None:
            return
        validated = record["uid"] in self._validated
        cancelled = known.person_uncordoned or repair.metadata.deletion_timestamp is not None
        if validated or cancelled or record["uid"] not in self._repair_begun:
            return
        self._break(f"node {write.name} was returned without a passed validation ({repair.metadata.name})")

    # --- repairs

    def _repairs(self) -> list[NodeRepair]:
        return [_decode(obj) for obj in self._world.store.list(REPAIRS)]

    def _repair_by_uid(self, uid: str) -> NodeRepair | None:
        return next((repair for repair in self._repairs() if repair.metadata.uid == uid), None)

    def _repair_written(self, write: Write) -> None:
        if write.new is None:
            return
        old, new = (_decode(write.old) if write.old is not None else None), _decode(write.new)
        for name in Step:
            running = new.status.step(name).state == StepState.RUNNING
            if running and (old is None or old.status.step(name).state != StepState.RUNNING):
                self._step_began(new, name)
        self._note(old, new)
        step = fresh_claim(old, new) if write.user in OURS else ""
        if step:
            self._holds.claimed(new, step)
        if write.user in OURS and new.status.phase in WAITS and not new.status.current.deadline:
            self._break(f"{new.metadata.name} waits in {new.status.phase} without a deadline")
        closed = new.status.phase in ENDED and not new.metadata.finalizers
        if closed and (old is None or old.status.phase not in ENDED or old.metadata.finalizers):
            self._world.loop.call_at_rest(lambda: self._as_before(new))

    def _step_began(self, repair: NodeRepair, step: str) -> None:
        uid = repair.metadata.uid
        if step == Step.REPAIR:
            self._repair_begun.add(uid)
            self._validated.discard(uid)
        self._alone(repair, step)
        planned = repair.spec.plan.step(step)
        gate = planned.approval if planned is not None else None
        if gate is not None and gate.by != "Jobs":
            attempt = repair.status.current.attempt
            given = self._word_given(repair, step, attempt) or self._approved_for_group(repair, step)
            if repair.status.phase != Phase.CANCELLING and not given:
                self._break(f"{repair.metadata.name}: {step} (attempt {attempt}) began without its own approval")
        self._limits.step_began(repair, step)

    def _word_given(self, repair: NodeRepair, step: str, attempt: int) -> bool:
        """Approved for this attempt; the return also when only the write of an approved one had failed."""
        uid = repair.metadata.uid
        if (uid, step, attempt) in self._approved:
            return True
        failed = {a.n for a in repair.status.step(step).attempts if a.state == StepState.FAILED}
        again = step == Step.UNQUARANTINE and attempt - 1 in failed
        return again and self._word_given(repair, step, attempt - 1)

    def _alone(self, repair: NodeRepair, step: str) -> None:
        for other in self._repairs():
            same = other.spec.node.uid == repair.spec.node.uid and other.metadata.uid != repair.metadata.uid
            if same and not other.ended and any(s.state == StepState.RUNNING for s in other.status.steps.values()):
                self._break(f"{repair.metadata.name}: {step} began while {other.metadata.name} works on the same node")

    def _note(self, old: NodeRepair | None, new: NodeRepair) -> None:
        uid = new.metadata.uid
        was = old.status.step(Step.VALIDATE).state if old is not None else ""
        if new.status.step(Step.VALIDATE).state == StepState.DONE and was != StepState.DONE:
            self._validated.add(uid)
        if new.status.phase in (*ENDED, Phase.CANCELLING):
            self._over_since.setdefault(uid, self._world.loop.time())

    def _approved_for_group(self, repair: NodeRepair, step: str) -> bool:
        """One member is asked for all."""
        members = {r.metadata.uid for r in self._repairs() if repair.spec.group.id and _same_group(r, repair)}
        return any(uid in members and step == asked for uid, asked, _ in self._approved)

    def _as_before(self, repair: NodeRepair) -> None:
        """The repair is over and holds nothing: nothing of us may be left."""
        node = self._world.store.find(NODES, repair.spec.node.name)
        if node is None or node["metadata"]["uid"] != repair.spec.node.uid:
            return
        if repair.status.outcome == Outcome.LEFT_QUARANTINED or any(
            other.spec.node.uid == repair.spec.node.uid and not other.ended for other in self._repairs()
        ):
            return
        name, now = repair.spec.node.name, marks_of(node)
        known = self._nodes[repair.spec.node.uid]
        for key in sorted({*now.labels, *now.annotations}):
            if key in OWN_KEYS or key in known.questions:
                self._break(f"node {name}: {key} is left behind after {repair.metadata.name}")
        for difference in known.before.differences(_foreign(now)):
            self._break(f"node {name} is not as it was before {repair.metadata.name}: {difference}")

    # --- acts

    def _judge_acts(self) -> None:
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
        self._acts[action.key] += 1
        if not action.key or self._acts[action.key] > 1:
            self._break(f"{what} came {self._acts[action.key]} times")
        holder = action.key.partition("/")[0]
        self._domain_act(what, [r for r in self._repairs() if r.spec.group.id == holder])
        repair = self._repair_by_uid(holder)
        self._holds.acted(action, repair)
        if repair is None:
            return
        if self._is_over(repair):
            self._break(f"{what}: the repair is {repair.status.phase}")
        self._asked_first(action, what, repair)
        node = self._world.store.find(NODES, action.node)
        if node is not None and node["metadata"]["uid"] != repair.spec.node.uid:
            self._break(f"{what}: the node is another one than the repair is for")

    def _domain_act(self, what: str, members: list[NodeRepair]) -> None:
        """An act on a whole domain finds every member out of service and drained."""
        for repair in members:
            node = self._world.store.find(NODES, repair.spec.node.name)
            if repair.ended or node is None or node["metadata"]["uid"] != repair.spec.node.uid:
                continue
            if repair.status.phase == Phase.CANCELLING or not _emptied(repair):
                self._break(f"{what}: member {repair.spec.node.name} is {repair.status.phase} and not drained for it")

    def _is_over(self, repair: NodeRepair) -> bool:
        if repair.status.phase not in (*ENDED, Phase.CANCELLING):
            return False
        return self._world.loop.time() - self._over_since.get(repair.metadata.uid, 0.0) >= self._slack

    def _asked_first(self, action: Action, what: str, repair: NodeRepair) -> None:
        """What cannot be undone needs a person's word, unless the pool says that nothing is lost."""
        attempt = int(action.key.rpartition("/")[2] or 0)
        acting = ACTIONS.get(repair.status.current.action)
        planned = repair.spec.plan.step(Step.REPAIR)
        if acting is None or not acting.asks_first or repair.status.current.attempt != attempt:
            return
        if planned is not None and planned.gate_irreversible and not self._word_given(repair, Step.REPAIR, attempt):
            self._break(f"{what}: nobody was asked before an act that cannot be undone")

    def _pod_act(self, action: Action) -> None:
        what = f"{action.kind} of pod {action.target} on {action.node}"
        mine = [r for r in self._repairs() if r.spec.node.name == action.node]
        open_ = [r for r in mine if not r.ended]
        for repair in open_:
            self._holds.acted(action, repair)
        # A drain that was stopped a moment ago may still have an eviction on its way.
        lately = [r for r in mine if not self._is_over(r)]
        if not any(r.status.step(Step.DRAIN).state == StepState.RUNNING for r in open_) and not (
            self._slack and any(r.status.step(Step.DRAIN).started for r in lately)
        ):
            self._break(f"{what}: no drain of that node runs")
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
                self._break(f"{what}: its budget {budget['metadata']['name']} allows no disruption")

    def at_end(self, settled: bool = False) -> None:
        """The run is over. Where all has come to rest, no node bears a trace of us without a repair that holds it."""
        self._judge_acts()
        if not settled:
            return
        last: dict[str, NodeRepair] = {}
        for repair in self._repairs():
            last[repair.spec.node.uid] = repair
        for repair in last.values():
            self._as_before(repair)


def _decode(obj: Obj) -> NodeRepair:
    return msgspec.convert(obj, NodeRepair)


def _answer(marks: Marks, step: str) -> str:
    """The value of the approval label of a step, whatever its prefix."""
    suffix = f"/{step.lower()}-node"
    return next((value for key, value in marks.labels.items() if key.endswith(suffix)), "")


def _is_approval(key: str) -> bool:
    return any(key.endswith(f"/{step.lower()}-node") for step in Step)


def _foreign(marks: Marks) -> Marks:
    """Marks without those that are ours to write."""
    return replace(
        marks,
        labels={key: value for key, value in marks.labels.items() if not _is_approval(key)},
        annotations={k: v for k, v in marks.annotations.items() if k not in OWN_KEYS and k not in FINDINGS},
        taints=frozenset(t for t in marks.taints if t[0] not in OUR_TAINTS),
    )


def _moved(base: Marks, old: Marks, new: Marks) -> Marks:
    """`base` with the change from `old` to `new` applied."""

    def mapped(to: dict[str, str], a: dict[str, str], b: dict[str, str]) -> dict[str, str]:
        changed: dict[str, Any] = {key: b.get(key) for key in a.keys() | b.keys() if a.get(key) != b.get(key)}
        return {key: value for key, value in {**to, **changed}.items() if value is not None}

    return Marks(
        mapped(base.labels, old.labels, new.labels),
        mapped(base.annotations, old.annotations, new.annotations),
        (base.taints - (old.taints - new.taints)) | (new.taints - old.taints),
        new.unschedulable if new.unschedulable != old.unschedulable else base.unschedulable,
    )


def _same_group(one: NodeRepair, other: NodeRepair) -> bool:
    return one.spec.group.id == other.spec.group.id


def _emptied(repair: NodeRepair) -> bool:
    steps = [s.step for s in repair.spec.plan.steps if s.step in (Step.QUARANTINE, Step.DRAIN)]
    return all(repair.status.step(step).state in (StepState.DONE, StepState.SKIPPED) for step in steps)


__all__ = ["KUBERNETES_TAINTS", "Invariants", "Violation"]
