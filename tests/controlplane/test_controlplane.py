"""The control plane of the tests is a real one, knows its people, survives trouble and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.controlplane import API_SERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER, ControlPlane
from tests.support.daemon import DaemonFailed

pytestmark = pytest.mark.controlplane

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
NAMESPACES = "/api/v1/namespaces"


@pytest.fixture(scope="module")
def full(control_plane_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One of our own, with controllers and scheduler, for the tests that stop and kill."""
    folder = tmp_path_factory.mktemp("full")
    with ControlPlane(control_plane_binaries, folder, controllers=True, scheduling=True) as running:
        yield running


async def who(control_plane: ControlPlane, token: str) -> dict[str, Any]:
    async with control_plane.http_client_for_token(token) as http:
        answer = await http.post(WHO, json={"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    assert answer.status_code == 201, answer.text
    info: dict[str, Any] = answer.json()["status"]["userInfo"]
    return info


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_it_is_the_version_of_the_module_file(control_plane: ControlPlane) -> None:
    async with control_plane.http_client() as http:
        assert (await http.get("/version")).json()["gitVersion"] == "v1.36.3"


@pytest.mark.parametrize(
    ("name", "user", "group"),
    [
        ("admin", "admin", "system:masters"),
        ("dev", "dev", "people"),
        ("alice", "alice", "gpu-oncall"),
        ("nobody", "nobody", "system:authenticated"),
        ("scheduler", "system:kube-scheduler", "system:authenticated"),
        ("system:node:node-1", "system:node:node-1", "system:nodes"),
    ],
)
async def test_a_static_token_is_its_identity(control_plane: ControlPlane, name: str, user: str, group: str) -> None:
    info = await who(control_plane, control_plane.token(name))
    assert info["username"] == user
    assert group in info["groups"]


async def test_an_agents_token_names_its_node(control_plane: ControlPlane) -> None:
    info = await who(control_plane, control_plane.agent_token("cp-agent-node"))
    assert info["username"] == "system:serviceaccount:sickbay-system:sickbay-agent"
    assert info["extra"]["authentication.kubernetes.io/node-name"] == ["cp-agent-node"]


async def test_two_tokens_of_one_agent_are_the_same_pods(control_plane: ControlPlane) -> None:
    first, second = [await who(control_plane, control_plane.agent_token("cp-twice")) for _ in range(2)]
    key = "authentication.kubernetes.io/pod-uid"
    assert first["extra"][key] == second["extra"][key]


async def test_the_controllers_token_is_its_service_account(control_plane: ControlPlane) -> None:
    info = await who(control_plane, control_plane.controller_token())
    assert info["username"] == "system:serviceaccount:sickbay-system:sickbay-controller"


async def test_a_wrong_token_is_nobody(control_plane: ControlPlane) -> None:
    async with control_plane.http_client_for_token("wrong") as http:
        assert (await http.get(NAMESPACES)).status_code == 401


async def test_a_person_without_a_role_may_do_nothing(control_plane: ControlPlane) -> None:
    async with control_plane.http_client("nobody") as http:
        assert (await http.get("/api/v1/nodes")).status_code == 403


def test_an_unknown_identity_is_answered_with_those_there_are(control_plane: ControlPlane) -> None:
    with pytest.raises(KeyError, match="no identity 'bob'; there are admin, dev"):
        control_plane.token("bob")


async def test_a_kubelet_may_label_its_own_node_and_no_other(control_plane: ControlPlane) -> None:
    """Holds only while NodeRestriction is switched on."""
    for name in ("node-1", "node-2"):
        control_plane.admin().post("/api/v1/nodes", json={"metadata": {"name": name}})
    patch = json.dumps({"metadata": {"labels": {"a": "b"}}})
    headers = {"Content-Type": "application/merge-patch+json"}
    async with control_plane.http_client("system:node:node-1") as http:
        own = await http.patch("/api/v1/nodes/node-1", content=patch, headers=headers)
        other = await http.patch("/api/v1/nodes/node-2", content=patch, headers=headers)
    assert own.status_code == 200, own.text
    assert "is not allowed to modify node" in other.text


def test_a_kubeconfig_holds_for_kubectl(control_plane: ControlPlane) -> None:
    document = yaml.safe_load(control_plane.kubeconfig("dev").read_text())
    assert document["clusters"][0]["cluster"]["server"] == control_plane.server
    result = control_plane.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}", user="dev")
    assert (result.returncode, result.stdout) == (0, "dev"), result.stderr


def test_controllers_and_scheduler_work(full: ControlPlane) -> None:
    """The service-account controller fills a new namespace, and the scheduler says why it cannot place a pod."""
    full.kubectl("create", "namespace", "work")
    made = full.kubectl("wait", "--for=create", "serviceaccount/default", "-n", "work", "--timeout=30s")
    assert made.returncode == 0, made.stderr
    full.kubectl("run", "lonely", "--image=none", "-n", "work")
    unplaced = full.kubectl("wait", "--for=condition=PodScheduled=false", "pod/lonely", "-n", "work", "--timeout=30s")
    assert unplaced.returncode == 0, unplaced.stderr


def test_objects_and_address_survive_a_restart_of_the_server(full: ControlPlane) -> None:
    full.kubectl("create", "namespace", "before")
    server, pid = full.server, full.pid(API_SERVER)
    full.restart_apiserver()
    assert full.server == server
    assert full.pid(API_SERVER) not in (0, pid)
    assert full.kubectl("get", "namespace", "before").returncode == 0


def test_objects_survive_the_death_of_etcd(full: ControlPlane) -> None:
    full.kubectl("create", "namespace", "before-the-crash")
    full.kill_process(ETCD)
    assert full.pid(ETCD) == 0
    full.start_process(ETCD)
    found = full.kubectl("get", "namespace", "before-the-crash", "--request-timeout=20s")
    assert found.returncode == 0, found.stderr


def test_stop_ends_every_process_and_keeps_the_logs(control_plane_binaries: Path, tmp_path: Path) -> None:
    control_plane = ControlPlane(control_plane_binaries, tmp_path)
    control_plane.start()
    pids = [control_plane.pid(name) for name in (ETCD, API_SERVER)]
    assert all(alive(pid) for pid in pids)
    control_plane.stop()
    control_plane.stop()
    assert not any(alive(pid) for pid in pids)
    assert (tmp_path / "logs" / f"{API_SERVER}.log").stat().st_size > 0
    assert not (tmp_path / "etcd").exists()


def test_a_start_that_fails_shows_the_log_and_stops_the_rest(
    control_plane_binaries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binaries = tmp_path / "binaries"
    binaries.mkdir()
    (binaries / ETCD).symlink_to(control_plane_binaries / ETCD)
    (binaries / API_SERVER).write_text("#!/bin/sh\necho the server is out of order\nexit 3\n")
    (binaries / API_SERVER).chmod(0o755)
    control_plane = ControlPlane(binaries, tmp_path / "folder")
    with pytest.raises(DaemonFailed, match=r"(?s)kube-apiserver ended with 3; .*the server is out of order"):
        control_plane.start()
    assert control_plane.pid(ETCD) == 0


def test_nothing_is_left_when_the_test_run_is_killed(control_plane_binaries: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.support.controlplane import ControlPlane\n"
        f"running = ControlPlane(Path({str(control_plane_binaries)!r}), Path({str(tmp_path)!r}))\n"
        "running.start()\n"
        "print(running.pid('etcd'), running.pid('kube-apiserver'), flush=True)\n"
        "sys.stdin.read()\n"
    )
    root = Path(__file__).resolve().parents[2]
    run = subprocess.Popen(
        [sys.executable, "-c", program], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    assert run.stdin is not None
    pids = [int(word) for word in run.stdout.readline().split()]
    assert len(pids) == 2
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdin.close()
    run.stdout.close()
    pause = threading.Event()
    for _ in range(400):
        if any(alive(pid) for pid in pids):
            pause.wait(0.05)
    assert not any(alive(pid) for pid in pids)


def test_the_optional_processes_run_only_on_request(control_plane: ControlPlane, full: ControlPlane) -> None:
    names = (CONTROLLER_MANAGER, SCHEDULER)
    assert [control_plane.pid(name) for name in names] == [0, 0]
    assert all(full.pid(name) for name in names)
