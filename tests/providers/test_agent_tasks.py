"""The back-end `agent`: one act is one NodeTask, whatever is lost on the way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from sickbay.clock import rfc3339
from sickbay.kube.client import Client
from sickbay.providers.agent_tasks import AgentTasks
from sickbay.providers.base import Act, ActState, Ambiguous, Provider, Target, Transient, Withdraws, Withheld
from tests.execute.kit import Bench

TASKS = "nodetasks.sickbay.dev"
UID = "0b0e6bba-3d2a-4c5e-9a35-7d4f3f1f2a11"
ACT = Act(
    key=f"{UID}/Repair/3",
    action="ResetGPU",
    target=Target("n1", "node-uid", "p1", "boot-1"),
    repair="r1",
    args={"devices": "GPU-a,GPU-b"},
    timeout=600,
)
NAME = f"{UID}-repair-3"


def made() -> tuple[Bench, AgentTasks]:
    bench = Bench()
    client = Client(httpx2.AsyncClient(transport=bench.wire, base_url="http://api"), "sickbay-execute", bench.clock)
    return bench, AgentTasks(client, bench.clock)


def report(bench: Bench, phase: str, **status: Any) -> None:
    bench.merge({"status": {"phase": phase, **status}}, TASKS, NAME, "status")


async def test_an_act_becomes_a_task_that_says_for_whom_what_and_until_when() -> None:
    bench, agent = made()
    await agent.submit(ACT)
    task = bench.store.get(TASKS, NAME)
    assert task["spec"] == {
        "node": {"name": "n1", "uid": "node-uid", "bootID": "boot-1"},
        "action": "ResetGPU",
        "args": {"devices": "GPU-a,GPU-b"},
        "key": ACT.key,
        "expires": rfc3339(bench.clock.now() + timedelta(seconds=600)),
    }
    owner = task["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("NodeRepair", "r1", UID)


async def test_the_same_act_is_the_same_task_however_often_it_is_sent() -> None:
    bench, agent = made()
    for _ in range(3):
        await agent.submit(ACT)
    assert [t["metadata"]["name"] for t in bench.store.list(TASKS)] == [NAME]


async def test_a_create_whose_answer_is_lost_is_ambiguous_and_found_again() -> None:
    bench, agent = made()
    bench.wire.lose = lambda request: request.method == "POST"
    with pytest.raises(Ambiguous):
        await agent.submit(ACT)
    bench.wire.lose = lambda request: False
    assert (await agent.observe(ACT)).state is ActState.RUNNING
    await agent.submit(ACT)
    assert len(bench.store.list(TASKS)) == 1


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, Withheld),
        (422, Withheld),
        (403, Withheld),
        (401, Transient),
        (404, Transient),
        (409, Transient),
        (429, Transient),
        (500, Ambiguous),
        (503, Ambiguous),
        (504, Ambiguous),
    ],
)
async def test_what_an_answer_of_the_server_means(code: int, error: type[Exception]) -> None:
    bench, agent = made()
    bench.wire.refuse = lambda request: code
    with pytest.raises(error):
        await agent.submit(ACT)
    assert bench.store.list(TASKS) == []


@pytest.mark.parametrize(
    ("phase", "state"),
    [
        ("Pending", ActState.RUNNING),
        ("Accepted", ActState.RUNNING),
        ("Running", ActState.RUNNING),
        ("Done", ActState.DONE),
        ("Failed", ActState.FAILED),
        ("Refused", ActState.FAILED),
        ("Expired", ActState.FAILED),
    ],
)
async def test_the_phases_of_a_task_in_the_words_of_back_ends(phase: str, state: ActState) -> None:
    bench, agent = made()
    await agent.submit(ACT)
    report(bench, phase, message="so it is", proof={"uuid": "GPU-a"})
    seen = await agent.observe(ACT)
    assert (seen.state, seen.message, seen.proof) == (state, "so it is", {"uuid": "GPU-a"})


async def test_a_phase_of_a_newer_version_is_unknown() -> None:
    bench, agent = made()
    await agent.submit(ACT)
    task = bench.store.get(TASKS, NAME)
    bench.store.put(bench.store.type(TASKS), {**task, "status": {"phase": "Rewinding"}})
    assert (await agent.observe(ACT)).state is ActState.UNKNOWN


async def test_no_task_means_that_nothing_was_accepted() -> None:
    _, agent = made()
    assert agent.keeps_keys
    assert (await agent.observe(ACT)).state is ActState.ABSENT


@pytest.mark.parametrize("code", [401, 403, 429, 500])
async def test_a_task_that_cannot_be_read_is_asked_for_again(code: int) -> None:
    bench, agent = made()
    await agent.submit(ACT)
    bench.wire.refuse = lambda request: code
    with pytest.raises(Transient):
        await agent.observe(ACT)


@pytest.mark.parametrize(
    ("phase", "left"), [("Pending", False), ("Accepted", False), ("Running", True), ("Done", True), ("Failed", True)]
)
async def test_only_what_has_not_begun_can_be_withdrawn(phase: str, left: bool) -> None:
    bench, agent = made()
    await agent.submit(ACT)
    report(bench, phase)
    await agent.withdraw(ACT)
    assert bool(bench.store.list(TASKS)) is left


async def test_a_task_that_is_begun_at_the_moment_of_the_withdrawal_stays() -> None:
    bench, agent = made()
    await agent.submit(ACT)

    def begins(request: httpx2.Request) -> None:
        if request.method == "DELETE":
            report(bench, "Running")

    bench.wire.before = begins
    with pytest.raises(Transient):
        await agent.withdraw(ACT)
    assert bench.store.get(TASKS, NAME)["status"]["phase"] == "Running"
    await agent.withdraw(ACT)


async def test_withdrawing_what_never_came_is_nothing() -> None:
    _, agent = made()
    await agent.withdraw(ACT)


@pytest.mark.parametrize(
    ("action", "able"),
    [("RebootNode", True), ("ResetGPU", True), ("RestartService", True), ("RestartDevicePlugin", True),
     ("PowerCycle", False), ("ReplaceNode", False), ("Custom", False)],
)  # fmt: skip
async def test_what_an_agent_can_do(action: str, able: bool) -> None:
    _, agent = made()
    assert agent.supports(action) is able


async def test_it_is_a_back_end_that_can_take_back() -> None:
    _, agent = made()
    provider: Provider = agent
    assert isinstance(provider, Withdraws)
