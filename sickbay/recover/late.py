"""Late evidence: a fault that shows up to five minutes after a failure still tells what ended the job.

Detectors report within seconds, most of them; a link that was retrained, or a node that fell silent, is known minutes
later, when the job has long been restarted. A verdict of Transient or Unknown becomes Hardware then: the node is a
suspect, the next attempt keeps away from it, and the retry counts where it belongs. A job that runs again is not
stopped for it: that is for the hardware loop, by a planned move.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sickbay.api.job_recovery import JobAttempt, JobRecovery
from sickbay.api.words import JobAction, JobVerdict, Mode, RecoveryPhase
from sickbay.clock import rfc3339
from sickbay.recover import suspects
from sickbay.recover.choose import choose
from sickbay.recover.classify import GAP, STALLED, classify
from sickbay.recover.evidence import Verdict
from sickbay.recover.gather import evidence_of
from sickbay.recover.judge import go
from sickbay.recover.kept import ends_of
from sickbay.recover.signs import AFTER, moment
from sickbay.recover.view import Work

GRACE = timedelta(minutes=1)
"""So long after the window a fault that began within it may come to be known here."""
OPEN = (JobVerdict.TRANSIENT, JobVerdict.UNKNOWN)
SETTLED = (
    RecoveryPhase.TEARING_DOWN,
    RecoveryPhase.HELD,
    RecoveryPhase.RUNNING,
    RecoveryPhase.RECOVERED,
)
"""Phases in which a new suspect does no harm. A gang that is just being placed may be on its way to that very node; it
is looked at again when it runs."""


def open_incident(record: JobRecovery, now: datetime) -> JobAttempt | None:
    """The latest failed attempt, while late evidence may still change its verdict."""
    failed = next((a for a in reversed(record.status.attempts) if a.verdict), None)
    if failed is None or failed.verdict not in OPEN or failed.fingerprint == GAP or not failed.times.fault:
        return None  # once the plug-in is back nothing shows any more why the rank was refused
    at = moment(failed.times.fault)
    return failed if at is not None and now <= at + AFTER + GRACE else None


def is_open(record: JobRecovery, now: datetime) -> bool:
    """Whether late evidence matters, or a failure is being judged."""
    return record.status.phase == RecoveryPhase.FAILING or open_incident(record, now) is not None


def revise(work: Work) -> None:
    incident = open_incident(work.record, work.now)
    if incident is None or work.phase not in SETTLED:
        return
    stalled = (incident.evidence or ["it stood still"])[0] if incident.fingerprint == STALLED else ""
    evidence = evidence_of(work, incident, ends_of(incident), stalled)
    verdict = classify(evidence)
    if verdict.verdict != JobVerdict.HARDWARE or not verdict.conclusive:
        return
    _take_over(work, incident, verdict)


def _take_over(work: Work, incident: JobAttempt, verdict: Verdict) -> None:
    reason = f"{verdict.reasons[0]} (known later; before that: {incident.verdict})"
    incident.verdict, incident.fingerprint = verdict.verdict.value, verdict.fingerprint[:512]
    incident.evidence = [line[:512] for line in (reason, *verdict.reasons[1:])][:8]
    incident.times.localised = rfc3339(work.now)
    work.note("JobVerdict", f"{verdict.verdict}: {reason}", warning=True)
    if work.policy.mode != Mode.ACT:
        return
    suspects.name_suspects(work, verdict.suspects)
    if work.view.acting and work.phase == RecoveryPhase.HELD and incident.action == JobAction.ESCALATE:
        before = work.earlier(incident)
        choice = choose(verdict, before, incident.step, work.policy.budget, work.now, work.forgotten)
        incident.action = choice.action.value
        go(work, choice)
