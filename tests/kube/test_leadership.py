"""The judgement of who leads, by one's own monotonic clock alone."""

from __future__ import annotations

from datetime import datetime

import pytest

from sickbay.api.core import Lease, LeaseSpec
from sickbay.api.meta import ObjectMeta
from sickbay.kube.leadership import Leadership, NotLeading, Observation, next_term
from sickbay.sim.loop import EPOCH


class Hand:
    """A clock moved by hand; its wall time is wrong on purpose."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return EPOCH

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing sleeps here")


def lease(version: str = "1", holder: str | None = "other", duration: int | None = 15, term: int | None = 3) -> Lease:
    spec = LeaseSpec(
        holder_identity=holder,
        lease_duration_seconds=duration,
        lease_transitions=term,
        renew_time="1999-01-01T00:00:00.000000Z",
    )
    return Lease(metadata=ObjectMeta(name="l", uid="u", resource_version=version), spec=spec)


def test_a_term_is_over_when_its_time_is_up_and_longer_when_it_was_renewed() -> None:
    clock = Hand()
    leadership = Leadership(clock, term=4, until=1010)
    clock.seconds = 1009.9
    assert leadership.valid()
    leadership.check()
    clock.seconds = 1010
    assert not leadership.valid()
    with pytest.raises(NotLeading, match="term 4 is over"):
        leadership.check()


def test_a_renewal_that_was_sent_earlier_takes_no_time_away() -> None:
    clock = Hand()
    leadership = Leadership(clock, 1, until=1010)
    leadership.extend(1020)
    leadership.extend(1005)
    assert leadership.remaining() == 20


def test_there_is_no_way_back_into_a_term_that_ended() -> None:
    leadership = Leadership(Hand(), 1, until=1010)
    leadership.end()
    assert not leadership.valid()
    leadership.extend(2000)
    assert not leadership.valid()


def test_a_holder_is_taken_for_dead_only_after_its_own_duration_in_our_sight() -> None:
    seen = Observation()
    seen.see(lease("1"), 100)
    assert not seen.expired(lease("1"), 114.9)
    assert seen.expired(lease("1"), 115)


def test_every_change_of_the_lease_starts_the_wait_anew_and_a_mere_look_does_not() -> None:
    seen = Observation()
    seen.see(lease("1"), 100)
    seen.see(lease("1"), 110)
    assert seen.expired(lease("1"), 115)
    seen.see(lease("2"), 115)
    assert not seen.expired(lease("2"), 129)


@pytest.mark.parametrize("holder", [None, ""])
def test_a_lease_without_holder_is_free_at_once(holder: str | None) -> None:
    seen = Observation()
    seen.see(lease(holder=holder), 100)
    assert seen.expired(lease(holder=holder), 100)


@pytest.mark.parametrize(
    ("found", "known", "term"),
    [
        pytest.param(None, 0, 1, id="the first term is 1"),
        pytest.param(None, 7, 8, id="made anew after it was deleted"),
        pytest.param(lease(term=3), 0, 4, id="taken over"),
        pytest.param(lease(term=3), 9, 10, id="edited by hand"),
        pytest.param(lease(term=None), 0, 1, id="never counted"),
    ],
)
def test_terms_only_grow(found: Lease | None, known: int, term: int) -> None:
    assert next_term(found, known) == term
