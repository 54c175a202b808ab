"""The attempt is over: gather, classify, choose, and go where the choice leads."""

from __future__ import annotations

from datetime import timedelta

from sickbay.api.words import JobAction, JobVerdict, Mode, RecoveryPhase
from sickbay.clock import parse_time, rfc3339
from sickbay.recover import suspects
from sickbay.recover.choose import Choice, choose
from sickbay.recover.classify import STALLED, classify
from sickbay.recover.ends import End
from sickbay.recover.evidence import Evidence, Verdict
from sickbay.recover.gather import gather
from sickbay.recover.kept import keep
from sickbay.recover.room import refused, requeue
from sickbay.recover.stops import RELEASE, hold, how_to_resume, tear_down
from sickbay.recover.symptoms import ended
from sickbay.recover.view import Work, current, newest

SETTLE = timedelta(seconds=5)
"""How long evidence may come in before an inconclusive verdict is final: detectors report within seconds."""
ISOLATION_PATIENCE = timedelta(seconds=30)
"""How long a suspect's isolation is waited for before the job's own exclusion has to do."""


def fail(work: Work, ends: list[End], stalled: str = "") -> None:
    """The attempt is over. Nothing of it may run on while it is judged."""
    attempt = work.attempt
    if not attempt.started:
        attempt.unplaced = max(attempt.unplaced, len(refused(newest(current(work.view)).values())))
    work.status.ranks = 0  # the next attempt is tried at its full size again
    first = min((end.at for end in ends), default=work.now)
    attempt.times.fault, attempt.times.detected = rfc3339(first), rfc3339(work.now)
    told = stalled or (ends[0].words() if len(ends) == 1 else f"{len(ends)} ranks ended")
    message = f"attempt {attempt.n} is over: {told}"
    work.enter(RecoveryPhase.FAILING, message, SETTLE, "judged on what is known")
    work.note("JobFailing", message, warning=True)
    judge(work, ends, stalled)


def judge(work: Work, ends: list[End] | None = None, stalled: str = "") -> None:
    """Conclude once the evidence is conclusive, or no more is waited for."""
    attempt = work.attempt
    found = ended(work) if ends is None else ends
    if not stalled and attempt.fingerprint == STALLED:
        found = [end for end in found if not end.terminated]  # those are the ones we took down ourselves
        stalled = "" if found else (attempt.evidence or ["it stood still"])[0]
    evidence = gather(work, found, stalled)
    verdict = classify(evidence)
    _remember(work, evidence, verdict)
    deadline = parse_time(work.status.deadline) if work.status.deadline else work.now
    if not verdict.conclusive and work.now < deadline:
        work.wake(deadline)
        return
    conclude(work, evidence, verdict)


def _remember(work: Work, evidence: Evidence, verdict: Verdict) -> None:
    """Keep what is known on the record: pods and their logs will be gone by the next look."""
    attempt, root = work.attempt, evidence.root
    if root is None and not evidence.stalled and attempt.root_rank:
        return  # nothing is to be seen any more; what was seen before stands
    attempt.ends = keep(evidence)
    attempt.root_rank = root.rank if root is not None else ""
    attempt.root_node = root.node if root is not None else ""
    attempt.fingerprint = verdict.fingerprint[:512]
    attempt.evidence = [line[:512] for line in verdict.reasons[:8]]
    attempt.step = evidence.step if evidence.step is not None else attempt.step
    attempt.placement = dict(evidence.placement)
    if root is not None:
        attempt.times.fault = rfc3339(root.at)


def conclude(work: Work, evidence: Evidence, verdict: Verdict) -> None:
    """The verdict stands; do what it leads to, or say what would be done."""
    attempt, status = work.attempt, work.status
    attempt.verdict, attempt.ended = verdict.verdict.value, rfc3339(work.now)
    status.fingerprint = attempt.fingerprint
    work.consumed |= {end.uid for end in evidence.ends}
    if attempt.unplaced and work.view.acting and verdict.verdict in (JobVerdict.TRANSIENT, JobVerdict.UNKNOWN):
        requeue(work, f"{attempt.unplaced} ranks had found no place, and the others did not wait: {verdict.reasons[0]}")
        return
    if verdict.verdict == JobVerdict.HARDWARE:
        attempt.times.localised = rfc3339(work.now)
    choice = choose(verdict, work.before, evidence.step, work.policy.budget, work.now, work.forgotten)
    attempt.action = choice.action.value
    work.note("JobVerdict", f"{verdict.verdict}: {choice.message}", warning=verdict.verdict != JobVerdict.POLICY)
    if work.policy.mode == Mode.ACT:
        suspects.name_suspects(work, verdict.suspects)
    job = work.view.job
    if not work.view.acting and not (job is not None and job.held):  # what we have suspended we let go again
        why = job.foreign if job is not None and job.foreign else "the policy only observes"
        work.enter(RecoveryPhase.FAILING, f"advice ({why}): {choice.action}: {choice.message}")
        return
    go(work, choice)


def go(work: Work, choice: Choice) -> None:
    """Enter the phase that carries the choice out."""
    match choice.action:
        case JobAction.NONE:
            work.enter(RecoveryPhase.STOPPED, choice.message)
        case JobAction.STOP:
            work.enter(RecoveryPhase.STOPPED, f"{choice.message}; {how_to_resume(work)}")
            work.note("JobStopped", work.status.message, warning=True)
        case JobAction.ESCALATE:
            hold(work, choice.message)
        case JobAction.HOLD:
            work.enter(RecoveryPhase.HELD, choice.message, choice.pause, RELEASE)
        case JobAction.RESCHEDULE:
            work.enter(RecoveryPhase.ISOLATING, choice.message, ISOLATION_PATIENCE, "go on with the exclusion alone")
        case _:
            tear_down(work, choice.message)
