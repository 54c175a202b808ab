"""NVLink errors: the registers of XID 74 and the units of XID 144 to 150.

XID 74 (up to NVLink 4) prints seven registers after the link number; some of their bits only follow another fault, some
count only when they repeat. XID 144-150 (NVLink 5) print unit, the driver's word, flags, link and registers:

    RLW_REMAP Fatal XC1 i0 Link 10 (0x00000082 0x00000040 ...)
                          │  │            │          └ ErrorStatus: which error of the unit
                          │  │            └ IntrInfo: sub-code, in two layouts, and the reason of a link event
                          │  └ link, -1 when bound to none
                          └ i non-zero: injected by a test, never acted upon

What the decode table says beats the printed word, because the word is Fatal also where software or the user took the
link down. Without a matching rule the word decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sickbay.detect import tables
from sickbay.detect.finding import FOLLOW_CAUSE, IGNORE, ISOLATE_RESET, OBSERVE, RESET_GPU, RESTART_APP

_HEX = re.compile(r"0x([0-9a-fA-F]{1,16})")
_LINK = re.compile(r"link\s*(?:id\s*)?[:#]?\s*-?\d{1,3}", re.IGNORECASE)

_UNIT = re.compile(
    r"(?P<unit>[A-Za-z][\w/]{1,60})\s+(?P<word>non-?fatal|fatal)\s+XC\s*(?P<xc>\d{1,3})\s+i\s*(?P<injected>\d{1,3})"
    r"\s+link\s*(?P<link>-?\d{1,4})(?:\s*[\[(](?P<registers>[0-9a-fA-FxX\s,]{0,300})[\])]?)?",
    re.IGNORECASE,
)

_REASON_SHIFT, _REASON_MASK = 20, 0x3F
_LAYOUT1_MASK, _LAYOUT2_MASK = 0x3FF, 0x7F
_ESCALATED1, _ESCALATED2 = 1 << 10, 1 << 7
"""In the two layouts: the unit asks for its second action, a reset."""


@dataclass(frozen=True, slots=True)
class Decoded:
    verdict: str
    note: str = ""


def decode_unit(xid: int, text: str) -> Decoded | None:
    """Judge the text of an XID 144-150. None when it is not of the known form."""
    match = _UNIT.search(text)
    if match is None:
        return None
    if int(match["injected"]):
        return Decoded(IGNORE, "injected by a test")
    registers = [int(word, 16) for word in _HEX.findall(match["registers"] or "")]
    if len(registers) >= 2 and (rule := _rule(xid, registers[0], registers[1])):
        return _outcome(rule, registers[0])
    if match["word"].lower() == "fatal":
        return Decoded(ISOLATE_RESET, "no rule for this unit; the driver says fatal")
    return Decoded(OBSERVE, "no rule for this unit; the driver says non-fatal")


def _rule(xid: int, intr: int, status: int) -> tables.NvlinkRule | None:
    reason = intr >> _REASON_SHIFT & _REASON_MASK
    for rule in tables.nvlink_rules().get((xid, reason, status), ()):
        if intr & _LAYOUT1_MASK == rule.layout1 or intr & _LAYOUT2_MASK == rule.layout2:
            return rule
    return None


def _outcome(rule: tables.NvlinkRule, intr: int) -> Decoded:
    match rule.outcome:
        case "reset":
            return Decoded(ISOLATE_RESET, rule.hint)
        case "by-154":
            return Decoded(RESTART_APP, "the recovery action (XID 154) decides; without one the job restarts")
        case "ignore-unless-escalated":
            bit = _ESCALATED1 if intr & _LAYOUT1_MASK == rule.layout1 else _ESCALATED2
            return Decoded(ISOLATE_RESET if intr & bit else IGNORE, rule.hint)
    return Decoded(IGNORE, rule.hint)


def _bits(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


_ACT = {
    0: _bits(8, 9, 12, 16, 17, 24, 28, 21, 22),
    2: _bits(0, 1, 2, 6, 13, 16, 17, 18, 19),
    3: _bits(16, 17, 18),
    4: _bits(18, 19, 21, 22, 24, 25, 27, 28),
}
"""Hardware, signal integrity and ECC bits: the GPU is reset, and repaired when it comes back. Bits 16-18 of register 3
are listed without a class, so they count as unknown errors, which act."""
_COUNT = {0: _bits(4, 5, 27, 29), 4: _bits(20, 23, 26, 29)}
"""Bits that matter only when they repeat or pass a threshold."""
_FOLLOW = {0: _bits(1, 20)}
"""Sympathetic bits: look at the peer."""
_IGNORED = {0: _bits(0, 23, 30)}
_REGISTERS = 7


def decode_registers(text: str) -> Decoded:
    """Judge the text of an XID 74. Without registers, or with a bit nobody lists, the default: reset the GPU."""
    registers = _registers(text)
    if registers is None or not any(registers):
        return Decoded(RESET_GPU)
    acting = [n for n, value in enumerate(registers) if value & ~_harmless(n)]
    if acting:
        return Decoded(RESET_GPU, "registers " + ", ".join(f"{n}: 0x{registers[n]:08x}" for n in acting))
    if any(value & _COUNT.get(n, 0) for n, value in enumerate(registers)):
        return Decoded(OBSERVE, "acted upon only when it repeats")
    if any(value & _FOLLOW.get(n, 0) for n, value in enumerate(registers)):
        return Decoded(FOLLOW_CAUSE, "the peer reports the cause")
    return Decoded(IGNORE)


def _harmless(register: int) -> int:
    if register in _ACT:
        return _COUNT.get(register, 0) | _FOLLOW.get(register, 0) | _IGNORED.get(register, 0)
    return 0xFFFFFFFF


def _registers(text: str) -> list[int] | None:
    """The seven registers after the link number; fewer when the line was cut, None when there are none.

    They are printed with or without `0x` and with or without `NVLink:`; the channel and pid before them must not be
    taken for registers, so the search begins at the link number.
    """
    link = _LINK.search(text)
    rest = text[link.end() :] if link else text
    words = _HEX.findall(rest) or re.findall(r"\b[0-9a-fA-F]{8}\b", rest)
    return [int(word, 16) for word in words[:_REGISTERS]] or None
