"""A world on the calling test's own virtual loop, and short ways to look at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from sickbay.sim.components import Settings
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import PODS, condition_of
from sickbay.sim.loop import VirtualLoop
from sickbay.sim.world import World


@asynccontextmanager
async def running_world(
    *pools: PoolSpec,
    seed: int = 0,
    prepare: Callable[[World], None] | None = None,
    settings: Settings | None = None,
) -> AsyncIterator[World]:
    """A world whose simulated parts run; fails when one of them breaks."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    world = World(loop, seed, settings)
    for pool in pools:
        world.fleet.add_pool(pool)
    if prepare is not None:
        prepare(world)
    world.settle()
    world.start()
    try:
        yield world
    finally:
        await world.stop()
    assert world.problems == [], "\n".join(world.problems)


def pod(name: str, node: str = "", gpus: int = 0, **spec: Any) -> dict[str, Any]:
    """A pod manifest; keyword arguments go into its spec, except `annotations` and `labels`."""
    meta: dict[str, Any] = {"name": name}
    for key in ("annotations", "labels"):
        if key in spec:
            meta[key] = spec.pop(key)
    container: dict[str, Any] = {"name": "main", "image": "example.com/train:1"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    spec.setdefault("restartPolicy", "Never")
    spec["containers"] = [container]
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    return {"metadata": meta, "spec": spec}


def phases(world: World, namespace: str = "default") -> dict[str, str]:
    return {p["metadata"]["name"]: p["status"]["phase"] for p in world.store.list(PODS, namespace)}


def places(world: World, namespace: str = "default") -> dict[str, str]:
    """Node by pod name, for pods that are bound."""
    pods = world.store.list(PODS, namespace)
    return {p["metadata"]["name"]: p["spec"]["nodeName"] for p in pods if p["spec"].get("nodeName")}


def ready(world: World, node: str) -> str:
    return str(condition_of(world.node(node), "Ready").get("status", ""))


def taint_keys(world: World, node: str) -> set[tuple[str, str]]:
    return {(t["key"].removeprefix("node.kubernetes.io/"), t["effect"]) for t in world.taints(node)}
