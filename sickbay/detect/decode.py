"""Kernel lines in, diagnoses out: the whole of detection that needs no host.

`each` judges every line by itself and gives one diagnosis per line, `fault` None where it is none; otherwise bursts are
grouped and lines of no interest give nothing. Input is read as it comes and never kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sickbay.detect.assemble import Assembler
from sickbay.detect.finding import Finding
from sickbay.detect.group import Diagnosis, Grouper
from sickbay.detect.judge import PREFILTER, Trust, judge
from sickbay.detect.moment import Moment
from sickbay.detect.record import MAX_LINE, Record, clean, parse


@dataclass(slots=True)
class Stats:
    """What was read."""

    lines: int = 0
    malformed: int = 0
    """Lines that began in a known form and could not be read."""
    faults: int = 0
    """Lines that tell of a fault."""


def decode_lines(
    lines: Iterable[str], each: bool = False, trust: Trust = Trust.OFFLINE, stats: Stats | None = None
) -> Iterator[Diagnosis]:
    """Judge lines. `stats` is counted up while the result is consumed."""
    stats = stats if stats is not None else Stats()
    return _each(lines, trust, stats) if each else _grouped(lines, trust, stats)


def _each(lines: Iterable[str], trust: Trust, stats: Stats) -> Iterator[Diagnosis]:
    for number, line in enumerate(lines, start=1):
        _, finding = judge_line(line, trust, stats)
        yield Diagnosis(
            fault=finding.fault,
            device=finding.device,
            verdict=finding.verdict,
            line=number,
            note=finding.note,
        )


def _grouped(lines: Iterable[str], trust: Trust, stats: Stats) -> Iterator[Diagnosis]:
    assembler, grouper = Assembler(), Grouper()
    for number, line in enumerate(lines, start=1):
        record, finding = judge_line(line, trust, stats)
        if record is None:
            continue
        finding, first = assembler.feed(record, finding, number)
        yield from grouper.feed(finding, Moment(record.uptime, record.wall, first), record.repeats)
    yield from grouper.rest()


_NO_FINDING = Finding(None, "ignore")


def judge_line(line: str, trust: Trust, stats: Stats) -> tuple[Record | None, Finding]:
    """Judge one line by itself. The record is None for lines that no rule is interested in; they are not even parsed.

    The journal may encode a message as numbers, so a JSON line is always parsed.
    """
    stats.lines += 1
    line = clean(line[:MAX_LINE])
    if PREFILTER.search(line) is None and not line.startswith('{"'):
        return None, _NO_FINDING
    record = parse(line)
    finding = judge(record, trust)
    stats.malformed += finding.malformed
    stats.faults += finding.fault is not None
    return record, finding
