"""The report as a claim: of several that reach for an attempt one wins, and an old leader's late write is refused."""

from __future__ import annotations

import pytest

from sickbay.api.repair_step import BlockingPod
from sickbay.api.words import ReportState
from sickbay.execute.claim import REWRITE_AFTER, Claims, LaterTerm
from sickbay.execute.guard import Stopped
from sickbay.execute.progress import Progress, done
from sickbay.kube import errors
from sickbay.kube.leadership import NotLeading
from tests.execute.kit import REPAIRS, Bench, Driven


def claims(shift: Driven, term: int) -> Claims:
    return Claims(shift.tools.client, term, shift.term.check, lambda repair: None)


def bench_with_two() -> tuple[Bench, Claims, Claims]:
    bench = Bench()
    bench.open()
    return bench, claims(bench.shift(), 1), claims(bench.shift(), 2)


async def test_of_two_claimants_of_one_version_the_first_wins() -> None:
    bench, first, second = bench_with_two()
    seen = bench.repair()
    await first.claim(seen, {"bootBefore": "a"})
    with pytest.raises(errors.Conflict):
        await second.claim(seen, {"bootBefore": "b"})
    assert (bench.report["term"], bench.report["state"]) == (1, "Claimed")
    assert bench.report["proof"] == {"bootBefore": "a"}


async def test_a_later_term_takes_over_a_claim_and_keeps_what_it_recorded() -> None:
    bench, first, second = bench_with_two()
    await first.claim(bench.repair(), {"bootBefore": "a"})
    taken = await second.claim(bench.repair(), {"bootBefore": "b"})
    assert taken.resumed
    assert (bench.report["term"], bench.report["proof"]) == (2, {"bootBefore": "a"})


async def test_a_late_report_of_the_old_leader_is_refused() -> None:
    bench, first, second = bench_with_two()
    mine = await first.claim(bench.repair(), {})
    await second.claim(bench.repair(), {})
    with pytest.raises(errors.Conflict):
        await first.report(mine.repair, done("I did it"), bench.clock.now())
    assert bench.report["state"] == "Claimed"


async def test_an_earlier_term_never_takes_a_claim_back() -> None:
    bench, first, second = bench_with_two()
    await second.claim(bench.repair(), {})
    with pytest.raises(LaterTerm):
        await first.claim(bench.repair(), {})


async def test_who_does_not_lead_writes_nothing() -> None:
    bench = Bench()
    bench.open()
    shift = bench.shift()
    shift.term.end()
    with pytest.raises(NotLeading):
        await claims(shift, 1).claim(bench.repair(), {})
    assert bench.report == {}


async def test_our_own_claim_is_ours_and_anothers_stays_anothers() -> None:
    bench, first, second = bench_with_two()
    assert not (await first.claim(bench.repair(), {})).resumed
    assert not (await first.claim(bench.repair(), {})).resumed
    assert (await second.claim(bench.repair(), {})).resumed
    assert (await second.claim(bench.repair(), {})).resumed, "the record carries its term, the claim is not its own"


async def test_a_claim_lost_to_another_does_not_become_ours_when_we_take_it_over() -> None:
    bench, first, second = bench_with_two()
    seen = bench.repair()
    await first.claim(seen, {})
    with pytest.raises(errors.Conflict):
        await second.claim(seen, {})
    assert (await second.claim(bench.repair(), {})).resumed
    assert (await second.claim(bench.repair(), {})).resumed


@pytest.mark.parametrize("field", ["attempt", "generation"])
async def test_a_report_on_something_earlier_is_no_claim(field: str) -> None:
    bench = Bench()
    bench.open("Drain")
    first = claims(bench.shift(), 1)
    await first.claim(bench.repair(), {"bootBefore": "old"})
    if field == "attempt":
        bench.ask("Drain", attempt=2)
    else:
        bench.merge({"spec": {"plan": {"generation": 2}}}, "noderepairs.sickbay.dev", "r1")
    claimed = await first.claim(bench.repair(), {"bootBefore": "new"})
    assert not claimed.resumed
    assert bench.report["proof"] == {"bootBefore": "new"}
    assert (bench.report["attempt"], bench.report["planGeneration"]) == ((2, 1) if field == "attempt" else (1, 2))


async def test_a_report_says_the_same_only_once() -> None:
    bench, first, _ = bench_with_two()
    claimed = await first.claim(bench.repair(), {})
    progress = Progress(ReportState.IN_PROGRESS, "under way")
    first_written = await first.report(claimed.repair, progress, bench.clock.now())
    again = await first.report(first_written, progress, bench.clock.now())
    assert again is first_written


async def test_a_changed_wording_waits_ten_seconds_and_a_changed_meaning_does_not() -> None:
    bench, first, _ = bench_with_two()
    repair = (await first.claim(bench.repair(), {})).repair
    repair = await first.report(repair, Progress(ReportState.IN_PROGRESS, "10 %"), bench.clock.now())
    repair = await first.report(repair, Progress(ReportState.IN_PROGRESS, "20 %"), bench.clock.now())
    assert bench.report["message"] == "10 %"
    for news in (
        Progress(ReportState.IN_PROGRESS, "30 %", {"fact": "new"}),
        Progress(ReportState.IN_PROGRESS, "40 %", pods=[BlockingPod(pod="a/b", state="Blocked", why="Busy")]),
        Progress(ReportState.CLAIMED, "50 %"),
    ):
        repair = await first.report(repair, news, bench.clock.now())
        assert bench.report["message"] == news.message
    await bench.clock.sleep(REWRITE_AFTER.total_seconds())
    await first.report(repair, Progress(ReportState.CLAIMED, "60 %"), bench.clock.now())
    assert bench.report["message"] == "60 %"


async def test_what_keeps_us_from_acting_is_written_without_a_claim() -> None:
    bench, first, _ = bench_with_two()
    await first.stopped(bench.repair(), Stopped("held", "Hold"), bench.clock.now())
    assert bench.report == {"attempt": 1, "planGeneration": 1, "message": "held", "waitsFor": "Hold"}
    assert not (await first.claim(bench.repair(), {})).resumed
    assert bench.report["state"] == "Claimed"
    assert bench.report.get("waitsFor", "") == ""


async def test_what_stops_a_claimed_attempt_leaves_the_claim_standing() -> None:
    bench, first, _ = bench_with_two()
    repair = (await first.claim(bench.repair(), {"bootBefore": "a"})).repair
    repair = await first.stopped(repair, Stopped("held", "Hold"), bench.clock.now())
    assert (bench.report["state"], bench.report["waitsFor"]) == ("Claimed", "Hold")
    await first.report(repair, Progress(ReportState.IN_PROGRESS, "goes on"), bench.clock.now())
    assert bench.report.get("waitsFor", "") == ""
    assert bench.report["proof"] == {"bootBefore": "a"}


async def test_reports_of_other_steps_and_what_decide_writes_stay_as_they_are() -> None:
    bench, first, _ = bench_with_two()
    bench.merge({"status": {"message": "decide's", "steps": {"Drain": {"report": {"state": "Done", "attempt": 1}}}}},
                "noderepairs.sickbay.dev", "r1", "status")  # fmt: skip
    claimed = await first.claim(bench.repair(), {})
    await first.report(claimed.repair, done("booted"), bench.clock.now())
    repair = bench.repair()
    assert repair.status.message == "decide's"
    assert repair.status.step("Drain").report.state == "Done"
    assert repair.status.step("Repair").state == "Running"


@pytest.mark.parametrize("state", ["", "Claimed", "InProgress", "Done"])
async def test_what_was_ordered_under_a_plan_that_is_replaced_is_not_done_under_the_new_one(state: str) -> None:
    """decide brings a new plan in two writes. Between them the spec is new, and the order in status is not."""
    bench = Bench()
    bench.open("Repair")
    bench.backend.keeps_keys = False
    current: dict[str, object] = {"planGeneration": 1}
    steps = {"Repair": {"report": {"state": state, "attempt": 1, "planGeneration": 1, "term": 1}}} if state else {}
    bench.merge({"status": {"current": current, "steps": steps}}, REPAIRS, "r1", "status")
    bench.merge({"spec": {"plan": {"generation": 2}}}, REPAIRS, "r1")
    before, node = bench.repair(), bench.node()
    await bench.shift().look()
    assert bench.backend.acts == bench.backend.looks == []
    assert (bench.repair(), bench.node()) == (before, node)
    current |= {"planGeneration": 2, "attempt": 2}
    bench.merge({"status": {"current": current}}, REPAIRS, "r1", "status")
    await bench.shift().look()
    assert bench.backend.sent == [bench.key]
