"""Gangs on a drained node: offered as a whole, and never taken apart by two layers at once."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from sickbay.api.core import Node, Pod
from sickbay.api.job_recovery import JobRecovery
from sickbay.api.node_repair import NodeRepair
from sickbay.clock import parse_time, rfc3339
from sickbay.execute.offers import offered
from sickbay.execute.progress import Look

START = parse_time("2027-03-01T08:00:00Z")


def at(seconds):
    return START + timedelta(seconds=seconds)


def look(now=0.0, offers=()):
    drain = {"state": "Running", "started": rfc3339(START), "report": {"attempt": 1, "offers": list(offers)}}
    current = {"step": "Drain", "attempt": 1, "deadline": rfc3339(at(1800))}
    body = {"metadata": {"name": "r"}, "status": {"current": current, "steps": {"Drain": drain}}}
    return Look(msgspec.convert(body, NodeRepair), Node(), at(now), False, lambda: None, None)


def pod(uid="p-0", job="llm", **labels):
    marks = {"batch.kubernetes.io/job-name": job, **labels} if job else labels
    return msgspec.convert({"metadata": {"name": uid, "namespace": "a", "uid": uid, "labels": marks}}, Pod)


def recovery(phase="Running", moves=()):
    spec = {"job": {"apiVersion": "batch/v1", "kind": "Job", "name": "llm", "uid": "j-1"}}
    meta = {"name": "job-llm", "namespace": "a"}
    return msgspec.convert(
        {"metadata": meta, "spec": spec, "status": {"phase": phase, "moves": list(moves)}}, JobRecovery
    )


def move(state, attempt=1):
    return {"repair": "r", "attempt": attempt, "state": state}


def ask(record, now=0.0, offers=(), pods=None):
    def find(name, namespace):
        return record if record is not None and (name, namespace) == ("job-llm", "a") else None

    return offered(look(now, offers), pods if pods is not None else [pod("p-0"), pod("p-1")], find)


STANDING = {"job": {"uid": "j-1"}, "until": rfc3339(at(60))}


def test_a_gang_is_offered_once_for_all_its_pods():
    found = ask(recovery())
    assert [(o.job.kind, o.job.namespace, o.job.name, o.job.uid) for o in found.offers] == [("Job", "a", "llm", "j-1")]
    assert set(found.kept) == {"p-0", "p-1"}


@pytest.mark.parametrize(("now", "kept"), [(0, True), (59, True), (60, False), (300, False)])
def test_an_answer_is_waited_for_a_minute(now, kept):
    assert bool(ask(recovery(), now, [STANDING]).kept) == kept


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        (recovery(moves=[move("Accepted")]), True),
        (recovery(moves=[move("Moving")]), True),
        (recovery("TearingDown"), True),
        (recovery(moves=[move("Gone")]), False),
        (recovery(moves=[move("Declined")]), False),
        (recovery(moves=[move("Accepted", attempt=7)]), False),
    ],
    ids=["accepted", "moving", "tearing-down", "gone", "declined", "an-older-answer"],
)
def test_the_answer_decides_after_that(record, kept):
    assert bool(ask(record, 300, [STANDING]).kept) == kept


@pytest.mark.parametrize(("now", "kept"), [(1439, True), (1440, False), (1800, False)])
def test_the_last_fifth_of_the_drain_is_for_evicting_what_is_left(now, kept):
    assert bool(ask(recovery(moves=[move("Moving")]), now, [STANDING]).kept) == kept


@pytest.mark.parametrize("record", [None, recovery("Stopped")], ids=["no-record", "stopped"])
def test_a_job_that_nobody_looks_after_is_not_offered(record):
    assert ask(record).offers == []


def test_a_pod_of_no_job_is_not_offered():
    assert ask(recovery(), pods=[pod(job="")]).kept == {}
