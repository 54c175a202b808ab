"""A soak: a small fleet, a fault every minute for hours or days of simulated time, and what is left of it.

    python benchmarks/soak.py [--hours 24] [--nodes 60]

Faults are spread over the fleet and of every sort: kernel lines, conditions of other detectors, silent kubelets, dead
services. Two gangs, one of them the job loop's, replicas and a DaemonSet run on it. Two hours in, every `--every` hours
and at the end, each after some hours of calm, the blocks of memory, the tasks of the event loop and the objects in the
store are counted. Ended repairs are kept for an hour here, Events as everywhere, and the agents' journals are full from
the start, as after years of service: a day shows what a month would.

A day of 60 nodes takes some minutes of CPU; the tests run a shorter one (`tests/sim/test_soak.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import logging
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import structlog

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sickbay.apiserver.housekeeping import Housekeeper
from sickbay.clock import Randomness, rfc3339
from sickbay.providers.agent.journal import KEEP, Entry
from sickbay.sim.agent import disk_of
from sickbay.sim.components import Settings
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import (
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    FAULT_TYPES,
    JOBS,
    NAMESPACES,
    NODES,
    POOLS,
    REPAIRS,
    RULES,
    TASKS,
)
from sickbay.sim.loop import VirtualLoop, run_virtual
from sickbay.sim.machine import BUSES
from sickbay.sim.world import World

HOUR = 3600.0
POLICIES = "recoverypolicies.sickbay.dev"
FAULT_EVERY = 60.0
TRIM_EVERY = 600.0
COMPONENTS = ("agent", "decide", "execute", "recover", "notify", "convert")
WIDE = {
    "maxParallelRepairs": "100%",
    "maxParallelValidations": "100%",
    "maxUnavailable": "100%",
    "breaker": {"threshold": "100%", "maxNodes": 100000},
    "storm": {"nodes": 0},
    "budgets": {"perNode": {"repairs": 100000, "window": "1h"}},
    "cancelHold": "1h",
}


@dataclass
class Count:
    """What was there at one moment."""

    hour: float
    blocks: int
    """Blocks of memory that the interpreter has allocated and not freed, of everything in the process."""
    tasks: int
    store: dict[str, int]
    repairs: Counter[str]
    types: Counter[type] = field(default_factory=Counter)
    """Objects that the garbage collector knows, without those that were there before the world."""
    strays: int = 0
    """NodeTasks whose NodeRepair is gone."""
    by_file: dict[str, int] = field(default_factory=dict)


@dataclass
class Soak:
    counts: list[Count]
    faults: int
    ended: int
    cpu: float
    problems: list[str]

    @property
    def first(self) -> Count:
        return self.counts[0]

    @property
    def last(self) -> Count:
        return self.counts[-1]


def run(hours: list[float], nodes: int, seed: int = 0, tell: Callable[[str], None] = lambda _: None) -> Soak:
    """`hours` of faults, counted from the start, after which everything is counted; the last one ends the run."""
    began = time.process_time()
    found = run_virtual(lambda loop: _soak(loop, hours, nodes, seed, tell), seed)
    found.cpu = time.process_time() - began
    return found


async def _soak(loop: VirtualLoop, hours: list[float], nodes: int, seed: int, tell: Callable[[str], None]) -> Soak:
    before = _types()
    world = World(loop, seed, Settings(governor=False, options={"decide": {"kept": timedelta(hours=1)}}))
    world.fleet.add_pool(PoolSpec("train", nodes=nodes, gpus=8, rack=8))
    _furnish(world, nodes)
    world.settle()
    _age(world)
    world.start()
    world.start_components(COMPONENTS)
    keeper = loop.create_task(Housekeeper(world.store, owners=False).run())
    trouble = Trouble(world, nodes, Randomness(seed + 1))
    counts: list[Count] = []
    for until in hours:
        while trouble.struck * FAULT_EVERY < until * HOUR:
            await world.clock.sleep(FAULT_EVERY)
            trouble.strike()
            if trouble.struck % 10 == 0:
                _trim(world)
        await _calm(world)
        counts.append(_count(world, before))
        tell(_told(counts[-1]))
    keeper.cancel()
    await world.stop()
    return Soak(counts, trouble.struck, trouble.ended, 0.0, list(world.problems))


def _furnish(world: World, nodes: int) -> None:
    admin = world.person("admin")
    steps = [{"step": step} for step in ("Quarantine", "Drain", "Repair", "Validate", "Unquarantine")]
    admin.create(RULES, {"metadata": {"name": "all"}, "spec": {"rules": [{"name": "all", "procedure": steps}]}})
    pool = {"nodeSelector": {"matchLabels": {"pool": "train"}}, "mode": "Act", "rule": "all", **WIDE}
    admin.create(POOLS, {"metadata": {"name": "train"}, "spec": {**pool, "provider": {"name": "agent"}}})
    fault = {"class": "Node", "severity": "Error", "scope": "Node", "clearsBy": "condition"}
    fault |= {"match": [{"condition": {"type": "Wobbles", "status": "True"}}], "remedy": [{"action": "RebootNode"}]}
    admin.create(FAULT_TYPES, {"metadata": {"name": "lab.wobbles"}, "spec": fault})
    policy = {"mode": "Act", "budget": dict.fromkeys(("hardware", "transient", "unknown"), 100000)}
    admin.create(NAMESPACES, {"metadata": {"name": "team"}})
    admin.create(POLICIES, {"metadata": {"name": "all"}, "spec": policy}, "team")
    for namespace in ("default", "team"):  # nobody's, and the job loop's
        admin.create(JOBS, _job(max(2, nodes // 8)), namespace)
    admin.create(DEPLOYMENTS, _replicated("web", nodes // 2), "default")
    admin.create(DAEMON_SETS, _replicated("plugin", None), "default")


def _age(world: World) -> None:
    """Each agent has begun as many acts already as its journal holds."""
    for machine in world.stage.machines.values():
        _, journal = disk_of(machine)
        for number in range(KEEP):
            proof = {"bootID": f"{number:032x}", "reason": f"rebooted for the time {number}"}
            entry = Entry(
                key=f"{machine.name}-{number}/Repair/{number}",
                action="RebootNode",
                boot_id=f"{number:032x}",
                at=rfc3339(world.clock.now()),
                outcome="Done",
                message=f"act {number} is done",
                proof=proof,
            )
            journal.write(entry)


def _template(name: str, gpus: int = 0, **spec: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": "example.com/x:1"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}


def _job(ranks: int) -> dict[str, Any]:
    template = _template("llm", 4, restartPolicy="Never")
    spec = {"completionMode": "Indexed", "completions": ranks, "parallelism": ranks, "backoffLimit": 1000000}
    return {"metadata": {"name": "llm"}, "spec": {**spec, "template": template}}


def _replicated(name: str, replicas: int | None) -> dict[str, Any]:
    spec: dict[str, Any] = {"selector": {"matchLabels": {"app": name}}, "template": _template(name)}
    return {"metadata": {"name": name}, "spec": spec | ({} if replicas is None else {"replicas": replicas})}


class Trouble:
    """One fault after the other, each of another sort, on some node."""

    def __init__(self, world: World, nodes: int, randomness: Randomness) -> None:
        self._world, self._nodes, self._randomness = world, nodes, randomness
        self.struck = self.ended = 0
        world.store.after_write(self._count)

    def _count(self, write: Any) -> None:
        if write.resource == REPAIRS and write.new is not None:
            over, before = (write.new.get("status") or {}).get("endedAt"), (write.old or {}).get("status") or {}
            self.ended += bool(over and not before.get("endedAt"))

    def strike(self) -> None:
        name = f"train-{self._randomness.below(self._nodes)}"
        machine = self._world.machine(name)
        self.struck += 1
        if not machine.up:
            return
        sort = self.struck % 4
        if sort == 0:
            bus = BUSES[self._randomness.below(8)]
            machine.print_kernel(f"NVRM: Xid (PCI:0000:{bus}:00): 79, pid=1, name=x, GPU has fallen off the bus.")
        elif sort == 1:
            self._world.set_condition(name, "npd", {"type": "Wobbles", "status": "True"})
            self._world.loop.call_later(900, self._wobble_ends, name)
        elif sort == 2:
            machine.set_heartbeat(False)
            self._world.loop.call_later(300, machine.set_heartbeat, True)
        else:
            machine.set_service("containerd", "hung")
            self._world.loop.call_later(300, machine.restart_service, "containerd")

    def _wobble_ends(self, name: str) -> None:
        self._world.set_condition(name, "npd", {"type": "Wobbles", "status": "False"})


async def _calm(world: World) -> None:
    """No faults: open repairs end, ended ones and Events go, so that all counts are of one state.

    At least 90 minutes, at most three hours.
    """
    for turn in range(18):
        if turn >= 9 and not any(world.store.list(kind) for kind in (REPAIRS, TASKS, EVENTS)):
            return
        await world.clock.sleep(600)
        _trim(world)


def _trim(world: World) -> None:
    """People return what waits for them; the simulator's records of the run, which grow by intention, are dropped."""
    for repair in world.store.list(REPAIRS):
        name, status = repair["spec"]["node"]["name"], repair.get("status") or {}
        if status.get("phase") == "WaitingApproval":
            label = f"intervention.sickbay.dev/{status['current']['step'].lower()}-node"
            world.person("alice").merge(NODES, name, {"metadata": {"labels": {label: "approved"}}})
        if status.get("phase") in ("NeedsHuman", "Parked"):
            world.machine(name).replace_hardware()
            world.person("alice").merge(NODES, name, {"spec": {"unschedulable": None}})
    journal = world.journal
    for record in (journal.writes, journal.actions, journal.calls, journal.messages):
        record.clear()
    world.history.forget(world.loop.time())


def _empty_caches() -> None:
    """Caches with a bound go on filling for days; that is no growth that goes on."""
    wrapper = type(lru_cache(_empty_caches))
    for cache in [each for each in gc.get_objects() if isinstance(each, wrapper)]:
        if cache.cache_parameters()["maxsize"] is not None:
            cache.cache_clear()


def _types() -> Counter[type]:
    gc.collect()
    return Counter(type(each) for each in gc.get_objects())


def _count(world: World, before: Counter[type]) -> Count:
    _empty_caches()
    world.store.compact()
    types = _types()
    types.subtract(before)
    by_file: dict[str, int] = {}
    if tracemalloc.is_tracing():
        by_file = {s.traceback[0].filename: s.size for s in tracemalloc.take_snapshot().statistics("filename")}
    store = {kind.key: len(world.store.list(kind.key)) for kind in world.store.resources}
    phases = Counter(str((r.get("status") or {}).get("phase")) for r in world.store.list(REPAIRS))
    tasks = len(asyncio.all_tasks(world.loop))
    present = {key: number for key, number in store.items() if number}
    repairs = {repair["metadata"]["uid"] for repair in world.store.list(REPAIRS)}
    owners = [task["metadata"]["ownerReferences"][0]["uid"] for task in world.store.list(TASKS)]
    strays = sum(owner not in repairs for owner in owners)
    return Count(world.loop.time() / HOUR, sys.getallocatedblocks(), tasks, present, phases, types, strays, by_file)


def _told(count: Count) -> str:
    store = ", ".join(f"{key} {number}" for key, number in sorted(count.store.items()))
    return f"hour {count.hour:.1f}: {count.blocks} blocks, {count.tasks} tasks; {store}; {dict(count.repairs)}"


def grown(soak: Soak, number: int = 10) -> list[tuple[str, int]]:
    """The files whose allocations grew most, in bytes."""
    files = {**soak.first.by_file, **soak.last.by_file}
    growth = {f: soak.last.by_file.get(f, 0) - soak.first.by_file.get(f, 0) for f in files}
    return sorted(growth.items(), key=lambda pair: -pair[1])[:number]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--first", type=float, default=2.0, help="hour of the first count")
    parser.add_argument("--every", type=float, default=6.0, help="hours between counts")
    parser.add_argument("--trace", action="store_true", help="say which files hold more at the end (slow)")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    if given.trace:
        tracemalloc.start(1)
    marks = {given.first, given.hours, *(given.every * each for each in range(1, int(given.hours / given.every) + 1))}
    hours = sorted(mark for mark in marks if given.first <= mark <= given.hours)
    soak = run(hours, given.nodes, tell=lambda text: print(text, flush=True))
    print(f"{soak.faults} faults, {soak.ended} repairs ended, {soak.cpu:.0f} s of CPU")
    print(f"blocks {soak.last.blocks - soak.first.blocks:+d}, tasks {soak.last.tasks - soak.first.tasks:+d}")
    for before, after in itertools.pairwise(soak.counts):
        more = Counter(after.types)
        more.subtract(before.types)
        grew = ", ".join(f"{kind.__module__}.{kind.__qualname__} {number:+d}" for kind, number in more.most_common(14))
        print(f"objects, hour {before.hour:.1f} to {after.hour:.1f}: {grew}")
    for name, size in grown(soak, 25) if given.trace else ():
        print(f"  {size / 1e3:+8.1f} kB {name}")
    for problem in soak.problems:
        print(problem)


if __name__ == "__main__":
    main()
