"""What one line means.

A Finding is a line's verdict before anything around it is looked at. `verdict` uses the words of the case files; they
are ranked, because where several lines tell of one fault the strongest decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

IGNORE = "ignore"
OBSERVE = "observe"
PLAN_REPAIR = "observe+plan-hw-repair"
RESTART_APP = "restart-app"
FOLLOW_CAUSE = "follow-cause"
DUPLICATE = "duplicate"
CLEAR = "clear"
DRAIN = "drain"
RESET_AT_JOB_END = "drain-at-job-end+reset-gpu"
REBOOT_AT_JOB_END = "drain-at-job-end+reboot"
RESET_GPU = "drain+reset-gpu"
ISOLATE_RESET = "isolate+drain+reset-gpu"
ISOLATE_FABRIC = "isolate+drain+reset-fabric"
REBOOT = "drain+reboot"
ISOLATE_REBOOT = "isolate+drain+reboot"
NODE_REBOOT = "isolate-node+drain+reboot"
HW_REPAIR = "drain+hw-repair"
ISOLATE_HW = "isolate+hw-repair"
ISOLATE_NODE = "isolate-node"
NODE_DRAIN = "isolate-node+drain"
NODE_HW = "isolate-node+hw-repair"
NODE_DRAIN_HW = "isolate-node+drain+hw-repair"

RANKED = (
    IGNORE,
    CLEAR,
    DUPLICATE,
    FOLLOW_CAUSE,
    OBSERVE,
    PLAN_REPAIR,
    RESTART_APP,
    RESET_AT_JOB_END,
    REBOOT_AT_JOB_END,
    DRAIN,
    RESET_GPU,
    ISOLATE_RESET,
    ISOLATE_FABRIC,
    REBOOT,
    ISOLATE_REBOOT,
    ISOLATE_NODE,
    NODE_DRAIN,
    NODE_REBOOT,
    HW_REPAIR,
    ISOLATE_HW,
    NODE_HW,
    NODE_DRAIN_HW,
)
"""Every verdict word, weakest first: the stronger remedy covers the weaker (DESIGN section 3)."""

RANK = {word: rank for rank, word in enumerate(RANKED)}

NO_FAULT_OF_ITS_OWN = frozenset({IGNORE, FOLLOW_CAUSE, DUPLICATE, CLEAR})


class Writer(Enum):
    """Who may write the lines of a rule. The live agent believes nobody else."""

    KERNEL = "kernel"
    SERVICE = "service"
    """PID 1 on the units it runs."""
    TOOL = "tool"
    """A program on the host; never believed live, read offline."""


@dataclass(frozen=True, slots=True)
class Cure:
    """What a clearing line ends: faults whose id starts with `faults`, on this device ("" = the whole node)."""

    faults: str
    device: str = ""
    reset: bool = False
    """True for a device reset: it cures every fault of the device that a reset cures."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line judged. `fault` None: no fault."""

    fault: str | None
    verdict: str
    device: str | None = None
    """BDF as printed, with the MIG instance where there is one; another device's name where it has no bus address."""
    item: str = ""
    """Fault type in the catalogue, where one code has branches with remedies of their own; "" = `fault`."""
    alone: str = ""
    """Verdict of a duplicate that has no neighbour."""
    family: str = ""
    """Lines of one family and device are one fault when they come together; "" = the fault's own id."""
    cure: Cure | None = None
    arbiter: bool = False
    """True for the driver's own recovery action (XID 154), which overrules the code tables."""
    sympathetic: bool = False
    """True for codes that follow other faults: they never count as a fault repeated."""
    pid: int | None = None
    writer: Writer = Writer.KERNEL
    uuid: str = ""
    """Device UUID, where the line names one."""
    malformed: bool = False
    note: str = ""

    @property
    def rank(self) -> int:
        return RANK[self.verdict]

    @property
    def entry(self) -> str:
        """Name of the fault type that this finding is an instance of; "" when it is no fault."""
        return self.item or self.fault or ""


NOTHING = Finding(None, IGNORE)

Judge = Callable[["re.Match[str]", bool], Finding | None]
"""From the match to a finding; None = this rule does not apply after all. The flag: printed in the first seconds of a
boot."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A form of message.

    pattern   matched at the start of the message
    words     at least one of them is in every line of this form; the search for them is the only cost of other lines
    judge     what the line means
    """

    pattern: re.Pattern[str]
    words: tuple[str, ...]
    judge: Judge
    writer: Writer = Writer.KERNEL


def says(
    fault: str | None,
    verdict: str,
    *,
    family: str = "",
    alone: str = "",
    cure: str = "",
    item: str = "",
) -> Judge:
    """A judge for forms that always mean the same; the group `device`, where the pattern has one, is the device."""

    def judge(match: re.Match[str], booting: bool) -> Finding:
        device = match["device"] if "device" in match.re.groupindex else None
        return Finding(
            fault,
            verdict,
            device,
            item=item,
            alone=alone,
            family=family,
            cure=Cure(cure, device or "") if cure else None,
        )

    return judge


BDF = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"
"""A PCI address: domain and function may be missing."""


def rule(pattern: str, words: str | tuple[str, ...], judge: Judge, *, writer: Writer = Writer.KERNEL) -> Rule:
    """A rule with `BDF` spelled `<bdf>` in its pattern."""
    compiled = re.compile(pattern.replace("<bdf>", BDF), re.DOTALL)
    return Rule(compiled, (words,) if isinstance(words, str) else words, judge, writer)
