"""The remedies: what each one touches, and what it costs when it is wrong.

The names are the enum of `FaultType.spec.remedy[].action`. Whoever decides asks this table whether an act needs the
node empty, a repair slot, or a person's word first; whoever executes asks it who carries the act out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Action:
    """One remedy.

    scope        what it takes down: "device", "node" or "domain"; "" when it touches nothing
    disruptive   workloads on that scope do not survive it, so it needs a Repair slot
    irreversible what was there before cannot be had back
    destroys     wipes data on local disks
    parks        waits for a third party (vendor, cloud, people): the repair is Parked meanwhile
    strength     order of remedies for arbitration: the stronger covers the weaker
    ceiling      how long Validate may take after it (api.md, "Ceilings of Validate")
    soak         how long all checks must hold before the node counts as well
    timeout      how long the act itself may take when the rung does not say
    """

    name: str
    scope: str
    disruptive: bool
    strength: int
    timeout: timedelta
    ceiling: timedelta
    soak: timedelta
    irreversible: bool = False
    destroys: bool = False
    parks: bool = False

    @property
    def node_wide(self) -> bool:
        return self.scope in ("node", "domain")

    @property
    def asks_first(self) -> bool:
        """True when only a pool with disposable local data may run it without a person's word."""
        return self.irreversible or self.destroys


def _minutes(n: int) -> timedelta:
    return timedelta(minutes=n)


_DAY = timedelta(days=1)

ACTIONS: dict[str, Action] = {
    a.name: a
    for a in (
        Action("None", "", False, 0, _minutes(1), _minutes(30), _minutes(5)),
        Action("RestartApplication", "", False, 1, _minutes(10), _minutes(10), _minutes(1)),
        Action("SetDeviceConfig", "device", True, 2, _minutes(5), _minutes(20), _minutes(5)),
        Action("RestartService", "node", False, 3, _minutes(5), _minutes(10), _minutes(1)),
        Action("RestartDevicePlugin", "node", False, 3, _minutes(5), _minutes(10), _minutes(1)),
        Action("ResetGPU", "device", True, 4, _minutes(10), _minutes(20), _minutes(5)),
        Action("ResetFabric", "node", True, 5, _minutes(15), _minutes(20), _minutes(5)),
        Action("RebootNode", "node", True, 6, _minutes(15), _minutes(30), _minutes(5)),
        Action("PowerCycle", "node", True, 7, _minutes(20), _minutes(40), _minutes(10)),
        Action("RecoverDomain", "domain", True, 8, _minutes(30), _minutes(40), _minutes(10)),
        Action("Custom", "node", True, 8, _minutes(30), _minutes(30), _minutes(5)),
        Action("ReprovisionNode", "node", True, 9, _minutes(60), _DAY, _minutes(30), irreversible=True, destroys=True),
        Action("RedeployNode", "node", True, 9, _minutes(60), _DAY, _minutes(30), irreversible=True, destroys=True),
        Action("RepairHardware", "node", True, 10, 14 * _DAY, _DAY, _minutes(30), parks=True),
        Action("ContactSupport", "", False, 11, 14 * _DAY, _DAY, _minutes(30), parks=True),
        Action("ReplaceNode", "node", True, 12, _DAY, _DAY, _minutes(30), irreversible=True, destroys=True, parks=True),
    )
}

NO_NODE_REPAIR = frozenset({"None", "RestartApplication"})
"""Remedies that ask nothing of the node: the fault is recorded, and the job loop acts on it."""


def action(name: str) -> Action:
    """The remedy of that name. Raises KeyError for a name this version does not know: hold, and tell people."""
    return ACTIONS[name]


def needs_empty_node(name: str) -> bool:
    """True for acts that take the whole node down, so that everything on it must have left first.

    Restarting a service leaves the containers of a node running (the kubelet and containerd are made for it), so it
    is node-wide in reach but needs no drain.
    """
    a = ACTIONS[name]
    return a.node_wide and a.disruptive


def domain_wide(name: str) -> bool:
    """True for acts that take down every node of a failure domain; False for a name this version does not know."""
    return name in ACTIONS and ACTIONS[name].scope == "domain"
