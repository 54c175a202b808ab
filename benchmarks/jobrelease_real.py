"""The part of jobrelease.py that needs the real control plane: wall time, from a rank's end to the first new pod."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sickbay.api import names
from tests.controlplane import build, jobset
from tests.realcluster import agents
from tests.realcluster.conftest import ROLES_OF_PEOPLE, _bound
from tests.realcluster.gangs import JOB_SET, Gang
from tests.realcluster.world import World
from tests.support.controlplane import ControlPlane
from tests.support.eventually import eventually
from tests.support.hollow import allow_kubelets
from tests.support.install import DEPLOY, apply_file, apply_objects, install
from tests.support.jobset import JobSetController

RESTART = "jobset.sigs.k8s.io/restart-attempt"
SPARE = 8
PATIENCE = 120.0
APART = 16.0
"""Seconds between failures: five nodes with one fault within a minute are a shared cause, for which a job is held."""


async def measure(ranks: int, failures: int, told: Callable[[str, list[float], str], None]) -> None:
    import os

    with tempfile.TemporaryDirectory() as folder:
        binaries = build.build(os.environ)
        with ControlPlane(binaries, Path(folder), controllers=True, scheduling=True, audit=True) as plane:
            install(plane)
            apply_file(plane, DEPLOY / "rbac-jobs.yaml")
            allow_kubelets(plane)
            apply_objects(plane, *(_bound(role) for role in ROLES_OF_PEOPLE), agents.daemon_set())
            with JobSetController(plane, jobset.build(os.environ)):
                told("ours: rank's end to first new pod", await _run(plane, ranks, failures, ours=True), "s")
                told("JobSet alone: rank's end to first new pod", await _run(plane, ranks, failures, ours=False), "s")


async def _run(plane: ControlPlane, ranks: int, failures: int, ours: bool) -> list[float]:
    found = []
    async with World(plane) as world:
        made = ranks + SPARE + (failures if ours else 0)
        for start in range(0, made, 20):
            await world.nodes(min(20, made - start))
        await world.pool("Quarantine", "Unquarantine")
        gang = Gang(world, JOB_SET, ranks)
        if ours:
            await world.start("decide", "execute", "recover")
        await gang.start(watched=ours, failurePolicy={"maxRestarts": 1000})
        for number in range(1, failures + 1):
            await asyncio.sleep(APART if ours else 3)
            pod = gang.pods()[number]
            if ours:
                await world.fault(pod["spec"]["nodeName"])
            begun = time.monotonic()
            world.kubelets.pods.exit_pod(pod, 134)
            label, value = (names.ATTEMPT, str(number + 1)) if ours else (RESTART, str(number))
            await _released(gang, label, value)
            found.append(time.monotonic() - begun)
            await eventually(lambda: len(gang.places()) == ranks, PATIENCE, "all ranks run again")
        await gang.remove()
    return found


async def _released(gang: Gang, label: str, value: str) -> None:
    try:
        await eventually(lambda: any(_label(pod, label) == value for pod in gang.pods()), PATIENCE)
    except AssertionError:
        status = (await gang.record()).status
        raise SystemExit(f"no attempt {value} within {PATIENCE:.0f} s: {status.phase}: {status.message}") from None


def _label(pod: dict[str, Any], key: str) -> str:
    return str((pod["metadata"].get("labels") or {}).get(key, ""))
