"""Judging expectations during a run: after each write, and when their moments come."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sickbay.sim.scenario.expectation import Expectation
from sickbay.sim.scenario.functions import moment
from sickbay.sim.scenario.judgement import Expression, Expressions, Verdict, show

LAST_EVENTS = 10
_NAMES = re.compile(r"'([^']+)'|\"([^\"]+)\"")


@dataclass(slots=True)
class Outcome:
    """How one expectation, or one other thing that must hold, came out."""

    text: str
    ok: bool
    line: int = 0
    at: float = 0.0
    """For a failure: when it was seen."""
    seen: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)


class Case:
    """One expectation in one run. `outcome` is set once it is decided."""

    def __init__(self, expectation: Expectation, expressions: Expressions) -> None:
        self.expectation = expectation
        self.outcome: Outcome | None = None
        self._expressions = expressions
        self._expression: Expression = expressions.compile(expectation.text)
        self.timely = self._expression.timely

    def judge_now(self, whole: bool = True) -> None:
        """Something has changed. Not `whole`: entries of this moment are still to be applied, so that what must hold
        throughout is not asked yet."""
        if self.outcome is not None:
            return
        wanted, now = self.expectation, self._expressions.now.total_seconds()
        if wanted.form == "by" and now <= wanted.start and self._expression.judge().true:
            self._decide(True, now)
        elif whole and self._in_window(now):
            self._hold(now)

    def judge_moment(self, last: bool = False) -> None:
        """One of its own moments has come, and nothing more can happen at it; `last` = the run is over."""
        self.judge_now()
        wanted, now = self.expectation, self._expressions.now.total_seconds()
        if self.outcome is None and wanted.form in ("always", "never") and now == wanted.start:
            self._hold(now)
        if self.outcome is not None:
            return
        if wanted.form == "by" and (now >= wanted.start or last):
            self._decide(False, now)
        elif wanted.form == "at" and (now >= wanted.start or last):
            verdict = self._expression.judge()
            self._decide(verdict.true, now, verdict)
        elif wanted.form in ("always", "never") and (last or (wanted.end is not None and now >= wanted.end)):
            self._decide(True, now)
        elif wanted.form == "count" and last:
            self._count(now)

    def _in_window(self, now: float) -> bool:
        """What holds until a moment need not outlive what happens at it, and what begins at one begins after it: an
        entry of the timeline and what follows from it take no time here."""
        wanted = self.expectation
        if wanted.form not in ("always", "never"):
            return False
        return (wanted.start < now or now == wanted.start == 0) and (wanted.end is None or now < wanted.end)

    def _hold(self, now: float) -> None:
        verdict = self._expression.judge()
        good = verdict.true if self.expectation.form == "always" else verdict.value is False
        if not good:
            self._decide(False, now, verdict)

    def _count(self, now: float) -> None:
        verdict = self._expression.judge()
        found = len(verdict.value) if isinstance(verdict.value, list) else -1
        self._decide(found == self.expectation.wanted, now, verdict)

    def _decide(self, ok: bool, now: float, verdict: Verdict | None = None) -> None:
        outcome = self.outcome = Outcome(str(self.expectation), ok, self.expectation.line, now)
        if ok:
            return
        verdict = verdict or self._expression.judge()
        outcome.seen.append(verdict.error or f"the expression is {show(verdict.value)}")
        outcome.seen += self._expression.explain()
        outcome.events = self._last_events()

    def _last_events(self) -> list[str]:
        """The last Events of the objects that the expression names."""
        names = dict.fromkeys(a or b for a, b in _NAMES.findall(self.expectation.text))
        found = []
        for name in names:
            for event in self._expressions.view.events(name.rpartition("/")[2]):
                at = float(event["at"].removesuffix("s"))
                found.append((at, f"{moment(at)} {name} {event['reason']}: {event['message']}"))
        return [text for _, text in sorted(found)[-LAST_EVENTS:]]
