"""Validate: is the node well, and does it stay well for the soak?

Every check that does not pass is named. The moment since which all pass stands in the report, so that a restart of the
controller does not begin the soak anew; one failed look does.
"""

from __future__ import annotations

from datetime import timedelta

from sickbay.api import kinds, names
from sickbay.api.core import Node
from sickbay.api.duration import format_duration, parse_duration
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import ReportState
from sickbay.clock import parse_time, rfc3339
from sickbay.execute.act import NEW_BOOT
from sickbay.execute.progress import Look, Progress, done, failed
from sickbay.kube.client import Client

LOOK = 10.0
"""Seconds between two looks."""
WELL_SINCE = "wellSince"
DEFAULT_SOAK = "5m"


class Validate:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def look(self, look: Look) -> Progress:
        wrong = node_problems(look.node, look.repair) + await self._pods(look.node)
        since = look.report.proof.get(WELL_SINCE, "")
        if wrong:
            text = "; ".join(wrong)
            if look.late:
                return failed(f"not well: {text}")
            return Progress(ReportState.IN_PROGRESS, f"not well yet: {text}", {WELL_SINCE: ""}, again=LOOK)
        if not since:
            since = rfc3339(look.now)
        soak = parse_duration(look.current.args.get("soak") or DEFAULT_SOAK)
        rest = soak - (look.now - parse_time(since))
        if rest <= timedelta(0):
            return done(f"well for {format_duration(soak)}", {WELL_SINCE: since, "bootID": look.node.boot_id})
        text = f"all checks pass since {since}; the soak lasts {format_duration(soak)}"
        return Progress(ReportState.IN_PROGRESS, text, {WELL_SINCE: since}, again=min(LOOK, rest.total_seconds()))

    async def _pods(self, node: Node) -> list[str]:
        """DaemonSet pods of the node (device plug-in, network, agents) that are not back yet."""
        listing = await self._client.list(kinds.POD, fields=f"spec.nodeName={node.name}")
        away = []
        for pod in listing.items:
            ready = pod.condition("Ready")
            if pod.is_daemonset and not pod.finished and (ready is None or ready.status != "True"):
                away.append(f"{pod.namespace}/{pod.name}")
        return [f"DaemonSet pods not ready: {', '.join(away[:3])}"] if away else []


def node_problems(node: Node, repair: NodeRepair) -> list[str]:
    """What the Node object and the record show to be wrong, in words."""
    checks = (_ready(node), _boot(node, repair), _faults(repair), _devices(node), _seen(node))
    return [text for text in checks if text]


def _ready(node: Node) -> str:
    return "" if node.ready else "the node is not Ready"


def _boot(node: Node, repair: NodeRepair) -> str:
    """After a reboot the node must run in the boot that was proven, or a later one; never in the old one."""
    attempts = [a for a in repair.status.step("Repair").attempts if a.state == "Done" and a.action in NEW_BOOT]
    before = attempts[-1].proof.get("bootBefore", "") if attempts else ""
    return "the node runs in the boot from before the repair" if before and node.boot_id == before else ""


def _faults(repair: NodeRepair) -> str:
    left = [fault.type for fault in repair.spec.faults if fault.cleared_at is None]
    return f"not proven gone: {', '.join(left)}" if left else ""


def _devices(node: Node) -> str:
    """Every GPU that the node has is offered again."""
    for resource, capacity in node.status.capacity.items():
        if "/" not in resource or not any(word in resource for word in ("gpu", "gaudi", "Ascend", "neuron")):
            continue
        offered = node.status.allocatable.get(resource, 0)
        if str(offered) != str(capacity):
            return f"{offered} of {capacity} {resource} are offered"
    return ""


def _seen(node: Node) -> str:
    """An agent that was there must see again; a node without an agent is judged by the rest."""
    blind = node.condition(names.DETECTION_BLIND)
    return "detection is blind on this node" if blind is not None and blind.status != "False" else ""
