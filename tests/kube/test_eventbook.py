"""Repetitions become a count, floods are held back, and nothing that was said is lost from the count."""

from __future__ import annotations

from datetime import timedelta

from sickbay.api.core import ObjectReference
from sickbay.kube.eventbook import BURST, REFILL, REMEMBERED, UPDATE_EVERY, WINDOW, EventBook, Series
from sickbay.sim.loop import EPOCH

NODE = ObjectReference(api_version="v1", kind="Node", name="n1", uid="u1")


def note(book: EventBook, message: str = "m", at: float = 0.0, about: ObjectReference = NODE) -> bool:
    return book.note(about, "Normal", "Reason", message, "", EPOCH + timedelta(seconds=at), at)


def written(book: EventBook, at: float) -> list[Series]:
    """As the recorder does it: write what is due."""
    found = book.due(at)
    for series in found:
        series.name = series.name or "made"
        series.written = series.count
        series.due = at + UPDATE_EVERY
    return found


def test_the_same_words_about_the_same_object_are_one_series() -> None:
    book = EventBook()
    for second in range(3):
        assert note(book, at=second)
    (series,) = written(book, 3)
    assert series.count == 3
    assert (series.last - series.first).total_seconds() == 2


def test_other_words_or_another_object_are_another_series() -> None:
    book = EventBook()
    note(book)
    note(book, "other")
    note(book, about=ObjectReference(kind="Node", name="n2", uid="u2"))
    note(book, about=ObjectReference(kind="Node", name="n1", uid="made anew"))
    assert len(written(book, 0)) == 4


def test_a_repetition_after_the_window_is_a_new_series() -> None:
    book = EventBook()
    note(book, at=0)
    first = written(book, 0)[0]
    note(book, at=WINDOW)
    assert written(book, WINDOW) == [first]
    note(book, at=2 * WINDOW + 1)
    (fresh,) = written(book, 2 * WINDOW + 1)
    assert fresh is not first
    assert fresh.count == 1


def test_a_series_is_brought_up_to_date_every_few_seconds_at_most() -> None:
    book = EventBook()
    note(book, at=0)
    written(book, 0)
    for second in range(1, 10):
        note(book, at=second)
    assert book.due(9.9) == []
    assert book.next_due() == UPDATE_EVERY
    (series,) = written(book, UPDATE_EVERY)
    assert series.count == 10
    assert book.next_due() is None


def test_an_object_gets_no_flood_and_others_do_not_suffer() -> None:
    book = EventBook()
    assert all(note(book, f"m{n}") for n in range(BURST))
    assert not note(book, "one too many")
    assert note(book, about=ObjectReference(kind="Node", name="n2", uid="u2"))
    assert len(written(book, 0)) == BURST + 1


def test_what_was_held_back_is_counted_when_it_is_said_again() -> None:
    book = EventBook()
    for n in range(BURST):
        note(book, f"m{n}")
    assert not note(book, "late")
    assert not note(book, "late", at=1)
    written(book, 1)
    assert note(book, "late", at=REFILL + 2)
    (series,) = written(book, REFILL + 2)
    assert (series.message, series.count) == ("late", 3)


def test_repetitions_of_what_is_written_cost_no_token() -> None:
    book = EventBook()
    for n in range(BURST):
        note(book, f"m{n}")
    written(book, 0)
    assert all(note(book, "m0", at=n) for n in range(1, 50))


def test_the_longest_silent_are_forgotten_and_the_memory_stays_bounded() -> None:
    book = EventBook()
    for n in range(REMEMBERED + 500):
        note(book, about=ObjectReference(kind="Node", name=f"n{n}", uid=f"u{n}"))
    assert book.pending == REMEMBERED
    assert written(book, 0)[0].regarding.name == "n500"
    assert len(book._buckets) == REMEMBERED


def test_what_no_repetition_can_join_any_more_is_forgotten() -> None:
    book = EventBook()
    for n in range(50):
        note(book, f"m{n}", about=ObjectReference(kind="Node", name=f"other-{n}", uid=f"o{n}"))
    written(book, 0)
    note(book, at=WINDOW)
    assert (len(book._series), len(book._buckets)) == (51, 51)
    note(book, at=max(WINDOW, BURST * REFILL) + 1)
    assert (len(book._series), len(book._buckets)) == (1, 1)


def test_what_is_not_yet_written_is_kept_however_old() -> None:
    book = EventBook()
    note(book, "said while the API server was away")
    note(book, at=10 * WINDOW)
    assert [series.message for series in written(book, 10 * WINDOW)] == ["said while the API server was away", "m"]
