"""What is wrong with a node now, and when a fault counts as over.

A fault is active while its type matches the Node. That a condition has turned False does not make the fault *clear*:
each type names the proof it needs (`clearsBy`), and until that proof is there the fault is only *unproven*. Peers that
took "no longer reported" for "recovered" returned broken nodes when their detector restarted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
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
    status: str = ""
    """Of the condition that it was read from."""

    @property
    def identity(self) -> str:
        """Tells this occurrence from others of the same fault: where it was read, and since when in its own words."""
        return f"{self.source}@{rfc3339(self.since)}" if self.since is not None else self.source


def active_faults(node: Node, catalogue: Catalogue, failed: dict[str, str] | None = None) -> list[Active]:
    """Every fault type that matches the node, by name. An expression that fails matches nothing.

    failed   takes in the types whose expression failed on this node, with the error

    Of several conditions that show the same fault the one that has been bad for longest names it, so that neither the
    order of the conditions nor a late witness makes a new occurrence of it.
    """
    found: dict[str, Active] = {}
    devices = read_devices(node)
    for condition in sorted(node.conditions, key=lambda c: (c.last_transition_time or "", c.type)):
        for name, test in catalogue.by_condition.get(condition.type, ()):
            if name in found or not test.holds(condition.status, condition.reason):
                continue
            found[name] = Active(
                name,
                catalogue.types[name],
                moment(condition.last_transition_time),
                f"condition/{condition.type}",
                condition.reason,
                condition.message,
                _devices_of(name, devices, condition.type),
                condition.status,
            )
    for name, program in catalogue.by_cel:
        if name not in found and _matches(name, program, node, failed):
            found[name] = Active(name, catalogue.types[name], None, "cel", "", "", _devices_of(name, devices))
    return [found[name] for name in sorted(found)]


def displaced(active: Iterable[Active], own: Collection[str]) -> dict[str, str]:
    """The built-in types among these that people's own types take the place of, with the reason.

    Who writes a FaultType for a condition says what is to be done about it: how long it must last, what repairs it,
    when it is over. A built-in entry that reads the same condition must not act, or ask for its own proof, beside it.

    own   the types that count as people's own here
    """
    active = list(active)
    theirs = {each.source: each.name for each in active if each.name in own and each.source != "cel"}
    return {
        each.name: f"gives way to {theirs[each.source]}, which reads the same condition"
        for each in active
        if each.source in theirs and each.name not in own
    }


def _matches(name: str, program: Program, node: Node, failed: dict[str, str] | None) -> bool:
    try:
        return program.evaluate(node=msgspec.to_builtins(node)) is True
    except CelError as error:
        if failed is not None:
            failed[name] = str(error)
        return False


def _devices_of(name: str, devices: list[DeviceFaults], condition: str = "") -> tuple[str, ...]:
    """The devices that the agent names for this fault, or for the one of its own whose condition the type reads."""
    return tuple(
        d.uuid or d.pci
        for d in devices
        if name in d.faults or any(names.condition_type(fault) == condition for fault in d.faults)
    )


def moment(text: str | None) -> datetime | None:
    """A time as somebody else wrote it; None where it is missing or none."""
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
    """End of the last device reset or stronger act of this repair."""
    acted_since: datetime | None
    """End of the last act of this repair, whatever it was."""
    own: bool
    """The fault was read from a condition that our own agent writes."""


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
        if _answered(fault, rebooted, last_seen, proofs):
            return Evidence.UNPROVEN if blind(node) else Evidence.CLEAR
        own = proofs.own and names.agents_own(active.source.partition("/")[2], active.reason)
        stale = rebooted and not own and clears_by in ("reboot", "reset") and _older_than_boot(active, node)
        return Evidence.CLEAR if stale and sees(node) else Evidence.PRESENT
    if gone_since is None or hidden(fault, node):
        return Evidence.UNPROVEN
    if _cleared_by_person(fault, node):
        return Evidence.CLEAR
    if clears_by == "condition":
        return _proven(now - gone_since >= parse_duration(fault.spec.for_ or "0s"))
    if blind(node):
        return Evidence.UNPROVEN
    if clears_by == "silence":
        soak = fault.spec.validation.soak if fault.spec.validation else ""
        return _proven(_heard_out(fault, node) or now - gone_since >= parse_duration(soak or "5m"))
    return _proven(_by_act(clears_by or "", rebooted, last_seen, node, proofs))


def _heard_out(fault: FaultType, node: Node) -> bool:
    """Whoever counts the evidence has waited for the soak already."""
    condition = node.condition(names.condition_type(fault.metadata.name))
    return condition is not None and condition.status == "False" and condition.reason == names.HEARD_OUT


def _cleared_by_person(fault: FaultType, node: Node) -> bool:
    read = (node.condition(m.condition.type) for m in fault.spec.match or () if m.condition is not None)
    found = [c for c in (*read, node.condition(names.condition_type(fault.metadata.name))) if c is not None]
    return any(condition.reason == names.CLEARED_BY_PERSON for condition in found)


def _answered(fault: FaultType, rebooted: bool, last_seen: datetime | None, proofs: Proofs) -> bool:
    """What a provider announced is answered by our own act, however long the provider goes on listing it."""
    announced = (fault.spec.labels or {}).get(names.PROVIDER_LABEL) == names.PROVIDER
    return announced and rebooted and _after(proofs.acted_since, last_seen)


def _by_act(clears_by: str, rebooted: bool, last_seen: datetime | None, node: Node, proofs: Proofs) -> bool:
    """Whether what was done to the node since the fault was last seen, or a check of our own, proves that it is gone.

    False for a word this version does not know.
    """
    if clears_by == "probe":
        return rebooted or (sees(node) and (proofs.own or _after(proofs.acted_since, last_seen)))
    if clears_by == "reset":
        return rebooted or _after(proofs.reset_since, last_seen)
    if clears_by == "reboot":
        return rebooted
    replaced = _another(proofs.provider_id, node.provider_id) or _another(proofs.serial, node.serial)
    return clears_by == "replacement" and replaced


def _another(before: str, now: str) -> bool:
    """Both are known, and they differ."""
    return bool(before) and bool(now) and before != now


def _after(done: datetime | None, last_seen: datetime | None) -> bool:
    return done is not None and (last_seen is None or done >= last_seen)


def _proven(proof: bool) -> Evidence:
    return Evidence.CLEAR if proof else Evidence.UNPROVEN


def hidden(fault: FaultType, node: Node) -> bool:
    """True when a detector of this fault cannot see: its condition reads Unknown, which is neither bad nor good."""
    read = (node.condition(m.condition.type) for m in fault.spec.match or () if m.condition is not None)
    return any(condition is not None and condition.status == "Unknown" for condition in read)


def sees(node: Node) -> bool:
    """True when an agent of ours watches this node and reports no blind source."""
    condition = node.condition(names.DETECTION_BLIND)
    return condition is not None and condition.status == "False"


def blind(node: Node) -> bool:
    """True when an agent of ours is there and does not see. A node without an agent is judged by what others say."""
    return node.condition(names.DETECTION_BLIND) is not None and not sees(node)


def _older_than_boot(active: Active, node: Node) -> bool:
    """True when a foreign, log-based condition was set before the present boot and never renewed."""
    ready = node.condition("Ready")
    back = moment(ready.last_transition_time) if ready is not None and ready.status == "True" else None
    return active.since is not None and back is not None and active.since < back
