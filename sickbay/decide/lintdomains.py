"""What of a pool's domains and device isolation can be accepted and then never work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sickbay.api.actions import domain_wide
from sickbay.api.fault_type import FaultType
from sickbay.api.repair_pool import Domain, RepairPool
from sickbay.api.words import Pacing
from sickbay.decide.catalogue import Catalogue

Said = tuple[bool, str, str]
"""Whether it is an error, the path, and the words."""


def pool(found: RepairPool, known: Catalogue) -> Iterator[Said]:
    """What is wrong with `domains` and `deviceIsolation` of a pool."""
    for i, domain in enumerate(found.spec.domains):
        yield from _domain(found, domain, f"spec.domains[{i}]", known)
    for i, name in enumerate(found.spec.device_isolation.faults):
        path, fault = f"spec.deviceIsolation.faults[{i}]", known.types.get(name)
        if fault is None:
            yield False, path, f"{name} is no fault type of the catalogue or of these files: it isolates nothing"
        elif not fault.spec.isolate_device:
            yield False, path, f"{name} does not say isolateDevice: it isolates nothing"


def _domain(found: RepairPool, domain: Domain, path: str, known: Catalogue) -> Iterator[Said]:
    spec, most = found.spec, domain.max_unavailable
    grouped = domain.min_usable is None or domain.min_usable > 0
    if isinstance(spec.max_unavailable, int) and grouped and domain.size > spec.max_unavailable:
        text = f"a group of {domain.size} can never fit into maxUnavailable {spec.max_unavailable}"
        yield domain.min_usable is None, f"{path}.size", text
    if isinstance(most, int) and isinstance(spec.max_unavailable, int) and most >= spec.max_unavailable > 0:
        text = f"{most} can never bind: maxUnavailable of the pool is {spec.max_unavailable}"
        yield False, f"{path}.maxUnavailable", text
    if isinstance(most, int) and 0 < domain.size <= most:
        yield False, f"{path}.maxUnavailable", f"{most} can never bind: a domain has {domain.size} members"
    if most is not None and (not isinstance(most, int) or most < domain.size or not domain.size):
        groups = sorted(n for n, t in known.types.items() if t.spec.scope == "Domain" and t.spec.domain == domain.key)
        if groups and grouped and not (isinstance(most, int) and domain.size and most >= domain.size):
            text = f"below a whole domain: a group for {groups[0]} can never fit, and goes to people"
            yield False, f"{path}.maxUnavailable", text


def spread(written: Any) -> Iterator[Said]:
    """Of `spec.domains` as it stands in the file: the default pacing is no wish for it."""
    for i, domain in enumerate(written or ()):
        if domain.get("pacing") == Pacing.SPREAD and domain.get("maxUnavailable") is None:
            text = "Spread counts in steps of maxUnavailable, which is not given: nothing is spread"
            yield False, f"spec.domains[{i}].pacing", f"{text}; give domains[].maxUnavailable"


def fault_type(fault: FaultType) -> Iterator[Said]:
    """A remedy that takes a whole domain down, on a fault that is none of a domain."""
    remedies = [rung.action for rung in fault.spec.remedy or () if domain_wide(rung.action)]
    if remedies and fault.spec.scope != "Domain":
        text = f"{remedies[0]} takes a whole domain down and is left out: the fault's scope is {fault.spec.scope}"
        yield False, "spec.remedy", text
