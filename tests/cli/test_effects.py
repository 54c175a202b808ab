"""What a disruptive command says before it is done: jobs, GPUs, and the room that is left."""

from __future__ import annotations

import asyncio
import os
import pty
import sys
from typing import Any

import pytest

from tests.cli.conftest import MERGE, Answer, Cluster
from tests.cli.test_ops import rule, waiting

REBOOT = ("repair", "n1", "--remedy", "RebootNode", "--reason", "hangs")
PLUGIN = ("repair", "n1", "--remedy", "RestartDevicePlugin", "--reason", "offers too few")


def busy(cluster: Cluster, node: str) -> None:
    """Two ranks of a job with four GPUs each, a service, and what no drain moves."""
    job = {"labels": {"batch.kubernetes.io/job-name": "llm"}}
    owner = {"apiVersion": "apps/v1", "name": "o", "uid": "u", "controller": True}
    pod(cluster, node, "llm-0", job, {"nvidia.com/gpu": "4"})
    pod(cluster, node, "llm-1", job, {"nvidia.com/gpu": "4"})
    pod(cluster, node, "web-0", {"ownerReferences": [owner | {"kind": "ReplicaSet"}]}, {})
    pod(cluster, node, "plugin-0", {"ownerReferences": [owner | {"kind": "DaemonSet"}]}, {"nvidia.com/gpu": "1"})


def pod(cluster: Cluster, node: str, name: str, meta: dict[str, Any], limits: dict[str, str]) -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": limits}}
    body = {"metadata": {"name": name, **meta}, "spec": {"nodeName": node, "containers": [container]}}
    cluster.store.create("pods", body, "default")


def pooled(cluster: Cluster, taken: int) -> None:
    rule(cluster)
    slots = [{"repair": f"r{n}", "node": f"x{n}", "kind": "Repair"} for n in range(taken)]
    status = {"nodes": 40, "unavailable": 1, "slots": slots}
    cluster.store.patch("repairpools.sickbay.dev", "train", {"status": status}, MERGE, "", subresource="status")


async def at_a_terminal(cluster: Cluster, typed: str, *arguments: str) -> Answer:
    """The command with a terminal as its input."""
    ours, theirs = pty.openpty()
    env = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.getcwd(), "KUBECONFIG": str(cluster.kubeconfig)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sickbay", *arguments, stdin=theirs, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT, env=env,
    )  # fmt: skip
    os.write(ours, typed.encode())
    out, _ = await process.communicate()
    os.close(ours)
    os.close(theirs)
    return Answer(process.returncode or 0, out.decode(), "")


@pytest.mark.case("P206")
@pytest.mark.parametrize(("taken", "waits"), [(0, ""), (1, ": it waits for one")])
async def test_a_repair_by_hand_says_what_it_ends_and_what_room_is_left(
    cluster: Cluster, taken: int, waits: str
) -> None:
    pooled(cluster, taken)
    cluster.node("n1")
    busy(cluster, "n1")
    answer = await cluster.run(*REBOOT)
    assert answer.code == 0, answer.err
    assert answer.out.splitlines()[:2] == [
        "RebootNode of n1: 8 GPUs, 8 of them in use; 3 pods and 1 job (Job default/llm) would end there",
        f"pool train: {1 - taken} of 1 repair slot left, 1 of at most 2 nodes out of service{waits}",
    ]


@pytest.mark.case("P206")
@pytest.mark.parametrize("words", [("validate", "n1"), PLUGIN], ids=["validate", "restart of the plug-in"])
async def test_what_ends_nothing_says_nothing(cluster: Cluster, words: tuple[str, ...]) -> None:
    pooled(cluster, 0)
    cluster.node("n1")
    busy(cluster, "n1")
    answer = await at_a_terminal(cluster, "", *words)
    assert answer.code == 0, answer.out
    assert "would end" not in answer.out


@pytest.mark.case("P206")
async def test_on_a_terminal_the_nodes_name_is_typed_before_anything_happens(cluster: Cluster) -> None:
    cluster.node("n1")
    wrong = await at_a_terminal(cluster, "n2\n", *REBOOT)
    assert wrong.code == 1
    assert "'n2' is not 'n1': nothing was done" in wrong.out
    assert cluster.store.list("noderepairs.sickbay.dev") == []
    right = await at_a_terminal(cluster, "n1\n", *REBOOT)
    assert right.code == 0, right.out
    assert "nothing runs there" in right.out
    assert len(cluster.store.list("noderepairs.sickbay.dev")) == 1


@pytest.mark.case("P206")
async def test_who_is_sure_types_nothing(cluster: Cluster) -> None:
    cluster.node("n1")
    assert (await at_a_terminal(cluster, "", *REBOOT, "--yes")).code == 0


@pytest.mark.case("P206")
async def test_an_approved_drain_says_what_it_ends_and_a_denied_one_nothing(cluster: Cluster) -> None:
    pooled(cluster, 0)
    for name in ("n1", "n2"):
        waiting(cluster, cluster.node(name))
    busy(cluster, "n1")
    assert "would end" not in (await cluster.run("deny", "n2", "Drain")).out
    shown = await cluster.run("approve", "--all-waiting", "--step", "Drain", "--dry-run")
    assert "Drain of n1: 8 GPUs, 8 of them in use; 3 pods and 1 job (Job default/llm) would end there" in shown.out
    assert "pool train: 1 of 1 repair slot left" in shown.out
