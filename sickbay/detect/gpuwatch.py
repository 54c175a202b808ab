"""What looks at the GPUs amount to: items raised and cleared, GPUs that are missing, a driver that hangs.

An item that a look finds well is over at once where the driver latches it (the state itself is the proof), otherwise
when what its `clearsBy` asks for has happened: a reset of that GPU, or a new boot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.words import ClearsBy
from sickbay.clock import Clock
from sickbay.detect import gpus, wording
from sickbay.detect.devicemap import Device, address
from sickbay.detect.finding import CLEAR
from sickbay.detect.findings import Findings
from sickbay.detect.gpus import GpuJudge, GpuReport, GpuStatus
from sickbay.detect.group import bus_of
from sickbay.detect.items import item
from sickbay.detect.ledger import Mark
from sickbay.detect.xid import recovery_finding

RESOURCE = "nvidia.com/gpu"
ALLOCATABLE_LASTS = 300.0
"""Seconds that fewer GPUs may be allocatable than there are: a device plug-in restarts (detection reference 5.6)."""

_RECOVERY = "gpu.xid.154."
_COUNT, _HANG, _VERSION = "gpu.count-mismatch", "gpu.driver-hang", "gpu.driver.version-mismatch"
_encode = msgspec.json.Encoder().encode
_NEEDS_PROOF = (ClearsBy.RESET, ClearsBy.REBOOT)


@dataclass(slots=True)
class GpuWatch:
    """See the module. `most` is the greatest number of GPUs ever seen on this Node."""

    findings: Findings
    clock: Clock
    uptime: Callable[[], float]
    node: Callable[[], Node | None]
    judge: GpuJudge
    most: int = 0
    resets: frozenset[str] = frozenset()
    """UUIDs of GPUs that were reset and not looked at since."""
    clean: int = 0
    """Looks in a row that saw everything and found no GPU missing or lost."""
    _quiet: bool = True
    """The present look has found nothing to report."""
    _well: tuple[bytes, Node | None, int] | None = None
    """The last look in full, with the Node and what was known of devices, where all was well and nothing stood."""

    def take(self, report: GpuReport) -> str:
        """Take in one look; returns why nothing could be seen, "" when it could."""
        look, node = _encode(report), self.node()
        if self._as_before(look, node):
            self.clean += 1
            return ""
        why = self._take(report)
        self._well = (look, node, self.findings.devices.news) if self._all_well(report) else None
        return why

    def _as_before(self, look: bytes, node: Node | None) -> bool:
        """True where this look is, word for word, one at which all was well: time alone makes no fault of that."""
        if self._well is None or self.resets or self.findings.ledger.standing:
            return False
        before, then, known = self._well
        return look == before and node is then and known == self.findings.devices.news

    @property
    def at_rest(self) -> bool:
        """Looks find all well, and while neither driver nor Node change the next ones will."""
        if self._well is None or self.resets or self.findings.ledger.standing or self.clean < 2:
            return False
        _, node, known = self._well
        return node is self.node() and known == self.findings.devices.news

    def _all_well(self, report: GpuReport) -> bool:
        if report.absent or report.error or report.hung or not self.clean:
            return False
        return self._quiet and self.judge.all_well and not self.findings.ledger.standing

    def _take(self, report: GpuReport) -> str:
        now, self._quiet = self.clock.monotonic(), True
        self._hang(report, now)
        if report.version_mismatch is not None:
            self._set(_VERSION, "", report.version_mismatch, proof=True)
        if report.absent:
            self.clean += 1
            return ""
        if report.error or report.hung:
            self.clean = 0
            return report.error or f"the driver does not answer at {', '.join(report.hung)}"
        self.judge.seen.clear()
        for status in report.gpus:
            self._gpu(status, now)
        self._count(report, now)
        lost = any(status.lost for status in report.gpus) or len(report.gpus) < (report.expected or 0)
        self.clean = 0 if lost else self.clean + 1
        return ""

    def reset_done(self, uuid: str) -> None:
        """A reset of this GPU has succeeded; the next clean look at it is the proof."""
        self.resets |= {uuid}

    def covers(self, mark: Mark) -> bool:
        """True for what the last look has judged by itself, so that no line and no boot need to."""
        if mark.item.startswith(_RECOVERY):
            return (_RECOVERY, mark.pci) in self.judge.seen
        return mark.item in (_COUNT, _HANG, _VERSION) or (mark.item, mark.pci) in self.judge.seen

    # --- one GPU

    def _gpu(self, status: GpuStatus, now: float) -> None:
        pci = address(status.pci)
        if not pci:
            return
        self._learn(status, pci)
        known = self.findings.devices.at(pci)
        if status.nvlinks_up is not None and status.nvlink_down is None and known is not None:
            status.nvlink_down = max(0, known.links - status.nvlinks_up)
        bad, standing = set(), self.findings.ledger.standing
        status.pci = pci
        for verdict in self.judge.judge(status, self.uptime(), now, self._out_for_repair()):
            if verdict.bad:
                bad.add(verdict.item)
            elif verdict.item not in standing:
                continue
            self._set(verdict.item, pci, verdict.bad, verdict.proof, verdict.detail)
        self._recovery(status, pci)
        uuid = status.uuid or (known.uuid if known is not None else "")
        if uuid in self.resets and not status.lost:
            self.resets -= {uuid}
            self.findings.clear(
                lambda m: bus_of(m.device) == bus_of(pci) and _reset_clears(m.item) and m.item not in bad, "Reset"
            )

    def _out_for_repair(self) -> bool:
        node = self.node()
        return node is not None and names.QUARANTINE in node.annotations

    def _learn(self, status: GpuStatus, pci: str) -> None:
        before = self.findings.devices.at(pci)
        self.findings.learn(
            Device(
                pci=pci, uuid=status.uuid, index=status.index, serial=status.serial, links=status.nvlinks_up or 0
            )
        )  # fmt: skip
        replaced = before is not None and before.serial and status.serial and before.serial != status.serial
        if replaced:
            self.findings.clear(lambda mark: bus_of(mark.device) == bus_of(pci), "Replaced")

    def _recovery(self, status: GpuStatus, pci: str) -> None:
        """The driver's recovery action is latched until the remedy is done: it decides by itself."""
        if status.recovery_action is None:
            return
        self.judge.seen.add((_RECOVERY, pci))
        finding = recovery_finding(status.recovery_action, pci)
        self._quiet &= finding.verdict == CLEAR
        here = bus_of(pci)
        self.findings.clear(
            lambda m: m.item.startswith(_RECOVERY) and bus_of(m.device) == here and m.item != finding.entry, "Recovered"
        )
        if finding.verdict != CLEAR and not self.findings.ledger.stands(finding.entry, pci):
            self.findings.take(finding)

    # --- the node as a whole

    def _hang(self, report: GpuReport, now: float) -> None:
        """A driver that does not answer at two looks in a row is a fault; until then it is only not seen."""
        if not report.hung:
            self.judge.well((_HANG, ""))
            if not report.error:
                self._set(_HANG, "", False, proof=False)
        elif self.judge.lasts((_HANG, ""), gpus.AGAIN, now):
            self._set(_HANG, address(report.hung[-1]), True, proof=False)

    def _count(self, report: GpuReport, now: float) -> None:
        seen = sum(1 for status in report.gpus if address(status.pci))
        self.most = max(self.most, seen)
        node = self.node()
        label = node.labels.get(names.GPUS_EXPECTED, "") if node is not None else ""
        expected = int(label) if label.isdigit() else max(report.expected or 0, self.most)
        missing, offered = seen < expected, self._offered(node)
        if not missing:
            self.judge.well((_COUNT, "seen"))
        short = offered is not None and not missing and offered + self._excused() < expected
        if not short:
            self.judge.well((_COUNT, "offered"))
        if missing and self.judge.lasts((_COUNT, "seen"), gpus.AGAIN, now):
            self.findings.clear(_only_not_offered, "Recovered")
            self._set(_COUNT, "", True, False, f"the driver shows {seen} of {expected}")
        elif short and self.judge.lasts((_COUNT, "offered"), ALLOCATABLE_LASTS, now):
            self._quiet = False
            self.findings.report(item(_COUNT), "", names.NOT_OFFERED, f"{offered} of {expected} are allocatable")
        elif not missing and not short:
            self.findings.clear(_only_not_offered, "Recovered")
            self._set(_COUNT, "", False, proof=False)

    def _offered(self, node: Node | None) -> int | None:
        """GPUs that the device plug-in offers; None where it offers none by this name (MIG, DRA, no plug-in)."""
        if node is None or _number(node.status.capacity.get(RESOURCE)) == 0:
            return None
        return _number(node.status.allocatable.get(RESOURCE))

    def _excused(self) -> int:
        """GPUs that the plug-in rightly holds back: each has a fault of its own."""
        return len({mark.pci for mark in self.findings.ledger.marks() if self.findings.devices.at(mark.pci)})

    def _set(self, name: str, device: str, bad: bool, proof: bool, detail: str = "") -> None:
        """Raise an item, or end it where a good state is proof enough or was reached over a boot."""
        known = item(name)
        self._quiet &= not bad
        if bad:
            self.findings.report(known, device, wording.reason(name, known), detail)
            return
        proof, boot = proof or known.clears_by not in _NEEDS_PROOF, self.findings.ledger.boot_id
        over = [m for m in self.findings.ledger.marks_of(name, device) if proof or m.boot != boot]
        if over:
            why = "Recovered" if proof else "Rebooted"
            self.findings.clear(lambda mark: mark in over, why)


def _only_not_offered(mark: Mark) -> bool:
    """All GPUs are there, and the device plug-in does not offer them: over when it does, whatever brought it about."""
    return mark.item == _COUNT and mark.code == names.NOT_OFFERED


def _reset_clears(name: str) -> bool:
    return item(name).clears_by == ClearsBy.RESET


def _number(quantity: object) -> int:
    """A count of devices; one that cannot be read counts as none."""
    text = str(quantity)
    return int(text) if text.isdigit() else 0
