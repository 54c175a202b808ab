"""What is wrong with a node now, and when a fault counts as over.

A fault is active while its type matches the Node. That a condition has turned False does not make the fault *clear*:
each type names the proof it needs (`clearsBy`), and until that proof is there the fault is only *unproven*. Peers that
took "no longer reported" for "recovered" returned broken nodes when their detector restarted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from sickbay.api import names
from sickbay.api.cel import CelError, Program
from sickbay.api.core import Node
from sickbay.api.devices import DeviceFaults, read_devices
from sickbay.api.duration import parse_duration
from sickbay.api.fault_type import FaultType
from sickbay.clock import parse_time, rfc3339
from sickbay.decide.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class Active:
    """One fault type that matches a node now."""

    name: str
    type: FaultType
    since: datetime | None
    """When the condition turned bad (its lastTransitionTime); None when the match carries no time (CEL)."""
    source: str
    reason: str
    message: str
    devices: tuple[str, ...]

    @property
    def identity(self) -> str:
        """Tells this occurrence from others of the same fault: where it was read, and since when in its own words."""
        return f"{self.source}@{rfc3339(self.since)}" if self.since is not None else self.source


def active_faults(node: Node, catalogue: Catalogue) -> list[Active]:
    """Every fault type that matches the node, by name. An expression that fails matches nothing."""
    found: dict[str, Active] = {}
    devices = read_devices(node)
    for condition in node.conditions:
        for name, test in catalogue.by_condition.get(condition.type, ()):
            if name in found or not test.holds(condition.status, condition.reason):
                continue
            found[name] = Active(
                name,
                catalogue.types[name],
                _moment(condition.last_transition_time),
                f"condition/{condition.type}",
                condition.reason,
                condition.message,
                _devices_of(name, devices),
            )
    for name, program in catalogue.by_cel:
        if name not in found and _matches(program, node):
            found[name] = Active(name, catalogue.types[name], None, "cel", "", "", _devices_of(name, devices))
    return [found[name] for name in sorted(found)]


def _matches(program: Program, node: Node) -> bool:
    try:
        return program.evaluate(node=msgspec.to_builtins(node)) is True
    except CelError:
        return False


def _devices_of(name: str, devices: list[DeviceFaults]) -> tuple[str, ...]:
    return tuple(d.uuid or d.pci for d in devices if name in d.faults)


def _moment(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None


class Evidence(StrEnum):
    """How a fault of an open repair stands."""

    PRESENT = "Present"
    UNPROVEN = "Unproven"
    """No longer matched, but the proof that its type asks for is missing."""
    CLEAR = "Clear"


@dataclass(frozen=True, slots=True)
class Proofs:
    """What is known about a node beyond its conditions, for judging `clearsBy`."""

    boot_id: str
    """Boot ID when the incident opened."""
    provider_id: str
    serial: str
    reset_since: datetime | None
    """End of the last device reset, service restart or stronger act of this repair."""


def evidence(
    fault: FaultType,
    last_seen: datetime | None,
    gone_since: datetime | None,
    node: Node,
    active: Active | None,
    proofs: Proofs,
    now: datetime,
) -> Evidence:
    """Judge one fault of an incident against the node as it is.

    last_seen   when the fault was last known to be bad
    gone_since  when it was first seen not matching, None while it matches
    active      the present match, None when there is none
    """
    clears_by = fault.spec.clears_by
    rebooted = bool(node.boot_id) and bool(proofs.boot_id) and node.boot_id != proofs.boot_id
    if active is not None:
        stale = rebooted and clears_by in ("reboot", "reset") and _older_than_boot(active, node)
        return Evidence.CLEAR if stale and sees(node) else Evidence.PRESENT
    if gone_since is None:
        return Evidence.UNPROVEN
    if clears_by == "condition":
        return _after(gone_since, parse_duration(fault.spec.for_ or "0s"), now)
    if clears_by == "silence":
        soak = fault.spec.validation.soak if fault.spec.validation else ""
        return _after(gone_since, parse_duration(soak or "5m"), now)
    if clears_by == "probe":
        return Evidence.CLEAR if rebooted or sees(node) else Evidence.UNPROVEN
    if clears_by == "reset":
        done = proofs.reset_since is not None and (last_seen is None or proofs.reset_since >= last_seen)
        return Evidence.CLEAR if done or rebooted else Evidence.UNPROVEN
    if clears_by == "reboot":
        return Evidence.CLEAR if rebooted else Evidence.UNPROVEN
    if clears_by == "replacement":
        replaced = bool(proofs.provider_id) and node.provider_id != proofs.provider_id
        return Evidence.CLEAR if replaced else Evidence.UNPROVEN
    return Evidence.UNPROVEN


def _after(gone_since: datetime, hold: timedelta, now: datetime) -> Evidence:
    return Evidence.CLEAR if now - gone_since >= hold else Evidence.UNPROVEN


def sees(node: Node) -> bool:
    """True when an agent of ours watches this node and reports no blind source."""
    condition = node.condition(names.DETECTION_BLIND)
    return condition is not None and condition.status == "False"


def _older_than_boot(active: Active, node: Node) -> bool:
    """True when a foreign, log-based condition was set before the present boot and never renewed."""
    ready = node.condition("Ready")
    back = _moment(ready.last_transition_time) if ready is not None and ready.status == "True" else None
    return active.since is not None and back is not None and active.since < back
