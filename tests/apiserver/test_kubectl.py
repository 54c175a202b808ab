"""The real kubectl against our server, over HTTP and, with a token, over HTTPS.

Each test speaks to a server of its own. kubectl runs as a process, so these are marked like everything that needs the
control plane's binaries.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from sickbay.api.crds import manifests
from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.kubeconfig import write_kubeconfig
from sickbay.apiserver.rbac import Rbac
from sickbay.apiserver.serve import Certificate, serve
from sickbay.apiserver.store import Store
from sickbay.apiserver.writes import Caller
from tests.apiserver.conftest import ADMIN
from tests.support.certificates import self_signed

pytestmark = pytest.mark.controlplane
KUBECTL_SECONDS = 60


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


class Kubectl:
    """kubectl with a kubeconfig and a home of its own."""

    def __init__(self, binary: Path, folder: Path, store: Store) -> None:
        self.binary = binary
        self.folder = folder
        self.store = store

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        environment = {**os.environ, "HOME": str(self.folder), "NO_PROXY": "127.0.0.1"}
        return await asyncio.create_subprocess_exec(
            str(self.binary),
            f"--kubeconfig={self.folder / 'config'}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )

    async def run(self, *arguments: str, stdin: str = "") -> Said:
        process = await self.start(*arguments)
        out, err = await asyncio.wait_for(process.communicate(stdin.encode()), KUBECTL_SECONDS)
        assert process.returncode is not None
        return Said(process.returncode, out.decode(), err.decode())

    async def __call__(self, text: str, stdin: str = "") -> str:
        """Run, and expect success."""
        said = await self.run(*text.split(), stdin=stdin)
        assert said.code == 0, said
        return said.out

    async def refused(self, text: str, stdin: str = "") -> str:
        said = await self.run(*text.split(), stdin=stdin)
        assert said.code != 0, said
        return said.err


@pytest.fixture
async def kubectl(store: Store, control_plane_binaries: Path, tmp_path: Path) -> AsyncIterator[Kubectl]:
    for manifest in manifests():
        store.create("customresourcedefinitions.apiextensions.k8s.io", manifest)
    async with await serve(ApiServer(store, anonymous=ADMIN), housekeeping=False) as server:
        write_kubeconfig(tmp_path / "config", server.url)
        yield Kubectl(control_plane_binaries / "kubectl", tmp_path, store)


def add_node(store: Store, name: str, **labels: str) -> None:
    status = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "capacity": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"},
        "nodeInfo": {"kubeletVersion": "v1.36.3"},
    }
    store.create("nodes", {"metadata": {"name": name, "labels": labels}, "status": status})


def add_pod(store: Store, name: str, node: str, **labels: str) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    metadata = {"name": name, "labels": labels, "ownerReferences": [owner]}
    store.create("pods", {"metadata": metadata, "spec": {"nodeName": node, "containers": [{"name": "c"}]}}, "default")
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    store.patch("pods", name, running, namespace="default", subresource="status")


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


async def test_get_prints_tables_wide_tables_and_objects(kubectl: Kubectl) -> None:
    add_node(kubectl.store, "n1", pool="train")
    add_node(kubectl.store, "n2")
    head, first, second = rows(await kubectl("get nodes"))
    assert head == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert (first[:3], second[0]) == (["n1", "Ready", "<none>"], "n2")
    assert "CONTAINER-RUNTIME" in await kubectl("get nodes -o wide")
    assert [row[0] for row in rows(await kubectl("get nodes -l pool=train --no-headers"))] == ["n1"]
    assert json.loads(await kubectl("get node n1 -o json"))["kind"] == "Node"
    assert yaml.safe_load(await kubectl("get node n1 -o yaml"))["metadata"]["labels"] == {"pool": "train"}
    assert await kubectl("get nodes -o jsonpath={.items[*].metadata.name}") == "n1 n2"
    assert await kubectl("get nodes -o name") == "node/n1\nnode/n2\n"
    assert "NotFound" in await kubectl.refused("get node nobody")


async def test_get_watches(kubectl: Kubectl) -> None:
    add_node(kubectl.store, "n1")
    process = await kubectl.start("get", "nodes", "-w", "-o", "name")
    assert process.stdout is not None
    assert await process.stdout.readline() == b"node/n1\n"
    async with asyncio.timeout(KUBECTL_SECONDS):
        while not kubectl.store.table("nodes").watchers():
            await kubectl.store.clock.sleep(0.01)
    add_node(kubectl.store, "n2")
    assert await asyncio.wait_for(process.stdout.readline(), KUBECTL_SECONDS) == b"node/n2\n"
    process.kill()
    await process.wait()


async def test_describe_shows_conditions_pods_lease_and_events(kubectl: Kubectl) -> None:
    add_node(kubectl.store, "n1")
    add_pod(kubectl.store, "p1", "n1")
    spec = {"holderIdentity": "n1", "renewTime": "2026-01-01T00:00:00.000000Z"}
    kubectl.store.create("leases.coordination.k8s.io", {"metadata": {"name": "n1"}, "spec": spec}, "kube-node-lease")
    about = {"kind": "Node", "name": "n1", "uid": "n1"}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "reason": "QuarantineDone", "message": "cordoned"}
    times = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "type": "Normal"}
    kubectl.store.create("events", event | times, "default")
    text = await kubectl("describe node n1")
    for part in ("HolderIdentity:  n1", "Ready   True", "nvidia.com/gpu:  8", "p1", "QuarantineDone"):
        assert part in text


async def test_label_annotate_taint_and_cordon(kubectl: Kubectl) -> None:
    add_node(kubectl.store, "n1")
    await kubectl("label node n1 a=b")
    await kubectl("label node n1 a=c --overwrite")
    await kubectl("annotate node n1 c=d")
    await kubectl("taint node n1 k=v:NoSchedule")
    await kubectl("cordon n1")
    node = kubectl.store.get("nodes", "n1")
    assert (node["metadata"]["labels"], node["metadata"]["annotations"]) == ({"a": "c"}, {"c": "d"})
    taints = {(taint["key"], taint["effect"]) for taint in node["spec"]["taints"]}
    assert ("k", "NoSchedule") in taints
    assert node["spec"]["unschedulable"] is True
    assert "SchedulingDisabled" in await kubectl("get node n1")
    await kubectl("label node n1 a-")
    await kubectl("annotate node n1 c-")
    await kubectl("taint node n1 k:NoSchedule-")
    await kubectl("uncordon n1")
    node = kubectl.store.get("nodes", "n1")
    assert not node["metadata"].get("labels")
    assert not node["metadata"].get("annotations")
    assert not node["spec"].get("unschedulable")


async def test_drain_evicts_waits_and_respects_a_budget(kubectl: Kubectl) -> None:
    store = kubectl.store
    add_node(store, "n1")
    add_pod(store, "free", "n1")
    add_pod(store, "guarded", "n1", app="x")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    store.create("poddisruptionbudgets.policy", {"metadata": {"name": "b"}, "spec": spec}, "default")
    status = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}
    body = {"status": status | {"expectedPods": 1}}
    store.patch("poddisruptionbudgets.policy", "b", body, namespace="default", subresource="status")

    def kubelet() -> None:
        """Finish what is told to end, as a kubelet does."""
        for pod in store.list("pods", "default"):
            if pod["metadata"].get("deletionTimestamp"):
                store.delete("pods", pod["metadata"]["name"], "default", grace=0)

    refused = await kubectl.start("drain", "n1", "--force", "--timeout=3s")
    _, err = await asyncio.wait_for(refused.communicate(), KUBECTL_SECONDS)
    assert refused.returncode != 0
    assert b"Cannot evict pod as it would violate the pod's disruption budget." in err
    assert store.get("nodes", "n1")["spec"]["unschedulable"] is True
    kubelet()
    assert [pod["metadata"]["name"] for pod in store.list("pods", "default")] == ["guarded"]
    body["status"]["disruptionsAllowed"] = 1
    store.patch("poddisruptionbudgets.policy", "b", body, namespace="default", subresource="status")
    drain = asyncio.ensure_future(kubectl("drain n1 --force --timeout=50s"))
    while not drain.done():
        await asyncio.sleep(0.05)  # noqa: TID251 - the kubelet's turn
        kubelet()
    assert "node/n1 drained" in await drain
    assert store.list("pods", "default") == []


async def test_create_and_delete_of_many_kinds(kubectl: Kubectl) -> None:
    await kubectl("create namespace team")
    await kubectl("create configmap c --from-literal=a=b -n team")
    await kubectl("create secret generic s --from-literal=a=b -n team")
    await kubectl("create serviceaccount bot -n team")
    await kubectl("create pdb p --selector=a=b --min-available=50% -n team")
    await kubectl("create priorityclass pc --value=7")
    await kubectl("create clusterrole r --verb=get,list --resource=nodes")
    await kubectl("create clusterrolebinding rb --clusterrole=r --serviceaccount=team:bot")
    store = kubectl.store
    assert store.get("configmaps", "c", "team")["data"] == {"a": "b"}
    assert store.get("secrets", "s", "team")["data"] == {"a": "Yg=="}
    assert store.get("poddisruptionbudgets.policy", "p", "team")["spec"]["minAvailable"] == "50%"
    assert store.get("priorityclasses.scheduling.k8s.io", "pc")["value"] == 7
    rules = store.get("clusterroles.rbac.authorization.k8s.io", "r")["rules"]
    assert rules == [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["nodes"]}]
    await kubectl("delete configmap c -n team")
    await kubectl("delete secret,serviceaccount --all -n team")
    assert store.list("configmaps", "team") == store.list("secrets", "team") == []


POOL = """
apiVersion: sickbay.dev/v1alpha1
kind: RepairPool
metadata: {name: train}
spec:
  nodeSelector: {matchLabels: {pool: train}}
  maxParallelRepairs: 2
"""


async def test_apply_diff_edit_by_patch_and_delete_of_our_kinds(kubectl: Kubectl) -> None:
    assert "created" in await kubectl("apply -f -", POOL)
    assert "unchanged" in await kubectl("apply -f -", POOL)
    changed = POOL.replace("maxParallelRepairs: 2", "maxParallelRepairs: 3")
    assert "configured" in await kubectl("apply -f -", changed)
    pool = kubectl.store.get("repairpools.sickbay.dev", "train")
    assert (pool["spec"]["maxParallelRepairs"], pool["spec"]["mode"]) == (3, "Observe")
    assert 'unknown field "spec.nope"' in await kubectl.refused("apply -f -", POOL + "  nope: 1\n")
    assert "spec.maxParallelRepairs" in await kubectl.refused("apply -f -", POOL.replace("Repairs: 2", "Repairs: x"))
    said = await kubectl.run("patch", "rp", "train", "--type=merge", "-p", '{"spec":{"mode":"Act"}}')
    assert (said.code, "patched" in said.out) == (0, True)
    head, row = rows(await kubectl("get rp"))
    assert head == ["NAME", "MODE", "RULE", "NODES", "FAULTY", "UNAVAILABLE", "BREAKER", "AGE"]
    assert row[:2] == ["train", "Act"]
    assert "repairpool.sickbay.dev/train" in await kubectl("get sickbay -o name")
    assert ["Max", "Parallel", "Repairs:", "3"] in rows(await kubectl("describe rp train"))
    assert "deleted" in await kubectl("delete rp train")


async def test_apply_on_the_server(kubectl: Kubectl) -> None:
    assert "serverside-applied" in await kubectl("apply --server-side -f -", POOL)
    assert "serverside-applied" in await kubectl("apply --server-side -f -", POOL.replace("Repairs: 2", "Repairs: 3"))
    other = "apply --server-side --field-manager=other -f -"
    err = await kubectl.refused(other, POOL.replace("Repairs: 2", "Repairs: 4"))
    assert 'conflict with "kubectl": .spec.maxParallelRepairs' in err
    assert "serverside-applied" in await kubectl(f"{other} --force-conflicts", POOL.replace("Repairs: 2", "Repairs: 4"))
    pool = kubectl.store.get("repairpools.sickbay.dev", "train")
    assert pool["spec"]["maxParallelRepairs"] == 4


async def test_what_was_applied_in_the_old_way_is_applied_on_the_server(kubectl: Kubectl) -> None:
    await kubectl("apply -f -", POOL + "  mode: Act\n")
    other = "apply --server-side --field-manager=other -f -"
    assert "serverside-applied" in await kubectl("apply --server-side -f -", POOL.replace("Repairs: 2", "Repairs: 3"))
    pool = kubectl.store.get("repairpools.sickbay.dev", "train")
    assert (pool["spec"]["maxParallelRepairs"], pool["spec"]["mode"]) == (3, "Observe")  # named no longer: the default
    assert 'conflict with "kubectl"' in await kubectl.refused(other, POOL)


async def test_status_is_patched_apart(kubectl: Kubectl) -> None:
    await kubectl("apply -f -", POOL)
    patch = '{"status":{"nodes":7}}'
    said = await kubectl.run("patch", "rp", "train", "--subresource=status", "--type=merge", "-p", patch)
    assert said.code == 0, said
    assert kubectl.store.get("repairpools.sickbay.dev", "train")["status"]["nodes"] == 7


async def test_wait_for_a_condition_and_for_deletion(kubectl: Kubectl) -> None:
    add_node(kubectl.store, "n1")
    await kubectl("wait --for=condition=Ready node/n1 --timeout=20s")
    waiting = await kubectl.start("wait", "--for=condition=Broken", "node/n1", "--timeout=50s")
    body = {"status": {"conditions": [{"type": "Broken", "status": "True"}]}}
    await asyncio.sleep(0)  # noqa: TID251 - kubectl may ask before or after the write; both must end
    kubectl.store.patch("nodes", "n1", body, "strategic", subresource="status")
    out, err = await asyncio.wait_for(waiting.communicate(), KUBECTL_SECONDS)
    assert (waiting.returncode, b"condition met" in out) == (0, True), err
    await kubectl("delete node n1 --wait=false")
    await kubectl("wait --for=delete node/n1 --timeout=20s")


async def test_events_are_told(kubectl: Kubectl) -> None:
    add_node(kubectl.store, "n1")
    about = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "reason": "RepairEnded", "message": "well again"}
    times = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "type": "Normal"}
    kubectl.store.create("events", event | times, "default")
    for command in ("get events", "events", "events --for node/n1"):
        text = await kubectl(command)
        assert "RepairEnded" in text
        assert "well again" in text


async def test_explain_reads_recorded_and_generated_schemas(kubectl: Kubectl) -> None:
    assert "tolerate the Taint" in await kubectl("explain node.spec.taints")
    text = await kubectl("explain noderepair.spec.plan")
    assert "GROUP:      sickbay.dev" in text
    assert "steps" in text


async def test_api_resources_and_version(kubectl: Kubectl) -> None:
    listed = await kubectl("api-resources")
    for kind in ("NodeRepair", "RepairPool", "Node", "Event", "Lease", "PodDisruptionBudget"):
        assert kind in listed
    assert "noderepairs.sickbay.dev" in await kubectl("api-resources --api-group=sickbay.dev -o name")
    assert "Server Version: v1.36.3" in await kubectl("version")


async def test_a_pod_is_deleted_by_force(kubectl: Kubectl) -> None:
    add_pod(kubectl.store, "p1", "n1")
    await kubectl("delete pod p1 --grace-period=0 --force")
    assert kubectl.store.find("pods", "p1", "default") is None


async def test_rights_are_asked_for_and_kept(
    store: Store,
    control_plane_binaries: Path,
    tmp_path: Path,
) -> None:
    """Over HTTPS, where kubectl sends its token."""
    rule = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}
    store.create("clusterroles.rbac.authorization.k8s.io", {"metadata": {"name": "see"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "see"}
    binding: dict[str, Any] = {"metadata": {"name": "dev"}, "roleRef": reference}
    binding["subjects"] = [{"kind": "User", "name": "dev", "apiGroup": "rbac.authorization.k8s.io"}]
    store.create("clusterrolebindings.rbac.authorization.k8s.io", binding)
    add_node(store, "n1")
    certificate = Certificate(*self_signed(tmp_path))
    app = ApiServer(store, {"t": Caller("dev")}, authorizer=Rbac(store))
    async with await serve(app, certificate=certificate, housekeeping=False) as server:
        write_kubeconfig(tmp_path / "config", server.url, token="t", ca=certificate.certificate.read_bytes())
        kubectl = Kubectl(control_plane_binaries / "kubectl", tmp_path, store)
        assert "n1" in await kubectl("get nodes")
        assert (await kubectl("auth can-i get nodes")).strip() == "yes"
        denied = await kubectl.run("auth", "can-i", "delete", "nodes")
        assert denied.out.strip() == "no"
        assert "dev" in await kubectl("auth whoami")
        assert "nodes" in await kubectl("auth can-i --list")
        err = await kubectl.refused("label node n1 a=b")
        assert 'nodes "n1" is forbidden: User "dev" cannot patch resource "nodes" in API group ""' in err
