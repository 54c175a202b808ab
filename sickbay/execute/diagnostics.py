"""Active diagnostics of Validate: tests that load the hardware, up to the level that the plan asks for.

They run when everything that can be seen without them is well, on the node's agent or on the pool's back-end, as one
act for each try. What is found is pass or fail. A test that broke, never ended or was never begun has found nothing:
nothing is confirmed then, and it is tried again a few times; when that was in vain, people look. A test that was left
out never counts as passed.

A pass holds for the boot it was made in, and until a fault of the incident comes back.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sickbay.api.duration import format_duration
from sickbay.api.objectnames import act_key
from sickbay.api.words import DIAGNOSE
from sickbay.clock import parse_time, rfc3339
from sickbay.execute.backends import Backend, Backends
from sickbay.execute.progress import Look
from sickbay.providers.base import Act, ActState, Ambiguous, Observation, ProviderError, Target, Transient

TRIES = 3
"""How often diagnostics that found nothing are run, at most."""
PAUSE = timedelta(minutes=1)
"""Between a try that found nothing and the next."""
NOT_BEGUN = timedelta(minutes=5)
"""After which a try that nobody has begun is given up."""
LONGEST = {1: timedelta(minutes=5), 2: timedelta(minutes=30), 3: timedelta(hours=4)}
"""How long one try may run by level: several times what level 1 (a minute) and 2 (15 minutes) are meant to take."""

PASSED, PASSED_AT = "diagnosed", "diagnosedAt"
"""Keys of the report: what passed in which boot (`<level>@<boot>`), and when."""
TRY, TRY_SINCE, NEXT_TRY, FOUND = "diagnosis", "diagnosisSince", "diagnosisAfter", "diagnosisFound"
"""The number of the try, its beginning, the earliest next one, and what the last one said."""
RESULT = "result"
"""Key of an act's proof: `pass` or `fail`."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What one look at the diagnostics has found. `passed`, `failed` or `given_up` are ends."""

    text: str = ""
    passed: bool = False
    failed: bool = False
    given_up: bool = False
    facts: dict[str, str] = field(default_factory=dict)


def wanted(look: Look) -> tuple[int, str]:
    """The level and the names of further checks that the plan asks for."""
    level = look.current.args.get("level", "")
    return int(level) if level.isdecimal() else 0, look.current.args.get("checks", "")


class Diagnostics:
    """See the module. Holds nothing: what it needs to know stands in the report."""

    def __init__(self, backends: Backends) -> None:
        self._backends = backends

    async def look(self, look: Look) -> Diagnosis:
        """One look; does not wait. Raises what the permit raises."""
        level, checks = wanted(look)
        if (not level and not checks) or _still_passed(look, level):
            return Diagnosis(passed=True)
        backend = self._backends.choose(look.repair, DIAGNOSE, look.node)
        if backend is None:
            back_end = look.repair.spec.plan.provider.name
            return _nothing(look, f"{_what(level, checks)} cannot be run: back-end {back_end} has none")
        after = look.report.proof.get(NEXT_TRY, "")
        if after and look.now < parse_time(after) and not look.late:
            return Diagnosis(look.report.proof.get(FOUND, ""))
        return await self._try(look, backend, level, checks)

    async def _try(self, look: Look, backend: Backend, level: int, checks: str) -> Diagnosis:
        number = int(look.report.proof.get(TRY) or 1)
        act = _act(look, number, level, checks)
        look.check()
        try:
            seen = await backend.observe(act)
        except Transient as error:
            return _nothing(look, f"{backend.name} cannot be asked for its diagnostics: {error}")
        since = look.report.proof.get(TRY_SINCE, "")
        if seen.state is ActState.ABSENT and (backend.keeps_keys or not since):
            return await self._begin(look, backend, act, number)
        if seen.state is ActState.DONE and seen.proof.get(RESULT) == "pass":
            facts = {PASSED: _pass(look, level), PASSED_AT: rfc3339(look.now)}
            return Diagnosis(f"{_what(level, checks)} passed", passed=True, facts=facts)
        if seen.state is ActState.DONE and seen.proof.get(RESULT) == "fail":
            return Diagnosis(f"{_what(level, checks)} failed: {seen.message}", failed=True)
        if seen.state in (ActState.DONE, ActState.FAILED):
            return await self._found_nothing(look, backend, act, seen.message or "it ended without a result")
        over = _over(look.now, parse_time(since) if since else look.now, level, seen)
        if over:
            return await self._found_nothing(look, backend, act, over)
        text = f"{_what(level, checks)} run on {backend.name}: {seen.message or 'under way'}"
        return _nothing(look, text, {TRY_SINCE: since or rfc3339(look.now)})

    async def _begin(self, look: Look, backend: Backend, act: Act, number: int) -> Diagnosis:
        if look.late:
            return _nothing(look, "the time was over before the diagnostics could begin")
        await look.permit()
        look.check()
        facts = {TRY: str(number), TRY_SINCE: rfc3339(look.now), NEXT_TRY: ""}
        try:
            await backend.submit(act)
        except Ambiguous as error:
            return Diagnosis(f"asked {backend.name} for diagnostics; the answer was lost ({error})", facts=facts)
        except ProviderError as error:
            return await self._found_nothing(look, backend, act, str(error))
        return Diagnosis(f"{_what(*wanted(look))} begin on {backend.name}", facts=facts)

    async def _found_nothing(self, look: Look, backend: Backend, act: Act, why: str) -> Diagnosis:
        """Not passed and not failed. The act is taken back where it has not begun."""
        with suppress(ProviderError):  # then it ends by itself; its key is not asked for again
            await backend.withdraw(act)
        number = int(look.report.proof.get(TRY) or 1)
        text = f"{_what(*wanted(look))} found nothing in {number} of {TRIES} tries: {why}"
        if number >= TRIES:
            return Diagnosis(text, given_up=True)
        facts = {TRY: str(number + 1), TRY_SINCE: "", NEXT_TRY: rfc3339(look.now + PAUSE), FOUND: text[:500]}
        return _nothing(look, text, facts)


def _nothing(look: Look, text: str, facts: dict[str, str] | None = None) -> Diagnosis:
    """Nothing is confirmed so far; at the ceiling that is the last word."""
    return Diagnosis(text, given_up=look.late, facts=facts or {})


def _over(now: datetime, since: datetime, level: int, seen: Observation) -> str:
    """Why this try is given up; empty while it is waited for."""
    if not seen.begun:
        late = now - since >= NOT_BEGUN
        return f"not begun within {format_duration(NOT_BEGUN)}: {seen.message}" if late else ""
    longest = LONGEST.get(level, LONGEST[3])
    return f"no end after {format_duration(longest)}" if now - since >= longest else ""


def _still_passed(look: Look, level: int) -> bool:
    proof = look.report.proof
    if proof.get(PASSED) != _pass(look, level):
        return False
    cleared = [parse_time(fault.cleared_at) for fault in look.repair.spec.faults if fault.cleared_at]
    return all(moment <= parse_time(proof[PASSED_AT]) for moment in cleared)


def _pass(look: Look, level: int) -> str:
    return f"{level}@{look.node.boot_id}"


def _what(level: int, checks: str) -> str:
    named = f"checks {checks}" if checks else ""
    levels = f"diagnostics up to level {level}" if level else ""
    return " and ".join(text for text in (levels, named) if text)


def _act(look: Look, number: int, level: int, checks: str) -> Act:
    node, uid = look.repair.spec.node, look.repair.metadata.uid
    step = look.current.step if number == 1 else f"{look.current.step}.{number}"
    return Act(
        key=act_key(uid, step, look.current.attempt),
        action=DIAGNOSE,
        target=Target(node.name, node.uid, node.provider_id, look.node.boot_id),
        repair=look.repair.metadata.name,
        args={"level": str(level)} | ({"checks": checks} if checks else {}),
        owner=uid,
        timeout=max(60.0, min(LONGEST.get(level, LONGEST[3]), look.deadline - look.now).total_seconds()),
    )
