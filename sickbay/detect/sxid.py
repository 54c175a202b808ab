"""NVSwitch SXids: `nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 20034, Fatal, Link 30 LTSSM Fault Up`.

The printed word is the driver's own decision for this chip, so: the word first, the table for the scope. A fatal error
of a link costs the GPUs on that link, one of the switch itself the whole box. After the line come details with the same
code (`Severity ..`, `Data {..}`): twins of it.
"""

from __future__ import annotations

import re

from sickbay.detect import tables
from sickbay.detect.finding import (
    DUPLICATE,
    HW_REPAIR,
    IGNORE,
    ISOLATE_FABRIC,
    ISOLATE_RESET,
    NODE_DRAIN_HW,
    OBSERVE,
    RESTART_APP,
    Finding,
    rule,
)

_HEAD = re.compile(
    r"nvidia-nvswitch\d{1,3}: SXid \((?:PCI:)?(?P<bus>[0-9a-fA-F:.]{5,16})\): (?P<code>\d{1,6}),?\s*(?P<text>.*)\Z",
    re.DOTALL,
)
_WORD = re.compile(r"(?P<word>Fatal|Non-?fatal|Correctable)\b,?\s*", re.IGNORECASE)
_LINK = re.compile(r"\bLink\s+(?P<link>\d{1,3})\b", re.IGNORECASE)
_DETAIL = re.compile(r"Severity\b|Data\s*\{", re.IGNORECASE)


def judge_sxid(match: re.Match[str], booting: bool) -> Finding:
    head = _HEAD.match(match.string, match.start())
    if head is None:
        return Finding(None, IGNORE, malformed=True)
    code, text = int(head["code"]), head["text"]
    fault = f"nvswitch.sxid.{code}"
    word = _WORD.match(text)
    if word is None and _DETAIL.match(text):
        return Finding(fault, DUPLICATE, head["bus"], alone=_verdict(code, "", bool(_LINK.search(text))))
    verdict = _verdict(code, word["word"].lower() if word else "", _LINK.search(text) is not None)
    return Finding(fault, verdict, head["bus"])


def _verdict(code: int, word: str, link: bool) -> str:
    row = tables.sxids().get(code)
    class_ = row.class_ if row else "by-word"
    if word == "fatal":
        box = class_ == "device-fatal" or not link
        return _PRINTS.get(class_) or (ISOLATE_FABRIC if box else ISOLATE_RESET)
    if word:
        return _MILD.get(class_, OBSERVE)
    return _SILENT.get(class_, OBSERVE)


_PRINTS = {"shutdown": NODE_DRAIN_HW, "overheat": HW_REPAIR}
"""Thermal shutdown of the switch, and an overheated transceiver: power or cooling, a ticket."""
_MILD = {"containable": RESTART_APP, "correctable": IGNORE, **_PRINTS}
"""The line says non-fatal or correctable."""
_SILENT = {
    "device-fatal": ISOLATE_FABRIC,
    "link-fatal": ISOLATE_RESET,
    "correctable": IGNORE,
    **_PRINTS,
}
"""The line carries no word."""

RULES = (rule(r"nvidia-nvswitch\d{1,3}: SXid\b", "SXid", judge_sxid),)
