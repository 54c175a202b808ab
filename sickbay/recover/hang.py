"""Whether a job whose ranks all run stands still: by its steps, and by the phases that its policy tells of.

Steps tell, not pod phases. A policy may name phases in which a job makes no step and is well (setting up its
communicator, writing a checkpoint): within its longest time none is judged as a stall, and beyond it each is one. A few
ranks that are not where all the others are (they never joined, or never came out) name their nodes; that the others
wait says nothing about the others'.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sickbay.api.duration import parse_duration
from sickbay.api.recovery_policy import HangPhase
from sickbay.recover.ends import End
from sickbay.recover.signs import moment
from sickbay.recover.spans import Span
from sickbay.recover.view import Work, current, newest

QUIET = timedelta(seconds=60)
"""How long a job stands still before its logs are read, and how old what was read may be: a job that comes further
needs no reading."""
FEW_NODES = 2
"""Missing ranks on more nodes than that have one cause, which is none of the nodes."""


@dataclass(frozen=True)
class Stall:
    """Why the job is called stalled, and the ranks that are to blame where they can be told."""

    why: str
    missing: list[End] = field(default_factory=list)


@dataclass(frozen=True)
class _Pause:
    """A phase that some ranks are in."""

    phase: HangPhase
    since: datetime
    inside: frozenset[str]
    missing: tuple[str, ...]

    @property
    def until(self) -> datetime:
        return self.since + parse_duration(self.phase.max)


def stalled(work: Work) -> Stall | None:
    """None while the job comes further, or nobody can tell that it does not."""
    job, started, phases = work.view.job, moment(work.attempt.started), work.policy.hang.phases
    if job is None or started is None or (phases and not _logs_known(work, started)):
        return None
    pauses = [pause for phase in phases if (pause := _pause(work, phase, started)) is not None]
    over = next((pause for pause in pauses if pause.until <= work.now), None)
    if over is not None:
        return _too_long(work, over, len(job.ranks))
    if pauses:
        work.wake(min(pause.until for pause in pauses))
        return None
    return _no_step(work, started)


def _no_step(work: Work, started: datetime) -> Stall | None:
    standing = work.view.standing
    if not standing.expected or standing.since is None:
        return None
    resumed = max((s.left for spans in work.view.spans.values() for s in spans.values() if s.left), default=started)
    since, limit = max(standing.since, started, resumed), parse_duration(work.policy.hang.stall)
    if work.now - since < limit:
        work.wake(since + limit)
        return None
    last = "there was none yet" if standing.step is None else f"the last one was {standing.step}"
    behind = f"; behind the others: ranks {', '.join(standing.behind[:4])}" if standing.behind else ""
    why = f"no step for {work.policy.hang.stall}, {last}{behind}"
    return Stall(why, _ends(work, _never_joined(work), "it has reported no step, and the others wait at their first"))


def _never_joined(work: Work) -> tuple[str, ...]:
    """Ranks that have reported no step, where the others have reported their first one and none after it.

    A gang that has come further has all its ranks, whoever of them reports.
    """
    standing = work.view.standing
    return standing.silent if standing.step == work.attempt.first_step else ()


def _ends(work: Work, ranks: Iterable[str], why: str) -> list[End]:
    """The missing ranks as ends, where they are few enough to name their nodes."""
    pods = newest(current(work.view))
    found = [pods[rank] for rank in ranks if rank in pods]
    nodes, gang = {p.pod.node_name for p in found}, {p.pod.node_name for p in pods.values()}
    if len(nodes) > FEW_NODES or len(nodes) * 2 >= len(gang):
        return []
    return [
        End(p.rank, p.pod.node_name, p.pod.name, p.pod.uid, work.now, p.attempt, p.restart, how="Missing", reason=why)
        for p in found
    ]


# --- phases


def _logs_known(work: Work, started: datetime) -> bool:
    """Whether it is known well enough in which phases the ranks are. Asks for their logs where it is not."""
    hang, read = work.policy.hang, work.view.logs_read
    if not any(phase.from_ or phase.to for phase in hang.phases):
        return True
    since = max(work.view.standing.since or started, started)
    quiet = min([QUIET, parse_duration(hang.stall), *(parse_duration(phase.max) for phase in hang.phases)])
    if work.now - since < quiet:
        work.wake(since + quiet)
        return False
    if read is not None and work.now - read < QUIET:
        work.wake(read + QUIET)
        return True
    work.read_logs = True
    return False


def _pause(work: Work, phase: HangPhase, started: datetime) -> _Pause | None:
    """Who is in the phase, and who is missing there; None where nobody is in it."""
    places = {rank: _place(work, rank, phase, started) for rank in newest(current(work.view))}
    inside = {rank: span.entered for rank, span in places.items() if span is not None and span.inside and span.entered}
    if not inside:
        return None
    first = min(inside.values())
    since = max(first, work.view.standing.since or started)  # no step is made in a phase, by whatever clock
    outside = {rank: span for rank, span in places.items() if span is not None and rank not in inside}
    not_yet = [rank for rank, span in outside.items() if span.left is None or span.left < first]
    through = [rank for rank in outside if rank not in not_yet]
    missing = not_yet or (sorted(inside) if through else [])
    return _Pause(phase, since, frozenset(inside), tuple(missing))


def _place(work: Work, rank: str, phase: HangPhase, started: datetime) -> Span | None:
    """Where the rank is; None where nobody can tell."""
    known = work.view.spans.get(rank, {}).get(phase.name)
    if known is None and (phase.from_ or phase.to):
        return None
    read = known or Span()
    entered = read.entered if phase.from_ else started
    if entered is None:
        return read
    if phase.to:
        return read if phase.from_ else Span(entered, read.left, inside=read.left is None)
    steps = work.view.standing
    joined = steps.step is not None and (rank not in steps.silent or steps.step != work.attempt.first_step)
    return Span(entered, steps.since if joined else None, inside=not joined)


def _too_long(work: Work, pause: _Pause, ranks: int) -> Stall:
    name, limit = pause.phase.name, pause.phase.max
    told = f"; missing: ranks {', '.join(pause.missing[:4])}" if pause.missing else ""
    why = f"phase {name} has taken longer than {limit}: {len(pause.inside)} of {ranks} ranks are in it{told}"
    late = "has not come out of it" if pause.inside >= set(pause.missing) else "has not come so far"
    return Stall(why, _ends(work, pause.missing, f"phase {name} has taken longer than {limit}, and it {late}"))
