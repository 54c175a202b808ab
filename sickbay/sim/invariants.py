"""What must hold at every step of every run, whoever wrote the scenario and whatever goes wrong in it.

A model of the world stands beside the controllers: it believes nothing they say of themselves where it can see for
itself. It is told of every write and every destructive act, and notes what breaks a rule:

* caps hold, and breakers and Holds are kept (`limitinvariants`, `holdinvariants`)
* no gated step runs without its own approval, given by somebody else after we asked
* a passed validation is true; no return without one, except a person's cancel and the rollback before Repair
* no disruption budget is broken; no pod is evicted outside a drain
* no foreign cordon, taint, label or annotation is touched
* an act on a whole domain finds every member of its group drained
* each act is claimed, comes once, and is still wanted by everybody who may say so (`actinvariants`)
* no node is worked on by two repairs at once
* every open wait has a deadline
* no job lands on a suspect (`jobinvariants`)
* after the end the node equals the node before

What is under way when a person decides otherwise may still arrive: an act counts as forbidden once what forbids it has
stood for `slack` seconds. In a run without bad weather that is the moment between a permit and its act.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from sickbay.api import names, resolution
from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair
from sickbay.api.nodemarks import read_mark
from sickbay.api.words import ENDED, Outcome, Phase, Step, StepState
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.sim.actinvariants import LIVE, ActInvariants
from sickbay.sim.hand import FAULT_TYPES, HOLDS, NODES, POOLS, REPAIRS, condition_of
from sickbay.sim.history import KUBERNETES_TAINTS, OURS, Marks, marks_of
from sickbay.sim.holdinvariants import HoldInvariants, fresh_claim
from sickbay.sim.jobinvariants import JobInvariants
from sickbay.sim.limitinvariants import LimitInvariants
from sickbay.sim.world import World

WAITS = (Phase.WAITING_APPROVAL, Phase.WAITING_SLOT, Phase.WAITING_JOB, Phase.RUNNING, Phase.PARKED, Phase.NEEDS_HUMAN)
KUBERNETES = ("system:node:", "system:serviceaccount:kube-system:", "system:kube-")
OWN_KEYS = (names.QUARANTINE, names.INQUIRY, names.ISOLATE, names.CHANGED_BY, names.CLEAR, names.OUT_OF_SERVICE_MARK)
FINDINGS = (names.DEVICES,)
"""The agent's own report, which follows the faults and not the repair."""
SHARED_KEYS = (names.SCALE_DOWN_DISABLED, names.DO_NOT_DISRUPT)
"""Ours while we hold a node; what stood there before comes back."""
AUTOMATION = ("nvidia-driver", "gpu-operator", "kured", "node-maintenance", "cluster-autoscaler", "karpenter")
OUR_TAINTS = (names.QUARANTINE, names.OUT_OF_SERVICE)


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
    taken_back: float | None = None
    """Since when a person has the node back that we had closed."""


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
        self._jobs = JobInvariants(world, self._break)
        self._limits = LimitInvariants(world, self._break, max(slack, LIVE))
        self._holds = HoldInvariants(world, self._break, max(slack, LIVE))
        self._acts = ActInvariants(world, self, self._holds, self._break, slack)
        world.store.after_write(self._after_write)
        world.journal.on_change.append(self._acts.judge)

    def _break(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self.violations.append(Violation(self._world.loop.time(), text))

    def _after_write(self, write: Write) -> None:
        self._acts.judge()
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
        self._foreign_untouched(write, known, old, new)
        known.questions |= {k for k, v in new.labels.items() if _is_approval(k) and old.labels.get(k) != v}
        known.questions &= new.labels.keys()
        self._asked(write, known, new)
        before = old.annotations.get(names.QUARANTINE)
        if before is None and names.QUARANTINE in new.annotations:
            known.person_uncordoned, known.taken_back = False, None
            record = json.loads(new.annotations[names.QUARANTINE])
            self._limits.quarantined(write.new, self.repair_by_uid(str(record.get("uid", ""))))
        if before is not None and names.QUARANTINE not in new.annotations:
            self._returned(write, known, before)

    def _foreign_hand(self, write: Write, known: _Node, old: Marks, new: Marks) -> None:
        """Somebody else changed the node: that is now part of how it should be without us."""
        if not write.user.startswith(KUBERNETES):
            known.before = _moved(known.before, _foreign(old), _foreign(new))
            known.person_uncordoned |= old.unschedulable and not new.unschedulable
            opened = old.unschedulable and not new.unschedulable
            mark = old.annotations.get(names.QUARANTINE)
            ours = {t for t in old.taints if t[0] == names.QUARANTINE} - new.taints
            unmarked = mark is not None and (new.annotations.get(names.QUARANTINE) != mark or bool(ours))
            if mark is not None and (opened or unmarked) and not _automation(write.user):
                known.taken_back = self._world.loop.time()
            known.person_uncordoned |= unmarked
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

    def _foreign_untouched(self, write: Write, known: _Node, old: Marks, new: Marks) -> None:
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
        if old.unschedulable and not new.unschedulable and known.before.unschedulable:
            self._break(f"{node}: {write.user_agent} lifted a cordon that is not ours")

    def _returned(self, write: Write, known: _Node, text: str) -> None:
        """Our quarantine was taken away by us: was the node proven well?"""
        record = json.loads(text)
        repair = self.repair_by_uid(str(record.get("uid", "")))
        if repair is None:
            return
        validated = record["uid"] in self._validated
        word = resolution.read(repair)
        said = word is not None and word.outcome == Outcome.CANCELLED_BY_PERSON
        cancelled = known.person_uncordoned or said or repair.metadata.deletion_timestamp is not None
        if validated or cancelled or record["uid"] not in self._repair_begun:
            return
        self._break(f"node {write.name} was returned without a passed validation ({repair.metadata.name})")

    # --- repairs

    def repairs(self) -> list[NodeRepair]:
        return [_decode(obj) for obj in self._world.store.list(REPAIRS)]

    def over_since(self, uid: str) -> float:
        return self._over_since.get(uid, 0.0)

    def taken_back(self, node: str) -> float | None:
        known = self._nodes.get(node)
        return known.taken_back if known is not None else None

    def repair_by_uid(self, uid: str) -> NodeRepair | None:
        return next((repair for repair in self.repairs() if repair.metadata.uid == uid), None)

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
        self._not_taken_back(repair, step)
        planned = repair.spec.plan.step(step)
        gate = planned.approval if planned is not None else None
        if gate is not None and gate.by != "Jobs":
            attempt = repair.status.current.attempt
            given = self.word_given(repair, step, attempt) or self._approved_for_group(repair, step)
            if repair.status.phase != Phase.CANCELLING and not given:
                self._break(f"{repair.metadata.name}: {step} (attempt {attempt}) began without its own approval")
        self._limits.step_began(repair, step)

    def word_given(self, repair: NodeRepair, step: str, attempt: int) -> bool:
        """Approved for this attempt; the return also when only the write of an approved one had failed."""
        uid = repair.metadata.uid
        if (uid, step, attempt) in self._approved:
            return True
        failed = {a.n for a in repair.status.step(step).attempts if a.state == StepState.FAILED}
        again = step == Step.UNQUARANTINE and attempt - 1 in failed
        return again and self.word_given(repair, step, attempt - 1)

    def _not_taken_back(self, repair: NodeRepair, step: str) -> None:
        """Nothing begins on a node that a person has taken back from this repair."""
        back, now = self.taken_back(repair.spec.node.uid), self._world.loop.time()
        if back is None or now - back <= max(self._slack, LIVE) or repair.status.phase == Phase.CANCELLING:
            return
        if repair.status.step(Step.QUARANTINE).state == StepState.DONE and not repair.ended:
            self._break(f"{repair.metadata.name}: {step} began, though a person took the node back at {back:g}s")

    def _alone(self, repair: NodeRepair, step: str) -> None:
        if repair.ended:
            return  # a person has taken a node back that its rule had left in quarantine: the marks follow
        for other in self.repairs():
            same = other.spec.node.uid == repair.spec.node.uid and other.metadata.uid != repair.metadata.uid
            if same and not other.ended and any(s.state == StepState.RUNNING for s in other.status.steps.values()):
                self._break(f"{repair.metadata.name}: {step} began while {other.metadata.name} works on the same node")

    def _note(self, old: NodeRepair | None, new: NodeRepair) -> None:
        uid = new.metadata.uid
        was = old.status.step(Step.VALIDATE).state if old is not None else ""
        if new.status.step(Step.VALIDATE).state == StepState.DONE and was != StepState.DONE:
            self._validated.add(uid)
            self._well(new)
        if new.status.phase in (*ENDED, Phase.CANCELLING):
            self._over_since.setdefault(uid, self._world.loop.time())

    def _well(self, repair: NodeRepair) -> None:
        """A passed validation is true: the node is Ready, and no fault of the repair has been seen all the while."""
        now, name = self._world.loop.time(), repair.spec.node.name
        seen = [self._world.history.node_at(name, at) for at in (now, now - max(self._slack, LIVE))]
        for word, wrong in (("not Ready", _not_ready), ("still faulty", lambda n: _shows(n, self._conditions(repair)))):
            if all(n is not None and n["metadata"]["uid"] == repair.spec.node.uid and wrong(n) for n in seen):
                self._break(f"{repair.metadata.name}: Validate passed, and node {name} is {word}")

    def _conditions(self, repair: NodeRepair) -> set[str]:
        """Types of the conditions that mean one of the repair's own faults, as far as FaultType objects name them."""
        faults = {fault.type for fault in repair.spec.faults}
        types = [t for t in self._world.store.list(FAULT_TYPES) if t["metadata"]["name"] in faults]
        matches = [match for t in types for match in t["spec"].get("match") or ()]
        named = [match["condition"] for match in matches if match.get("condition")]
        return {condition["type"] for condition in named if condition.get("status", "True") == "True"}

    def _approved_for_group(self, repair: NodeRepair, step: str) -> bool:
        """One member is asked for all."""
        members = {r.metadata.uid for r in self.repairs() if repair.spec.group.id and _same_group(r, repair)}
        return any(uid in members and step == asked for uid, asked, _ in self._approved)

    def _as_before(self, repair: NodeRepair) -> None:
        """The repair is over and holds nothing: nothing of us may be left."""
        node = self._world.store.find(NODES, repair.spec.node.name)
        if node is None or node["metadata"]["uid"] != repair.spec.node.uid:
            return
        of_node = [other for other in self.repairs() if other.spec.node.uid == repair.spec.node.uid]
        if repair.status.outcome == Outcome.LEFT_QUARANTINED or any(not o.ended or _has_left(o, node) for o in of_node):
            return
        name, now = repair.spec.node.name, marks_of(node)
        known = self._nodes[repair.spec.node.uid]
        for key in sorted({*now.labels, *now.annotations}):
            if key in OWN_KEYS or key in known.questions:
                self._break(f"node {name}: {key} is left behind after {repair.metadata.name}")
        for difference in known.before.differences(_foreign(now)):
            self._break(f"node {name} is not as it was before {repair.metadata.name}: {difference}")

    def at_end(self, settled: bool = False) -> None:
        """The run is over. Where all has come to rest, no node bears a trace of us without a repair that holds it."""
        self._acts.judge()
        if not settled:
            return
        last: dict[str, NodeRepair] = {}
        for repair in self.repairs():
            last[repair.spec.node.uid] = repair
        for repair in last.values():
            self._as_before(repair)


def _has_left(repair: NodeRepair, node: Obj) -> bool:
    """The mark on the node is that of an ended repair whose rule returns no nodes."""
    mark = read_mark(msgspec.convert(node, Node))
    return repair.status.outcome == Outcome.LEFT_QUARANTINED and mark is not None and mark.uid == repair.metadata.uid


def _automation(user: str) -> bool:
    """Known automation is no person (api.md, `sickbay.dev/changed-by`)."""
    return any(word in user for word in AUTOMATION)


def _not_ready(node: Obj) -> bool:
    return condition_of(node, "Ready").get("status") != "True"


def _shows(node: Obj, types: set[str]) -> bool:
    """Bad, and said since the node is back, or in our agent's form: another detector, which read it from a log, never
    takes back what it said before."""
    back = condition_of(node, "Ready").get("lastTransitionTime", "")
    bad = [c for c in (condition_of(node, type_) for type_ in types) if c.get("status") == "True"]
    return any(names.agents_own(c["type"], c.get("reason", "")) or c.get("lastTransitionTime", "") >= back for c in bad)


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


__all__ = ["KUBERNETES_TAINTS", "Invariants", "Violation"]
