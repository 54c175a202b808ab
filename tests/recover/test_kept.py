"""What is kept of ends, late evidence, and budgets against the best that the job has reached."""

from __future__ import annotations

import msgspec
import pytest

from sickbay.api.job_recovery import JobAttempt
from sickbay.recover.choose import since_further
from sickbay.recover.kept import MOST, ends_of, keep, readings, with_kept
from sickbay.recover.late import open_incident
from sickbay.recover.logs import Reading, Shows
from tests.recover.records import record
from tests.recover.test_classify import AT, NCCL, attempt, end, evidence


def kept_attempt(*ends, **more):
    return JobAttempt(n=1, ends=keep(evidence(*ends, **more)))


def test_an_end_reads_the_same_after_it_was_kept():
    before = end(rank=2, on="n2", signal=6, log=NCCL, reason="Error")
    (after,) = ends_of(kept_attempt(before))
    same = ("rank", "node", "pod", "uid", "at", "code", "signal", "how", "reason")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]
    assert readings({}, [after])[after.uid].shows is Shows.SYMPTOM


def test_few_are_kept_and_the_root_is_the_first():
    many = [end(rank=r, on=f"n{r}", signal=15, after=1) for r in range(20)]
    root = end(rank=40, on="n9", code=1)
    kept = kept_attempt(*many, root).ends
    assert len(kept) == MOST
    assert kept[0].rank == "40"


def test_causes_are_kept_before_those_who_were_told_to_stop():
    told = [end(rank=r, signal=15, after=0.5) for r in range(10)]
    cause, other = end(rank=20, code=1), end(rank=21, code=1, after=3)
    assert [e.rank for e in kept_attempt(*told, cause, other).ends[:2]] == ["20", "21"]


def test_what_is_gone_counts_and_what_we_took_down_ourselves_does_not_replace_it():
    attempt_ = kept_attempt(end(rank=1, code=1))
    deleted = end(rank=1, how="Deleted", after=2)
    (found,) = with_kept([deleted], attempt_)
    assert (found.how, found.code) == ("Exited", 1)


def test_what_is_still_to_be_seen_is_taken_as_it_is_seen():
    live = end(rank=1, code=1, log="more is known now")
    (found,) = with_kept([live], kept_attempt(end(rank=1, code=1)))
    assert found is live


def test_a_log_read_since_then_counts_more_than_the_line_that_was_kept():
    (kept,) = ends_of(kept_attempt(end(rank=1, code=1, log="RuntimeError: first words")))
    later = Reading(Shows.HARDWARE, "uncorrectable ECC error")
    assert readings({kept.uid: later}, [kept])[kept.uid] is later
    assert readings({kept.uid: Reading()}, [kept])[kept.uid].line == "RuntimeError: first words"


@pytest.mark.parametrize(
    ("verdict", "minutes", "is_open"),
    [
        ("Transient", 4, True), ("Unknown", 4, True), ("Hardware", 4, False), ("Workload", 4, False),
        ("Policy", 4, False), ("Transient", 7, False),
    ],
)  # fmt: skip
def test_late_evidence_may_change_what_was_not_certain_and_only_for_a_while(verdict, minutes, is_open):
    from datetime import timedelta

    failed = {"n": 1, "verdict": verdict, "times": {"fault": "2027-03-01T08:00:00Z"}}
    found = record("Recovered", attempts=[failed, {"n": 2}])
    assert (open_incident(found, AT + timedelta(minutes=minutes)) is not None) is is_open


@pytest.mark.parametrize(
    ("steps", "now", "counted"),
    [
        ([None, None], None, 2),
        ([10, 10], 10, 2),
        ([100, 20], 30, 2),  # further than the last one, and not further than ever
        ([100, 20], 101, 0),
        ([100, 120], 50, 1),
        ([100, None, 90], 95, 3),
        ([], 5, 0),
    ],
)
def test_progress_is_what_surpasses_all_that_was_reached_before(steps, now, counted):
    attempts = [attempt(n=n, step=step) for n, step in enumerate(steps, 1)]
    assert len(since_further(attempts, now)) == counted


def test_a_record_with_many_ranks_and_attempts_stays_far_below_what_an_object_may_hold():
    from sickbay.recover.job import JobId
    from sickbay.recover.view import View, Work

    work = Work(record("Running"), View(now=AT, id=JobId("Job", "default", "llm")))
    for n in range(2, 40):
        work.attempt.placement = {str(rank): f"gpu-node-{rank:04d}" for rank in range(512)}
        work.attempt.ends = keep(evidence(*(end(rank=r, code=1, log="x" * 400) for r in range(20))))
        work.begin(n, 0)
    assert len(msgspec.json.encode(work.record)) < 48 * 1024
