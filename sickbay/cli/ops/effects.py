"""What a disruptive word would do, said before it is given: the jobs it ends, the GPUs it takes, the room that is left.

A person who types a node's name wrong, or approves one drain too many, sees it here. The limits themselves are kept by
the controller, whoever asks: what does not fit waits for its slot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sickbay.api import kinds
from sickbay.api.actions import ACTIONS
from sickbay.api.core import Node, Pod
from sickbay.api.repair_pool import RepairPool
from sickbay.api.words import Step
from sickbay.cli.ops.cluster import counted
from sickbay.decide import slots
from sickbay.decide.gangs import gang_of, is_job_pod
from sickbay.decide.impact import gpus
from sickbay.kube import errors
from sickbay.kube.client import Client

SHOWN = 3
"""Jobs that are named."""
AT_ONCE = 10
"""Nodes whose pods are read at the same time."""


@dataclass(frozen=True)
class Effect:
    """What runs on one node, and would not any more."""

    node: Node
    pods: tuple[Pod, ...] | None
    """None where they may not be seen."""

    @property
    def jobs(self) -> list[str]:
        return sorted({gang_of(pod) for pod in self.pods or () if is_job_pod(pod)})

    @property
    def gpus(self) -> int:
        return gpus(self.node)

    @property
    def used(self) -> int:
        """GPUs that its pods hold."""
        return sum(_held(pod) for pod in self.pods or ())


def disrupts(action: str) -> bool:
    """Whether what runs on the node, or on its device, does not survive this remedy."""
    return action in ACTIONS and ACTIONS[action].disruptive


async def read(client: Client, nodes: Sequence[Node]) -> list[Effect]:
    found: list[Effect] = []
    for start in range(0, len(nodes), AT_ONCE):
        some = nodes[start : start + AT_ONCE]
        pods = await asyncio.gather(*(_pods(client, node) for node in some))
        found += [Effect(node, its) for node, its in zip(some, pods, strict=True)]
    return found


async def _pods(client: Client, node: Node) -> tuple[Pod, ...] | None:
    try:
        listing = await client.list(kinds.POD, fields=f"spec.nodeName={node.name}")
    except errors.ApiError:
        return None
    return tuple(p for p in listing.items if not (p.is_mirror or p.is_daemonset or p.finished))


def lines(what: str, effects: Sequence[Effect], pools: Iterable[RepairPool]) -> list[str]:
    """In words: what it means for the nodes, and what room their pools have left. `what` is a step or a remedy."""
    stays = what == Step.QUARANTINE
    if not effects:
        return []
    names = ", ".join(effect.node.name for effect in effects[:SHOWN])
    more = f" and {len(effects) - SHOWN} more" if len(effects) > SHOWN else ""
    total = sum(effect.gpus for effect in effects)
    told = [f"{what} of {names}{more}: {counted(total, 'GPU')}, {_running(effects, 'stay' if stays else 'end')}"]
    concerned = {p.metadata.name: p for p in pools for e in effects if p.spec.node_selector.matches(e.node.labels)}
    return told + [_room(concerned[name]) for name in sorted(concerned)]


def _running(effects: Sequence[Effect], become: str) -> str:
    if any(effect.pods is None for effect in effects):
        return "what runs there cannot be seen from here"
    pods = sum(len(effect.pods or ()) for effect in effects)
    if not pods:
        return "nothing runs there"
    jobs = sorted({job for effect in effects for job in effect.jobs})
    used = sum(effect.used for effect in effects)
    more = f" and {len(jobs) - SHOWN} more" if len(jobs) > SHOWN else ""
    named = f" ({', '.join(jobs[:SHOWN])}{more})" if jobs else ""
    return f"{used} of them in use; {counted(pods, 'pod')} and {counted(len(jobs), 'job')}{named} would {become} there"


def _room(pool: RepairPool) -> str:
    view = slots.PoolView(pool, pool.status.nodes)
    repairs, most = slots.room(view, slots.REPAIR), slots.limit_of(view, slots.REPAIR)
    out = slots.limit_of(view, slots.UNAVAILABLE)
    taken = pool.status.unavailable
    waits = "" if repairs else ": it waits for one"
    return (
        f"pool {pool.metadata.name}: {repairs} of {counted(most, 'repair slot')} left, "
        f"{taken} of at most {counted(out, 'node')} out of service{waits}"
    )


def _held(pod: Pod) -> int:
    found = 0
    for container in pod.spec.containers:
        asked = {**container.resources.requests, **container.resources.limits}
        amounts = [str(amount) for name, amount in asked.items() if name in slots.GPU_RESOURCES]
        found += sum(int(amount) for amount in amounts if amount.isdigit())
    return found
