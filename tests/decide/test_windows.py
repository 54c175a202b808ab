"""Maintenance windows: cron expressions, time zones, changes to and from summer time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.api.repair_pool import Window
from sickbay.decide import windows


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def window(cron: str, duration: str = "2h", zone: str = "UTC", kind: str = "Allow") -> Window:
    return Window(cron=cron, duration=duration, zone=zone, kind=kind)


@pytest.mark.parametrize(
    ("cron", "moment", "open_"),
    [
        pytest.param("0 2 * * *", "2027-03-01T02:00", True, id="at its first moment"),
        pytest.param("0 2 * * *", "2027-03-01T03:59:59", True, id="until its last second"),
        pytest.param("0 2 * * *", "2027-03-01T04:00", False, id="not at its end"),
        pytest.param("0 2 * * *", "2027-03-01T01:59:59", False, id="not before"),
        pytest.param("30 23 * * *", "2027-03-02T00:30", True, id="over midnight"),
        pytest.param("0 2 * * sat,sun", "2027-03-06T02:30", True, id="by name of day"),
        pytest.param("0 2 * * 6-7", "2027-03-07T02:30", True, id="7 is Sunday"),
        pytest.param("0 2 * * 1-5", "2027-03-06T02:30", False, id="a weekday range"),
        pytest.param("*/15 9-17 * * *", "2027-03-01T08:59", False, id="steps and ranges"),
        pytest.param("0 2 1 * mon", "2027-03-08T02:30", True, id="day or weekday, as cron has it"),
        pytest.param("0 2 1 * mon", "2027-04-01T02:30", True, id="the other of the two"),
        pytest.param("0 0 29 2 *", "2028-02-29T01:00", True, id="29 February"),
        pytest.param("0 2 * jan-mar *", "2027-04-01T02:30", False, id="by month"),
    ],
)
def test_a_window_is_open_from_its_start_for_its_duration(cron: str, moment: str, open_: bool) -> None:
    assert windows.inside(window(cron), utc(moment)) is open_


BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("moment", "open_"),
    [
        # On 28 March 2027 the clock goes from 02:00 to 03:00 (01:00 UTC): 02:30 does not exist.
        pytest.param("2027-03-28T01:29", False, id="before the skipped hour's start"),
        pytest.param("2027-03-28T01:31", True, id="a skipped start counts after the change"),
        pytest.param("2027-03-28T02:31", False, id="and lasts its hour, not longer"),
        # On 31 October 2027 the clock goes from 03:00 back to 02:00 (01:00 UTC): 02:30 comes twice.
        pytest.param("2027-10-31T00:31", True, id="the first of two"),
        pytest.param("2027-10-31T01:45", False, id="not the second"),
        pytest.param("2027-07-01T00:45", True, id="summer time"),
        pytest.param("2027-12-01T01:45", True, id="winter time"),
        pytest.param("2027-12-01T00:45", False, id="winter time, an hour early"),
    ],
)
def test_local_time_across_changes_of_the_clock(moment: str, open_: bool) -> None:
    assert windows.inside(window("30 2 * * *", "1h", BERLIN), utc(moment)) is open_


def test_starts_need_an_allow_window_where_there_is_one() -> None:
    allow = [window("0 2 * * *")]
    assert windows.refusal(allow, utc("2027-03-01T03:00")) == ""
    assert windows.refusal(allow, utc("2027-03-01T12:00")) == "outside every Allow window"
    assert windows.refusal([], utc("2027-03-01T12:00")) == ""


def test_a_deny_window_wins() -> None:
    both = [window("0 0 * * *", "24h"), window("0 9 * * 1-5", "8h", kind="Deny")]
    assert windows.refusal(both, utc("2027-03-01T08:00")) == ""
    assert "Deny window" in windows.refusal(both, utc("2027-03-01T10:00"))


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (window("0 2 * *"), "has 4 fields"),
        (window("61 2 * * *"), "minute '61'"),
        (window("0 2 * * foo"), "day of week 'foo'"),
        (window("0 9-5 * * *"), "runs backwards"),
        (window("0 2 * * *", zone="Mars/Olympus"), "no IANA time zone"),
        (window("0 2 * * *", duration="soon"), "not a duration"),
        (window("0 2 * * */0"), "day of week '0'"),
    ],
)
def test_a_window_that_cannot_be_read_lets_nothing_start(broken: Window, says: str) -> None:
    why = windows.refusal([broken], utc("2027-03-01T02:30"))
    assert "cannot be read" in why
    assert says in why


def test_the_next_change_is_the_end_of_an_open_window_or_the_start_of_the_next() -> None:
    allow = [window("0 2 * * *")]
    assert windows.next_change(allow, utc("2027-03-01T03:00")) == utc("2027-03-01T04:00")
    assert windows.next_change(allow, utc("2027-03-01T05:00")) == utc("2027-03-02T02:00")
    assert windows.next_change([], utc("2027-03-01T05:00")) is None


@given(
    st.datetimes(datetime(2026, 1, 1), datetime(2029, 1, 1)),
    st.integers(0, 59),
    st.integers(0, 23),
    st.sampled_from(["UTC", BERLIN, "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]),
)
def test_the_last_start_is_the_latest_and_the_next_one_follows_it(
    moment: datetime, minute: int, hour: int, zone: str
) -> None:
    now = moment.replace(tzinfo=UTC)
    cron, where = windows.parse_cron(f"{minute} {hour} * * *"), windows.zone(zone)
    last, following = windows.last_start(cron, where, now), windows.next_start(cron, where, now)
    assert last is not None
    assert following is not None
    assert last <= now < following
    assert 22 <= (following - last).total_seconds() / 3600 <= 26


@given(st.text(alphabet="0123456789*/,-abcdefgmnorstuvy ", max_size=24))
def test_no_expression_brings_the_parser_down(text: str) -> None:
    try:
        windows.parse_cron(text)
    except ValueError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        pytest.param(window("0 1 * * *"), "", id="all can be read"),
        pytest.param(window("0 25 * * *"), "spec.windows[1]", id="no such hour"),
        pytest.param(window("0 1 * * *", zone="Mars/Olympus"), "Mars/Olympus", id="no such zone"),
    ],
)
def test_a_window_that_cannot_be_read_is_named_with_its_place(second, said):
    found = windows.problem([window("0 1 * * *"), second])
    assert (found == "") is (said == "")
    assert said in found
