"""The demo's story, on virtual time, and what it prints; its command, on the paced clock."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from sickbay.sim.demo import fleet, people, screen
from sickbay.sim.demo.record import Record
from sickbay.sim.demo.story import Broken, Story
from sickbay.sim.demo.tell import COMPONENTS
from sickbay.sim.loop import VirtualLoop, run_virtual
from sickbay.sim.world import World


class Told:
    """One telling of the story on virtual time."""

    def __init__(self, components: tuple[str, ...] = COMPONENTS) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self.lines: list[tuple[str, str]] = []
        self.world = World(loop, 7)
        self.record = Record(loop.time, lambda about, text: self.lines.append((about, text)))
        self.world.store.after_write(self.record.note)
        for pool in fleet.POOLS:
            self.world.fleet.add_pool(pool)
        for manifest in fleet.objects():
            self.world.apply(manifest, "platform-team")
        self.world.settle()
        self.story = Story(self.world, self.record, lambda about, text: self.lines.append((about, text)))
        self._components = components

    async def tell(self) -> None:
        self.world.start()
        self.world.start_components(self._components)
        platform = people.TrainingPlatform(self.world, "train", lambda *_: None)
        helper = asyncio.create_task(platform.run())
        try:
            await self.story.happen()
            while not self.record.over:
                await self.world.clock.sleep(5)
        finally:
            helper.cancel()
            await self.world.stop()
        assert self.world.problems == []


@pytest.fixture(scope="module")
def told() -> Told:
    """Told once: what is asked of it afterwards are facts."""

    async def main(_loop: VirtualLoop) -> Told:
        made = Told()
        await made.tell()
        return made

    return run_virtual(main)


def test_the_three_situations_end_as_they_must(told: Told) -> None:
    assert told.story.wrong() == []


def test_the_job_is_back_long_before_its_node_is(told: Told) -> None:
    hardware, transient = told.record.failures
    (node,) = [s for s in told.record.stories if s.node == hardware.root]
    assert node.ended is not None
    assert hardware.moments["started"] < (node.ended - node.broke) / 10
    ways = [list(failure.moments) for failure in (hardware, transient)]
    assert ways[0] == ["detected", "isolated", "tornDown", "queued", "started"]
    assert ways[1] == ["detected", "tornDown", "queued", "started"], "nothing is isolated for a broken connection"
    assert list(hardware.moments.values()) == sorted(hardware.moments.values())


def test_the_degrading_node_leaves_when_its_job_has_ended(told: Told) -> None:
    (soft,) = [s for s in told.record.stories if s.fault == "gpu.xid.63"]
    assert soft.quarantined is not None
    assert soft.quarantined - soft.broke < 10, "it takes no new job from the beginning"
    assert soft.started["Drain"] - soft.broke > 60, "the job that is there ends first"


def test_the_tables_hold_both_loops(told: Told) -> None:
    out = io.StringIO()
    console = Console(file=out, width=120)
    for table in (screen.job_table(told.record, 15), screen.hardware_table(told.record, 15)):
        console.print(table)
    console.print(screen.summary(told.record), soft_wrap=True)
    text = out.getvalue()
    for word in ("detected", "isolated", "torn down", "released", "started", "Hardware", "Transient"):
        assert word in text
    for word in ("gpu.xid.79", "gpu.xid.63", "validate", "neither waited for the other"):
        assert word in text


async def test_a_story_that_cannot_go_on_says_what_it_waited_for() -> None:
    """Without the job loop nobody brings the job back."""
    alone = Told(("agent", "decide", "execute"))
    with pytest.raises(Broken, match="not within 300 simulated seconds: 4 ranks of llm run"):
        await alone.tell()


@pytest.mark.slow
def test_the_command_tells_it_in_about_a_minute_without_a_cluster(tmp_path: Path) -> None:
    """On the fastest clock, so in a quarter of that."""
    command = [sys.executable, "-m", "sickbay", "demo", "--plain", "--factor", "60", "--kubeconfig", "kubeconfig"]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "The job loop, seconds after the failure" in done.stdout
    assert "The hardware loop, seconds spent" in done.stdout
    assert "neither waited for the other" in done.stdout
    assert "Traceback" not in done.stderr
