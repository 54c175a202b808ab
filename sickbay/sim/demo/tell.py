"""Runs the story until it is over, in a world that kubectl can look at."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import yaml

from sickbay.apiserver.kubeconfig import write_kubeconfig
from sickbay.apiserver.serve import serve
from sickbay.apiserver.writes import Caller
from sickbay.kube.lease import LeaseTimes
from sickbay.sim.components import Settings as Components
from sickbay.sim.demo import fleet, people
from sickbay.sim.demo.record import Record
from sickbay.sim.demo.story import Broken, Story
from sickbay.sim.loop import VirtualLoop
from sickbay.sim.paced import PacedLoop
from sickbay.sim.world import World

COMPONENTS = ("agent", "decide", "execute", "recover", "convert")
SETTLE = 5.0
"""Simulated seconds in which the last Events arrive."""
PATIENCE = 40 * 60.0
"""Simulated seconds after which the story is given up."""


class Screen(Protocol):
    """Where the story is told."""

    def say(self, moment: float, node: str, text: str) -> None: ...

    def show(self, world: World, record: Record) -> None: ...

    def commands(self, lines: list[str]) -> None: ...

    def kept(self, url: str) -> None: ...


@dataclass(frozen=True)
class Settings:
    port: int = 0
    kubeconfig: Path = Path(".demo/kubeconfig")
    keep: bool = False
    seed: int = 7


class Failed(Exception):
    """The story did not come to its end; the text says what went wrong."""


async def tell(loop: PacedLoop, settings: Settings, screen: Screen, finish: Callable[[Record], None]) -> Record:
    """Run the story, hand the record to `finish`, and go on when it is to be kept.

    Raises CannotServe for a port in use, Failed when the story does not end as it should.
    """
    everybody = Caller("demo", ("system:masters",))
    world = World(cast(VirtualLoop, loop), settings.seed, _patient(), anonymous=everybody)

    def say(about: str, text: str) -> None:
        screen.say(loop.time(), about, text)

    record = Record(loop.time, say)
    world.store.after_write(record.note)
    for spec in fleet.POOLS:
        world.fleet.add_pool(spec)
    for manifest in fleet.objects():
        world.apply(manifest, "platform-team")
    world.settle()
    async with await serve(world.server, port=settings.port, housekeeping=False) as server:
        _not_in_use(settings.kubeconfig)
        settings.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        write_kubeconfig(settings.kubeconfig, server.url, user="demo")
        screen.commands(_commands(settings.kubeconfig))
        world.start()
        world.start_components(COMPONENTS)
        story = Story(world, record, say)
        platform = people.TrainingPlatform(world, "train", say)
        helpers = [loop.create_task(platform.run()), loop.create_task(_watch(world, record, screen))]
        try:
            await _happen(story)
            await _until_over(world, record)
            if wrong := story.wrong():
                raise Failed("; ".join(wrong))
            await world.clock.sleep(SETTLE)
            screen.show(world, record)
            finish(record)
            if settings.keep:
                screen.kept(server.url)
                await asyncio.Event().wait()
        finally:
            for task in helpers:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*helpers, return_exceptions=True)
            await world.stop()
    return record


def _not_in_use(kubeconfig: Path) -> None:
    """Another demo that still runs would lose its kubeconfig to this one. Raises Failed."""
    try:
        server = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
        host, port = server.removeprefix("http://").rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=1):
            pass
    except (OSError, ValueError, KeyError, TypeError, IndexError, yaml.YAMLError):
        return
    raise Failed(f"a demo already runs on {server} with {kubeconfig}; end it, or choose another file with --kubeconfig")


def _patient() -> Components:
    """Leases that bear a busy machine: on a fast clock the usual deadline is over in half a real second."""
    times = LeaseTimes(duration=300, deadline=240.0, period=30.0)
    return Components(options={name: {"lease": times} for name in ("decide", "execute", "recover")})


def _commands(kubeconfig: Path) -> list[str]:
    prefix = f"kubectl --kubeconfig {kubeconfig}"
    return [
        f"{prefix} get nodes",
        f"{prefix} get noderepairs -w",
        f"{prefix} get jobrecoveries -w",
        f"{prefix} get events",
    ]


async def _watch(world: World, record: Record, screen: Screen) -> None:
    while True:
        screen.show(world, record)
        await world.clock.sleep(4.0)


async def _happen(story: Story) -> None:
    try:
        await story.happen()
    except Broken as broken:
        raise Failed(str(broken)) from None


async def _until_over(world: World, record: Record) -> None:
    begun = world.clock.monotonic()
    while not record.over:
        if world.problems:
            raise Failed(world.problems[0])
        if world.clock.monotonic() - begun > PATIENCE:
            stuck = [f"{s.node} ({s.phase}: {s.message})" for s in record.stories if s.ended is None]
            raise Failed(f"not over after {PATIENCE / 60:.0f} simulated minutes: {', '.join(stuck)}")
        await world.clock.sleep(2.0)
