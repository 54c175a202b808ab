"""From a record to a finding: one search that most lines fail, then the few rules whose words are in the text.

On a busy host nearly every line is of no interest, and a storm consists of few different texts. So the prefilter, one
alternation of every rule's words, comes first, and the texts judged last are remembered.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum
from functools import lru_cache

from sickbay.detect import accelerators, cpu, gpu, kernel, nic, pcie, services, storage, sxid, xid
from sickbay.detect.finding import DUPLICATE, NOTHING, Finding, Rule, Writer
from sickbay.detect.record import Origin, Record, parse

RULES: tuple[Rule, ...] = (
    *xid.RULES,
    *sxid.RULES,
    *gpu.RULES,
    *pcie.RULES,
    *cpu.RULES,
    *nic.RULES,
    *kernel.RULES,
    *storage.RULES,
    *accelerators.RULES,
    *services.RULES,
)
"""Every form known, in order; the first that applies decides."""

_BY_WORD: dict[str, list[int]] = {}
for _index, _rule in enumerate(RULES):
    for _word in _rule.words:
        _BY_WORD.setdefault(_word, []).append(_index)


def _alternation(words: list[str]) -> str:
    """A pattern that finds any of the words, shared beginnings written once: the search is several times faster."""
    if "" in words:
        return ""
    by_first: dict[str, list[str]] = {}
    for word in words:
        by_first.setdefault(word[0], []).append(word[1:])
    branches = [re.escape(first) + _alternation(rest) for first, rest in sorted(by_first.items())]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


PREFILTER = re.compile(_alternation(list(_BY_WORD)))
"""Finds a word of some rule. A line in which it finds none is of no interest to any of them.

The search tries every character that begins a word, so words begin with rare ones: `mdgpu`, not `amdgpu`.
"""

_REMEMBERED = 4096
"""Texts whose findings are kept: a storm repeats few texts, and each takes about 1 KiB."""

_SPACES = re.compile(r"\s*\n\s*")


class Trust(Enum):
    """Whose lines are believed."""

    OFFLINE = "offline"
    """People feed in text: what carries no origin is taken at its word, what carries a foreign one is not."""
    LIVE = "live"
    """On a host: the kernel for kernel rules, PID 1 for service rules, nobody for the rest."""


def judge(record: Record, trust: Trust = Trust.OFFLINE) -> Finding:
    """What one record means by itself."""
    text = record.text
    if PREFILTER.search(text) is None:
        return replace(NOTHING, malformed=True) if record.malformed else NOTHING
    booting = record.uptime is not None and record.uptime < cpu.BOOT_SECONDS
    finding = _judge_text(text, booting)
    if finding.fault is None and finding.cure is None and not finding.uuid:
        return replace(finding, malformed=True) if record.malformed else finding
    if not _believed(record.origin, finding.writer, trust):
        return NOTHING
    if record.repeats and finding.fault:
        return replace(finding, verdict=DUPLICATE, alone=finding.alone or finding.verdict)
    return finding


def _believed(origin: Origin, writer: Writer, trust: Trust) -> bool:
    if trust is Trust.LIVE:
        if writer is Writer.SERVICE:
            return origin is Origin.INIT
        return origin is Origin.KERNEL
    match writer:
        case Writer.KERNEL:
            return origin in (Origin.KERNEL, Origin.UNKNOWN)
        case Writer.SERVICE:
            return origin in (Origin.INIT, Origin.UNKNOWN)
        case Writer.TOOL:
            return True


@lru_cache(maxsize=_REMEMBERED)
def _judge_text(text: str, booting: bool) -> Finding:
    if "\n" not in text:
        return _judge_line(text, booting)
    findings = [_judge_line(_SPACES.sub(" ", text).strip(), booting)]
    findings += [_judge_line(parse(line).text, booting) for line in text.split("\n")[:64]]
    return max(findings, key=lambda f: (f.fault is not None, f.rank, ".xid." in (f.fault or "")))


def _judge_line(text: str, booting: bool) -> Finding:
    malformed = False
    for index in sorted({index for word, rules in _BY_WORD.items() if word in text for index in rules}):
        candidate = RULES[index]
        match = candidate.pattern.match(text)
        if match is None:
            continue
        finding = candidate.judge(match, booting)
        if finding is None:
            continue
        if finding.malformed:
            malformed = True
            continue
        return finding if finding.writer is candidate.writer else replace(finding, writer=candidate.writer)
    return replace(NOTHING, malformed=True) if malformed else NOTHING
