"""`sickbay controller` as a process, and what kubectl shows of its objects."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from sickbay.api import kinds
from tests.realcluster.objects import STEPS, gated
from tests.realcluster.world import World
from tests.support.controlplane import NAMESPACE
from tests.support.eventually import eventually
from tests.support.ports import free_ports

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).resolve().parents[2]
LEASES = ("sickbay-decide", "sickbay-execute", "sickbay-notify")


class Command:
    """A running `sickbay controller`."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self._url = f"http://127.0.0.1:{port}"
        self.said = ""

    async def readyz(self) -> tuple[int, str]:
        async with httpx2.AsyncClient(trust_env=False) as http:
            try:
                answer = await http.get(f"{self._url}/readyz")
            except httpx2.HTTPError as error:
                return 0, str(error)
        return answer.status_code, answer.text

    async def until_ready(self) -> None:
        async def ready() -> bool:
            return (await self.readyz())[0] == 200

        await eventually(ready, 30, "ready")

    async def read(self) -> None:
        """Collect what it says until it ends."""
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            self.said += line.decode()

    async def end(self) -> int:
        """SIGTERM, and its exit code; it may take 10 s."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            return await self._process.wait()


@asynccontextmanager
async def command(kubeconfig: Path, *more: str) -> AsyncIterator[Command]:
    (port,) = free_ports(1)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sickbay", "controller", "--kubeconfig", str(kubeconfig),
        "--listen", f"127.0.0.1:{port}", *more,
        cwd=ROOT, stderr=asyncio.subprocess.PIPE, env={**os.environ, "NO_PROXY": "127.0.0.1"},
    )  # fmt: skip
    made = Command(process, port)
    reading = asyncio.create_task(made.read())
    try:
        yield made
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading


def kubeconfig(world: World) -> Path:
    return world.plane.kubeconfig_for_token("controller", world.plane.controller_token())


async def holders(world: World) -> dict[str, str]:
    leases = {name: await world.admin.get(kinds.LEASE, name, NAMESPACE) for name in LEASES}
    return {name: lease.spec.holder_identity or "" for name, lease in leases.items()}


async def test_it_starts_acts_and_on_sigterm_gives_its_leases_back(world: World) -> None:
    (sick,) = await world.nodes(1)
    await world.pool("Quarantine", gated("Drain"), *STEPS[2:])
    async with command(kubeconfig(world)) as running:
        await running.until_ready()
        await world.fault(sick)
        await world.asked(sick, "Drain")
        assert all((await holders(world)).values())
        assert await running.end() == 0
    assert set((await holders(world)).values()) == {""}
    assert "Traceback" not in running.said
    async with command(kubeconfig(world)) as again:  # nothing is waited for, and what was begun goes on
        await world.dev.answer(sick, "Drain", "denied")
        over = await world.closed(sick)
        assert await again.end() == 0
    assert over.status.outcome == "Denied"
    assert "Traceback" not in again.said


async def test_a_server_that_is_away_is_retried_with_patience_and_named(world: World) -> None:
    (port,) = free_ports(1)
    away = world.plane.folder / "away.yaml"
    away.write_text(kubeconfig(world).read_text().replace(world.plane.server, f"https://127.0.0.1:{port}"))
    async with command(away) as running:

        async def awaited() -> bool:
            status, text = await running.readyz()
            return status == 503 and "waiting for the list of nodes" in text

        await eventually(awaited, 20, "readiness names what is awaited")
        await eventually(lambda: "lease not taken" in running.said and "list or watch failed" in running.said, 20)
        assert await running.end() == 0
    assert "Traceback" not in running.said
    assert len(running.said.splitlines()) < 200, "it floods its log"


async def test_kubectl_shows_where_repairs_and_pools_stand(world: World) -> None:
    (sick,) = await world.nodes(1)
    await world.pool("Quarantine", gated("Drain"), *STEPS[2:])
    await world.start()
    await world.fault(sick)
    await world.phase(sick, "WaitingApproval")
    repairs = (await world.dev.kubectl("get", "noderepairs")).splitlines()
    assert repairs[0].split() == ["NAME", "NODE", "FAULT", "PHASE", "STEP", "WAITSFOR", "OUTCOME", "AGE"]
    row = next(line.split() for line in repairs if sick in line)
    name = world.repair(sick).metadata.name
    assert row[:6] == [name, sick, f"test.{world.name}", "WaitingApproval", "Drain", "Approval"]
    pools = (await world.dev.kubectl("get", "rp", world.name)).splitlines()
    assert pools[0].split() == ["NAME", "MODE", "RULE", "NODES", "FAULTY", "UNAVAILABLE", "BREAKER", "AGE"]
    shown = ["Act", world.name, "1", "1", "1", "Closed"]
    await eventually(columns(world, shown), 20, f"kubectl get rp shows {shown}")
    await world.dev.answer(sick, "Drain", "denied")
    await world.closed(sick)


def columns(world: World, wanted: list[str]) -> Callable[[], Awaitable[bool]]:
    """A check of the pool's columns after its name."""

    async def shown() -> bool:
        seen = (await world.dev.kubectl("get", "rp", world.name, "--no-headers")).split()[1:-1]
        if seen != wanted:
            raise LookupError(f"it shows {seen}")
        return True

    return shown
