"""Whether a sick node gets a repair, and what the record begins with."""

from __future__ import annotations

import msgspec
import pytest

from sickbay.clock import rfc3339
from sickbay.decide.faults import active_faults
from sickbay.decide.opening import NEVER, joining, observes_type, open_repair
from tests.decide.made import (
    PREFIX,
    START,
    at,
    catalogue,
    fault_type,
    hours,
    minutes,
    node,
    pool,
    procedure,
    record,
    rule,
    typed,
)

MODES = {"Act": False, "Observe": True}


def opened(the_node, *, types=(), the_pool=None, the_rule=None, past=(), seen=None, prefix=PREFIX, now=0.0):
    """What decide does about this node now; every fault has been seen since second 0 unless said otherwise."""
    active = active_faults(the_node, catalogue(*types))
    since = {a.name: START for a in active} if seen is None else {name: at(s) for name, s in seen.items()}
    return open_repair(
        the_node, active, the_pool or pool(), the_rule or rule(), list(past), since, prefix, "1.2.3", at(now)
    )


def ended(outcome, *faults, end=0.0, n=1, acted=(), uid="uid-n1", cleared=True, identity=0, phase="", **fields):
    """An ended record. `identity` is the second since which its faults' conditions were True."""
    phases = {"Denied": "Cancelled", "CancelledByPerson": "Cancelled", "SelfRecovered": "Cancelled", "GaveUp": "Failed"}
    listed = [
        {
            "type": name,
            "source": {"kind": "Condition", "id": f"condition/{_camel(name)}@{rfc3339(at(identity))}"},
            "bootID": "boot-1",
            "clearedAt": rfc3339(at(end)) if cleared else None,
            **fields,
        }
        for name in faults or ("test.reboot",)
    ]
    steps = {"Repair": {"attempts": [{"n": i + 1, "action": a, "state": "Done"} for i, a in enumerate(acted)]}}
    return record(
        metadata={"name": f"n1-{n}", "uid": f"uid-{n}"},
        spec={
            "node": {"name": "n1", "uid": uid, "bootID": "boot-1"},
            "pool": {"name": "train", "uid": pool().metadata.uid},
            "faults": listed,
        },
        status={
            "phase": phase or phases.get(outcome, "Succeeded"),
            "outcome": outcome,
            "endedAt": rfc3339(at(end)),
            "steps": steps,
        },
    )


def _camel(name):
    return "".join(word.capitalize() for word in name.split("."))


SICK = node(faults=["test.reboot"])


def test_a_sick_node_gets_a_record_bound_to_what_it_is_now():
    made = opened(node(faults=["test.reboot", "test.service"])).repair
    assert made is not None
    spec = made.spec
    assert (spec.node.name, spec.node.uid, spec.node.boot_id) == ("n1", "uid-n1", "boot-1")
    assert spec.node.provider_id == "fake:///n1/1"
    assert (spec.pool.name, spec.pool.uid, spec.rule.uid, spec.rule.entry) == (
        "train",
        "uid-train",
        "uid-standard",
        "all",
    )
    assert spec.catalogue == "1.2.3"
    assert [f.type for f in spec.faults] == ["test.reboot", "test.service"]
    assert spec.faults[0].boot_id == "boot-1"
    assert spec.plan.approval_prefix == PREFIX
    assert made.metadata.finalizers == ["sickbay.dev/finalizer"]
    assert made.metadata.owner_references == []


def test_a_well_node_gets_none():
    assert opened(node()).repair is None


@pytest.mark.case("P069")
def test_faults_that_ask_nothing_of_the_node_open_nothing():
    assert opened(node(faults=["test.noted"])).repair is None


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["n1-{}-1"], "-2", id="one-more-than-the-last"),
        pytest.param(["n1-{}-1", "n1-{}-9", "n1-{}-10"], "-11", id="as-numbers-not-as-text"),
        pytest.param(["n1-{}-2", "n1-{}-x"], "-3", id="names-by-hand-do-not-count"),
        pytest.param([], "-1", id="the-first"),
    ],
)
def test_records_are_numbered(names, expected):
    stem = opened(SICK).repair.metadata.name.removeprefix("n1-").removesuffix("-1")
    past = [record(metadata={"name": n.format(stem)}, spec={"node": {"name": "n1", "uid": "other"}}) for n in names]
    assert opened(SICK, past=past).repair.metadata.name.endswith(expected)


# --- hands off


@pytest.mark.parametrize(
    ("the_node", "the_pool", "opens"),
    [
        pytest.param(node(faults=["test.reboot"], labels={"x": "y"}), pool(), True, id="an-ordinary-node"),
        *(
            pytest.param(
                node(faults=["test.reboot"], labels={"remediation.medik8s.io/exclude-from-remediation": value}),
                pool(),
                value != "true",
                id=f"opt-out-{value or 'empty'}",
            )
            for value in ("true", "True", "false", "yes", "")
        ),
        pytest.param(
            node(faults=["test.reboot"], labels={"node-role.kubernetes.io/control-plane": ""}),
            pool(),
            False,
            id="a-control-plane-node",
        ),
        pytest.param(
            node(faults=["test.reboot"], labels={"node-role.kubernetes.io/control-plane": ""}),
            pool(allowControlPlane=True),
            True,
            id="a-control-plane-node-in-a-pool-that-allows-it",
        ),
        pytest.param(node(faults=["test.reboot"], deleting=True), pool(), False, id="a-node-that-is-being-deleted"),
        *(
            pytest.param(node(faults=["test.reboot"], taints=[taint]), pool(), False, id=taint)
            for taint in (
                "ToBeDeletedByClusterAutoscaler",
                "karpenter.sh/disrupted",
                "node.cloudprovider.kubernetes.io/shutdown",
            )
        ),
        pytest.param(node(faults=["test.reboot"], taints=["example.com/x"]), pool(), True, id="a-foreign-taint"),
        pytest.param(node(faults=["test.reboot"], unschedulable=True), pool(), True, id="cordoned-by-somebody"),
    ],
)
@pytest.mark.case("R43")
@pytest.mark.case("P094")
def test_on_some_nodes_nothing_is_begun(the_node, the_pool, opens):
    result = opened(the_node, the_pool=the_pool)
    assert (result.repair is not None) is opens
    assert bool(result.why) is not opens


def test_an_approval_prefix_that_nobody_configured_opens_nothing_and_is_named():
    result = opened(SICK, the_rule=rule(approvalPrefix="ours"), prefix="")
    assert result.repair is None
    assert "'ours'" in result.why


@pytest.mark.parametrize(
    ("entries", "entry"),
    [
        pytest.param([({"classes": ["Node"]}, "a"), ({"classes": ["GPU"]}, "b"), ({}, "c")], "b", id="the-first-match"),
        pytest.param([({"names": ["test.reboot"], "severities": ["Info"]}, "a"), ({}, "b")], "b", id="all-keys-must"),
        pytest.param([({"labels": {"x": "1"}}, "a")], None, id="no-entry-no-repair"),
    ],
)
def test_the_first_entry_that_matches_is_used(entries, entry):
    listed = [{"name": name, "faults": faults, "procedure": procedure()} for faults, name in entries]
    made = opened(SICK, the_rule=rule(entries=listed)).repair
    assert (made.spec.rule.entry if made is not None else None) == entry


# --- mode


@pytest.mark.parametrize(
    ("mode", "overrides", "observed"),
    [
        pytest.param("Observe", [], True, id="the-pool-observes"),
        pytest.param("Act", [], False, id="the-pool-acts"),
        pytest.param("Later", [], True, id="a-mode-of-a-later-version-observes"),
        pytest.param("Observe", [("test.reboot", "Act")], False, id="an-override-acts"),
        pytest.param("Act", [("test.reboot", "Observe")], True, id="an-override-observes"),
        pytest.param("Act", [("test.other", "Observe")], False, id="an-override-for-another-fault"),
        pytest.param("Act", [("test.reboot", "Observe"), ("test.reboot", "Act")], True, id="the-first-override-wins"),
        pytest.param("Act", [("test.reboot", "Later")], True, id="an-override-of-a-later-version-observes"),
    ],
)
def test_the_mode_of_a_fault(mode, overrides, observed):
    listed = [{"faults": {"names": [name]}, "mode": m} for name, m in overrides]
    assert observes_type(pool(mode=mode, overrides=listed), "test.reboot", typed(fault_type())) is observed


def test_for_a_type_that_nobody_knows_any_more_the_pool_decides():
    override = [{"faults": {"classes": ["GPU"]}, "mode": "Act"}]
    assert observes_type(pool(mode="Observe", overrides=override), "test.gone", None) is True


def test_an_observed_fault_neither_leads_nor_joins_one_that_is_treated():
    staged = pool(overrides=[{"faults": {"names": ["test.node"]}, "mode": "Observe"}])
    made = opened(node(faults=["test.node", "test.service"]), the_pool=staged).repair
    assert [f.type for f in made.spec.faults] == ["test.service"]
    alone = opened(node(faults=["test.node"]), the_pool=staged).repair
    assert [f.type for f in alone.spec.faults] == ["test.node"]


# --- for


@pytest.mark.parametrize(
    ("hold", "now", "opens", "again"),
    [
        pytest.param("90s", 0, False, 90, id="a-short-for-is-waited-out-before"),
        pytest.param("90s", 90, True, None, id="a-short-for-is-over"),
        pytest.param("2m", 119, False, 120, id="two-minutes-are-short"),
        pytest.param("121s", 0, True, None, id="a-longer-for-opens-at-first-sight-as-its-timer"),
        pytest.param("0s", 0, True, None, id="none"),
    ],
)
def test_a_fault_has_to_last(hold, now, opens, again):
    result = opened(node(faults=["test.timed"]), types=(fault_type("test.timed", for_=hold),), now=now)
    assert (result.repair is not None) is opens
    assert result.again == (at(again) if again is not None else None)


@pytest.mark.case("R40")
@pytest.mark.parametrize("ahead", [600, -600], ids=["ten-minutes-ahead", "ten-minutes-behind"])
def test_the_clock_of_the_node_makes_nothing_early_or_late(ahead):
    skewed = node(faults={"test.timed": ("True", ahead)})
    types = (fault_type("test.timed", for_="90s"),)
    assert opened(skewed, types=types, now=89).again == at(90)
    assert opened(skewed, types=types, now=90).repair is not None


def test_a_short_for_is_not_waited_out_twice():
    made = opened(node(faults=["test.timed"]), types=(fault_type("test.timed", for_="90s"),), now=90).repair
    assert made.spec.faults[0].first_seen == rfc3339(START)


def test_a_fault_that_lasts_leads_before_a_stronger_one_that_does_not_yet():
    types = (fault_type("test.timed", for_="10m", class_="Node"),)
    made = opened(node(faults=["test.timed", "test.service"]), types=types).repair
    assert [f.type for f in made.spec.faults] == ["test.service", "test.timed"]


def test_the_soonest_of_several_waits_is_when_to_look_again():
    types = (fault_type("test.a", for_="90s"), fault_type("test.b", for_="60s"))
    assert opened(node(faults=["test.a", "test.b"]), types=types).again == at(60)


# --- what was before


@pytest.mark.case("P063")
@pytest.mark.parametrize("outcome", ["Repaired", "SelfRecovered"])
def test_evidence_that_was_judged_and_cleared_starts_nothing_again(outcome):
    result = opened(node(faults=["test.reboot"], boot="boot-2"), past=[ended(outcome, end=100)], now=hours(100))
    assert (result.repair, result.again) == (None, NEVER)


@pytest.mark.parametrize("outcome", ["Repaired", "SelfRecovered"])
def test_evidence_that_was_never_cleared_does(outcome):
    assert opened(SICK, past=[ended(outcome, end=100, cleared=False)], now=200).repair is not None


@pytest.mark.parametrize("outcome", ["Repaired", "SelfRecovered", "Observed", "NodeGone"])
def test_new_evidence_starts_a_repair(outcome):
    again = node(faults={"test.reboot": ("True", 500)})
    assert opened(again, past=[ended(outcome, end=100)], now=600).repair is not None


def test_the_past_of_another_node_of_the_same_name_does_not_count():
    past = [ended("CancelledByPerson", uid="uid-old", cleared=False, end=10)]
    assert opened(SICK, past=past, now=20).repair is not None


@pytest.mark.case("P082")
@pytest.mark.parametrize("outcome", ["CancelledByPerson", "Denied"])
@pytest.mark.parametrize(
    ("the_node", "cleared", "now", "opens"),
    [
        pytest.param(SICK, False, hours(23), False, id="the-same-fault"),
        pytest.param(SICK, False, hours(24), True, id="the-hold-is-over"),
        pytest.param(SICK, True, hours(1), True, id="it-had-cleared"),
        pytest.param(
            node(faults={"test.reboot": ("True", 500)}), False, hours(1), False, id="only-its-time-is-another-one"
        ),
        pytest.param(node(faults=["test.reboot"], boot="boot-2"), False, hours(1), True, id="another-boot"),
        pytest.param(node(faults=["test.node"]), False, hours(1), True, id="another-fault"),
    ],
)
def test_what_a_person_stopped_stays_stopped(outcome, the_node, cleared, now, opens):
    result = opened(the_node, past=[ended(outcome, cleared=cleared)], now=now)
    assert (result.repair is not None) is opens
    if not opens:
        assert result.again == at(hours(24))


def test_how_long_a_persons_word_holds_is_the_pools():
    past = [ended("Denied", cleared=False)]
    assert opened(SICK, past=past, the_pool=pool(cancelHold="1h"), now=hours(1) - 1).repair is None
    assert opened(SICK, past=past, the_pool=pool(cancelHold="1h"), now=hours(1)).repair is not None


def test_another_device_is_another_matter():
    def with_device(uuid):
        devices = f'[{{"uuid":"{uuid}","faults":["test.reboot"]}}]'
        return node(faults=["test.reboot"], annotations={"sickbay.dev/devices": devices})

    past = [ended("CancelledByPerson", cleared=False, devices=["GPU-1"])]
    assert opened(with_device("GPU-1"), past=past, now=60).repair is None
    assert opened(with_device("GPU-2"), past=past, now=60).repair is not None


def test_a_reboot_of_ours_that_was_under_way_does_not_lift_a_persons_word():
    cancelled = ended("CancelledByPerson", cleared=False, acted=["RebootNode"])
    cancelled.status.steps["Repair"].attempts[0].state = "Cancelled"
    rebooted = node(faults=["test.reboot"], boot="boot-2")
    assert opened(rebooted, past=[cancelled], now=600).repair is None


def test_after_a_persons_word_the_next_repair_asks_before_its_first_step():
    made = opened(SICK, past=[ended("CancelledByPerson", cleared=False)], now=hours(25)).repair
    first, *rest = made.spec.plan.steps
    assert (first.step, first.approval.by) == ("Quarantine", "People")
    assert all(step.approval is None for step in rest)
    assert opened(SICK).repair.spec.plan.steps[0].approval is None


def test_a_later_word_of_a_person_takes_it_back():
    cancelled = ended("CancelledByPerson", cleared=False, end=10)
    word = '{"outcome": "Repaired", "at": "2027-03-01T09:00:00Z"}'
    cancelled.metadata = _annotated(cancelled.metadata, {"sickbay.dev/resolve": word})
    assert opened(SICK, past=[cancelled], now=hours(1)).repair is not None


def _annotated(meta, annotations):
    return msgspec.structs.replace(meta, annotations=annotations)


def left(back):
    repair = ended("LeftQuarantined", cleared=False)
    steps = {"Quarantine": {"state": "Done"}, "Unquarantine": {"state": back, "finished": rfc3339(at(50))}}
    repair.status.steps |= record(status={"steps": steps}).status.steps
    return repair


def test_a_node_left_in_quarantine_is_not_taken_out_again_and_again():
    assert opened(SICK, past=[left("")], now=hours(100)).repair is None
    assert opened(SICK, past=[left("Running")], now=hours(100)).repair is None


def test_a_node_that_a_person_took_back_from_quarantine_is_left_to_that_person():
    assert opened(SICK, past=[left("Done")], now=hours(24)).repair is None
    assert opened(SICK, past=[left("Done")], now=hours(24) + 50).repair is not None


@pytest.mark.parametrize(
    ("times", "pause"),
    [(1, 30), (2, 60), (3, 120), (6, 960), (7, 1440), (40, 1440)],
    ids=lambda v: str(v),
)
def test_a_rolled_back_repair_opens_again_after_a_pause_that_doubles_up_to_a_day(times, pause):
    past = [ended("GaveUp", end=0, n=n, cleared=False) for n in range(1, times + 1)]
    assert opened(SICK, past=past, now=minutes(pause) - 1).again == at(minutes(pause))
    assert opened(SICK, past=past, now=minutes(pause)).repair is not None


def test_the_pause_begins_anew_after_a_success_and_for_another_fault():
    past = [ended("GaveUp", end=n, n=n, cleared=False) for n in (1, 2, 3)]
    past += [ended("Repaired", end=4, n=4), ended("GaveUp", end=5, n=5, cleared=False)]
    again = node(faults={"test.reboot": ("True", 4)})
    assert opened(again, past=past, now=6).again == at(5 + minutes(30))
    assert opened(node(faults=["test.service"]), past=past, now=6).repair is not None


@pytest.mark.case("P058")
def test_a_node_rests_between_two_repairs():
    rests = pool(budgets={"perNode": {"cooldown": "10m"}})
    past = [ended("Repaired", end=0, acted=["RebootNode"])]
    again = node(faults={"test.service": ("True", 45)})
    assert opened(again, the_pool=rests, past=past, now=45).again == at(600)
    assert opened(again, the_pool=rests, past=past, now=600).repair is not None
    idle = [ended("SelfRecovered", end=0)]
    assert opened(again, the_pool=rests, past=idle, now=45).repair is not None


# --- joining


def test_only_what_may_be_treated_now_joins_an_open_repair():
    types = (fault_type("test.timed", for_="10m"),)
    staged = pool(overrides=[{"faults": {"names": ["test.service"]}, "mode": "Observe"}])
    the_node = node(faults=["test.reboot", "test.timed", "test.service", "test.node", "test.noted"])
    active = active_faults(the_node, catalogue(*types))
    history = [ended("CancelledByPerson", "test.node", cleared=False)]
    seen = {a.name: START for a in active}
    joins = joining(the_node, active, staged, rule(), history, seen, at(60))
    assert joins == ({"test.reboot"}, {"test.service"})
    later = joining(the_node, active, staged, rule(), history, seen, at(600))
    assert later == ({"test.reboot", "test.timed"}, {"test.service"})
    returning = joining(the_node, active, staged, rule(), history, seen, at(60), returning=True)
    assert returning == later, "on its way back a node is not well with a fault, however young"
