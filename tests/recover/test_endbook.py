"""Ends of ranks are remembered after their pods are gone, and forgotten where nobody will ever judge them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sickbay.clock import SystemClock
from sickbay.recover.adapters import ADAPTERS
from sickbay.recover.endbook import EndBook
from sickbay.recover.ends import End
from sickbay.recover.job import JobId
from sickbay.recover.view import RankPod
from tests.recover.looks import START, at, pod

LLM, OTHER = JobId("Job", "default", "llm"), JobId("Job", "default", "other")


@pytest.fixture
def book() -> EndBook:
    return EndBook(SystemClock())


def exited(code: int = 1, finished: float = 0.0) -> list[dict]:
    moment = (START + timedelta(seconds=finished)).isoformat()
    return [{"name": "main", "state": {"terminated": {"exitCode": code, "finishedAt": moment}}}]


def failed(rank: int, finished: float = 0.0) -> RankPod:
    return pod(rank, phase="Failed", containers=exited(finished=finished))


def note(book: EndBook, rank: RankPod, gone: bool = False, job: JobId = LLM) -> None:
    book.note(job, ADAPTERS["Job"], rank.pod, gone)


def found(book: EndBook, *pods: RankPod, job: JobId = LLM) -> dict[str, str]:
    return {end.rank: end.how for end in book.of(job, pods)}


def end(book: EndBook, rank: str = "0") -> End:
    return next(e for e in book.of(LLM, ()) if e.rank == rank)


def test_how_a_rank_ended_is_known_after_its_pod_is_gone(book):
    note(book, failed(0))
    note(book, failed(0), gone=True)
    assert found(book) == {"0": "Exited"}


def test_a_pod_that_is_taken_away_while_it_runs_is_deleted_and_not_failed(book):
    note(book, pod(0), gone=True)
    assert found(book) == {"0": "Deleted"}


def test_a_pod_that_fails_while_it_is_taken_away_has_failed_as_it_was_seen_last(book):
    note(book, pod(0, deleted=1.0))
    assert found(book) == {"0": "Deleted"}
    note(book, failed(0))
    assert found(book) == {"0": "Exited"}


def test_what_ran_to_its_end_has_no_end_worth_knowing(book):
    note(book, pod(0, phase="Succeeded"), gone=True)
    assert found(book) == {}


def test_ends_that_the_pods_still_show_need_not_be_remembered(book):
    assert found(book, failed(0), pod(1)) == {"0": "Exited"}


def test_what_is_judged_does_not_come_back_as_long_as_its_pod_is_there(book):
    rank = failed(0)
    note(book, rank)
    book.consume(LLM, {rank.pod.uid}, there={rank.pod.uid})
    note(book, rank)
    assert found(book, rank) == {}
    note(book, rank, gone=True)
    assert found(book) == {}
    assert book._judged == {}


def test_jobs_do_not_mix(book):
    note(book, failed(0))
    note(book, failed(1), job=OTHER)
    assert (found(book), found(book, job=OTHER)) == ({"0": "Exited"}, {"1": "Exited"})


def test_old_ends_go_and_young_ones_stay(book):
    note(book, failed(0, finished=0))
    note(book, failed(1, finished=50))
    book.forget(LLM, at(50))
    assert found(book) == {"1": "Exited"}
    book.forget(LLM, at(51))
    assert book.jobs() == []


def test_with_an_end_goes_its_log(book):
    note(book, failed(0))
    book.keep_log(LLM, end(book), "RuntimeError: boom")
    assert book.unread(LLM) == []
    book.forget(LLM, at(1))
    assert book._logs == {}


def test_a_log_that_comes_too_late_is_not_kept(book):
    note(book, failed(0))
    late = end(book)
    book.consume(LLM, {late.uid}, there=set())
    book.keep_log(LLM, late, "RuntimeError: boom")
    assert book._logs == {}


def test_a_log_is_asked_for_once_though_it_is_empty(book):
    note(book, failed(0))
    assert [e.rank for e in book.unread(LLM)] == ["0"]
    book.keep_log(LLM, end(book), "")
    assert book.unread(LLM) == []


def test_nobody_asks_for_the_log_of_a_pod_that_was_taken_away(book):
    note(book, pod(0), gone=True)
    assert book.unread(LLM) == []
