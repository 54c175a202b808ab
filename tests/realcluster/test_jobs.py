"""Both loops on a real control plane, with the real Job and JobSet controllers: a gang fails, moves, runs again.

Our processes have the rights of rbac.yaml and rbac-jobs.yaml, and nothing they ask for is refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sickbay.api import kinds, names
from sickbay.api.job_recovery import JobRecovery
from sickbay.clock import parse_time
from sickbay.recover import place
from tests.realcluster.gangs import JOB, JOB_SET, Gang
from tests.realcluster.world import World
from tests.support.controlplane import ControlPlane
from tests.support.eventually import eventually
from tests.support.install import DEPLOY, apply_file
from tests.support.jobset import JobSetController

pytestmark = pytest.mark.controlplane
both = pytest.mark.parametrize("kind", [JOB, JOB_SET])
RANKS, NODES = 4, 6

Start = Callable[..., Awaitable[Gang]]


@pytest.fixture(scope="module")
def job_kinds(real_cluster: ControlPlane, jobset_binaries: Path) -> Iterator[None]:
    """The JobSet controller runs, and the controller may act on jobs."""
    apply_file(real_cluster, DEPLOY / "rbac-jobs.yaml")
    with JobSetController(real_cluster, jobset_binaries):
        yield
    real_cluster.kubectl("delete", "-f", str(DEPLOY / "rbac-jobs.yaml"))


@pytest.fixture
async def gang(job_kinds: None, world: World) -> AsyncIterator[Start]:
    """Starts a gang on nodes of this world, and the three loops around it."""
    made: list[Gang] = []

    async def start(
        kind: str, *, ranks: int = RANKS, annotations: dict[str, str] | None = None, **spec: object
    ) -> Gang:
        await world.nodes(NODES)
        await world.pool()
        found = Gang(world, kind, ranks)
        found.annotations = annotations or {}
        made.append(found)
        await world.start("decide", "execute", "recover")
        await found.start(**spec)
        return found

    yield start
    for each in made:
        await each.remove()
    refused = [e for e in world.requests() if e.ours and e.code == 403]
    assert not refused, "a right is missing, or somebody tried what is not his"


def in_order(record: JobRecovery, *words: str) -> bool:
    """Whether these times of the first attempt are there, none before its predecessor."""
    times = [getattr(record.status.attempts[0].times, word) for word in words]
    return all(times) and [parse_time(t) for t in times] == sorted(parse_time(t) for t in times)


@both
async def test_hardware_fails_and_the_gang_runs_again_before_its_node_is_back(
    world: World, gang: Start, kind: str
) -> None:
    llm = await gang(kind)
    sick = llm.places()[1]
    before, cordoned = world.marks(sick), []
    new = names.ATTEMPT

    def watch() -> None:
        """At the first sight of the next attempt's pods: is the suspect out of the scheduler's sight?"""
        if not cordoned and any((p["metadata"].get("labels") or {}).get(new) == "2" for p in llm.pods()):
            cordoned.append(world.cordoned(sick))

    world.on_pod.append(watch)
    await world.fault(sick)
    world.kubelets.pods.exit_pod(llm.on(sick), 134)
    record = await llm.recovered()
    assert cordoned == [True], "isolated first, then let go"
    assert sick not in llm.places()
    assert not [p for p in llm.seen if _is_of(p, 2) and p["spec"].get("nodeName") == sick], "not even for a moment"
    first = record.status.attempts[0]
    assert (first.verdict, first.action, first.root_node) == ("Hardware", "Reschedule", sick)
    assert in_order(record, "fault", "detected", "isolated", "torn_down", "queued", "started")
    assert not world.repair(sick).ended, "the job is back before its node is"
    over = await world.cured(sick)
    assert over.status.outcome == "Repaired"
    assert world.marks(sick) == before
    assert world.evicted() == [], "the gang was taken down as a whole"
    await llm.until(lambda r: not r.status.suspects and not r.status.excluded, "the repair has cleared the suspicion")
    assert (await llm.object())["metadata"]["labels"][new] == "2"


@both
async def test_a_transient_failure_is_restarted_in_place_and_touches_no_node(
    world: World, gang: Start, kind: str
) -> None:
    llm = await gang(kind, **({"failurePolicy": {"maxRestarts": 3}} if kind == JOB_SET else {}))
    uid, nodes = (await llm.object())["metadata"]["uid"], llm.places()
    world.kubelets.pods.exit_pod(llm.on(nodes[0]), 1, log="RuntimeError: Connection reset by peer")
    record = await llm.recovered()
    first = record.status.attempts[0]
    assert (first.verdict, first.action) == ("Transient", "RestartInPlace")
    assert len(record.status.attempts) == 2, "the restart of its own controller and ours are one"
    assert (await llm.object())["metadata"]["uid"] == uid, "the same object, suspended and resumed"
    assert record.status.suspects == []
    assert all(world.touched(node) == [] for node in world.machines)
    assert all(world.repairs(node) == [] for node in world.machines)


@both
async def test_a_node_that_is_drained_is_left_by_the_gang_as_a_whole(world: World, gang: Start, kind: str) -> None:
    llm = await gang(kind)
    sick = llm.places()[2]
    world.cured_by_reboot(sick)
    await world.fault(sick)
    record = await llm.recovered()
    first = record.status.attempts[0]
    assert (first.verdict, first.action) == ("Policy", "Reschedule")
    assert sick not in llm.places()
    assert world.evicted() == [], "no rank was evicted"
    over = await world.closed(sick, 60)
    assert over.status.outcome == "Repaired"
    assert any(r.status.step("Drain").report.offers for r in world.tape), "the drain had offered the gang"
    assert record.status.suspects == []


async def test_the_programs_own_error_is_confirmed_once_and_then_its_owner_is_asked(world: World, gang: Start) -> None:
    llm = await gang(JOB_SET, failurePolicy={"maxRestarts": 3})
    error = "ValueError: no such option"
    world.kubelets.pods.exit_pod(llm.on(llm.places()[0]), 1, log=error)
    await llm.recovered()
    world.kubelets.pods.exit_pod(llm.on(llm.places()[0]), 1, log=error)
    record = await llm.until(lambda r: r.status.phase == "Stopped", "it is stopped", 30)
    assert [(a.verdict, a.action) for a in record.status.attempts] == [("Workload", "Retry"), ("Workload", "Stop")]
    assert (await llm.object())["spec"]["suspend"] is True
    assert all(world.touched(node) == [] for node in world.machines)


async def test_a_failure_that_nobody_can_explain_is_tried_again(world: World, gang: Start) -> None:
    llm = await gang(JOB)
    world.kubelets.pods.exit_pod(llm.on(llm.places()[0]), 1)
    record = await llm.recovered()
    first = record.status.attempts[0]
    assert (first.verdict, first.action, record.status.suspects) == ("Unknown", "Retry", [])
    assert all(world.touched(node) == [] for node in world.machines)


async def test_ranks_on_many_nodes_that_cannot_write_have_one_cause_and_no_node_is_touched(
    world: World, gang: Start
) -> None:
    llm = await gang(JOB)
    for node in llm.places()[:3]:
        world.kubelets.pods.exit_pod(llm.on(node), 1, log="OSError: No space left on device")
    record = await llm.until(lambda r: r.status.phase == "Held", "it is held for a while", 30)
    first = record.status.attempts[0]
    assert (first.verdict, first.action, record.status.on_deadline) == ("SharedCause", "Hold", "released again")
    assert record.status.suspects == []
    assert all(world.touched(node) == [] for node in world.machines)


async def test_an_elastic_job_for_which_there_is_no_room_is_made_smaller(
    world: World, gang: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has every node of its pool; one fails. The time for which it is waited for room is cut short here."""
    monkeypatch.setattr(place, "NO_FIT_AFTER", timedelta(seconds=2))
    policy, least = {"onNoFit": "Shrink"}, {names.MIN_RANKS: "4"}
    llm = await gang(JOB, ranks=NODES, annotations=least, policy=policy)
    sick = llm.places()[1]
    await world.fault(sick)
    world.kubelets.pods.exit_pod(llm.on(sick), 134)
    llm.ranks = NODES - 1
    record = await llm.recovered()
    smaller = await llm.object()
    assert (smaller["spec"]["completions"], smaller["spec"]["parallelism"]) == (NODES - 1, NODES - 1)
    assert smaller["metadata"]["annotations"][names.FULL_RANKS] == str(NODES)
    assert sick not in llm.places()
    assert [a.verdict for a in record.status.attempts] == ["Hardware", "Policy", ""]


async def test_a_finished_job_is_made_again_under_its_name(world: World, gang: Start) -> None:
    """backoffLimit 0 leaves a Job that cannot be revived."""
    llm = await gang(JOB, backoffLimit=0)
    old = (await llm.object())["metadata"]["uid"]
    world.kubelets.pods.exit_pod(llm.on(llm.places()[0]), 1, log="Connection reset by peer")
    record = await llm.recovered()
    again = await llm.object()
    assert again["metadata"]["uid"] != old
    assert record.spec.job.uid == again["metadata"]["uid"]
    assert names.NEXT_ATTEMPT not in record.metadata.annotations


async def test_a_pod_whose_checkpoint_is_wanted_is_asked_by_an_annotation(world: World, gang: Start) -> None:
    """The one right over pods that the job loop has; the job answers, and the move goes on at once."""
    llm = await gang(JOB_SET)
    patch = {"spec": {"checkpoint": {"notify": "Annotation", "window": "5m"}}}
    await world.admin.patch_merge(kinds.RECOVERY_POLICY, llm.name, patch, "default")
    sick = llm.places()[0]
    world.cured_by_reboot(sick)
    await world.fault(sick)

    def asked() -> list[str]:
        found = [(p["metadata"].get("annotations") or {}).get(names.CHECKPOINT_REQUEST) for p in llm.pods()]
        return [value for value in found if value] if all(found) and len(found) == RANKS else []

    values = await eventually(asked, 30, "every rank is asked")
    assert len(set(values)) == 1
    first = min(llm.pods(), key=lambda p: str(p["metadata"]["name"]))
    await world.annotate(first, names.CHECKPOINT_DONE, values[0])
    record = await llm.recovered(40)
    assert sick not in llm.places()
    assert record.status.attempts[0].verdict == "Policy"
    await world.closed(sick, 60)


def _is_of(pod: dict, attempt: int) -> bool:
    return (pod["metadata"].get("labels") or {}).get(names.ATTEMPT) == str(attempt)
