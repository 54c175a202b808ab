"""Preemption: which pods of lower priority go so that a pod finds a place.

After the plug-in defaultpreemption: on each node all pods of lower priority are thought away; if the pod fits then, as
many as can stay are let stay, the most important first and those whose budget is used up before others. The node with
the fewest broken budgets wins, then the one with the least important victims.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.selectors import selector_matches
from sickbay.sim.hand import condition_of, labels_of
from sickbay.sim.parts.scheduling.company import company_of
from sickbay.sim.parts.scheduling.filters import Refusal, Search, refusal
from sickbay.sim.parts.scheduling.picture import Picture, priority_of

BY_SCHEDULER = "PreemptionByScheduler"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_HELP = "Preemption is not helpful for scheduling"
NEVER = "not eligible due to preemptionPolicy=Never."
WAITING = "not eligible due to a terminating pod on the nominated node."


@dataclass(frozen=True, slots=True)
class Plan:
    """These pods go from that node, the most important first."""

    node: Obj
    victims: tuple[Obj, ...]
    broken: int
    """How many of them their budget would keep."""


def ineligible(pod: Obj, found: Search, picture: Picture) -> str:
    """Why the pod may not preempt now; empty when it may."""
    if pod["spec"].get("preemptionPolicy") == "Never":
        return NEVER
    nominated = (pod.get("status") or {}).get("nominatedNodeName") or ""
    refused = found.refusals.get(nominated)
    if not nominated or (refused is not None and refused.final):
        return ""
    leaving = (p for p in picture.pods_on(nominated) if priority_of(p) < priority_of(pod) and _preempted(p))
    return WAITING if any(leaving) else ""


def _preempted(pod: Obj) -> bool:
    target = condition_of(pod, "DisruptionTarget")
    return bool(pod["metadata"].get("deletionTimestamp")) and target.get("reason") == BY_SCHEDULER


def plan(pod: Obj, found: Search, picture: Picture, budgets: Iterable[Obj]) -> tuple[Plan | None, list[Refusal]]:
    """The best plan; without one, why each node offers none."""
    plans, refusals, kept = [], [], list(budgets)
    for name, refused in found.refusals.items():
        if refused.final:
            refusals.append(Refusal((NO_HELP,), True))
            continue
        made = _on_node(pod, picture.nodes[name], picture, kept)
        if isinstance(made, Plan):
            plans.append(made)
        else:
            refusals.append(made)
    return (min(plans, key=_cost) if plans else None), refusals


def _on_node(pod: Obj, node: Obj, picture: Picture, budgets: list[Obj]) -> Plan | Refusal:
    name = node["metadata"]["name"]
    lower = [p for p in picture.pods_on(name) if priority_of(p) < priority_of(pod)]
    if not lower:
        return Refusal((NO_VICTIMS,), True)
    for victim in lower:
        picture.take(name, victim)
    try:
        refused = refusal(pod, node, picture, company_of(pod, picture))
        if refused is not None:
            return refused
        return _reprieved(pod, node, picture, lower, budgets)
    finally:
        for victim in lower:
            picture.put(name, victim)


def _reprieved(pod: Obj, node: Obj, picture: Picture, lower: list[Obj], budgets: list[Obj]) -> Plan:
    name = node["metadata"]["name"]
    violating, others = _by_budget(sorted(lower, key=_importance), budgets)
    victims, broken = [], 0
    for candidates, counts in ((violating, 1), (others, 0)):
        for victim in candidates:
            picture.put(name, victim)
            if refusal(pod, node, picture, company_of(pod, picture)) is not None:
                picture.take(name, victim)
                victims.append(victim)
                broken += counts
    return Plan(node, tuple(sorted(victims, key=_importance)), broken)


def _importance(pod: Obj) -> tuple[int, str]:
    """The most important first: higher priority, then the one that has run longer."""
    return -priority_of(pod), _started(pod)


def _started(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("startTime") or "9999")


def _by_budget(pods: list[Obj], budgets: list[Obj]) -> tuple[list[Obj], list[Obj]]:
    """Pods whose going would break a budget, and the others."""
    allowed = [int((b.get("status") or {}).get("disruptionsAllowed", 0)) for b in budgets]
    violating: list[Obj] = []
    others: list[Obj] = []
    for pod in pods:
        broken = False
        for index, budget in enumerate(budgets):
            if not _protects(budget, pod):
                continue
            allowed[index] -= 1
            broken = broken or allowed[index] < 0
        (violating if broken else others).append(pod)
    return violating, others


def _protects(budget: Obj, pod: Obj) -> bool:
    if budget["metadata"]["namespace"] != pod["metadata"]["namespace"] or not labels_of(pod):
        return False
    selector = (budget.get("spec") or {}).get("selector")
    if not selector or pod["metadata"]["name"] in ((budget.get("status") or {}).get("disruptedPods") or {}):
        return False
    return selector_matches(selector, labels_of(pod))


def _cost(made: Plan) -> tuple[int, int, int, int, tuple[int, ...], str]:
    priorities = [priority_of(victim) for victim in made.victims]
    top = max(priorities)
    earliest = min(_started(victim) for victim in made.victims if priority_of(victim) == top)
    latest_first = tuple(-ord(letter) for letter in earliest)
    total = sum(priority + 2**31 for priority in priorities)
    return made.broken, top, total, len(priorities), latest_first, made.node["metadata"]["name"]
