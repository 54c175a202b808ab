"""Messages that the driver spreads over several records.

    NVRM: The NVIDIA GPU 0000:b3:00.0
    NVRM: (PCI ID: 10de:26b5) installed in this system has
    NVRM: fallen off the bus and is not responding to commands.

The last record says what happened, the first one to whom. Other records may come between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from sickbay.detect.finding import BDF, Finding
from sickbay.detect.moment import Moment
from sickbay.detect.record import Record

_BEGIN = re.compile(rf"NVRM:?\s+The NVIDIA GPU (?P<device>{BDF})\s*\Z")
_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Begun:
    device: str
    at: Moment
    line: int


class Assembler:
    """Keeps the beginning of one such message; the driver prints them one after the other."""

    def __init__(self) -> None:
        self._begun: _Begun | None = None

    def feed(self, record: Record, finding: Finding, line: int) -> tuple[Finding, int]:
        """The finding, with the device and the line of the message's beginning where this record ends one."""
        text = record.text
        if text.startswith("NVRM") and (begin := _BEGIN.match(text)):
            self._begun = _Begun(begin["device"], Moment.of(record, line), line)
            return finding, line
        begun = self._begun
        if finding.fault != "gpu.fallen-off-bus" or finding.device is not None or begun is None:
            return finding, line
        self._begun = None
        if begun.at.until(Moment.of(record, line)) > _SECONDS:
            return finding, line
        return replace(finding, device=begun.device), begun.line
