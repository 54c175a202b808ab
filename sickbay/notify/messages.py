"""What people should have been told by now.

Pure functions from an object and a moment to messages, each under a key that is the same whenever it is asked for.
The four categories: InfraEvent (a provider announced something), DeviceFault (a fault was found), RepairProgress (what
is done about it, and what is asked of people), Digest (a summary).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from sickbay.api import names
from sickbay.api.duration import parse_duration
from sickbay.api.infra_event import InfraEvent
from sickbay.api.job_recovery import JobRecovery
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import MessageCategory, Needs, Outcome, Phase, RecoveryPhase, StepState, WaitsFor
from sickbay.clock import parse_time, rfc3339

STALE = timedelta(hours=1)
"""What happened longer ago and was never told is not told any more: a new installation sends no history."""
NEEDS_REMINDERS = (timedelta(hours=4), timedelta(hours=12))
"""After the call for people; then the last interval repeated, at most 24 h (api.md)."""
NEEDS_EVERY = timedelta(hours=24)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message to people."""

    key: str
    """Unique within the object it is about; what a channel de-duplicates by, together with `about`."""
    about: str
    """UID of the object."""
    category: str
    node: str
    title: str
    text: str
    warning: bool = False
    command: str = ""
    """What to type to move it on; empty when nothing is asked."""
    at: str = ""


@dataclass
class Due:
    """Messages that are due, and when the next one will be."""

    messages: list[Message] = field(default_factory=list)
    next: datetime | None = None

    def later(self, moment: datetime) -> None:
        self.next = moment if self.next is None else min(self.next, moment)


def of_repair(repair: NodeRepair, now: datetime) -> Due:
    """Everything a repair has to tell so far."""
    due = Due()
    if not repair.spec.node.name:
        return due
    if _speaks(repair):
        _opened(repair, now, due)
        _asking(repair, now, due)
    _needing(repair, now, due)
    _quarantined(repair, now, due)
    _ended(repair, now, due)
    _restored(repair, now, due)
    _hold_ends(repair, now, due)
    return due


def _speaks(repair: NodeRepair) -> bool:
    """Of a group one member tells people what is true of all of them; what happens to a node each tells of its own."""
    return not repair.spec.group.id or repair.spec.group.leader == repair.metadata.name


def _message(repair: NodeRepair, key: str, category: MessageCategory, title: str, text: str, **more: object) -> Message:
    node = repair.spec.node.name
    made = Message(
        key=key, about=repair.metadata.uid, category=category, node=node, title=f"{node}: {title}", text=text
    )
    return msgspec.structs.replace(made, **more)


def recent(moment: str | None, now: datetime) -> bool:
    return moment is not None and now - parse_time(moment) <= STALE


def _opened(repair: NodeRepair, now: datetime, due: Due) -> None:
    if not recent(repair.metadata.creation_timestamp, now) or _one_of_many(repair):
        return
    faults = ", ".join(f.type + (f" on {', '.join(f.devices)}" if f.devices else "") for f in repair.spec.faults)
    evidence = "; ".join(e for f in repair.spec.faults[:1] for e in f.evidence[:2])
    what = faults or repair.spec.plan.reason
    steps = ", ".join(s.step + (f" ({s.action})" if s.action else "") for s in repair.spec.plan.steps)
    what += (
        f" (all {len(repair.spec.group.members)} nodes of group {repair.spec.group.id})" if repair.spec.group.id else ""
    )
    only = "Only observed; would run" if repair.status.phase == Phase.WOULD_ACT else "Plan"
    text = f"{evidence}\n{only}: {steps}".strip()
    category = MessageCategory.DEVICE_FAULT if repair.spec.faults else MessageCategory.REPAIR_PROGRESS
    at = repair.metadata.creation_timestamp or ""
    due.messages.append(_message(repair, "opened", category, what, text, warning=True, at=at))


def _one_of_many(repair: NodeRepair) -> bool:
    """A storm is told once, for its pool: not for each node that waits for its end, or that is well again before."""
    status = repair.status
    if "opened" in status.notified:
        return False
    untouched = status.outcome == Outcome.SELF_RECOVERED and status.step("Quarantine").state != StepState.DONE
    return untouched or status.current.waits_for == WaitsFor.STORM


def _quarantined(repair: NodeRepair, now: datetime, due: Due) -> None:
    step = repair.status.step("Quarantine")
    if step.state == "Done" and recent(step.finished, now):
        text = step.report.message or "the node is out of service"
        more = {"at": step.finished or ""}
        due.messages.append(
            _message(repair, "quarantined", MessageCategory.REPAIR_PROGRESS, "taken out of service", text, **more)
        )


def _asking(repair: NodeRepair, now: datetime, due: Due) -> None:
    """The question of a gate, and its reminders, each with the exact command."""
    status, current = repair.status, repair.status.current
    if status.phase != Phase.WAITING_APPROVAL or current.waits_for != WaitsFor.APPROVAL or not current.since:
        return
    step = repair.spec.plan.step(current.step)
    gate = step.approval if step is not None else None
    since = parse_time(current.since)
    form = repair.spec.plan.form
    yes = (form.approved or ["approved"])[0]
    command = f"kubectl label node {repair.spec.node.name} {form.key_of(current.step)}={yes} --overwrite"
    moments = [timedelta(0), *sorted(parse_duration(text) for text in (gate.reminders if gate is not None else []))]
    for number, moment in latest(since, moments, now, due):
        title = f"{current.step} waits for approval" + (f" (reminder {number})" if number else "")
        key = f"ask/{current.step}/{current.attempt}/{_episode(current.since)}/{number}"
        more = {"warning": True, "command": command, "at": rfc3339(moment)}
        due.messages.append(_message(repair, key, MessageCategory.REPAIR_PROGRESS, title, status.message, **more))


def _needing(repair: NodeRepair, now: datetime, due: Due) -> None:
    """NeedsHuman, and its reminders."""
    status, current = repair.status, repair.status.current
    if status.phase != Phase.NEEDS_HUMAN or not current.since:
        return
    if status.needs in (Needs.GROUP_CANNOT_FIT, Needs.POOL_WITHDRAWN) and not _speaks(repair):
        return
    since, node = parse_time(current.since), repair.spec.node.name
    approve = status.needs == Needs.APPROVAL_TIMEOUT
    withdrawn = status.needs == Needs.POOL_WITHDRAWN
    outcome = f"{Outcome.CANCELLED_BY_PERSON} --reason WHY" if withdrawn else Outcome.REPAIRED
    command = f"sickbay approve {node} {current.step}" if approve else f"sickbay resolve {node} --outcome {outcome}"
    for number, moment in latest(since, calls(now - since), now, due):
        title = f"needs people: {status.needs}" + (f" (reminder {number})" if number else "")
        key = f"needs/{status.needs}/{current.attempt}/{_episode(current.since)}/{number}"
        more = {"warning": True, "command": command, "at": rfc3339(moment)}
        due.messages.append(_message(repair, key, MessageCategory.REPAIR_PROGRESS, title, status.message, **more))


def _episode(since: str) -> str:
    """Tells one wait from an earlier one of the same kind, by the hour: what comes and goes all the time is told once
    an hour."""
    return since[:13]


def calls(passed: timedelta) -> list[timedelta]:
    """When people are called after something began to need them: at once, and again until it is over. All up to now,
    and at least one that is still to come."""
    later = max(0, (passed - NEEDS_REMINDERS[-1]) // NEEDS_EVERY) + 1
    repeated = [NEEDS_REMINDERS[-1] + NEEDS_EVERY * (i + 1) for i in range(later)]
    return [timedelta(0), *NEEDS_REMINDERS, *repeated]


def latest(since: datetime, moments: list[timedelta], now: datetime, due: Due) -> list[tuple[int, datetime]]:
    """The first telling and the latest reminder that is due; those in between were missed and would only be noise."""
    past = [(number, since + after) for number, after in enumerate(moments) if since + after <= now]
    if len(past) < len(moments):
        due.later(since + moments[len(past)])
    return past[:1] + past[1:][-1:]


def _ended(repair: NodeRepair, now: datetime, due: Due) -> None:
    status = repair.status
    if not repair.ended or not recent(status.ended_at, now) or _one_of_many(repair):
        return
    more = {"warning": status.phase == Phase.FAILED, "at": status.ended_at or ""}
    title = f"repair ended: {status.outcome}"
    due.messages.append(_message(repair, "ended", MessageCategory.REPAIR_PROGRESS, title, status.message, **more))


def _restored(repair: NodeRepair, now: datetime, due: Due) -> None:
    """Known automation has taken our mark away: two systems work on one node."""
    known = repair.status.restored
    if known is None or not recent(known.at, now):
        return
    text = (
        f"{known.by} took Sickbay's mark off the node while it is under repair. It is put back, this once; the next "
        "time it counts as a person's, and the repair ends. Keep one of the two off this node."
    )
    more = {"warning": True, "at": known.at or ""}
    title = f"mark removed by {known.by}"
    due.messages.append(_message(repair, "restored", MessageCategory.REPAIR_PROGRESS, title, text, **more))


def _hold_ends(repair: NodeRepair, now: datetime, due: Due) -> None:
    """What a person decided is over in an hour."""
    said = repair.status.condition(names.CANCEL_HOLD_ENDS)
    if said is None or said.status != "True" or not recent(said.last_transition_time, now):
        return
    command = f"sickbay hold keep-{repair.spec.node.name} --node {repair.spec.node.name} --reason WHY"
    more = {"warning": True, "at": said.last_transition_time or "", "command": command}
    title = "a cancelled repair comes back in an hour"
    due.messages.append(_message(repair, "hold-ends", MessageCategory.REPAIR_PROGRESS, title, said.message, **more))


def of_infra_event(event: InfraEvent, now: datetime) -> Due:
    """An announcement of a provider, told once for each phase it is in."""
    due, spec, status = Due(), event.spec, event.status
    _not_understood(event, now, due)
    if not recent(status.since, now):
        return due
    text = f"{spec.type} ({status.upstream_phase or status.phase})"
    if spec.not_before:
        text += f", not before {spec.not_before}"
    due.messages.append(
        Message(
            key=f"phase/{status.phase}",
            about=event.metadata.uid,
            category=MessageCategory.INFRA_EVENT,
            node=spec.node.name,
            title=f"{spec.node.name or spec.resource}: {spec.source} announces {spec.type}: {status.phase}",
            text=text,
            warning=not status.terminal,
            at=status.since or "",
        )
    )
    return due


def _not_understood(event: InfraEvent, now: datetime, due: Due) -> None:
    """A word of the provider that we do not know: nothing is done about the event, so people have to read it."""
    spec = event.spec
    for condition in event.status.conditions:
        if condition.type != "Understood" or condition.status != "False":
            continue
        if recent(condition.last_transition_time, now):
            due.messages.append(
                Message(
                    key=f"word/{event.status.upstream_phase}"[:256],
                    about=event.metadata.uid,
                    category=MessageCategory.INFRA_EVENT,
                    node=spec.node.name,
                    title=f"{spec.node.name}: an announcement of {spec.source} is not understood",
                    text=f"{condition.message}. Nothing is done about event {spec.id}: read it at the provider.",
                    warning=True,
                    at=condition.last_transition_time or "",
                )
            )


def of_recovery(record: JobRecovery, now: datetime) -> Due:
    """A job that does not run and waits for its owner: stopped for its own fault, or held for want of a way on."""
    due, status, job = Due(), record.status, record.spec.job
    stopped = status.phase == RecoveryPhase.STOPPED
    if not (stopped or status.phase == RecoveryPhase.HELD) or not recent(status.since, now):
        return due
    name = f"{record.namespace}/{job.name}"
    due.messages.append(
        Message(
            key=f"job/{status.phase}/{status.attempts[-1].n if status.attempts else 0}",
            about=record.metadata.uid,
            category=MessageCategory.REPAIR_PROGRESS,
            node="",
            title=f"job {name} is {'stopped: its owner is needed' if stopped else 'held'}",
            text=f"{job.kind} {name}: {status.message or status.fingerprint}",
            warning=True,
            command=f"sickbay explain job/{job.name} -n {record.namespace}",
            at=status.since or "",
        )
    )
    return due


def digest(repairs: Iterable[NodeRepair], since: datetime, now: datetime) -> Message:
    """A summary of the time since the last one."""
    repairs = list(repairs)
    ended = [r for r in repairs if r.status.ended_at and parse_time(r.status.ended_at) >= since]
    opened = [r for r in repairs if not r.ended]
    outcomes = Counter(r.status.outcome or "none" for r in ended)
    waiting = [r for r in opened if r.status.phase in (Phase.NEEDS_HUMAN, Phase.WAITING_APPROVAL, Phase.PARKED)]
    lines = [f"ended: {', '.join(f'{n} {o}' for o, n in sorted(outcomes.items())) or 'none'}"]
    lines.append(f"open: {len(opened)}, of which {len(waiting)} wait for people or third parties")
    lines += [f"  {r.spec.node.name}: {r.status.needs or r.status.current.waits_for}" for r in waiting[:20]]
    return Message(
        key=f"digest/{rfc3339(now)}",
        about="",
        category=MessageCategory.DIGEST,
        node="",
        title="Sickbay digest",
        text="\n".join(lines),
        command="sickbay queue" if waiting else "",
        at=rfc3339(now),
    )
