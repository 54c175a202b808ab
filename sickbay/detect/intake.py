"""From lines of a source to findings: judged, joined over several records, grouped as they arrive."""

from __future__ import annotations

from collections.abc import Iterable

from sickbay.detect.assemble import Assembler
from sickbay.detect.decode import Stats, judge_line
from sickbay.detect.devicemap import Device
from sickbay.detect.finding import Finding
from sickbay.detect.findings import Findings
from sickbay.detect.judge import Trust
from sickbay.detect.live import LiveGroups
from sickbay.detect.moment import Moment


class Intake:
    """One per source: what is whose neighbour is a matter of one log."""

    def __init__(self, findings: Findings, trust: Trust) -> None:
        self._findings, self._trust = findings, trust
        self._assembler, self._groups = Assembler(), LiveGroups()
        self.stats = Stats()

    @property
    def next_due(self) -> float | None:
        """When `tick` has something to do, on the monotonic clock."""
        return self._groups.next_due

    def feed(self, lines: Iterable[str], now: float) -> None:
        """Take lines. `now` is the monotonic clock's."""
        for line in lines:
            record, finding = judge_line(line, self._trust, self.stats)
            if record is None:
                continue
            finding, number = self._assembler.feed(record, finding, self.stats.lines)
            self._inventory(finding)
            self._findings.cure(finding)
            for each in self._groups.feed(finding, Moment(record.uptime, record.wall, number), now):
                self._findings.take(each)

    def tick(self, now: float) -> None:
        """Report what has waited for its neighbours in vain."""
        for finding in self._groups.due(now):
            self._findings.take(finding)

    def _inventory(self, finding: Finding) -> None:
        if finding.fault is None and finding.uuid and finding.device and finding.cure is None:
            self._findings.learn(Device(pci=finding.device, uuid=finding.uuid))
