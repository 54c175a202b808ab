"""When a job has its checkpoint: when its first rank says so, which knows of the others, or every rank does."""

from __future__ import annotations

import pytest

from sickbay.api import names
from sickbay.recover.checkpoints import has_checkpoint
from sickbay.recover.view import Work
from tests.recover.looks import look, pod
from tests.recover.records import record

ASKED = "train-1-8c1f6a3e-1/Drain/1"


@pytest.mark.case("P164")
@pytest.mark.parametrize(
    ("done", "complete"),
    [({}, False), ({1: ASKED, 2: ASKED, 3: ASKED}, False), ({0: "another/Drain/1"}, False), ({0: ASKED}, True)],
    ids=["nobody", "a-part-of-the-ranks", "an-earlier-one", "the-first-rank"],
)
def test_a_checkpoint_of_which_parts_are_missing_is_none(done, complete):
    pods = [pod(r, annotations={names.CHECKPOINT_DONE: done[r]} if r in done else {}) for r in range(4)]
    assert has_checkpoint(Work(record("Running"), look(*pods)), ASKED) is complete


def test_every_rank_may_say_it_for_itself():
    pods = [pod(r, annotations={names.CHECKPOINT_DONE: ASKED}) for r in range(4)]
    assert has_checkpoint(Work(record("Running"), look(*pods)), ASKED)
