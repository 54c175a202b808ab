"""Which service a RestartService restarts where the rung does not say.

The contract's ladder names actions, attempts and time-outs; the service is an argument of ours. A FaultType that
replaces the ladder of a built-in entry, or is about a condition that one reads, means the same service. Anything else
that a service restart is to cure on a node as a whole is the kubelet's to cure.
"""

from __future__ import annotations

from functools import cache

from sickbay.api import entries
from sickbay.api.fault_type import FaultType, Rung
from sickbay.api.names import condition_type

RESTART = "RestartService"
DEFAULT = "kubelet"


def arguments(rung: Rung, fault: FaultType | None) -> dict[str, str]:
    """What the act is told: the rung's own arguments, and the service where it needs one and has none."""
    args = dict(rung.args or {})
    if rung.action == RESTART and not args.get("service"):
        args["service"] = _meant(fault)
    return args


def _meant(fault: FaultType | None) -> str:
    if fault is None:
        return DEFAULT
    read = [match.condition.type for match in fault.spec.match or () if match.condition is not None]
    known = _by_condition()
    return next((known[each] for each in (condition_type(fault.metadata.name), *read) if each in known), DEFAULT)


@cache
def _by_condition() -> dict[str, str]:
    """The service that the built-in entries restart, by the conditions that they read."""
    found: dict[str, str] = {}
    for name, entry in entries.builtin()[1].items():
        spec = entry["spec"]
        for rung in spec.get("remedy") or ():
            service = (rung.get("args") or {}).get("service") if rung["action"] == RESTART else None
            if service:
                types = [match["condition"]["type"] for match in spec.get("match") or () if "condition" in match]
                found.update(dict.fromkeys([condition_type(name), *types], service))
    return found
