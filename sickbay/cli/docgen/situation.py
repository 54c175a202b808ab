"""A small cluster, simulated, in which the commands of docs/commands.md are run.

Machines and Kubernetes are simulated, on virtual time; agent, controllers and commands are the real ones, and the
commands go through our API server as a person's would. The same version prints the same, to the letter.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx2
import yaml

from sickbay.apiserver.transport import DirectTransport
from sickbay.apiserver.writes import Caller
from sickbay.cli import main
from sickbay.cli.ops.session import USER_AGENT, Session
from sickbay.cli.process import configure_logs
from sickbay.clock import Randomness
from sickbay.kube.client import Client
from sickbay.sim.cloud import ScriptLine
from sickbay.sim.components import COMPONENTS, Settings
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.loop import VirtualLoop
from sickbay.sim.world import World

SEED = 7
PACE = 8.0
"""Heartbeats are rarer than in reality, which nobody sees and much of the time goes to."""
PERSON = Caller("jo", ("system:masters", "system:authenticated"), USER_AGENT)
"""Who types the commands."""
TEAM = "platform-team"


@dataclass(frozen=True, slots=True)
class Shown:
    """A command as it was typed, and what came of it."""

    line: str
    code: int
    text: str
    """Standard output, then standard error."""

    def lines(self) -> Iterator[str]:
        """As in a terminal; a failure with its exit code below."""
        yield f"$ {self.line}"
        yield from self.text.rstrip("\n").splitlines()
        if self.code:
            yield f"(exit code {self.code})"


@dataclass(frozen=True)
class _Inside(Session):
    """A session whose API server is the world's."""

    transport: DirectTransport | None = None

    def connect(self, kubeconfig: str, context: str) -> Client:
        assert self.transport is not None
        http = httpx2.AsyncClient(base_url="http://cluster", transport=self.transport)
        return Client(http, USER_AGENT, self.clock)


class Situation:
    """See the module. `folder` holds the files that commands are given."""

    def __init__(self, folder: Path, runner: asyncio.Runner) -> None:
        self._folder, self._runner = folder, runner
        self.world: World = runner.run(self._made())
        self._session = _Inside(
            self.world.clock, Randomness(SEED), runner.run, transport=DirectTransport(self.world.server)
        )

    async def _made(self) -> World:
        return World(cast(VirtualLoop, asyncio.get_running_loop()), SEED, Settings(pace=PACE), anonymous=PERSON)

    def begin(self, pools: tuple[PoolSpec, ...], objects: str) -> None:
        """Machines, objects as YAML, and all of Sickbay."""

        async def work() -> None:
            for pool in pools:
                self.world.fleet.add_pool(pool)
            self.apply(objects)
            self.world.settle()
            self.world.start()
            self.world.start_components(COMPONENTS)

        self._runner.run(work())

    def apply(self, objects: str) -> None:
        for manifest in yaml.safe_load_all(objects):
            self.world.apply(manifest, TEAM)

    def pass_time(self, minutes: float) -> None:
        """Raises AssertionError where a part of the world has failed meanwhile."""
        self._runner.run(self.world.clock.sleep(minutes * 60))
        assert not self.world.problems, self.world.problems[0]

    def kernel_says(self, node: str, line: str) -> None:
        self._runner.run(_now(lambda: self.world.machine(node).print_kernel(line)))

    def detector_says(self, node: str, type_: str, status: str, reason: str, message: str) -> None:
        said = {"type": type_, "status": status, "reason": reason, "message": message}
        self._runner.run(_now(lambda: self.world.set_condition(node, "node-problem-detector", said)))

    def rank_exits(self, job: str, code: int, log: str) -> None:
        """The last rank of a Job ends with that code, after these lines."""

        def act() -> None:
            pods = self.world.pods_of("default", "", f"app={job}")
            last = max(pods, key=lambda pod: str(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]))
            self.world.kubelet.exit_pod(last, code, 0, "", log)

        self._runner.run(_now(act))

    def backend_answers(self, pool: str, *script: ScriptLine) -> None:
        self.world.set_script(pool, list(script), pool=True)

    def keep(self, name: str, text: str) -> None:
        """Save a file that commands are given."""
        (self._folder / name).write_text(text)

    def run(self, line: str) -> Shown:
        """Type a line: `sickbay ...`, or that with `| head -N` behind it."""
        command, _, head = line.partition(" | head -")
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(self._folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main.run(shlex.split(command)[1:], self._session)
        shown = "".join(out.getvalue().splitlines(keepends=True)[: int(head) if head else None])
        return Shown(line, code, shown + err.getvalue())


async def _now(act: Any) -> None:
    act()


@contextlib.contextmanager
def situation() -> Iterator[Situation]:
    """One that ends with the block."""
    configure_logs("error")
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner(loop_factory=lambda: VirtualLoop(SEED)) as runner:
        found = Situation(Path(folder), runner)
        try:
            yield found
        finally:
            runner.run(found.world.stop())
