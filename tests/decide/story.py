"""A node, its repair, and what happens to them, without a server.

    story = Story("test.reboot", rule=rule(procedure(Drain={"by": "People"})))
    story.run("Quarantine")            # execute reports it done; the cordon stands on the node
    story.approve("Drain")
    story.at("Drain", "Running")

Each look builds the view as the controller does and checks what must hold after every look at any repair: the same
record and view give the same result, a second look changes nothing, the argument stays as it was, whatever waits has a
deadline ahead, and no gated step runs without its own approval.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sickbay.api import names
from sickbay.api.core import Node, Pod
from sickbay.api.node_repair import NodeRepair
from sickbay.api.nodemarks import read_mark
from sickbay.api.repair_plan import Plan
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule
from sickbay.api.repair_step import Report
from sickbay.clock import parse_time, rfc3339
from sickbay.decide import budget, opening, past
from sickbay.decide import plan as planning
from sickbay.decide.arbitration import ordered
from sickbay.decide.faults import Active, active_faults
from sickbay.decide.gangs import Tenants, gang_of, is_job_pod
from sickbay.decide.plan import gate_of
from sickbay.decide.progress import advance
from sickbay.decide.running import REPAIR_SLACK
from sickbay.decide.work import Note, View, Work
from sickbay.execute import guard
from tests.decide import made

BOOTS = ("RebootNode", "PowerCycle", "ReprovisionNode", "RedeployNode")


class Story:
    """See the module. Times are seconds from the start of the story."""

    def __init__(
        self,
        *faults: str,
        rule: RepairRule | None = None,
        pool: RepairPool | None = None,
        types: tuple[Mapping[str, Any], ...] = (),
        observe: bool = False,
        past: tuple[NodeRepair, ...] = (),
        opened: bool = True,
        grants: bool = True,
        **facts: Any,
    ) -> None:
        self.now = 0.0
        self.rule, self.pool = rule or made.rule(), pool or made.pool()
        self.catalogue = made.catalogue(*types)
        self.facts: dict[str, Any] = {"boot": "boot-1", "labels": {}, "annotations": {}, **facts}
        self.conditions: dict[str, Any] = dict.fromkeys(faults, ("True", 0))
        self.node_there = True
        self.hold = self.hold_reason = self.hands_off = ""
        self.observe, self.acting, self.unowned = observe, "", ""
        self.joins: frozenset[str] | None = None
        self.slots: set[str] = set()
        self.pods: list[Pod] | None = []
        self.provider_date: datetime | None = None
        self.grants = grants
        self.notes: list[Note] = []
        self.past = list(past)
        self.outside: tuple[bool, str] = (self.facts.get("unschedulable", False), "")
        self.repair = self._opened() if opened else NodeRepair()
        if opened:
            self.look()

    # --- what there is

    @property
    def moment(self) -> datetime:
        return made.at(self.now)

    @property
    def node(self) -> Node:
        return made.node(faults=self.conditions, **self.facts)

    @property
    def active(self) -> list[Active]:
        return ordered(active_faults(self.node, self.catalogue))

    def view(self) -> View:
        return View(
            now=self.moment,
            node=self.node if self.node_there else None,
            active=self.active if self.node_there else [],
            types=self.catalogue.types,
            pool=self.pool,
            slots=frozenset(self.slots),
            hold=self.hold,
            hold_reason=self.hold_reason or "a reason",
            observe=self.observe,
            unowned=self.unowned,
            acting=self.acting,
            hands_off=self.hands_off,
            joins=self.joins,
            replan=self._replan,
            history=lambda: past.told(past.incidents(self.past, self.node.uid), self.moment),
            tenants=self._tenants(),
            provider_date=self.provider_date,
        )

    def _tenants(self) -> Tenants | None:
        if self.pods is None:
            return None
        jobs = [pod for pod in self.pods if is_job_pod(pod)]
        here = tuple(pod for pod in jobs if pod.node_name == "n1")
        return Tenants(here, lambda job: [pod for pod in jobs if gang_of(pod) == job])

    def _replan(self, lead: Active) -> Plan | None:
        entry = planning.matching_entry(self.rule, lead.name, lead.type)
        prefix = self.repair.spec.plan.approval_prefix
        return budget.planned(lead, self.pool, entry, prefix, self.past, self.moment) if entry is not None else None

    def open(self) -> opening.Opening:
        seen = {active.name: made.START for active in self.active}
        return opening.open_repair(
            self.node, self.active, self.pool, self.rule, self.past, seen, made.PREFIX, "1.0.0", self.moment
        )

    def _opened(self) -> NodeRepair:
        result = self.open()
        assert result.repair is not None, result.why
        meta = msgspec.structs.replace(result.repair.metadata, uid="uid-r1", resource_version="1")
        result.repair.metadata = meta
        return result.repair

    # --- looking

    def look(self) -> Work:
        """What the controller does with one key: look, take the slots that are wanted, look again, write."""
        work = self._advance()
        for _ in range(3):
            if not work.wants or not self.grants:
                break
            self.slots.add(work.wants)
            work = self._advance()
        self.repair = work.repair
        self.notes += work.notes
        made.apply_node_ops({key: self.facts[key] for key in ("labels", "annotations")}, work.node_ops)
        return work

    def _advance(self) -> Work:
        view, before = self.view(), msgspec.to_builtins(self.repair)
        work = advance(self.repair, view)
        assert msgspec.to_builtins(self.repair) == before, "the argument was changed"
        check(work)
        if work.plan.generation != self.repair.spec.plan.generation and self.repair.status.current.step:
            check_half_written(self.repair, work, view)
        return work

    def settle(self) -> None:
        """Look until nothing changes any more."""
        for _ in range(20):
            before = msgspec.to_builtins(self.repair)
            self.look()
            if msgspec.to_builtins(self.repair) == before:
                return
        raise AssertionError("it never comes to rest")

    # --- time and the outside world

    def after(self, seconds: float) -> Work:
        self.now += seconds
        return self.look()

    def fault(self, name: str, status: str = "True", reason: str = "") -> Work:
        """A condition changes now."""
        self.conditions[name] = (status, self.now, reason)
        return self.look()

    def reboot(self, boot: str = "boot-2", clears: bool = True) -> None:
        """The machine boots anew; an agent that finds nothing wrong says so."""
        self.facts["boot"] = boot
        self.facts["ready"] = (True, self.now)
        if clears:
            for name in self.conditions:
                self.conditions[name] = ("False", self.now)

    def uncordon(self) -> Work:
        """A person takes the node back."""
        self.facts["unschedulable"] = False
        return self.look()

    def unmark(self) -> Work:
        """A person takes our mark away."""
        self.facts["annotations"].pop(names.QUARANTINE, None)
        return self.look()

    def answer(self, step: str, value: str) -> Work:
        """A person sets the approval label."""
        self.facts["labels"][names.approval_label(made.PREFIX, step)] = value
        return self.look()

    def approve(self, step: str) -> Work:
        return self.answer(step, "approved")

    def deny(self, step: str) -> Work:
        return self.answer(step, "denied")

    # --- execute

    def report(self, state: str, message: str = "", proof: Mapping[str, str] = {}, waits_for: str = "") -> Work:
        """execute reports on the current step, and has done what that says."""
        current = self.repair.status.current
        if state == "Done":
            proof = {**self._carry_out(), **proof}
        self.repair.status.steps[current.step].report = Report(
            attempt=current.attempt,
            plan_generation=self.repair.spec.plan.generation,
            state=state,
            message=message,
            proof=dict(proof),
            waits_for=waits_for,
        )
        return self.look()

    def _carry_out(self) -> dict[str, str]:
        current = self.repair.status.current
        if current.step == "Quarantine":
            self.outside = (self.node.unschedulable, "")
            mark = {"repair": self.repair.metadata.name, "uid": self.repair.metadata.uid, "nodeUID": self.node.uid}
            self.facts["annotations"][names.QUARANTINE] = json.dumps(mark)
            self.facts["unschedulable"] = True
        elif current.step == "Unquarantine":
            self.facts["annotations"].pop(names.QUARANTINE, None)
            self.facts["unschedulable"] = self.outside[0]
        elif current.step == "Repair" and current.action in BOOTS:
            before = self.facts["boot"]
            self.reboot(f"{before}+")
            return {"bootBefore": before, "bootID": self.facts["boot"]}
        return {}

    def run(self, *steps: str, state: str = "Done") -> Story:
        """execute finishes these steps, one after the other, each a minute after it began."""
        for step in steps:
            self.at(step, "Running")
            self.now += 60
            self.report(state)
        return self

    # --- what is expected

    @property
    def phase(self) -> str:
        return self.repair.status.phase

    @property
    def outcome(self) -> str:
        return self.repair.status.outcome

    @property
    def step(self) -> str:
        return self.repair.status.current.step

    @property
    def needs(self) -> str:
        return self.repair.status.needs

    def state(self, step: str) -> str:
        return self.repair.status.step(step).state

    def at(self, step: str, state: str = "Running") -> None:
        """The repair stands at this step, in this state."""
        status = self.repair.status
        assert (self.step, self.state(step)) == (step, state), (status.phase, status.current, status.message)

    def ended(self, phase: str, outcome: str) -> None:
        assert self.repair.ended, (self.phase, self.repair.status.current, self.repair.status.message)
        assert (self.phase, self.outcome) == (phase, outcome)

    def label(self, step: str) -> str:
        return self.facts["labels"].get(names.approval_label(made.PREFIX, step), "")

    def delete(self) -> Work:
        """A person deletes the record."""
        self.repair.metadata = msgspec.structs.replace(self.repair.metadata, deletion_timestamp=rfc3339(self.moment))
        return self.look()

    def reasons(self) -> list[str]:
        """Reasons of the Events so far."""
        return [note.reason for note in self.notes]

    def acts(self) -> list[str]:
        """Acts that were attempted, in their order; the running one too."""
        step = self.repair.status.step("Repair")
        done = [a.action for a in step.attempts]
        return [*done, self.repair.status.current.action] if step.state == "Running" else done

    def clean(self) -> bool:
        """The node carries nothing of ours."""
        ours = [k for k in self.facts["annotations"] if k.startswith("sickbay.dev/")]
        asked = [k for k in self.facts["labels"] if k.startswith(made.PREFIX)]
        return not ours and not asked and self.node.unschedulable == self.outside[0]


def check_half_written(before: NodeRepair, work: Work, view: View) -> None:
    """A new plan is two writes, spec and then status: what stands between them, also after a crash, begins nothing."""
    half = msgspec.structs.replace(before, spec=work.repair.spec)
    assert not guard.in_work(half), "execute would carry out what was ordered under the old plan"
    found = advance(half, view)
    check(found)
    assert found.repair.follows_plan
    assert found.current.attempt > before.status.current.attempt, "an attempt's key would be used for another act"


def check(work: Work) -> None:
    """What holds after every look."""
    again = advance(work.repair, work.view)
    assert msgspec.to_builtins(again.repair) == msgspec.to_builtins(work.repair), "a second look changes something"
    assert not again.notes, f"a second look says something again: {again.notes}"
    status = work.repair.status
    if not work.repair.ended and status.phase != "WouldAct":
        assert status.current.deadline, f"no deadline: {status}"
        slack = REPAIR_SLACK if status.current.step in ("Repair", "Validate") else timedelta(0)
        assert parse_time(status.current.deadline) + slack > work.now, f"the deadline is over: {status}"
        assert work.requeue_at is not None, f"nobody will look again: {status}"
    if status.needs:
        assert status.phase == "NeedsHuman"
    for name in ("Quarantine", "Drain", "Repair", "Unquarantine"):
        step = status.step(name)
        if step.state != "Running" or status.phase == "Cancelling" or work.repair.ended:
            continue
        gate = gate_of(work.step(name), status.current.action if name == "Repair" else "")
        if gate is not None and gate.by != "Jobs":
            assert step.approved_attempt == status.current.attempt, f"{name} runs without its own approval"
    if status.phase == "Cancelling" or work.repair.ended:
        assert status.step("Repair").state != "Running", "a cancelled repair still repairs"
        assert status.step("Drain").state != "Running", "a cancelled repair still drains"
    mark = read_mark(work.view.node) if work.view.node is not None else None
    if work.repair.ended and mark is not None and work.view.node is not None and mark.uid == work.repair.metadata.uid:
        lost = work.repair.spec.node.uid != work.view.node.uid
        assert lost or status.outcome == "LeftQuarantined" or status.step("Unquarantine").state == "Done"
