"""An API server over HTTP with Sickbay's kinds and a few objects, and the command run against it as a process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sickbay.api import crds
from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.kubeconfig import write_kubeconfig
from sickbay.apiserver.serve import serve
from sickbay.apiserver.store import Store
from sickbay.apiserver.writes import Caller
from sickbay.clock import Randomness, SystemClock

OWN = "sickbay.dev/v1alpha1"


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


@dataclass
class Cluster:
    store: Store
    kubeconfig: Path
    run: Callable[..., Awaitable[Answer]]

    def node(self, name: str, **more: Any) -> dict[str, Any]:
        meta = {"name": name, "labels": {"pool": "train", **more.pop("labels", {})}}
        conditions = [{"type": "Ready", "status": "True"}, *more.pop("conditions", [])]
        status = {"conditions": conditions, "capacity": {"nvidia.com/gpu": "8"}, "nodeInfo": {"bootID": "b1"}}
        made = self.store.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": more})
        return self.store.patch("nodes", made["metadata"]["name"], {"status": status}, MERGE, "", subresource="status")

    def own(self, kind: str, name: str, spec: dict[str, Any], status: dict[str, Any] | None = None) -> dict[str, Any]:
        plural = {"RepairPool": "repairpools", "RepairRule": "repairrules", "NodeRepair": "noderepairs"}[kind]
        resource = f"{plural}.sickbay.dev"
        body = {"apiVersion": OWN, "kind": kind, "metadata": {"name": name}, "spec": spec}
        made = self.store.create(resource, body)
        if status is None:
            return made
        return self.store.patch(resource, name, {"status": status}, MERGE, "", subresource="status")


MERGE = "application/merge-patch+json"


async def command(*arguments: str, env: dict[str, str] | None = None, stdin: str = "") -> Answer:
    """Run `sickbay` in a process of its own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sickbay", *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", "PYTHONPATH": os.getcwd(), **(env or {})},
    )  # fmt: skip
    out, err = await process.communicate(stdin.encode())
    return Answer(process.returncode or 0, out.decode(), err.decode())


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    store = Store(SystemClock(), Randomness(1))
    for manifest in crds.manifests():
        store.create("customresourcedefinitions.apiextensions.k8s.io", manifest)
    for name in ("default", "sickbay-system"):
        if store.find("namespaces", name) is None:
            store.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    app = ApiServer(store, anonymous=Caller("jo", ("system:masters", "system:authenticated")))
    async with await serve(app) as server:
        kubeconfig = tmp_path / "config"
        write_kubeconfig(kubeconfig, server.url, user="jo")

        async def run(*arguments: str, **more: Any) -> Answer:
            return await command(*arguments, env={"KUBECONFIG": str(kubeconfig)}, **more)

        yield Cluster(store, kubeconfig, run)
