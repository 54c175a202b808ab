"""Where the members of a group wait for each other.

    before the first step   every member has its record, and the group fits into the limits
    before Drain            all are cordoned, so that no evicted pod lands on a node that is next
    before Repair           all are drained; an act on the whole domain is done once, on the leader
    before Unquarantine     all are validated, or as many as the domain needs

Whoever waits says for whom. A group has no end of its own: when members have returned the rest are on their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from sickbay.api.actions import domain_wide
from sickbay.api.node_repair import Group, NodeRepair
from sickbay.api.words import Needs, Outcome, Phase, Step, StepState, WaitsFor
from sickbay.decide import gate, group
from sickbay.decide.endings import withdraw
from sickbay.decide.hand import untouched
from sickbay.decide.ladder import next_rung
from sickbay.decide.plan import without_domain_acts
from sickbay.decide.work import Work

STRANGERS_AGAIN = timedelta(seconds=30)
"""How soon to look again whether nodes that do not belong to the group have left its domain."""
LEFT_OUT = (Outcome.DENIED, Outcome.GAVE_UP)
"""Outcomes under which a gate leaves out Repair."""


def keep_up(work: Work) -> None:
    """Name the one that leads now: where the leader has gone it is the oldest open member."""
    view = group.of(work)
    if view is None or group.dissolved(work):
        return
    lead = group.leader(work).metadata.name
    named = work.repair.spec.group
    if lead and lead != named.leader:
        work.repair.spec.group = msgspec.structs.replace(named, leader=lead)


def left(work: Work) -> bool:
    """Members have returned: from here on this repair is one of its own, and takes no domain down any more."""
    if not group.dissolved(work) or (work.current.step == Step.UNQUARANTINE and group.validated(work.repair)):
        return False
    plan = without_domain_acts(work.plan)
    reason = f"enough members of {work.repair.spec.group.id} are back; this one goes on alone"
    work.follow(msgspec.structs.replace(plan, reason=reason))
    work.repair.spec.group = Group()
    work.current.action, work.current.args = "", {}
    work.current.attempt += 1
    work.note("RepairReplanned", reason)
    return True


def waits(work: Work) -> bool:
    """True while the group keeps this member from its next step; the work says what for."""
    if group.of(work) is None or group.dissolved(work):
        return False
    step = work.current.step
    if untouched(work.repair) and _gathers(work):
        return True
    if _follows(work):
        return True
    if step == Step.DRAIN:
        behind = [r for r in group.open_others(work) if not group.taken_out(r)]
        return _behind(work, behind, WaitsFor.SLOT, "be out of service")
    if step == Step.REPAIR:
        return _before_act(work)
    return step == Step.UNQUARANTINE and _before_return(work)


def _gathers(work: Work) -> bool:
    """Nothing starts before every member is there, and not at all when the group can never fit."""
    view = group.of(work)
    assert view is not None
    if view.misfit:
        text = f"the group can never start: {view.misfit}; raise the limit or repair the domain by hand"
        gate.needs_people(work, Needs.GROUP_CANNOT_FIT, text)
        return True
    if view.busy:
        node, repair = min(view.busy.items())
        why = f"waits until {repair} of member {node} has ended"
        if group.leads(work) and work.current.waits_for != WaitsFor.OTHER_OWNER:
            work.note(f"{work.current.step}{StepState.WAITING}", f"{work.current.step} {why}", warning=True)
        _wait(work, WaitsFor.OTHER_OWNER, why)
        return True
    if view.missing:
        _wait(work, WaitsFor.SLOT, f"waits for the records of {', '.join(view.missing[:3])}")
        return True
    return False


def _follows(work: Work) -> bool:
    """The gate before this step was answered for all: leave out what the leader has left out."""
    step = work.current.step
    for other in group.open_others(work):
        state = other.status.step(step).state
        if step == Step.REPAIR and state == StepState.CANCELLED and other.status.outcome in LEFT_OUT:
            gate.to_validate(work, Outcome(other.status.outcome), other.status.message)
            return True
        skipped = step in (Step.QUARANTINE, Step.DRAIN) and state == StepState.SKIPPED
        if skipped and gate.may_be_skipped(work):
            gate.skip(work, f"left out as on {other.spec.node.name}")
            return True
    return False


def _before_act(work: Work) -> bool:
    others = group.open_others(work)
    behind = [r for r in others if not group.emptied(r)]
    if _behind(work, behind, WaitsFor.PODS, "be drained"):
        return True
    if not domain_wide(work.current.action):
        return False
    view = group.of(work)
    if view is not None and view.strangers:
        work.wake(work.now + STRANGERS_AGAIN)
        named = ", ".join(view.strangers[:3])
        return _wait(work, WaitsFor.OTHER_OWNER, f"waits: {named} belongs to the domain by now and is not in the group")
    acting = group.acting(work)
    if acting is not None:
        return _wait(work, WaitsFor.PROVIDER, f"{acting.status.current.action} runs, once for the group, on "
                     f"{acting.spec.node.name}")  # fmt: skip
    away = [r for r in others if r.status.current.step != Step.REPAIR]
    if _behind(work, away, WaitsFor.CHECKS, "stand before Repair again"):
        return True
    lead = group.leader(work)
    if lead is not work.repair:
        asks = group.asker(work)
        if asks is not None and asks.status.phase in (Phase.WAITING_APPROVAL, Phase.NEEDS_HUMAN):
            return not gate.passed(work) or _wait(work, WaitsFor.PROVIDER, _once(work, lead))
        return _wait(work, WaitsFor.PROVIDER, _once(work, lead))
    used = [attempt.n for attempt in group.originals(work)]
    if used and work.current.attempt <= max(used):
        work.current.attempt = max(used) + 1  # no key of the group is used twice, whoever led before
    return False


def _once(work: Work, lead: NodeRepair) -> str:
    return f"{work.current.action} is done once for the group, on {lead.spec.node.name}"


def _before_return(work: Work) -> bool:
    view = group.of(work)
    assert view is not None
    others = group.open_others(work)
    again = next((r for r in others if _goes_again(r)), None)
    if again is not None and not work.status.outcome:
        withdraw(work)
        work.current.attempt += 1
        work.state(Step.VALIDATE).state = StepState.WAITING
        gate.go_to(work, Step.REPAIR, f"{again.spec.node.name} is not well: the domain is treated again")
        return True
    passed = 1 + sum(1 for r in others if group.validated(r))
    if view.min_usable is not None and passed >= view.min_usable:
        return False
    return _behind(work, [r for r in others if not group.validated(r)], WaitsFor.CHECKS, "be validated")


def _goes_again(repair: NodeRepair) -> bool:
    """Its next remedy is another act on the whole domain."""
    if repair.status.current.step != Step.REPAIR or repair.status.phase == Phase.NEEDS_HUMAN:
        return False
    rung = next_rung(repair)
    return rung is not None and domain_wide(rung.action)


def _behind(work: Work, members: Sequence[NodeRepair], word: WaitsFor, what: str) -> bool:
    """Wait for these members, if any."""
    if not members:
        return False
    if any(r.status.phase == Phase.NEEDS_HUMAN for r in members):
        word = WaitsFor.PEOPLE
    elif any(r.status.phase == Phase.PARKED for r in members):
        word = WaitsFor.PROVIDER
    named = ", ".join(_where(r) for r in sorted(members, key=lambda r: r.spec.node.name)[:3])
    more = f" and {len(members) - 3} more" if len(members) > 3 else ""
    return _wait(work, word, f"waits for members of the group to {what}: {named}{more}")


def _where(repair: NodeRepair) -> str:
    status = repair.status
    at = f"{status.current.step or 'start'}, {status.needs or status.phase}"
    return f"{repair.spec.node.name} ({at})"


def _wait(work: Work, word: WaitsFor, why: str) -> bool:
    work.wait_on(Phase.PENDING, word, f"{work.current.step} {why}", work.current.waits_for == word)
    return True
