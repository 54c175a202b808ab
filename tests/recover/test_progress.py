"""How far a job has come: only pods of its present run tell, and only by what they report anew."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest

from sickbay.recover.job import JobId
from sickbay.recover.progress import ProgressBook
from sickbay.recover.view import RankPod
from tests.recover.looks import START, at, pod

JOB = JobId("Job", "default", "llm")
STEP = "sickbay.dev/step"


class Watch:
    """A clock that is set by hand."""

    moment = START

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return (self.moment - START).total_seconds()


@dataclass
class Seen:
    """A book, and its job's pods as they were last."""

    watch: Watch = field(default_factory=Watch)
    pods: dict[str, RankPod] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.book = ProgressBook(self.watch)  # type: ignore[arg-type]

    def pod(self, seconds, rank, step, run=(1, 0), job="", **more):
        """A pod as it is now; True when the job has come further by it."""
        self.watch.moment = at(seconds)
        annotations = {} if step is None else {STEP: str(step)}
        found = replace(pod(rank, annotations=annotations, **more), attempt=run[0], restart=run[1], job=job)
        old, self.pods[found.pod.uid] = self.pods.get(found.pod.uid), found
        return self.book.note(JOB, found, old.pod if old is not None else None)

    def told(self):
        """The step, since when, and who is behind."""
        standing = self.book.standing(JOB, self.pods.values())
        return standing.step, standing.since, standing.behind


@pytest.fixture
def gang():
    """Two ranks, both at step 1011 of their first run for 60 s."""
    seen = Seen()
    for rank in (0, 1):
        seen.pod(0, rank, None)
        seen.pod(60, rank, 1011)
    assert seen.told() == (1011, at(60), ())
    return seen


def test_the_highest_step_counts_and_those_behind_it_are_named(gang):
    assert gang.pod(70, 0, 1012)
    assert gang.told() == (1012, at(70), ("1",))
    assert not gang.pod(71, 1, 1012)
    assert gang.told() == (1012, at(70), ())


@pytest.mark.parametrize(
    "late",
    [{"deleted": 130.0}, {"phase": "Failed"}, {"deleted": 130.0, "phase": "Failed"}, {}],
    ids=["told-to-stop", "failed", "both", "still-there"],
)
@pytest.mark.parametrize("run", [(2, 0), (1, 1)], ids=["an-attempt-of-ours", "a-restart-of-its-own"])
def test_what_is_left_of_an_earlier_run_says_nothing_about_this_one(gang, run, late):
    """Else a job whose checkpoint is older than the stall limit would be called stalled again and again."""
    gang.book.restart(JOB)
    assert not gang.pod(100, 1, 1011, **late)
    assert gang.told()[0] is None
    assert gang.pod(110, 0, 40, run, made=100.0)
    assert not gang.pod(115, 1, 1012, **late)
    assert gang.told() == (40, at(110), ())
    assert gang.pod(120, 0, 50, run, made=100.0)
    assert gang.told()[0] == 50


def test_pods_of_a_new_run_begin_anew_before_anybody_has_judged_the_old_one(gang):
    assert gang.pod(100, 0, 0, (2, 0), made=90.0)
    assert gang.told() == (0, at(100), ())


def test_a_gang_whose_pods_were_replaced_under_the_same_labels_begins_anew(gang):
    for rank in (0, 1):
        gang.pod(100, rank, 1011, deleted=130.0)
        gang.pod(110, rank, None, made=110.0)
    gang.book.restart(JOB)
    gang.pod(111, 0, 1011, deleted=130.0, phase="Failed")
    assert gang.pod(120, 0, 3, made=110.0)
    assert gang.told()[0] == 3


def test_a_program_that_goes_on_from_a_checkpoint_within_its_pods_comes_further_from_there(gang):
    """An elastic launcher starts its workers again, and the pod stays."""
    assert gang.pod(100, 0, 200)
    assert gang.told() == (200, at(100), ())
    assert gang.pod(101, 1, 200)
    assert gang.pod(110, 0, 210)
    assert gang.told() == (210, at(110), ("1",))


def test_what_a_pod_says_again_is_nothing_new(gang):
    """One rank has begun anew; another's label changes, and its step of before stands there still."""
    gang.pod(100, 0, 200)
    assert not gang.pod(105, 1, 1011, conditions=[{"type": "Ready", "status": "True"}])
    assert gang.told()[:2] == (200, at(100))


def test_a_job_that_reported_steps_is_expected_to_in_its_next_run(gang):
    gang.book.restart(JOB)
    standing = gang.book.standing(JOB, gang.pods.values())
    assert (standing.step, standing.expected, standing.since) == (None, True, at(60))


def test_nothing_is_left_of_a_job_that_is_forgotten(gang):
    assert gang.book.jobs() == [JOB]
    gang.book.forget(JOB)
    assert gang.book.jobs() == []
    assert not gang.book.standing(JOB, ()).expected


@pytest.mark.parametrize("text", ["", "-3", "12.5", "1e3", "many", None])
def test_what_is_no_step_says_nothing(text):
    seen = Seen()
    assert not seen.pod(10, 0, text)
    assert not seen.book.standing(JOB, ()).expected


@pytest.mark.parametrize("attempt", [1, 2], ids=["as-its-owner-wrote-it", "as-it-was-when-it-went"])
def test_another_job_of_the_same_name_counts_from_its_own_steps(gang, attempt):
    gang.book.bind(JOB, "u-1", 1)
    gang.pod(70, 0, 1011, (2, 0), job="u-1", made=70.0)
    assert gang.book.bind(JOB, "u-2", attempt)
    assert not gang.book.standing(JOB, ()).expected
    assert gang.pod(80, 0, 3, (attempt, 0), job="u-2", made=80.0)
    assert not gang.pod(81, 0, 1012, (2, 0), job="u-1", made=70.0)
    assert gang.told() == (3, at(80), ())


def test_a_job_that_we_have_made_again_is_expected_to_report_steps_as_before(gang):
    gang.book.bind(JOB, "u-1", 1)
    gang.pod(70, 0, 1011, job="u-1", made=70.0)
    assert gang.book.bind(JOB, "u-2", 2)
    assert gang.book.standing(JOB, ()).expected
    assert not gang.book.bind(JOB, "u-2", 2)


def test_steps_in_another_annotation_are_not_compared_with_those_in_the_first(gang):
    assert not gang.book.read_from(JOB, STEP)
    assert gang.book.read_from(JOB, "example.com/step")
    assert not gang.book.standing(JOB, gang.pods.values()).expected
    assert gang.book.read_from(JOB, STEP)
    assert gang.pod(100, 0, 12)
    assert gang.told()[:2] == (12, at(100))
