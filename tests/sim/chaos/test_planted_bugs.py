"""Each planted bug is caught by a recorded seed, by the invariant that is there for it; without the bug the seed holds.

When worlds are drawn in another way, the seeds move: `python -m tests.sim.chaos.test_planted_bugs NAME` finds new ones.
"""

from __future__ import annotations

import itertools
import sys

import pytest

from sickbay.sim.chaos.plan import draw
from sickbay.sim.chaos.run import run
from tests.sim.chaos.planted import BUGS

SEEDS = {
    "a plan that is through closes with its fault still there": 296,
    "the binding of a question is not looked at": 40,
    "denied is taken for approved": 121,
    "a cap counts what stands, not what is promised": 58,
    "any reset closes the breaker": 7,
    "a job is let go before it is fenced off": 497,
    "nobody claims before acting": 8,
    "what a dead process has sent is sent again": 66,
    "validation looks at nothing": 5,
    "Holds are not looked at": 56,
    "a person's cancel is forgotten": 58,
    "pods are deleted and not evicted": 29,
}


def test_every_bug_has_its_seed():
    assert SEEDS.keys() == BUGS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name: str) -> None:
    bug, seed = BUGS[name], SEEDS[name]
    with bug.planted():
        found = [finding.text for finding in run(draw(seed)).findings]
    assert any(bug.told in text for text in found), found
    assert run(draw(seed)).ok


def search(name: str) -> int:
    """The first seed that catches it."""
    bug = BUGS[name]
    for seed in itertools.count(1):
        drawing = draw(seed)
        if not bug.likely(drawing.document["spec"]):
            continue
        with bug.planted():
            if any(bug.told in finding.text for finding in run(drawing).findings):
                return seed
    raise AssertionError


if __name__ == "__main__":
    print(search(sys.argv[1]))
