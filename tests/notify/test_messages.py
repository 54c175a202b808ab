"""What people should have been told by now."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from sickbay.api.infra_event import InfraEvent
from sickbay.api.job_recovery import JobRecovery
from sickbay.api.node_repair import NodeRepair
from sickbay.clock import rfc3339
from sickbay.notify.messages import Due, digest, of_infra_event, of_recovery, of_repair

START = datetime(2027, 3, 1, 8, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def repair(phase: str = "Running", created: float = 0, **status: Any) -> NodeRepair:
    steps = [
        {"step": "Quarantine"},
        {"step": "Drain", "approval": {"timeout": "24h", "reminders": ["15m", "1h", "4h"]}},
        {"step": "Repair", "action": "RebootNode"},
    ]
    spec = {
        "node": {"name": "n1"},
        "faults": [{"type": "gpu.xid.79", "devices": ["GPU-1"], "evidence": ["fell off the bus"]}],
        "plan": {"approvalPrefix": "intervention.sickbay.dev", "steps": steps},
    }
    meta = {"name": "n1-1", "uid": "u1", "creationTimestamp": rfc3339(at(created))}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"phase": phase, **status}}, NodeRepair)


def asking(since: float = 0) -> NodeRepair:
    current = {"step": "Drain", "attempt": 1, "waitsFor": "Approval", "since": rfc3339(at(since))}
    return repair("WaitingApproval", current=current, message="Drain waits for approval")


def keys(due: Due) -> list[str]:
    return [m.key for m in due.messages]


def test_a_new_repair_is_told_as_a_device_fault_with_what_was_seen_and_what_is_planned() -> None:
    (message,) = of_repair(repair(), at(1)).messages
    assert (message.key, message.category, message.node, message.warning) == ("opened", "DeviceFault", "n1", True)
    assert "gpu.xid.79 on GPU-1" in message.title
    assert "fell off the bus" in message.text
    assert "Repair (RebootNode)" in message.text


def test_a_node_of_a_storm_is_told_when_its_own_repair_goes_on_and_not_before() -> None:
    waiting = {"current": {"step": "Quarantine", "waitsFor": "Storm", "since": rfc3339(at(0))}}
    assert of_repair(repair("WaitingSlot", **waiting), at(1)).messages == []
    ended = {"outcome": "SelfRecovered", "endedAt": rfc3339(at(60))}
    assert of_repair(repair("Cancelled", **ended), at(61)).messages == []
    known = repair("Cancelled", notified={"opened": "x"}, **ended)
    assert "ended" in keys(of_repair(known, at(61)))
    assert keys(of_repair(repair(), at(61))) == ["opened"]


def record(phase: str, since: float = 0, attempts: Iterable[int] = ()) -> JobRecovery:
    body = {
        "metadata": {"name": "job-llm", "namespace": "team", "uid": "j1"},
        "spec": {"job": {"kind": "Job", "name": "llm"}},
        "status": {"phase": phase, "since": rfc3339(at(since)), "message": "exit code 1 on two nodes"},
    }
    body["status"]["attempts"] = [{"n": n} for n in attempts]
    return msgspec.convert(body, JobRecovery)


@pytest.mark.parametrize("phase", ["Stopped", "Held"])
def test_a_job_that_needs_its_owner_is_told(phase: str) -> None:
    (message,) = of_recovery(record(phase), at(5)).messages
    assert "team/llm" in message.title
    assert "exit code 1 on two nodes" in message.text
    assert message.command == "sickbay explain job/llm -n team"


def test_each_stop_is_told_anew_though_the_record_is_full() -> None:
    told = [keys(of_recovery(record("Held", attempts=range(n, n + 32)), at(5))) for n in (1, 2)]
    assert told[0] != told[1]


def test_a_job_that_is_taken_care_of_is_not() -> None:
    assert keys(of_recovery(record("Placing"), at(5))) == []
    assert keys(of_recovery(record("Stopped"), at(7200))) == []


def test_an_observed_fault_says_that_nothing_is_done() -> None:
    (message,) = of_repair(repair("WouldAct"), at(1)).messages
    assert "Only observed" in message.text


def test_history_is_not_told_to_a_new_installation() -> None:
    old = repair("Succeeded", created=-90000, outcome="Repaired", endedAt=rfc3339(at(-80000)))
    assert keys(of_repair(old, at(0))) == []


@pytest.mark.parametrize(
    ("seconds", "expected", "following"),
    [
        pytest.param(0, "ask/Drain/1/2027-03-01T08/0", 900, id="the question at once"),
        pytest.param(899, "ask/Drain/1/2027-03-01T08/0", 900, id="no reminder before its time"),
        pytest.param(900, "ask/Drain/1/2027-03-01T08/1", 3600, id="the first reminder"),
        pytest.param(3700, "ask/Drain/1/2027-03-01T08/2", 14400, id="the second, and not the first again"),
        pytest.param(90000, "ask/Drain/1/2027-03-01T08/3", None, id="the last"),
    ],
)
def test_a_question_is_repeated_with_the_command_that_answers_it(
    seconds: float, expected: str, following: float | None
) -> None:
    due = of_repair(asking(), at(seconds))
    asked = [m for m in due.messages if m.key.startswith("ask/")]
    assert asked[-1].key == expected
    assert len(asked) <= 2
    assert asked[-1].command == "kubectl label node n1 intervention.sickbay.dev/drain-node=approved --overwrite"
    assert due.next == (at(following) if following is not None else None)


def test_another_attempt_asks_under_another_key() -> None:
    again = asking()
    again.status.current.attempt = 2
    assert "ask/Drain/2/2027-03-01T08/0" in keys(of_repair(again, at(1)))


@pytest.mark.parametrize(("again", "told"), [(7200, True), (1800, False)], ids=["hours-later", "within-the-hour"])
@pytest.mark.parametrize("phase", ["WaitingApproval", "NeedsHuman"])
def test_what_begins_to_wait_for_people_again_is_told_again(phase: str, again: float, told: bool) -> None:
    """In the same attempt: the fault was seen again meanwhile, say. What comes and goes is told once an hour."""
    current = {"step": "Drain", "attempt": 1, "waitsFor": "Approval"}
    first, second = (
        repair(phase, needs="ClearProofMissing", current={**current, "since": rfc3339(at(seconds))})
        for seconds in (0, again)
    )
    before, after = keys(of_repair(first, at(1))), keys(of_repair(second, at(again + 1)))
    assert ([key for key in after if key not in before] != []) is told


def test_a_call_for_people_is_repeated_at_most_once_a_day() -> None:
    current = {"step": "Repair", "attempt": 1, "since": rfc3339(at(0))}
    stuck = repair("NeedsHuman", needs="RepairFailed", current=current, message="all remedies are used up")
    moments = []
    now = at(0)
    for _ in range(100):  # as long as it takes
        due = of_repair(stuck, now)
        moments.append(now)
        assert due.next is not None
        now = due.next
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert gaps[:2] == [timedelta(hours=4), timedelta(hours=8)]
    assert all(gap == timedelta(hours=24) for gap in gaps[2:])
    last = of_repair(stuck, moments[-1]).messages[-1]
    assert last.command == "sickbay resolve n1 --outcome Repaired"


def test_the_end_is_told_with_its_outcome() -> None:
    done = repair("Succeeded", outcome="Repaired", endedAt=rfc3339(at(600)), message="back in service")
    message = of_repair(done, at(601)).messages[-1]
    assert (message.key, message.warning, message.text) == ("ended", False, "back in service")
    failed = repair("Failed", outcome="GaveUp", endedAt=rfc3339(at(600)))
    assert of_repair(failed, at(601)).messages[-1].warning


def test_a_record_without_a_node_tells_nothing() -> None:
    assert keys(of_repair(NodeRepair(), at(0))) == []


def test_an_announcement_is_told_once_for_each_phase() -> None:
    spec = {"source": "aws", "id": "e1", "type": "instance-retirement", "node": {"name": "n1"}}
    event = msgspec.convert(
        {"metadata": {"uid": "e"}, "spec": spec, "status": {"phase": "Scheduled", "since": rfc3339(at(0))}}, InfraEvent
    )
    (message,) = of_infra_event(event, at(1)).messages
    assert (message.key, message.category) == ("phase/Scheduled", "InfraEvent")
    assert keys(of_infra_event(event, at(7200))) == []


def test_the_digest_counts_ends_and_names_who_waits() -> None:
    done = repair("Succeeded", outcome="Repaired", endedAt=rfc3339(at(-3600)))
    older = repair("Succeeded", outcome="Repaired", endedAt=rfc3339(at(-200000)))
    stuck = repair("NeedsHuman", needs="DrainBlocked")
    told = digest([done, older, stuck], at(-86400), at(0))
    assert "ended: 1 Repaired" in told.text
    assert "open: 1, of which 1 wait" in told.text
    assert "n1: DrainBlocked" in told.text
    assert (told.category, told.command) == ("Digest", "sickbay queue")
