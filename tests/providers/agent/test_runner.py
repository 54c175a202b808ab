"""A task is carried out once, by the node and in the boot it was made for, and its end is told with proof."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from sickbay.apiserver.writes import Write
from sickbay.clock import Clock, Randomness
from sickbay.providers.agent.journal import Entry
from sickbay.providers.agent.runner import ALLOWED, TaskRunner
from tests.detect.kit import NODE, Machine, machine
from tests.kube.served import Cut

TASKS = "nodetasks.sickbay.dev"


@pytest.fixture
async def host(clock: Clock) -> Machine:
    return await machine(clock)


@asynccontextmanager
async def runner_on(host: Machine, **options: Any) -> AsyncIterator[Cut]:
    client, cut = host.server.client("sickbay-agent")
    made = TaskRunner(
        client,
        host.clock,
        Randomness(2),
        NODE,
        lambda: host.node["metadata"]["uid"],
        host.host,
        host.journal,
        **options,
    )
    task = asyncio.create_task(made.run())
    try:
        await host.clock.sleep(1)
        yield cut
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])
        await client.aclose()


def create(host: Machine, action: str = "RestartService", name: str = "t1", **changes: Any) -> None:
    spec = {
        "node": {"name": NODE, "uid": host.node["metadata"]["uid"], "bootID": "boot-1"},
        "action": action,
        "args": {"service": "kubelet"} if action == "RestartService" else {},
        "key": f"r1/Repair/{name}",
        "expires": "2027-03-01T08:30:00Z",
    }
    for key, value in changes.items():
        if key in ("uid", "bootID"):
            spec["node"] = {**spec["node"], key: value}  # type: ignore[dict-item]
        else:
            spec[key] = value
    host.server.store.create(TASKS, {"metadata": {"name": name}, "spec": spec})


def status(host: Machine, name: str = "t1") -> dict[str, Any]:
    found: dict[str, Any] = host.server.get(TASKS, name).get("status", {})
    return found


def phases(host: Machine) -> list[str]:
    """Note every phase a task takes from here on."""
    seen: list[str] = []

    def note(write: Write) -> None:
        if write.resource == TASKS and write.new is not None:
            phase = write.new.get("status", {}).get("phase", "")
            if phase and phase not in seen[-1:]:
                seen.append(phase)

    host.server.store.after_write(note)
    return seen


@pytest.mark.parametrize(
    ("action", "args", "acts", "proof"),
    [
        ("RestartService", {"service": "kubelet"}, ["restart kubelet"], {"service": "kubelet", "state": "active"}),
        ("RestartDevicePlugin", {}, ["restart device plug-in"], {"containers": "c1"}),
        ("ResetGPU", {"devices": "GPU-1,GPU-2"}, ["reset GPU-1", "reset GPU-2"], {"GPU-1": "reset", "GPU-2": "reset"}),
    ],
)
async def test_each_act_is_done_and_proven(
    host: Machine, action: str, args: dict[str, str], acts: list[str], proof: dict[str, str]
) -> None:
    seen = phases(host)
    async with runner_on(host):
        create(host, action, args=args)
        await host.clock.sleep(5)
    assert host.host.acts == acts
    assert seen == ["Running", "Done"]
    found = status(host)
    assert (found["proof"], found["bootID"]) == (proof, "boot-1")
    assert found["started"] and found["finished"]


@pytest.mark.parametrize(
    ("changes", "phase", "message"),
    [
        pytest.param({"uid": "another"}, "Refused", "made for a node of UID another", id="another node of this name"),
        pytest.param({"bootID": "boot-0"}, "Refused", "made for boot boot-0, this is boot-1", id="an earlier boot"),
        pytest.param({"action": "PowerCycle"}, "Refused", "PowerCycle is not on this agent's list", id="no such act"),
        pytest.param({"expires": "2027-03-01T07:59:00Z"}, "Expired", "before it was begun", id="too late"),
        pytest.param({"args": {}}, "Failed", "args.service is missing", id="no service named"),
        pytest.param({"action": "ResetGPU", "args": {}}, "Failed", "args.devices is missing", id="no GPU named"),
    ],
)
async def test_what_must_not_be_done_is_not_done(
    host: Machine, changes: dict[str, Any], phase: str, message: str
) -> None:
    async with runner_on(host):
        create(host, **changes)
        await host.clock.sleep(5)
    assert host.host.acts == []
    assert (status(host)["phase"], message in status(host)["message"]) == (phase, True)


async def test_an_agent_does_no_more_than_it_is_allowed(host: Machine) -> None:
    async with runner_on(host, allowed=("RebootNode",)):
        create(host)
        await host.clock.sleep(5)
    assert host.host.acts == []
    assert "RestartService is not on this agent's list: RebootNode" in status(host)["message"]
    assert set(ALLOWED) == {"RebootNode", "RestartService", "RestartDevicePlugin", "ResetGPU", "Diagnose"}


async def test_tasks_of_other_nodes_are_left_alone(host: Machine) -> None:
    async with runner_on(host):
        create(host, node={"name": "node-2", "uid": "u", "bootID": "b"})
        await host.clock.sleep(5)
    assert status(host).get("phase", "Pending") == "Pending"


async def test_a_failed_act_says_why_and_is_not_repeated(host: Machine) -> None:
    host.host.fails = "systemctl restart kubelet: exit code 1: unit is masked"
    async with runner_on(host):
        create(host)
        await host.clock.sleep(5)
        assert (status(host)["phase"], status(host)["message"]) == ("Failed", host.host.fails)
        host.host.fails = ""
        await host.clock.sleep(600)
    assert host.host.acts == []


async def test_a_gpu_in_use_is_waited_for_and_its_users_are_named(host: Machine) -> None:
    host.host.users = ["pid 77 (python3)"]
    async with runner_on(host):
        create(host, "ResetGPU", args={"devices": "GPU-1"})
        await host.clock.sleep(60)
        assert host.host.acts == []
        assert status(host)["phase"] == "Accepted"
        assert "GPU-1 is still in use by pid 77 (python3)" in status(host)["message"]
        host.host.users = []
        await host.clock.sleep(20)
        assert host.host.acts == ["reset GPU-1"]
        assert status(host)["phase"] == "Done"


async def test_a_gpu_that_stays_in_use_is_not_reset_after_the_task_has_expired(host: Machine) -> None:
    host.host.users = ["pid 77 (python3)"]
    async with runner_on(host):
        create(host, "ResetGPU", args={"devices": "GPU-1"})
        await host.clock.sleep(1900)
        assert status(host)["phase"] == "Expired"
        host.host.users = []
        await host.clock.sleep(60)
    assert host.host.acts == []


async def test_the_journal_is_written_before_the_act(host: Machine) -> None:
    seen: list[Entry | None] = []
    act = host.host._act

    def looking(what: str) -> None:
        seen.append(host.journal.find("r1/Repair/t1"))
        act(what)

    host.host._act = looking  # type: ignore[method-assign]
    async with runner_on(host):
        create(host)
        await host.clock.sleep(5)
    (entry,) = seen
    assert entry is not None
    assert (entry.action, entry.boot_id, entry.outcome) == ("RestartService", "boot-1", "")


async def test_a_task_deleted_just_before_is_not_carried_out(host: Machine) -> None:
    def vanish(write: Write) -> None:
        if write.resource == TASKS and write.subresource == "status" and write.verb == "patch":
            host.server.store.delete(TASKS, "t1")

    host.server.store.before_write(vanish)
    async with runner_on(host):
        create(host)
        await host.clock.sleep(60)
    assert host.host.acts == []
    assert host.journal.entries == {}


async def test_tasks_are_done_one_at_a_time(host: Machine) -> None:
    busy, most = 0, 0

    async def slow(name: str) -> dict[str, str]:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await host.clock.sleep(30)
        busy -= 1
        return {}

    host.host.restart_service = slow  # type: ignore[method-assign]
    async with runner_on(host):
        for number in range(3):
            create(host, name=f"t{number}")
        await host.clock.sleep(120)
    assert most == 1
    assert {status(host, f"t{number}")["phase"] for number in range(3)} == {"Done"}


# --- after a crash


@pytest.mark.case("P119")
async def test_an_agent_that_starts_first_brings_back_what_an_act_had_stopped(host: Machine) -> None:
    async with runner_on(host):
        await host.clock.sleep(5)
    assert host.host.resumed == 1


@pytest.mark.parametrize("action", ["RestartService", "ResetGPU", "RebootNode"])
async def test_what_was_begun_in_this_boot_is_never_begun_again(host: Machine, action: str) -> None:
    host.journal.write(Entry(key="r1/Repair/t1", action=action, boot_id="boot-1", at="2027-03-01T08:00:00Z"))
    create(host, action, args={"devices": "GPU-1", "service": "kubelet"})
    async with runner_on(host):
        await host.clock.sleep(600)
    assert host.host.acts == []
    assert status(host)["phase"] == "Failed"


async def test_an_end_that_could_not_be_told_is_told_later(host: Machine) -> None:
    async with runner_on(host) as cut:
        restart = host.host.restart_service

        async def then_cut(name: str) -> dict[str, str]:
            cut.down = True
            return await restart(name)

        host.host.restart_service = then_cut  # type: ignore[method-assign]
        create(host)
        await host.clock.sleep(60)
        assert status(host)["phase"] == "Running"
    async with runner_on(host):
        await host.clock.sleep(5)
    assert host.host.acts == ["restart kubelet"]
    assert (status(host)["phase"], status(host)["proof"]) == ("Done", {"service": "kubelet", "state": "active"})


async def test_a_reboot_is_done_when_the_boot_is_another(host: Machine) -> None:
    async with runner_on(host):
        create(host, "RebootNode")
        await host.clock.sleep(5)
        assert (host.host.acts, status(host)["phase"]) == (["reboot"], "Running")
    host.host.boot = "boot-2"
    async with runner_on(host):
        await host.clock.sleep(5)
    assert host.host.acts == ["reboot"]
    assert status(host)["proof"] == {"bootBefore": "boot-1", "bootID": "boot-2"}


async def test_a_reboot_that_does_not_come_has_failed(host: Machine) -> None:
    async with runner_on(host):
        create(host, "RebootNode")
        await host.clock.sleep(250)
        assert status(host)["phase"] == "Running"
        await host.clock.sleep(120)
        assert (host.host.acts, status(host)["phase"]) == (["reboot"], "Failed")


async def test_an_ended_task_is_not_touched(host: Machine) -> None:
    async with runner_on(host):
        create(host)
        await host.clock.sleep(5)
    before = host.server.get(TASKS, "t1")["metadata"]["resourceVersion"]
    async with runner_on(host):
        await host.clock.sleep(60)
    assert host.server.get(TASKS, "t1")["metadata"]["resourceVersion"] == before


async def test_a_lost_answer_to_the_claim_does_not_act_twice(host: Machine) -> None:
    async with runner_on(host) as cut:
        cut.lose_answers = 0
        create(host)
        cut.lose_answers = 3
        await host.clock.sleep(300)
    assert host.host.acts == ["restart kubelet"]
    assert status(host)["phase"] == "Done"


# --- diagnostics


@pytest.mark.parametrize(
    ("args", "acts"),
    [
        ({"level": "1"}, ["diagnose 1"]),
        ({"level": "3"}, ["diagnose 1", "diagnose 2", "diagnose 3"]),
        ({"level": "1", "checks": "nccl,ib"}, ["diagnose 1", "diagnose nccl", "diagnose ib"]),
        ({"level": "0", "checks": "nccl"}, ["diagnose nccl"]),
    ],
)
async def test_diagnostics_go_from_the_first_level_to_the_one_asked_for(
    host: Machine, args: dict[str, str], acts: list[str]
) -> None:
    async with runner_on(host):
        create(host, "Diagnose", args=args)
        await host.clock.sleep(5)
    assert host.host.acts == acts
    assert status(host)["phase"] == "Done"
    assert status(host)["proof"]["result"] == "pass"


async def test_what_fails_ends_the_diagnostics_and_is_told(host: Machine) -> None:
    host.host.sick = "1"
    async with runner_on(host):
        create(host, "Diagnose", args={"level": "2"})
        await host.clock.sleep(5)
    assert host.host.acts == ["diagnose 1"]
    assert status(host)["phase"] == "Done"  # it was carried out; what it found is another matter
    assert status(host)["proof"]["result"] == "fail"
    assert "diagnostics 1: what was found" in status(host)["message"]


@pytest.mark.parametrize("args", [{}, {"level": "0"}, {"level": "many"}])
@pytest.mark.case("P132")
async def test_diagnostics_that_would_test_nothing_have_failed(host: Machine, args: dict[str, str]) -> None:
    async with runner_on(host):
        create(host, "Diagnose", args=args)
        await host.clock.sleep(5)
    assert status(host)["phase"] == "Failed"
    assert "result" not in status(host).get("proof", {})


@pytest.mark.parametrize(("level", "waits"), [("1", False), ("2", True)])
async def test_gpus_in_use_are_not_put_under_load(host: Machine, level: str, waits: bool) -> None:
    host.host.users = ["pid 77 (python3)"]
    async with runner_on(host):
        create(host, "Diagnose", args={"level": level})
        await host.clock.sleep(5)
        assert status(host)["phase"] == ("Accepted" if waits else "Done")
        if waits:
            assert "in use by pid 77" in status(host)["message"]
            host.host.users = []
            await host.clock.sleep(20)
            assert status(host)["phase"] == "Done"


@pytest.mark.parametrize("skew", [timedelta(hours=-5), timedelta(hours=5)], ids=["clock behind", "clock ahead"])
async def test_a_wrong_clock_neither_shortens_nor_lengthens_a_task_that_came_while_we_watched(
    host: Machine, skew: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = host.clock.now
    host.host.users = ["pid 77 (python3)"]
    async with runner_on(host):
        create(host, "ResetGPU", args={"devices": "GPU-1"})
        monkeypatch.setattr(host.clock, "now", lambda: right() + skew)
        await host.clock.sleep(1700)
        assert status(host)["phase"] == "Accepted", "it waits for the GPU, and has half an hour"
        await host.clock.sleep(150)
        assert status(host)["phase"] == "Expired"
    assert host.host.acts == []
