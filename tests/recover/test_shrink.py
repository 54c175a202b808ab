"""Elastic jobs: made smaller and brought back to their size, and never taken for another program meanwhile."""

from __future__ import annotations

import pytest

from sickbay.recover.adapters import ADAPTERS
from sickbay.recover.adapters.base import again, facts, full_size, held, released
from tests.recover.test_adapters import BOTH, served

FULL = "sickbay.dev/full-ranks"
JOB = ADAPTERS["Job"]


def job(obj):
    return facts(JOB, obj)


def smaller(ranks=2):
    return job(released(JOB, job(held(job(served(BOTH[0][1])), 1)), 2, [], ranks))


def test_a_smaller_job_has_fewer_ranks_and_remembers_how_many_it_had():
    found = smaller()
    assert (found.ranks, found.annotations[FULL], full_size(found)) == (("0", "1"), "4", 4)
    assert (found.raw["spec"]["completions"], found.raw["spec"]["parallelism"]) == (2, 2)


def test_it_is_the_same_program():
    assert smaller().template == job(served(BOTH[0][1])).template


def test_the_next_attempt_has_its_full_size_again():
    back = job(released(JOB, smaller(), 3, []))
    assert (len(back.ranks), FULL in back.annotations) == (4, False)


def test_made_smaller_twice_it_still_knows_its_full_size():
    twice = job(released(JOB, smaller(3), 3, [], 2))
    assert (len(twice.ranks), full_size(twice)) == (2, 4)


def test_a_job_that_is_made_again_can_be_smaller_too():
    assert len(job(again(JOB, job(served(BOTH[0][1])), 2, [], 3)).ranks) == 3


def test_a_jobset_stays_as_it_is():
    adapter, manifest = ADAPTERS["JobSet"], served(BOTH[1][1])
    before = facts(adapter, manifest)
    after = facts(adapter, released(adapter, before, 2, [], 2))
    assert after.ranks == before.ranks
    assert FULL not in after.annotations


@pytest.mark.parametrize("notify", ["Call", "Signal"])
def test_asking_for_checkpoints_otherwise_than_by_annotation_is_refused_with_the_remedy(notify):
    from sickbay.api.validate import validate

    spec = {"jobSelector": {}, "checkpoint": {"notify": notify}}
    body = {
        "apiVersion": "sickbay.dev/v1alpha1",
        "kind": "RecoveryPolicy",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": spec,
    }
    found = " ".join(str(problem) for problem in validate("RecoveryPolicy", body))
    assert "not asked by Call or by Signal" in found
    assert "set notify to Annotation" in found
