"""Where every source hands in what it found: into the ledger when it asks for an act, into an Event when not.

    acting and of severity Error or more   a condition, and an Event when it is new
    anything else that is a fault          an Event, counted on repetition
    ignored, following, cured              nothing

Repetition costs nothing but a counter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter

from sickbay.api.words import Severity
from sickbay.clock import Clock, rfc3339
from sickbay.detect import wording
from sickbay.detect.devicemap import Device, DeviceMap, address
from sickbay.detect.finding import CLEAR, DUPLICATE, FOLLOW_CAUSE, IGNORE, RANK, RESTART_APP, Finding
from sickbay.detect.group import bus_of
from sickbay.detect.items import Item, item
from sickbay.detect.ledger import Ledger, Mark
from sickbay.kube.events import NORMAL, WARNING

SAME_PROCESS = 600.0
"""Seconds within which what one process does to one device again is told of once: the window in which Events count."""


class Say(Protocol):
    """Writes an Event on the Node: type, reason, message, and the device that it is about."""

    def __call__(self, type_: str, reason: str, message: str, device: str = "", /) -> None: ...


_SILENT = frozenset({IGNORE, FOLLOW_CAUSE, DUPLICATE, CLEAR})
_GRAVE = frozenset({Severity.ERROR.value, Severity.CRITICAL.value})
_BY_STATE = frozenset({"service.kubelet", "service.containerd", "service.fabricmanager-down"})
"""Items that the service watch owns: a line about one may be over a second later, and no line would say so."""
_TEXT, _CODED = "gpu.fallen-off-bus", "gpu.xid.79"


class Findings:
    """See the module. `changed` is called with True when something critical is new."""

    def __init__(
        self, ledger: Ledger, devices: DeviceMap, clock: Clock, say: Say, registry: CollectorRegistry | None = None
    ) -> None:
        self.ledger, self.devices = ledger, devices
        self._clock, self._say = clock, say
        self._processes: dict[tuple[str, str], tuple[int, float]] = {}
        """By fault and device: the process that was the last to meet it, and when. As many as there are devices."""
        self.changed: Callable[[bool], None] = lambda _: None
        self.look_at_services: Callable[[], None] = lambda: None
        self._seen = Counter(
            "sickbay_agent_findings", "Findings, repetitions too", ["fault"], registry=registry or CollectorRegistry()
        )

    def now(self) -> str:
        return rfc3339(self._clock.now())

    def take(self, finding: Finding) -> None:
        """A finding that is to be reported now."""
        if finding.fault is None:
            return
        self._seen.labels(finding.fault).inc()
        known = item(finding.entry)
        by_state = known.name in _BY_STATE
        if by_state or RANK[finding.verdict] <= RANK[RESTART_APP] or known.severity not in _GRAVE:
            if finding.verdict not in _SILENT:
                where = f" on {finding.device}" if finding.device else ""
                note = f": {finding.note}" if finding.note else ""
                text = f"{known.meaning or known.name}{where}{note} ({finding.fault})"
                if not self._told_of(finding):
                    self._say(WARNING, known.condition, text, address(finding.device or "") or finding.device or "")
            if by_state:
                self.look_at_services()
            return
        if finding.fault == _TEXT and self.ledger.stands(_CODED, finding.device or ""):
            return
        self.report(known, finding.device or "", wording.reason(finding.fault, known))

    def _told_of(self, finding: Finding) -> bool:
        """Whether the same process has done the same to the same device a moment ago. A job that goes on after its
        error prints it again and again, and that says no more about the device than the first time."""
        if finding.pid is None:
            return False
        key, now = (finding.entry, bus_of(finding.device)), self._clock.monotonic()
        pid, at = self._processes.get(key, (-1, 0.0))
        self._processes[key] = finding.pid, now
        return pid == finding.pid and now - at < SAME_PROCESS

    def report(self, known: Item, device: str, code: str = "", detail: str = "") -> bool:
        """Mark an item on a device, "" = the node as a whole; True when that is news."""
        device = device[:128]
        if self.ledger.confirm(known.name, device):
            return False
        now = self.now()
        gpu = self.devices.at(device) or Device(pci="")
        mark = Mark(
            item=known.name,
            device=device,
            pci=address(device),
            uuid=gpu.uuid,
            index=gpu.index,
            serial=gpu.serial,
            code=code or known.condition,
            detail=detail,
            since=now,
            boot=self.ledger.boot_id,
        )
        self.ledger.mark(mark)
        self._say(WARNING, known.condition, wording.standing(known, [mark]))
        self.changed(known.severity == Severity.CRITICAL)
        return True

    def cure(self, finding: Finding) -> None:
        """A line of the kernel that ends faults of one device: 162 ends 163, a recovery action of 0 ends the others."""
        if finding.cure is None or finding.cure.reset:
            return
        prefix, bus = finding.cure.faults, bus_of(finding.cure.device)
        self.clear(lambda mark: mark.item.startswith(prefix) and (not bus or bus_of(mark.device) == bus), "Recovered")

    def clear(self, over: Callable[[Mark], bool], why: str) -> None:
        """Take marks away; see `Ledger.clear`."""
        if not self.ledger.standing:
            return
        gone = self.ledger.clear(over, why, self.now())
        for name in sorted({mark.item for mark in gone}):
            known = item(name)
            where = sorted({mark.device for mark in gone if mark.item == name and mark.device})
            text = f" on {', '.join(where[:4])}" if where else ""
            self._say(NORMAL, f"{known.condition}Cleared", f"{wording.cleared(known, why)}{text}")
        if gone:
            self.changed(False)

    def lost(self, source: str, records: int) -> None:
        """Records were overwritten before they were read; what they said nobody knows."""
        self._say(
            WARNING, "EvidenceLost", f"at least {records} records of the {source} were lost before they were read"
        )

    def learn(self, device: Device) -> None:
        """Note which GPU sits where, and name it in what was reported before that was known."""
        if self.devices.learn(device) and self.ledger.identify(self.devices):
            self.changed(False)
