"""When a job whose ranks all run is called stalled: by its steps, and by the phases its policy tells of."""

from __future__ import annotations

import pytest

from sickbay.api.recovery_policy import HangPhase
from sickbay.clock import rfc3339
from sickbay.recover.phases import advance
from sickbay.recover.spans import Span, read_spans
from sickbay.recover.view import Standing
from tests.recover.looks import at, look, pod
from tests.recover.records import record

INIT = {"name": "init", "from": "Init START", "to": "Init COMPLETE", "max": "10m"}
SAVE = {"name": "save", "from": "saving checkpoint", "to": "checkpoint saved", "max": "30m"}
STARTED = 5.0
RANKS = 8
INSIDE, NOWHERE = Span(at(10), None, inside=True), Span()


def judged(now, spans=None, standing=None, phases=(INIT,), read=True, ranks=RANKS, **attempt):
    """The work after a look at a gang that runs since STARTED. `spans` by rank, of the only phase."""
    given = {"n": 1, "started": rfc3339(at(STARTED)), **attempt}
    by_rank = {str(rank): {phases[0]["name"]: span} for rank, span in (spans or {}).items()}
    view = look(
        *(pod(rank) for rank in range(ranks)),
        now=now,
        ranks=ranks,
        standing=standing or Standing(),
        policy={"hang": {"stall": "15m", "phases": list(phases)}},
        spans=by_rank,
        logs_read=at(now) if read else None,
    )
    return advance(record("Running", attempts=[given], template="same"), view)


def over(work):
    (attempt,) = work.status.attempts
    return attempt.verdict, attempt.action, [s.node for s in work.status.suspects]


LEFT_EARLY = Span(at(-100), at(-50))
THROUGH = Span(at(10), at(20))


@pytest.mark.case("P158")
@pytest.mark.parametrize(
    ("spans", "suspects"),
    [
        (dict.fromkeys(range(7), INSIDE) | {7: NOWHERE}, ["n7"]),
        (dict.fromkeys(range(7), INSIDE) | {7: LEFT_EARLY}, ["n7"]),
        (dict.fromkeys(range(7), THROUGH) | {7: INSIDE}, ["n7"]),
        (dict.fromkeys(range(6), INSIDE) | {6: NOWHERE, 7: NOWHERE}, ["n6", "n7"]),
    ],
    ids=["never-entered", "not-entered-this-time", "never-came-out", "two"],
)
def test_ranks_that_are_missing_in_a_phase_that_takes_too_long_name_their_nodes(spans, suspects):
    assert judged(609, spans).phase == "Running"
    work = judged(611, spans)
    assert over(work) == ("Hardware", "Reschedule", suspects)
    assert work.phase == "Isolating"
    assert "phase init has taken longer than 10m" in work.status.attempts[0].evidence[0]


@pytest.mark.parametrize(
    "spans",
    [
        dict.fromkeys(range(8), INSIDE),
        dict.fromkeys(range(5), INSIDE) | dict.fromkeys(range(5, 8), NOWHERE),
        dict.fromkeys(range(7), INSIDE),
        dict.fromkeys(range(7), THROUGH) | {7: INSIDE, 6: INSIDE, 5: INSIDE},
    ],
    ids=["all-are-in-it", "three-are-missing", "the-log-of-one-cannot-be-read", "three-never-came-out"],
)
def test_a_phase_that_takes_too_long_names_no_node_where_nobody_can_be_told_apart(spans):
    work = judged(611, spans)
    assert work.phase == "Failing"
    assert work.status.suspects == []
    assert "phase init has taken longer than 10m" in work.status.attempts[0].evidence[0]


def test_a_rank_that_was_missing_on_another_node_already_takes_its_fault_along():
    before = {"n": 1, "verdict": "Hardware", "ended": rfc3339(at(-100)), "rootRank": "7", "rootNode": "n9"}
    before["ends"] = [{"rank": "7", "node": "n9", "how": "Missing", "at": rfc3339(at(-100))}]
    given = {"n": 2, "started": rfc3339(at(STARTED))}
    spans = {str(r): {"init": INSIDE} for r in range(7)} | {"7": {"init": NOWHERE}}
    view = look(
        *(pod(rank) for rank in range(8)), now=611, ranks=8, policy={"hang": {"phases": [INIT]}}, spans=spans,
        logs_read=at(611),
    )  # fmt: skip
    work = advance(record("Running", attempts=[before, given], template="same"), view)
    assert (work.phase, work.status.suspects) == ("Failing", [])


STILL = Standing(step=100, since=at(60), expected=True)


def test_standing_still_within_a_phase_is_no_stall_and_beyond_it_is_one():
    spans = dict.fromkeys(range(8), Span(at(61), None, inside=True))
    assert judged(1200, spans, STILL, phases=(SAVE,)).phase == "Running"
    assert judged(1862, spans, STILL, phases=(SAVE,)).phase == "Failing"


@pytest.mark.parametrize("behind", [0, 3600], ids=["by-the-right-clock", "by-a-clock-an-hour-behind"])
def test_a_phase_has_not_begun_before_the_last_step_whatever_the_clock_of_a_node_says(behind):
    """Of one node, whose rank alone would be the one that never came out."""
    entered = {rank: Span(at(61 - behind * (rank == 3)), None, inside=True) for rank in range(8)}
    assert judged(1800, entered, STILL, phases=(SAVE,)).phase == "Running"
    assert judged(1862, entered, STILL, phases=(SAVE,)).phase == "Failing"


def test_the_time_of_a_phase_is_no_time_without_a_step():
    spans = dict.fromkeys(range(8), Span(at(61), at(1000)))
    assert judged(1200, spans, STILL, phases=(SAVE,)).phase == "Running"
    assert judged(1901, spans, STILL, phases=(SAVE,)).phase == "Failing"


@pytest.mark.parametrize("standing", [STILL, Standing()], ids=["steps", "no-steps"])
def test_no_job_is_called_stalled_before_its_logs_were_read(standing):
    work = judged(3000, {}, standing, read=False)
    assert (work.phase, work.read_logs) == ("Running", True)


@pytest.mark.parametrize(
    ("now", "standing"),
    [(64, Standing()), (100, Standing(step=9, since=at(99), expected=True))],
    ids=["young", "steps"],
)
def test_the_logs_of_a_job_that_goes_on_are_left_alone(now, standing):
    work = judged(now, {}, standing, read=False)
    assert (work.phase, work.read_logs) == ("Running", False)


def test_where_no_log_can_be_read_steps_alone_tell():
    assert judged(3000, {}, STILL).phase == "Failing"
    assert judged(3000, {}, Standing()).phase == "Running"


# --- without logs

SETUP = {"name": "setup", "max": "10m"}


@pytest.mark.case("P158")
def test_a_phase_without_patterns_is_the_time_until_the_first_step_and_needs_no_log():
    assert judged(604, phases=(SETUP,), read=False).phase == "Running"
    assert judged(606, phases=(SETUP,), read=False).phase == "Failing"
    first = Standing(step=0, since=at(100), expected=True)
    assert judged(606, standing=first, phases=(SETUP,), read=False, firstStep=0).phase == "Running"


def waiting(silent, step=0):
    return Standing(step=step, since=at(30), behind=silent, silent=silent, expected=True)


@pytest.mark.case("P158")
def test_a_rank_that_reports_no_step_while_the_others_wait_at_their_first_names_its_node():
    work = judged(1000, standing=waiting(("7",)), phases=(), read=False, firstStep=0)
    assert over(work) == ("Hardware", "Reschedule", ["n7"])


@pytest.mark.parametrize(
    ("standing", "first"),
    [(waiting(("7",), step=50), 0), (waiting(("1", "2", "3", "4", "5", "6", "7")), 0)],
    ids=["the-gang-has-come-further-with-it", "only-one-rank-reports"],
)
def test_a_rank_that_never_reports_steps_is_not_to_blame(standing, first):
    work = judged(1000, standing=standing, phases=(), read=False, firstStep=first)
    assert (work.phase, work.status.suspects) == ("Failing", [])


# --- logs


def log(*lines):
    return "\n".join(f"2027-03-01T08:{minute:02}:00.123456789Z {text}" for minute, text in lines)


def phases(*specs):
    return [HangPhase(name=s["name"], from_=s.get("from", ""), to=s.get("to", ""), max=s["max"]) for s in specs]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], (None, None, False)),
        ([(1, "hello")], (None, None, False)),
        ([(1, "NCCL INFO Init START"), (2, "waits")], (1, None, True)),
        ([(1, "Init START"), (2, "Init COMPLETE")], (1, 2, False)),
        ([(1, "Init START"), (2, "Init COMPLETE"), (3, "Init START"), (4, "x")], (3, 2, True)),
        ([(4, "Init COMPLETE")], (None, 4, False)),
    ],
    ids=["empty", "nothing", "inside", "through", "inside-again", "the-beginning-is-out-of-sight"],
)
def test_the_last_lines_that_match_tell_where_a_rank_is(lines, expected):
    span = read_spans(log(*lines), phases(INIT))["init"]
    assert (span.entered and span.entered.minute, span.left and span.left.minute, span.inside) == expected


@pytest.mark.parametrize("at_line", [0, 1, 250, 499])
def test_a_line_is_found_wherever_it_stands(at_line):
    lines = [(n % 60, "Init START" if n == at_line else f"step {n}") for n in range(500)]
    assert read_spans(log(*lines), phases(INIT))["init"].entered.minute == at_line % 60


def test_a_pattern_may_be_bound_to_the_beginning_and_the_end_of_a_line():
    bound = {"name": "x", "from": "^begin$", "max": "1m"}
    assert not read_spans(log((1, "we begin"), (2, "begin now")), phases(bound))["x"].inside
    assert read_spans(log((1, "a"), (2, "begin"), (3, "b")), phases(bound))["x"].inside


@pytest.mark.parametrize("text", ["begin", "yesterday begin"], ids=["no-time", "no-such-time"])
def test_a_line_without_a_time_begins_nothing(text):
    assert not read_spans(text, phases({"name": "x", "from": "begin", "max": "1m"}))["x"].inside
