"""Expressions of a scenario, compiled against a world and judged again only when it matters.

`now` is the time since the start of the run. An expression has a value or an error, never both; an error is neither
true nor false, and what it means is for the caller to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from cel_expr_python import cel

from sickbay.api.cel import CelError, clean, extensions
from sickbay.sim.scenario.functions import View, moment
from sickbay.sim.world import World

_NOW = re.compile(r"\bnow\b")
_TIMELY = re.compile(r"\b(now|nodeAt|same|metric|Lease)\b")
_LOOKS = re.compile(
    r"(?:node|nodeAt|repair|repairs|pool|hold|object|job|recovery|pods|tasks|actions|calls|events|writes|messages"
    r"|same|tainted|cordoned|healthy|metric)\((?:[^()]|\([^()]*\))*\)(?:\.\??[A-Za-z_]\w*(?!\w*\()|\[[^\]]*\])*"
)
_NO_KEY = re.compile(r'Key not found in map : "(.*)"')
SHOWN = 400
"""Characters of a value that people are shown."""


@lru_cache(maxsize=1)
def _checking_environment() -> Any:
    """Types and functions without a world: enough to compile, never to evaluate."""
    return _environment(View.__new__(View))


def _environment(view: View) -> Any:
    functions = cel.CelExtension("scenario", view.declarations())
    return cel.NewEnv(variables={"now": cel.Type.DURATION}, extensions=[*extensions(), functions])


def check(text: str, boolean: bool = True) -> None:
    """Raises CelError where the text does not compile, or is surely no condition."""
    try:
        kind = _checking_environment().compile(text).return_type()
    except RuntimeError as error:
        raise CelError(clean(error)) from None
    wanted = cel.Type.BOOL if boolean else cel.Type.LIST
    if kind != cel.Type.DYN and kind.name() != wanted.name() and not (not boolean and kind.name().startswith("LIST")):
        raise CelError(f"is {kind.name()}, not {'a condition' if boolean else 'a list'}")


class Expressions:
    """The environment of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.view = View(world)
        self._env = _environment(self.view)

    def compile(self, text: str) -> Expression:
        """Raises CelError naming the place in the text."""
        try:
            compiled = self._env.compile(text)
        except RuntimeError as error:
            raise CelError(clean(error)) from None
        return Expression(text, compiled, self)

    @property
    def now(self) -> timedelta:
        return timedelta(seconds=self._world.loop.time())


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an expression said at one moment: a value, or an error."""

    value: Any = None
    error: str = ""

    @property
    def true(self) -> bool:
        return not self.error and self.value is True


class Expression:
    """One compiled expression."""

    def __init__(self, text: str, compiled: Any, expressions: Expressions) -> None:
        self.text = text
        self._compiled, self._expressions = compiled, expressions
        self._last: Verdict | None = None
        self._seen: dict[str, float] = {}
        self.timely = _TIMELY.search(text) is not None
        """Whether it may come out otherwise although nothing has changed but the time, or a Lease."""

    def judge(self) -> Verdict:
        """The verdict at this moment; the last one where nothing it looked at has changed."""
        view = self._expressions.view
        if self._last is not None and all(view.version(read) == seen for read, seen in self._seen.items()):
            return self._last
        view.reads = {"now"} if _NOW.search(self.text) else set()
        view.absent = {}
        self._last = self._evaluate()
        self._seen = {read: view.version(read) for read in view.reads}
        return self._last

    def _evaluate(self) -> Verdict:
        try:
            value = self._compiled.eval(data={"now": self._expressions.now})
            if value.type() in (cel.Type.ERROR, cel.Type.UNKNOWN):
                return Verdict(error=self._told(clean(value.plain_value())))
            return Verdict(value.plain_value())
        except (RuntimeError, TypeError, ValueError) as error:
            return Verdict(error=self._told(clean(error)))

    def _told(self, error: str) -> str:
        """The error, and where it is a key asked for right of a function: what that function did not find."""
        key = _NO_KEY.search(error)
        absent = self._expressions.view.absent
        if key is None or not absent or f").{key[1]}" not in self.text:
            return error
        return f"{error}: {'; '.join(absent)}"

    def explain(self) -> list[str]:
        """What the parts of the expression that look at the world see, one line each."""
        lines = []
        for look in dict.fromkeys(_LOOKS.findall(self.text)):
            try:
                verdict = self._expressions.compile(look).judge()
            except CelError:
                continue
            lines.append(f"{look} = {verdict.error or show(verdict.value)}")
        return lines


def show(value: Any) -> str:
    """A value as people read it in a report."""
    if isinstance(value, timedelta):
        return moment(value.total_seconds())
    text = repr(_ordered(value)) if not isinstance(value, str) else f"'{value}'"
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def _ordered(value: Any) -> Any:
    """The same value with the keys of its maps in order: the library gives them in another one each time."""
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value, key=str)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value
