"""How far jobs have come, as their pods report it, and since when they have not come any further.

Kept in memory by our own monotonic clock (that the wall clock is set to another time is no hour without a step): a
restart takes the present step for new, so a stall is noticed one time later at most.
A job that never reports a step is never called stalled. What was known of a job says nothing about another object that
has got its name since: that one may be another program, or begin at zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sickbay.api import names
from sickbay.api.core import Pod
from sickbay.clock import Clock, seen_at
from sickbay.recover.job import JobId
from sickbay.recover.spans import Span
from sickbay.recover.view import RankPod, Standing

Run = tuple[int, int]
"""Our attempt and the restart by the job's own controller within it, as pods carry them."""


class ProgressBook:
    """See the module."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._best: dict[JobId, tuple[int, float]] = {}
        self._runs: dict[JobId, Run] = {}
        """The latest run of each job of which a pod was seen."""
        self._lives: dict[JobId, str] = {}
        """UID of the object that has the job's name now."""
        self._annotations: dict[JobId, str] = {}
        self._spans: dict[JobId, tuple[float, dict[str, dict[str, Span]]]] = {}

    def bind(self, id_: JobId, uid: str, attempt: int) -> bool:
        """The object that has the job's name now. True when that is news: another one's steps are forgotten, unless it
        is the next attempt of the same job, which we have made."""
        before = self._lives.get(id_)
        if before == uid:
            return False
        self._lives[id_] = uid
        if before is None or (attempt, 0) <= self._runs.get(id_, (0, 0)):
            self._begin(id_)
        return True

    def read_from(self, id_: JobId, annotation: str) -> bool:
        """The pod annotation in which this job reports its steps. True when it was another one so far: steps that were
        read there cannot be compared with those that are read here."""
        if annotation == self._annotation(id_):
            return False
        self._annotations[id_] = annotation
        self._begin(id_)
        return True

    def _annotation(self, id_: JobId) -> str:
        return self._annotations.get(id_, names.PROGRESS_STEP)

    def _begin(self, id_: JobId) -> None:
        """Nothing is known of the job, not even that it reports steps."""
        for book in (self._best, self._runs, self._spans):
            book.pop(id_, None)

    def _step(self, id_: JobId, pod: Pod) -> int | None:
        text = pod.annotations.get(self._annotation(id_), "")
        return int(text) if text.isdecimal() else None

    def note(self, id_: JobId, rank: RankPod, old: Pod | None) -> bool:
        """A rank's pod as it is now, and as it was. True when the job has come further.

        What is left of an earlier run or of another job, or is on its way out, says nothing about this one.
        """
        new, run = rank.pod, (rank.attempt, rank.restart)
        step = self._step(id_, new)
        if step is None or not rank.active or run < self._runs.get(id_, run) or not self._is_of(id_, rank):
            return False
        if run > self._runs.get(id_, run):
            self.restart(id_)
        self._runs[id_] = run
        before = self._step(id_, old) if old is not None and old.uid == new.uid else None
        if step == before:
            return False
        known = self._best.get(id_)
        began_anew = before is not None and step < before  # within its pod, from a checkpoint
        if known is not None and step <= known[0] and not began_anew:
            return False
        self._best[id_] = (step, self._clock.monotonic())
        return True

    def _is_of(self, id_: JobId, rank: RankPod) -> bool:
        return not rank.job or rank.job == self._lives.get(id_, rank.job)

    def restart(self, id_: JobId) -> None:
        """A new attempt begins: it goes on from a checkpoint, which may lie before the best step so far."""
        self._spans.pop(id_, None)
        known = self._best.pop(id_, None)
        if known is not None:
            self._best[id_] = (-1, self._clock.monotonic())

    def standing(self, id_: JobId, pods: Iterable[RankPod]) -> Standing:
        known = self._best.get(id_)
        if known is None:
            return Standing()
        since = seen_at(self._clock, known[1])
        if known[0] < 0:
            return Standing(since=since, expected=True)
        run = self._runs.get(id_, (0, 0))
        mine = [p for p in pods if p.active and (p.attempt, p.restart) >= run and self._is_of(id_, p)]
        steps = {p.rank: self._step(id_, p.pod) for p in mine}
        behind = tuple(sorted(rank for rank, step in steps.items() if step is None or step < known[0]))
        silent = tuple(sorted(rank for rank, step in steps.items() if step is None))
        silent = silent if len(silent) < len(steps) else ()
        return Standing(known[0], since, behind, silent, expected=True)

    def keep_spans(self, id_: JobId, by_uid: dict[str, dict[str, Span]]) -> None:
        """Where ranks are in the phases of their job, by pod UID, as their logs tell now."""
        self._spans[id_] = self._clock.monotonic(), by_uid

    def spans(self, id_: JobId, pods: Iterable[RankPod]) -> tuple[datetime | None, dict[str, dict[str, Span]]]:
        """When the logs were read, and what they told, by rank."""
        if id_ not in self._spans:
            return None, {}
        read, by_uid = self._spans[id_]
        return seen_at(self._clock, read), {p.rank: by_uid[p.pod.uid] for p in pods if p.pod.uid in by_uid}

    def jobs(self) -> list[JobId]:
        """Jobs of which something is known."""
        return list({**self._best, **self._runs, **self._lives, **self._annotations, **self._spans})

    def forget(self, id_: JobId) -> None:
        self._begin(id_)
        self._lives.pop(id_, None)
        self._annotations.pop(id_, None)
