"""The README's "first rule in ten minutes", typed as it stands, on our API server and on the real one.

kubectl is the real one on both; `sickbay` and its plug-in are this checkout's. Between the lines happens what the
reader's cluster would bring: a controller is started, and a GPU falls off its bus.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.kubeconfig import write_kubeconfig
from sickbay.apiserver.serve import serve
from sickbay.apiserver.store import Store
from sickbay.apiserver.writes import Caller
from sickbay.clock import Randomness, SystemClock, rfc3339
from tests.docs.blocks import ROOT
from tests.docs.firstrule import Command, File, steps
from tests.support.controlplane import ControlPlane
from tests.support.eventually import eventually
from tests.support.install import wait_for_policies, wait_until_served
from tests.support.ports import free_ports

pytestmark = pytest.mark.controlplane

NODE = "/api/v1/nodes/gpu-node-17"
REPAIRS = "/apis/sickbay.dev/v1alpha1/noderepairs"
STRATEGIC = "application/strategic-merge-patch+json"
LABEL = "intervention.sickbay.dev/drain-node"
SHELL_SECONDS = 120

Obj = dict[str, Any]


class Reader:
    """Somebody with a shell in an empty folder, and a cluster."""

    def __init__(self, http: httpx2.AsyncClient, folder: Path, kubectl: Path, controller: Path) -> None:
        self.http, self.folder, self.controller = http, folder, controller
        tools = folder / "bin"
        tools.mkdir()
        for name in ("sickbay", "kubectl-sickbay"):
            (tools / name).write_text(
                f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -c '
                f'"from sickbay.cli.main import main; main()" "$@"\n'
            )  # fmt: skip
            (tools / name).chmod(0o755)
        (tools / "kubectl").symlink_to(kubectl)
        (folder / "deploy").symlink_to(ROOT / "deploy")
        self.env = {
            "PATH": f"{tools}:/usr/bin:/bin",
            "HOME": str(folder),
            "KUBECONFIG": str(folder / "config"),
            "NO_PROXY": "127.0.0.1",
        }

    async def types(self, line: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_shell(
            f"set -o pipefail; {line}", cwd=self.folder, env=self.env, executable="/bin/bash",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        async with asyncio.timeout(SHELL_SECONDS):
            out, _ = await process.communicate()
        return process.returncode or 0, out.decode()

    async def succeeds(self, line: str) -> str:
        code, out = await self.types(line)
        assert code == 0, f"{line}\n{out}"
        assert "Traceback" not in out
        return out

    async def get(self, path: str) -> Obj:
        answer = await self.http.get(path)
        answer.raise_for_status()
        found: Obj = answer.json()
        return found

    # --- what the cluster brings

    async def node_joins(self) -> None:
        meta = {"name": "gpu-node-17", "labels": {"pool": "train"}}
        await self.http.post("/api/v1/nodes", json={"metadata": meta})
        await self.condition("Ready", "True", {"capacity": {"nvidia.com/gpu": "8", "cpu": "8"}})

    async def condition(self, kind: str, status: str, more: Obj | None = None) -> None:
        now = rfc3339(SystemClock().now())
        entry = {"type": kind, "status": status, "reason": "Test", "message": "by the test"}
        body = {"status": {"conditions": [entry | {"lastTransitionTime": now, "lastHeartbeatTime": now}]}}
        body["status"].update(more or {})
        headers = {"content-type": STRATEGIC}
        answer = await self.http.patch(f"{NODE}/status", json=body, headers=headers)
        assert answer.status_code == 200, answer.text

    @asynccontextmanager
    async def controller_runs(self) -> AsyncIterator[None]:
        """What the Install section says to run."""
        (port,) = free_ports(1)
        process = await asyncio.create_subprocess_exec(
            str(self.folder / "bin" / "sickbay"), "controller", "--kubeconfig", str(self.controller),
            "--listen", f"127.0.0.1:{port}", env=self.env, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            await process.wait()

    async def phase(self, phase: str) -> Obj:
        """Wait until the node's repair is in that phase."""

        async def there() -> Obj | None:
            repairs = (await self.get(REPAIRS))["items"]
            return next((r for r in repairs if (r.get("status") or {}).get("phase") == phase), None)

        found = await eventually(there, 40, f"the repair is in {phase}")
        assert isinstance(found, dict)
        return found


@asynccontextmanager
async def on_ours(folder: Path, kubectl: Path) -> AsyncIterator[Reader]:
    store = Store(SystemClock(), Randomness(1))
    app = ApiServer(store, anonymous=Caller("jo", ("system:masters", "system:authenticated", "people")))
    async with await serve(app) as server:
        write_kubeconfig(folder / "config", server.url, user="jo")
        async with httpx2.AsyncClient(base_url=server.url, trust_env=False) as http:
            yield Reader(http, folder, kubectl, folder / "config")


@asynccontextmanager
async def on_the_real_one(folder: Path, kubectl: Path, plane: ControlPlane) -> AsyncIterator[Reader]:
    """The reader is an administrator; the controller has its service account, which step one makes."""
    (folder / "config").write_text(plane.kubeconfig("admin").read_text())
    async with plane.http_client() as http:
        yield Reader(http, folder, kubectl, folder / "controller")


@pytest.fixture
def empty_plane(control_plane_binaries: Path, tmp_path: Path) -> Iterator[Callable[[], ControlPlane]]:
    """Starts a control plane on which nobody has ever done anything; it ends with the test."""
    started: list[ControlPlane] = []

    def start() -> ControlPlane:
        plane = ControlPlane(control_plane_binaries, tmp_path / "plane")
        plane.start()
        started.append(plane)
        return plane

    yield start
    for plane in started:
        plane.stop()


@pytest.fixture(params=["ours", "real"])
async def reader(
    request: pytest.FixtureRequest, control_plane_binaries: Path, tmp_path: Path
) -> AsyncIterator[tuple[Reader, ControlPlane | None]]:
    folder, kubectl = tmp_path / "reader", control_plane_binaries / "kubectl"
    folder.mkdir()
    if request.param == "ours":
        async with on_ours(folder, kubectl) as found:
            yield found, None
        return
    plane = request.getfixturevalue("empty_plane")()
    async with on_the_real_one(folder, kubectl, plane) as found:
        yield found, plane


def installed(reader: Reader, plane: ControlPlane | None) -> None:
    """After the Install section: definitions and policies hold, and the controller's account has a token."""
    if plane is not None:
        wait_until_served(plane)
        wait_for_policies(plane)
        token = plane.kubeconfig_for_token("controller", plane.controller_token())
        reader.controller.write_text(token.read_text())


@contextmanager
def told(line: str) -> Iterator[None]:
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"at `{line}`: {error}") from error


async def test_the_readme_leads_from_an_empty_cluster_to_an_answered_gate(
    reader: tuple[Reader, ControlPlane | None],
) -> None:
    jo, plane = reader
    await jo.node_joins()
    todo = list(steps())
    install = [s for s in todo if isinstance(s, Command) and s.section == "Install"]
    for command in install:
        await jo.succeeds(command.text)
    installed(jo, plane)
    async with jo.controller_runs():
        said = {}
        for step in todo:
            if isinstance(step, File):
                (jo.folder / step.name).write_text(step.text)
            elif step not in install:
                with told(step.text):
                    await happens_before(jo, step.text)
                    said[step.text] = await jo.succeeds(step.text)
        await check(jo, said)


async def happens_before(jo: Reader, line: str) -> None:
    if line.startswith("kubectl get noderepairs"):
        await jo.condition("NvidiaXID79Error", "True")
        await jo.phase("WouldAct")
    elif line.startswith("sickbay queue"):
        await jo.phase("WaitingApproval")


async def check(jo: Reader, said: dict[str, str]) -> None:
    """Each command has said what a reader would look for, and the answer has reached the node."""
    looked_for = {
        "sickbay check": "0 errors",
        "sickbay test": "0 failed",
        "kubectl apply -f rule.yaml": "repairpool.sickbay.dev/train created",
        "kubectl get noderepairs": "WouldAct",
        "sickbay explain": "gpu.xid.79",
        "sickbay impact": "1 observed repair of 1 node",
        "kubectl patch": "patched",
        "sickbay queue": "sickbay approve gpu-node-17 Drain",
        "sickbay approve": "gpu-node-17: Drain approved",
    }
    for start, word in looked_for.items():
        (out,) = (out for line, out in said.items() if line.startswith(start))
        assert word in out, f"{start}: {out}"
    assert len(said) == len(looked_for), "a command of the README is not looked at"

    async def drains() -> bool:
        (repair,) = [r for r in (await jo.get(REPAIRS))["items"] if not r["status"].get("endedAt")]
        return repair["status"]["steps"]["Drain"]["state"] in ("Running", "Done")

    await eventually(drains, 40, "the drain goes on")
    node = await jo.get(NODE)
    assert node["spec"]["unschedulable"] is True

    async def taken_off() -> bool:
        return LABEL not in (await jo.get(NODE))["metadata"]["labels"]

    await eventually(taken_off, 40, "the question is taken off after the step")


async def test_as_a_plug_in_of_kubectl_every_command_works_the_same(
    reader: tuple[Reader, ControlPlane | None],
) -> None:
    jo, plane = reader
    await jo.node_joins()
    for command in steps():
        if isinstance(command, Command) and command.section == "Install":
            await jo.succeeds(command.text)
    installed(jo, plane)
    assert "kubectl-sickbay" in await jo.succeeds("kubectl plugin list")
    assert await jo.succeeds("kubectl sickbay queue") == "nothing needs a person\n"
    assert await jo.succeeds("kubectl sickbay queue -o json") == "[]\n"
    assert "gpu-node-17: nothing is wrong with it" in await jo.succeeds("kubectl sickbay explain gpu-node-17")
    assert "is in force" in await jo.succeeds("kubectl sickbay hold x --node gpu-node-17 --reason test")
    assert "x" in await jo.succeeds("kubectl get holds")
    assert "driver" not in await jo.succeeds("kubectl sickbay release x")
    for line, code in (("explain ghost", 1), ("explain", 2), ("nonsense", 2)):
        got, said = await jo.types(f"kubectl sickbay {line}")
        assert (got, "Traceback" in said) == (code, False), said
