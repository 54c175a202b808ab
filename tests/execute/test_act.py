"""Repair: one act under a key, looked up before it is repeated, done only on proof."""

from __future__ import annotations

import asyncio

import pytest

from sickbay.kube.leadership import NotLeading
from sickbay.providers.base import ActState, Ambiguous, Observation, Permanent, Transient, Withheld
from tests.execute.kit import REPAIRS, Bench, Driven

UNKNOWN = Observation(ActState.UNKNOWN, "no idea")
ABSENT = Observation(ActState.ABSENT, "no such key")
RUNNING = Observation(ActState.RUNNING, "rebooting")
SAYS_DONE = Observation(ActState.DONE, "rebooted")


async def started(bench: Bench) -> Driven:
    """A first look, which sends the act."""
    shift = bench.shift()
    await shift.look()
    return shift


@pytest.mark.case("N06")
async def test_a_reboot_counts_only_when_the_boot_id_differs_from_the_one_before() -> None:
    bench = Bench()
    bench.open()
    shift = await started(bench)
    assert bench.report["proof"]["bootBefore"] == "boot-1"
    bench.backend.observations = [SAYS_DONE] * 6
    for _ in range(6):  # a minute in which the machine has not even stopped
        await bench.clock.sleep(10)
        await shift.look()
        assert bench.report["state"] == "InProgress"
    bench.ready("Unknown")
    bench.boots("boot-2")
    bench.ready("True")
    assert await shift.look() is None
    assert bench.report["state"] == "Done"
    assert bench.report["proof"] == {"bootBefore": "boot-1", "bootID": "boot-2"}
    assert bench.backend.sent == [bench.key]


@pytest.mark.case("N06")
async def test_ready_alone_never_makes_a_reboot_succeed() -> None:
    bench = Bench()
    bench.open()
    shift = await started(bench)
    bench.backend.observations = [SAYS_DONE] * 200
    bench.ready("False")
    await shift.look()
    bench.ready("True")
    report = await shift.to_end()
    assert report["state"] == "Failed"
    assert "never booted anew" in report["message"]


@pytest.mark.case("N06")
@pytest.mark.parametrize(("goes_down", "state"), [(True, "Done"), (False, "Failed")], ids=["went-down", "stayed-up"])
async def test_without_any_boot_id_a_node_must_go_down_and_come_back(goes_down: bool, state: str) -> None:
    bench = Bench(boot="")
    bench.open()
    shift = await started(bench)
    if goes_down:
        bench.ready("Unknown")
        await shift.look()
        assert bench.report["state"] == "InProgress"
        bench.ready("True")
    report = await shift.to_end()
    assert report["state"] == state


async def test_the_boot_before_is_read_from_the_server_and_not_from_a_cache() -> None:
    """A cache that lags by one boot would take somebody else's reboot for the proof of ours."""
    bench = Bench()
    bench.open()
    shift = bench.shift()
    await shift.read()
    bench.boots("boot-2")
    await shift.look(read=False)
    assert bench.report["proof"]["bootBefore"] == "boot-2"
    await shift.look()
    assert bench.report["state"] == "InProgress"


@pytest.mark.case("N05")
async def test_a_permanent_error_fails_the_step_with_the_providers_words() -> None:
    bench = Bench()
    bench.open()
    bench.backend.submits = [Permanent("instance i-77 is unknown")]
    await started(bench)
    assert bench.report["state"] == "Failed"
    assert "instance i-77 is unknown" in bench.report["message"]
    assert len(bench.backend.acts) == 1


async def test_an_act_that_was_never_handed_over_says_so() -> None:
    bench = Bench()
    bench.open()
    bench.backend.submits = [Withheld("Forbidden (403): nodetasks")]
    await started(bench)
    assert (bench.report["state"], bench.report["proof"]["withheld"]) == ("Failed", "true")
    assert bench.report["message"] == "RebootNode was not handed over: Forbidden (403): nodetasks"


@pytest.mark.case("N05")
async def test_transient_errors_are_repeated_under_one_key_with_growing_pauses() -> None:
    bench = Bench()
    bench.open()
    bench.backend.submits = [Transient("409"), Transient("connection refused")]
    shift = bench.shift()
    pauses = [await shift.look()]
    assert bench.report["state"] == "Claimed"
    assert "409" in bench.report["message"]
    while len(bench.backend.acts) < 3:
        await bench.clock.sleep(pauses[-1] or 0)
        pauses.append(await shift.look())
    assert bench.report["state"] == "InProgress"
    assert pauses[:2] == [5, 10]
    assert set(bench.backend.sent) == {bench.key}


@pytest.mark.case("N05")
@pytest.mark.case("R36")
async def test_transient_errors_without_end_fail_after_a_bounded_number_of_sends() -> None:
    bench = Bench()
    bench.open(timeout=3600)
    bench.backend.submits = [Transient("busy")] * 50
    report = await bench.shift().to_end()
    assert report["state"] == "Failed"
    assert len(bench.backend.acts) == 6


@pytest.mark.parametrize("answer", [None, Ambiguous("no answer")], ids=["accepted", "answer-lost"])
@pytest.mark.case("N05")
async def test_an_act_that_the_back_end_knows_is_adopted_and_never_sent_again(answer: Exception | None) -> None:
    bench = Bench()
    bench.open()
    bench.backend.submits = [answer]
    bench.backend.observations = [RUNNING, RUNNING]
    shift = await started(bench)
    await shift.look()
    await shift.look()
    bench.boots()
    await shift.look()
    assert bench.report["state"] == "Done"
    assert len(bench.backend.acts) == 1


@pytest.mark.case("N05")
async def test_a_lost_answer_is_looked_up_before_the_act_is_sent_again() -> None:
    bench = Bench()
    bench.open()
    bench.backend.submits = [Ambiguous("time-out")]
    bench.backend.observations = [ABSENT]
    shift = await started(bench)
    assert len(bench.backend.looks) == 0
    await shift.looks(lambda: len(bench.backend.acts) == 2)
    assert len(bench.backend.looks) == 1
    assert set(bench.backend.sent) == {bench.key}


@pytest.mark.case("N05")
@pytest.mark.parametrize("seen", [UNKNOWN, ABSENT], ids=["unknown", "absent"])
async def test_a_lost_answer_of_a_back_end_without_keys_is_never_repeated(seen: Observation) -> None:
    bench = Bench()
    bench.open()
    bench.backend.keeps_keys = False
    bench.backend.submits = [Ambiguous("time-out")]
    bench.backend.observations = [seen] * 300
    report = await bench.shift().to_end()
    assert report["state"] == "Unknown"
    assert len(bench.backend.acts) == 1


@pytest.mark.parametrize("ended", [True, False])
async def test_a_new_plan_without_what_follows_from_it_repeats_no_act(ended: bool) -> None:
    """Decide writes the plan first, and may die before it writes that another attempt is due."""
    bench = Bench()
    bench.backend.keeps_keys = False
    bench.open()
    shift = await started(bench)
    if ended:
        bench.boots("boot-2")
        await shift.look()
    bench.merge({"spec": {"plan": {"generation": 2}}}, REPAIRS, "r1")
    for each in (shift, bench.shift(term=2)):
        for _ in range(3):
            await bench.clock.sleep(await each.look() or 10)
    assert bench.backend.sent == [bench.key]
    assert bench.report["state"] == ("Done" if ended else "InProgress")


async def test_a_back_end_without_keys_that_accepted_and_did_nothing_has_failed_not_vanished() -> None:
    bench = Bench()
    bench.open()
    bench.backend.keeps_keys = False
    bench.backend.observations = [UNKNOWN] * 300
    report = await bench.shift().to_end()
    assert report["state"] == "Failed"


@pytest.mark.case("R36")
async def test_time_outs_without_end_are_bounded_too() -> None:
    bench = Bench()
    bench.open(timeout=7200)
    bench.backend.submits = [Ambiguous("time-out")] * 100
    bench.backend.observations = [ABSENT] * 100
    report = await bench.shift().to_end()
    assert report["state"] == "Failed"
    assert len(bench.backend.acts) == 6


async def test_a_call_that_never_returns_counts_as_a_lost_answer() -> None:
    bench = Bench()
    bench.open()

    async def hang(act: object) -> None:
        await asyncio.get_running_loop().create_future()

    bench.backend.during = hang
    await started(bench)
    assert bench.report["state"] == "InProgress"
    assert "lost" in bench.report["message"]
    assert bench.clock.monotonic() == pytest.approx(60, abs=5)


async def test_an_act_that_fails_at_the_back_end_fails_the_step() -> None:
    bench = Bench()
    bench.open()
    shift = await started(bench)
    bench.backend.observations = [Observation(ActState.FAILED, "the BMC does not answer")]
    await shift.look()
    assert (bench.report["state"], bench.report["message"]) == ("Failed", "the BMC does not answer")


async def test_an_act_under_way_at_its_deadline_has_failed() -> None:
    bench = Bench()
    bench.open(timeout=100)
    report = await bench.shift().to_end()
    assert report["state"] == "Failed"
    assert 100 <= bench.clock.monotonic() < 115


async def test_a_back_end_that_cannot_be_asked_at_the_deadline_leaves_the_result_unknown() -> None:
    bench = Bench()
    bench.open(timeout=100)
    bench.backend.observations = [Transient("503")] * 50
    report = await bench.shift().to_end()
    assert report["state"] == "Unknown"


@pytest.mark.case("N10")
async def test_a_card_or_service_falls_to_the_agent_where_the_back_end_cannot_do_it() -> None:
    bench = Bench()
    gone = {"type": "g", "devices": ["GPU-c"], "clearedAt": "2027-03-01T08:00:00Z"}
    bench.open(action="ResetGPU", faults=[gone, {"type": "f", "devices": ["GPU-b", "GPU-a"]}])
    shift = await started(bench)
    assert bench.backend.acts == []
    act = bench.agent.acts[0]
    assert (act.action, act.args, act.target.boot_id) == ("ResetGPU", {"devices": "GPU-a,GPU-b"}, "boot-1")
    bench.agent.observations = [Observation(ActState.DONE, "reset", {"resetAt": "t"})]
    await shift.look()
    assert bench.report["state"] == "Done"
    assert bench.report["proof"]["resetAt"] == "t"


async def test_a_card_is_reset_by_the_pools_own_back_end_where_it_can() -> None:
    bench = Bench()
    bench.backend.does = ("ResetGPU",)
    bench.open(action="ResetGPU")
    await started(bench)
    assert (len(bench.backend.acts), len(bench.agent.acts)) == (1, 0)


async def test_a_reboot_never_falls_to_another_back_end_than_the_pools() -> None:
    bench = Bench()
    bench.backend.does = ()
    bench.open(action="RebootNode")
    await started(bench)
    assert bench.report["state"] == "Failed"
    assert bench.agent.acts == []


@pytest.mark.parametrize("action", ["RepairHardware", "ContactSupport"])
async def test_what_waits_for_third_parties_is_left_to_people_without_a_back_end_for_it(action: str) -> None:
    bench = Bench()
    bench.open(action=action, timeout=14 * 86400)
    again = await bench.shift().look()
    assert bench.report["state"] == "InProgress"
    assert "for people" in bench.report["message"]
    assert again is not None
    assert again >= 60


async def test_the_end_of_an_act_is_kept_until_it_is_on_record() -> None:
    """The report meets a conflict: the act must neither be forgotten nor be done again."""
    bench = Bench()
    bench.backend.keeps_keys = False
    bench.open()
    shift = bench.shift()
    bench.backend.submits = [Permanent("no such instance")]
    bench.wire.refuse = lambda request: 409 if bench.backend.acts and request.method == "PATCH" else 0
    with pytest.raises(Exception, match="refused by the test"):
        await shift.look()
    bench.wire.refuse = lambda request: 0
    await shift.look()
    assert bench.report["state"] == "Failed"
    assert len(bench.backend.acts) == 1


# --- somebody takes over


@pytest.mark.parametrize("keeps", [True, False], ids=["keeps-keys", "no-keys"])
@pytest.mark.parametrize("known", [True, False], ids=["accepted", "never-arrived"])
async def test_a_later_leader_looks_up_what_became_of_a_claim(keeps: bool, known: bool) -> None:
    bench = Bench()
    bench.open()
    bench.backend.keeps_keys = keeps
    await started(bench)
    seen = RUNNING if known else ABSENT if keeps else UNKNOWN
    bench.backend.observations = [seen]
    later = bench.shift()
    await later.look()
    assert bench.report["term"] == 2
    assert len(bench.backend.acts) == 1
    await later.look()
    assert len(bench.backend.acts) == (2 if keeps and not known else 1)
    assert set(bench.backend.sent) == {bench.key}


async def test_a_leader_that_returns_does_not_trust_what_it_knew_in_its_former_term() -> None:
    """Refused in term 1, sent by another in term 2: in term 3 the first leader must look, not send."""
    bench = Bench()
    bench.open()
    bench.backend.keeps_keys = False
    bench.backend.submits = [Transient("busy")]
    await started(bench)
    other = bench.shift()
    bench.backend.observations = [UNKNOWN] * 10
    await other.look()
    assert len(bench.backend.acts) == 1
    back = bench.shift()
    for _ in range(3):
        await back.look()
        await bench.clock.sleep(10)
    assert len(bench.backend.acts) == 1


async def test_a_take_over_whose_answer_is_lost_is_still_a_take_over() -> None:
    """The record carries our term already, but the claim was another's: look before sending."""
    bench = Bench()
    bench.open()
    bench.backend.keeps_keys = False
    await started(bench)
    later = bench.shift()
    bench.wire.lose = lambda request: request.method == "PATCH"
    with pytest.raises(Exception, match="lost"):
        await later.look()
    bench.wire.lose = lambda request: False
    assert bench.report["term"] == 2
    bench.backend.observations = [UNKNOWN] * 5
    await later.look()
    await later.look()
    assert len(bench.backend.acts) == 1


async def test_a_fresh_claim_whose_answer_is_lost_is_acted_on_once() -> None:
    bench = Bench()
    bench.open()
    bench.backend.keeps_keys = False
    shift = bench.shift()
    bench.wire.lose = lambda request: request.method == "PATCH"
    with pytest.raises(Exception, match="lost"):
        await shift.look()
    assert bench.report["state"] == "Claimed"
    bench.wire.lose = lambda request: False
    await shift.look()
    await shift.look()
    assert bench.backend.sent == [bench.key]


async def test_leadership_lost_in_the_middle_of_a_call_leaves_the_rest_to_the_next_leader() -> None:
    bench = Bench()
    bench.open()
    bench.backend.keeps_keys = False
    shift = bench.shift()

    async def lose(act: object) -> None:
        shift.term.end()

    bench.backend.during = lose
    with pytest.raises(NotLeading):
        await shift.look()
    assert bench.report["state"] == "Claimed"  # the late report was not written
    bench.backend.observations = [UNKNOWN] * 5
    later = bench.shift()
    await later.look()
    bench.boots()
    await later.look()
    assert bench.report["state"] == "Done"
    assert len(bench.backend.acts) == 1


async def test_leadership_lost_right_before_a_call_stops_it() -> None:
    bench = Bench()
    bench.open()
    shift = bench.shift()
    patches = 0

    def before(request: object) -> None:
        nonlocal patches
        if "nodes/status" in str(request.url.path) or request.url.path.endswith("/n1/status"):  # type: ignore[attr-defined]
            shift.term.end()

    bench.wire.before = before
    with pytest.raises(NotLeading):
        await shift.look()
    assert bench.backend.acts == []


async def test_a_leader_of_an_earlier_term_keeps_off() -> None:
    bench = Bench()
    bench.open()
    await bench.shift(term=9).look()
    early = bench.shift(term=4)
    assert await early.look() is None
    assert bench.report["term"] == 9
    assert len(bench.backend.acts) == 1


# --- before the act


async def test_a_node_wide_act_shows_as_maintenance_and_a_card_reset_does_not() -> None:
    for action, shown in (("RebootNode", True), ("ResetGPU", False)):
        bench = Bench()
        bench.open(action=action)
        await started(bench)
        types = {c["type"] for c in bench.node()["status"]["conditions"] if c["status"] == "True"}
        assert ("MaintenanceInProgress" in types) is shown


async def test_a_node_that_is_not_empty_is_not_rebooted_without_a_drain_step() -> None:
    bench = Bench()
    bench.open(plan=["Quarantine", "Repair", "Validate", "Unquarantine"])
    bench.store.create(
        "pods",
        {"metadata": {"name": "busy"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}},
        "train",
    )
    shift = bench.shift()
    await shift.look()
    assert bench.backend.acts == []
    assert bench.report["waitsFor"] == "Job"
    assert "train/busy" in bench.report["message"]
    bench.store.delete("pods", "busy", "train", grace=0)
    await shift.look()
    assert len(bench.backend.acts) == 1
    assert bench.report.get("waitsFor", "") == ""


async def test_a_rule_may_allow_acts_on_a_node_that_is_not_empty() -> None:
    bench = Bench()
    bench.open(plan=["Quarantine", "Repair"], Repair={"allowUndrained": True})
    bench.store.create(
        "pods",
        {"metadata": {"name": "busy"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}},
        "train",
    )
    await started(bench)
    assert len(bench.backend.acts) == 1


async def test_a_service_restart_outside_a_quarantine_takes_its_traces_away() -> None:
    bench = Bench()
    bench.store.create("namespaces", {"metadata": {"name": "medik8s-leases"}})
    bench.open(action="RestartService", plan=["Repair"])
    shift = await started(bench)
    maintenance = [c for c in bench.node()["status"]["conditions"] if c["type"] == "MaintenanceInProgress"]
    assert [c["status"] for c in maintenance] == ["True"]
    assert [o["metadata"]["name"] for o in bench.store.list("leases.coordination.k8s.io")] == ["node-n1"]
    bench.agent.observations = [Observation(ActState.DONE, "restarted")]
    await shift.look()
    assert bench.report["state"] == "Done"
    assert [c["type"] for c in bench.node()["status"]["conditions"]] == ["Ready"]
    assert bench.store.list("leases.coordination.k8s.io") == []


async def test_an_accepted_act_is_told_as_an_event() -> None:
    bench = Bench()
    bench.open()
    shift = await started(bench)
    reasons = await shift.events()
    assert reasons == [("RepairInProgress", f"RebootNode accepted by fake, key {bench.key}")]


@pytest.mark.parametrize("begun", [False, True], ids=["nobody-has-begun-it", "begun"])
async def test_a_freeze_takes_back_an_act_that_nobody_has_begun(begun: bool) -> None:
    """An agent that was away must not reboot its node when it comes back under a Hold that freezes everything."""
    bench = Bench()
    bench.open(action="ResetGPU")
    accepted = Observation(ActState.RUNNING, "accepted", begun=begun)
    bench.agent.observations = [accepted, accepted, ABSENT]
    bench.agent.keeps_keys = True
    shift = await started(bench)
    assert bench.agent.sent == [bench.key]
    bench.hold("EveryAct")
    await bench.clock.sleep(10)
    await shift.look()
    assert bench.agent.withdrawn == ([] if begun else [bench.key])
    if begun:
        return
    await bench.clock.sleep(60)
    await shift.look()
    assert bench.agent.sent == [bench.key]
    bench.release()
    bench.agent.observations = [ABSENT]
    await bench.clock.sleep(60)
    await shift.look()
    await bench.clock.sleep(60)
    await shift.look()
    assert bench.agent.sent == [bench.key, bench.key], "the same act, under its key"
