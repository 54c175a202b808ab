"""Whether a world has come to rest: every repair over, or with somebody who knows until when.

A wait for room is rest only while something that people have to end takes that room, a wait for a job only while pods
run on the node: a job whose policy only observes runs on there, and the ceiling of an urgency is a day away.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import ENDED, Outcome, Phase
from sickbay.apiserver.errors import Obj
from sickbay.clock import parse_time
from sickbay.sim.hand import NODES, PODS, POOLS, REPAIRS, TASKS, condition_of
from sickbay.sim.world import World

LATE = 180.0
"""Seconds after which a deadline that has passed without anything happening is a finding."""
WITH_PEOPLE = (Phase.NEEDS_HUMAN, Phase.PARKED)


def unsettled(world: World) -> list[str]:
    """What is still under way, in words."""
    repairs = [msgspec.convert(obj, NodeRepair) for obj in world.store.list(REPAIRS)]
    found = []
    for repair in repairs:
        if not _rests(world, repair, repairs):
            current = repair.status.current
            found.append(
                f"{repair.metadata.name} is {repair.status.phase} at {current.step or 'its beginning'} "
                f"(waits for {current.waits_for or 'nothing'} until {current.deadline}): {repair.status.message}"
            )
    return found


def overdue(world: World) -> list[str]:
    """Waits whose end has passed, and nothing came of it."""
    found, now = [], world.clock.now()
    for obj in world.store.list(REPAIRS):
        repair = msgspec.convert(obj, NodeRepair)
        deadline = repair.status.current.deadline
        if _over(repair) or not deadline:
            continue
        late = (now - parse_time(deadline)).total_seconds()
        if late > LATE:
            found.append(f"{repair.metadata.name} waits in {repair.status.phase} beyond its deadline {deadline}")
    return found


def _over(repair: NodeRepair) -> bool:
    return repair.status.phase in ENDED or bool(repair.status.outcome and repair.status.ended_at)


def _rests(world: World, repair: NodeRepair, repairs: list[NodeRepair]) -> bool:
    if _over(repair):
        left = repair.status.outcome == Outcome.LEFT_QUARANTINED
        return left or not repair.metadata.finalizers
    if repair.status.phase in (*WITH_PEOPLE, Phase.WOULD_ACT):
        return True
    if repair.status.phase == Phase.WAITING_JOB:
        return _runs_on(world, repair.spec.node.name)
    if repair.status.phase in (Phase.WAITING_SLOT, Phase.PENDING):
        return _room_is_taken(world, repairs)
    return False


def _runs_on(world: World, node: str) -> bool:
    pods = world.store.list(PODS, fields=f"spec.nodeName={node}")
    return any((pod.get("status") or {}).get("phase") == "Running" for pod in pods)


def _room_is_taken(world: World, repairs: list[NodeRepair]) -> bool:
    """Something that only people end keeps others from starting."""
    stuck = any(
        repair.status.outcome == Outcome.LEFT_QUARANTINED or (not _over(repair) and repair.status.phase in WITH_PEOPLE)
        for repair in repairs
    )
    return stuck or any(map(_closed, world.store.list(POOLS))) or any(map(_out, world.store.list(NODES)))


def _closed(pool: Obj) -> bool:
    status: dict[str, Any] = pool.get("status") or {}
    breaker = (status.get("breaker") or {}).get("state", "Closed")
    fits = condition_of(pool, "LimitsFit").get("status") != "False"
    return breaker != "Closed" or bool(status.get("storms")) or not fits or bool(pool["spec"].get("windows"))


def _out(node: Obj) -> bool:
    """Out of service for a reason that is not ours."""
    spec = node.get("spec") or {}
    marked = "sickbay.dev/quarantine" in (node["metadata"].get("annotations") or {})
    return condition_of(node, "Ready").get("status") != "True" or (bool(spec.get("unschedulable")) and not marked)


def left_over(world: World) -> list[str]:
    """What should be gone when everything is at rest: slots and tasks of repairs that are over."""
    found = []
    ended = {o["metadata"]["name"] for o in world.store.list(REPAIRS) if _over(msgspec.convert(o, NodeRepair))}
    for pool in world.store.list(POOLS):
        for slot in (pool.get("status") or {}).get("slots") or ():
            if slot["repair"] in ended:
                found.append(
                    f"pool {pool['metadata']['name']}: {slot['repair']} is over and holds a {slot['kind']} slot"
                )
    uids = {o["metadata"]["uid"] for o in world.store.list(REPAIRS) if o["metadata"]["name"] in ended}
    there = {o["metadata"]["uid"] for o in world.store.list(NODES)}
    for task in world.store.list(TASKS):
        phase = (task.get("status") or {}).get("phase", "Pending")
        if task["spec"]["node"].get("uid") not in there:
            continue  # nobody is left who could end it; it goes with its repair
        if task["spec"]["key"].partition("/")[0] in uids and phase in ("Pending", "Accepted", "Running"):
            found.append(f"task {task['metadata']['name']} is {phase}, and its repair is over")
    return found
