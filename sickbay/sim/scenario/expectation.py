"""Expectations: what must be true, and when. This module reads them; `judge` decides them during a run."""

from __future__ import annotations

from dataclasses import dataclass

from sickbay.api.cel import CelError
from sickbay.sim.scenario.document import Reader
from sickbay.sim.scenario.judgement import check

FORMS = ("by", "at", "always", "never", "count")


@dataclass(frozen=True, slots=True)
class Expectation:
    """One line of `expect`.

    form     by: true at some moment up to `start`; at: true at `start`; always, never: over `start` to `end`
             (`end` None = the end of the run); count: the list has `wanted` elements at the end
    """

    form: str
    text: str
    """The CEL expression."""
    file: str
    line: int
    start: float = 0.0
    end: float | None = None
    wanted: int = 0

    def moments(self) -> list[float]:
        """The moments the expectation names, in seconds."""
        return [self.start] if self.end is None else [self.start, self.end]

    def __str__(self) -> str:
        if self.form == "count":
            return f"count: {self.text}, is: {self.wanted}"
        if self.form in ("by", "at"):
            return f"{self.form} {self.start:g}s: {self.text}"
        window = f" from {self.start:g}s" if self.start else ""
        window += f" to {self.end:g}s" if self.end is not None else ""
        return f"{self.form}{window}: {self.text}"


def expression(reader: Reader, key: str, boolean: bool = True) -> str:
    """The CEL expression under `key`, which must compile and be a condition (or else a list)."""
    text = reader.text(key)
    try:
        check(text, boolean)
    except CelError as error:
        raise reader.error(key, f"{text!r}: {error}") from None
    return text


def read_expectation(reader: Reader) -> Expectation:
    given = [form for form in FORMS if reader.has(form)]
    if len(given) != 1:
        raise reader.error("", f"needs one of {', '.join(FORMS)}, not {' and '.join(given) or 'none'}")
    form = given[0]
    place = {"file": reader.mapping.file, "line": reader.mapping.line}
    if form == "count":
        return Expectation(form, expression(reader, "count", boolean=False), wanted=reader.integer("is"), **place)  # type: ignore[arg-type]
    text = expression(reader, "that")
    if form in ("by", "at"):
        return Expectation(form, text, start=reader.seconds(form), **place)  # type: ignore[arg-type]
    if not reader.boolean(form, True):
        raise reader.error(form, "must be true; write the opposite form instead")
    start, end = reader.seconds("from", 0.0), reader.seconds("to") if reader.has("to") else None
    if end is not None and end < start:
        raise reader.error("to", "is before from")
    return Expectation(form, text, start=start, end=end, **place)  # type: ignore[arg-type]
