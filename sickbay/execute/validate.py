"""Validate: is the node well, and does it stay well for the soak?

Every check that does not pass is named. The moment since which all pass stands in the report, so that a restart of the
controller does not begin the soak anew; one failed look does, and so does a fault that came back between two looks.
Where the plan asks for active diagnostics they run meanwhile, and must have passed too (`diagnostics`).

The shortest soak (1 minute) is longer than the 50 seconds after which Kubernetes takes a silent kubelet for lost, so a
node that is Ready all through it has a kubelet that was heard of meanwhile.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sickbay.api import kinds, names
from sickbay.api.core import Node, Pod
from sickbay.api.duration import format_duration, parse_duration
from sickbay.api.node_repair import NodeRepair
from sickbay.api.quantity import parse
from sickbay.api.words import ReportState, Step, StepState
from sickbay.clock import parse_time, rfc3339
from sickbay.execute import leftovers
from sickbay.execute.accelerators import is_accelerator
from sickbay.execute.backends import Backends
from sickbay.execute.diagnostics import Diagnostics
from sickbay.execute.leftovers import left_behind
from sickbay.execute.progress import Look, Progress, done, failed
from sickbay.execute.proof import BOOT_BEFORE, BOOT_ID, NEW_BOOT
from sickbay.kube.client import Client, Listing

LOOK = 10.0
"""Seconds between two looks."""
WELL_SINCE = "wellSince"
DEFAULT_SOAK = "5m"


class Validate:
    def __init__(self, client: Client, backends: Backends) -> None:
        self._client = client
        self._diagnostics = Diagnostics(backends)

    async def look(self, look: Look) -> Progress:
        listing = await self._client.list(kinds.POD, fields=f"spec.nodeName={look.node.name}")
        wrong = node_problems(look.node, look.repair) + _pods(listing)
        if wrong:
            text = "; ".join(wrong)
            if look.late:
                return failed(f"not well: {text}")
            return Progress(ReportState.IN_PROGRESS, f"not well yet: {text}", {WELL_SINCE: ""}, again=LOOK)
        fresh = not look.report.proof.get(WELL_SINCE)
        told = await leftovers.remove(self._client, look, left_behind(look.repair, listing.items)) if fresh else ()
        return replace(await self._confirm(look), events=told)

    async def _confirm(self, look: Look) -> Progress:
        """All that is looked at is well: does it stay so, and do the active diagnostics say so too?"""
        found = await self._diagnostics.look(look)
        if found.failed:
            return failed(f"not well: {found.text}", found.facts)
        if found.given_up:
            return Progress(ReportState.UNKNOWN, f"not confirmed: {found.text}", found.facts)
        since = _well_since(look)
        if not found.passed:
            facts = {WELL_SINCE: rfc3339(since), **found.facts}
            return Progress(ReportState.IN_PROGRESS, f"not confirmed yet: {found.text}", facts, again=LOOK)
        soak = parse_duration(look.current.args.get("soak") or DEFAULT_SOAK)
        rest = soak - (look.now - since)
        facts = {WELL_SINCE: rfc3339(since), **found.facts}
        if rest <= timedelta(0):
            return done(f"well for {format_duration(soak)}", {**facts, BOOT_ID: look.node.boot_id})
        text = f"all checks pass since {rfc3339(since)}; the soak lasts {format_duration(soak)}"
        return Progress(ReportState.IN_PROGRESS, text, facts, again=min(LOOK, max(1.0, rest.total_seconds())))


def _pods(listing: Listing[Pod]) -> list[str]:
    """DaemonSet pods of the node (device plug-in, network, agents) that are not back yet."""
    if listing.malformed:
        return [f"pod {listing.malformed[0].identity.name} cannot be read"]
    away = []
    for pod in listing.items:
        ready = pod.condition("Ready")
        if pod.is_daemonset and not pod.finished and (ready is None or ready.status != "True"):
            away.append(f"{pod.namespace}/{pod.name}")
    return [f"DaemonSet pods not ready: {', '.join(away[:3])}"] if away else []


def _well_since(look: Look) -> datetime:
    """Since when all is well: the moment on record, unless a fault has been there since."""
    recorded = look.report.proof.get(WELL_SINCE, "")
    cleared = [parse_time(fault.cleared_at) for fault in look.repair.spec.faults if fault.cleared_at]
    return max([parse_time(recorded), *cleared]) if recorded else look.now


def node_problems(node: Node, repair: NodeRepair) -> list[str]:
    """What the Node object and the record show to be wrong, in words."""
    checks = (_ready(node), _boot(node, repair), _faults(repair), _devices(node, repair), _seen(node))
    return [text for text in checks if text]


def _ready(node: Node) -> str:
    return "" if node.ready else "the node is not Ready"


def _boot(node: Node, repair: NodeRepair) -> str:
    """After a reboot the node must run in the boot that was proven, or a later one; never in the old one."""
    done_attempts = [a for a in repair.status.step(Step.REPAIR).attempts if a.state == StepState.DONE]
    reboots = [a for a in done_attempts if a.action in NEW_BOOT]
    before = reboots[-1].proof.get(BOOT_BEFORE, "") if reboots else ""
    return "the node runs in the boot from before the repair" if before and node.boot_id == before else ""


def _faults(repair: NodeRepair) -> str:
    left = repair.uncleared
    return f"not proven gone: {', '.join(left)}" if left else ""


def _devices(node: Node, repair: NodeRepair) -> str:
    """Every accelerator that the node had when it was quarantined, or has now, is offered again.

    A kubelet that has just started says that there are none until the device plug-in registers: that 0 of 0 are
    offered proves nothing.
    """
    had = repair.status.step(Step.QUARANTINE).report.proof
    has = {name: str(value) for name, value in node.status.capacity.items() if is_accelerator(name)}
    for resource in sorted({*has, *filter(is_accelerator, had)}):
        wanted = max(_count(had.get(resource, "0")), _count(has.get(resource, "0")))
        offered = _count(str(node.status.allocatable.get(resource, "0")))
        if offered < wanted:
            return f"{offered:g} of {wanted:g} {resource} are offered"
    return ""


def _count(text: str) -> float:
    """A number of devices; one that cannot be read counts as none."""
    try:
        return float(parse(text))
    except ValueError:
        return 0.0


def _seen(node: Node) -> str:
    """An agent that was there must see again; a node without an agent is judged by the rest."""
    blind = node.condition(names.DETECTION_BLIND)
    return "detection is blind on this node" if blind is not None and blind.status != "False" else ""
