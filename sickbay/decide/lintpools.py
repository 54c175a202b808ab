"""What of a pool's windows and limits can be accepted and then never let anything begin."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from sickbay.api.duration import parse_duration
from sickbay.api.fault_selector import FaultSelector
from sickbay.api.repair_pool import RepairPool, RepairPoolSpec, Window
from sickbay.api.words import WindowKind
from sickbay.decide import windows
from sickbay.decide.opening import CONTROL_PLANE

Said = tuple[bool, str, str]
"""Whether it is an error, the path, and the words."""

PROVIDERS = ("agent",)
"""Back-ends of this version; in simulations there is `fake` too."""
_LEAP_YEAR = datetime(2024, 1, 1)
"""Begin of four years that hold every date there is."""


def pool(found: RepairPool) -> Iterator[Said]:
    """All that is to be said of a pool's windows and counts."""
    for i, window in enumerate(found.spec.windows):
        yield from _window(window, f"spec.windows[{i}]")
    if found.spec.rule:
        yield from _nothing(found.spec)
        yield from _overrides(found.spec)
        yield from _provider(found.spec)
        yield from _control_plane(found.spec)
    else:
        yield from _envelope(found.spec)
    yield from _unbound(found.spec)


def _window(window: Window, path: str) -> Iterator[Said]:
    denies = window.kind == WindowKind.DENY
    so = "it denies nothing" if denies else "nothing would ever start"
    try:
        cron = windows.parse_cron(window.cron)
        windows.zone(window.zone)
    except ValueError as error:
        yield True, path, f"{error}; nothing would ever start"
        return
    if not any(cron.on(_LEAP_YEAR + timedelta(days=day)) for day in range(4 * 366)):
        yield not denies, f"{path}.cron", f"{window.cron!r} never comes: {so}; correct day and month"
    if not parse_duration(window.duration):
        yield not denies, f"{path}.duration", f"{window.duration} has no time in it: {so}; make it longer"


def _nothing(spec: RepairPoolSpec) -> Iterator[Said]:
    """Counts of nothing; each is legal, and stops a pool for good."""
    if spec.max_unavailable in (0, "0%"):
        yield False, "spec.maxUnavailable", "0: no node in service is ever taken out"
    if spec.max_parallel_repairs == 0:
        yield False, "spec.maxParallelRepairs", "0: no act that disrupts a node ever begins; use a Hold to stop a pool"
    if spec.max_parallel_validations == 0:
        yield False, "spec.maxParallelValidations", "0: no node is ever validated, so none returns; use at least 1"
    if spec.breaker.max_nodes == 0:
        yield False, "spec.breaker.maxNodes", "0: the first faulty node opens the breaker; use at least 1"

    if spec.storm.nodes == 1:
        yield False, "spec.storm.nodes", "1: every fault is a storm, and none is repaired; 0 switches storms off"
    if spec.budgets.per_node.repairs == 0:
        then = spec.budgets.then
        yield False, "spec.budgets.perNode.repairs", f"0: no remedy is ever tried, each fault goes to {then}; use 1"
    isolation = spec.device_isolation
    if isolation.faults and (isolation.max_devices_per_node == 0 or isolation.max_nodes in (0, "0%")):
        field = "maxDevicesPerNode" if isolation.max_devices_per_node == 0 else "maxNodes"
        yield False, f"spec.deviceIsolation.{field}", "0: no card is ever isolated; leave faults empty for that"


def _overrides(spec: RepairPoolSpec) -> Iterator[Said]:
    """The first that matches decides, so one that a former one covers says nothing."""
    for i, override in enumerate(spec.overrides):
        path, faults = f"spec.overrides[{i}]", override.faults
        earlier = next((j for j in range(i) if _covers(spec.overrides[j].faults, faults)), None)
        if earlier is not None:
            yield False, path, f"is never reached: overrides[{earlier}] matches all of it; put it before that one"
        elif override.mode == spec.mode and not any(o.mode != spec.mode for o in spec.overrides[i + 1 :]):
            yield False, f"{path}.mode", f"{override.mode} is the pool's mode already; remove the override"


def _covers(one: FaultSelector, other: FaultSelector) -> bool:
    """Whether each key of one is given by the other too, and more narrowly or alike."""
    lists = ((one.names, other.names), (one.classes, other.classes), (one.severities, other.severities))
    if any(mine and not (theirs and set(theirs) <= set(mine)) for mine, theirs in lists):
        return False
    return one.labels.items() <= other.labels.items()


def _provider(spec: RepairPoolSpec) -> Iterator[Said]:
    if spec.provider.name not in PROVIDERS:
        text = f"{spec.provider.name} is no back-end of this version: nothing is repaired; use {', '.join(PROVIDERS)}"
        yield False, "spec.provider.name", text


def _control_plane(spec: RepairPoolSpec) -> Iterator[Said]:
    selector = spec.node_selector
    named = {*selector.match_labels, *(e.key for e in selector.match_expressions if e.operator in ("In", "Exists"))}
    if not spec.allow_control_plane and any(key in named for key in CONTROL_PLANE):
        text = "selects control plane nodes, which are left alone unless allowControlPlane is true"
        yield False, "spec.nodeSelector", text


def _envelope(spec: RepairPoolSpec) -> Iterator[Said]:
    """A pool without a rule binds others by its limits; what is about repairs of its own has no effect."""
    for path, given in (("mode", spec.mode == "Act"), ("overrides", bool(spec.overrides))):
        if given:
            text = "has no effect: a pool without a rule is an envelope, and repairs nothing; give it a rule"
            yield False, f"spec.{path}", text


def _unbound(spec: RepairPoolSpec) -> Iterator[Said]:
    most, parallel = spec.max_unavailable, spec.max_parallel_repairs
    if isinstance(most, int) and isinstance(parallel, int) and parallel > most > 0:
        yield False, "spec.maxParallelRepairs", f"{parallel} can never bind: maxUnavailable is {most}"
