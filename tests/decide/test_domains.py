"""Failure domains: who belongs together, when only the sick are repaired, what never fits, and which domain is next."""

from __future__ import annotations

import re

import pytest

from sickbay.decide import domains, pacing, slots
from sickbay.decide.faults import Active
from sickbay.decide.slots import PoolView
from tests.decide.made import fault_type, node, pool, record, typed

RACK = "sickbay.dev/rack"


def rack(count=4, value="r1", prefix="n", **each):
    return [node(f"{prefix}{i}", labels={RACK: value}, **each) for i in range(count)]


def membership(nodes, affected=("n0",), **settings):
    made = pool(domains=[{"key": RACK, **settings}]).spec.domains[0] if settings else None
    return domains.Membership(RACK, "r1", nodes, frozenset(affected), made)


# --- a group, or the sick ones alone


@pytest.mark.parametrize(
    ("nodes", "affected", "settings", "alone"),
    [
        pytest.param(rack(), ["n0"], {}, False, id="nothing-said-all-are-needed"),
        pytest.param(rack(), ["n0"], {"size": 4}, False, id="only-the-size-said"),
        pytest.param(rack(), ["n0"], {"minUsable": 3}, True, id="three-of-four-are-left"),
        pytest.param(rack(), ["n0", "n1"], {"minUsable": 3}, False, id="two-of-four-are-left"),
        pytest.param([*rack(3), node("n3", labels={RACK: "r1"}, ready=False)], ["n0"], {"minUsable": 3}, False,
                     id="one-that-is-down-is-not-usable"),
        pytest.param([*rack(3), node("n3", labels={RACK: "r1"}, unschedulable=True)], ["n0"], {"minUsable": 3}, False,
                     id="nor-one-that-somebody-cordoned"),
        pytest.param(rack(3), ["n0"], {"size": 4, "minUsable": 3}, False, id="a-missing-member-is-not-usable"),
        pytest.param(rack(), ["n0", "n1", "n2", "n3"], {"minUsable": 0}, True, id="none-has-to-be-left"),
    ],
)  # fmt: skip
def test_only_the_sick_are_repaired_while_enough_stay_usable(nodes, affected, settings, alone):
    assert bool(domains.alone(membership(nodes, affected, **settings))) is alone


def draft(*ladder, name="n0-aaaa-1"):
    steps = [{"step": "Quarantine"}, {"step": "Drain"}, {"step": "Repair", "ladder": [{"action": a} for a in ladder]}]
    fault = {"type": "test.rack", "firstSeen": "2027-03-01T08:00:00Z", "source": {"kind": "Condition", "id": "c@t"}}
    spec = {"node": {"name": "n0", "uid": "uid-n0"}, "plan": {"generation": 1, "reason": "why", "steps": steps}}
    return record(metadata={"name": name}, spec={**spec, "faults": [fault]})


def rungs(plan):
    return [rung.action for rung in plan.step("Repair").ladder]


def test_alone_no_domain_is_taken_down():
    plan = domains.on_its_own(draft("RecoverDomain", "RebootNode", "RepairHardware").spec.plan, "three are left")
    assert rungs(plan) == ["RebootNode", "RepairHardware"]
    assert plan.step("Repair").action == "RebootNode"
    assert "three are left" in plan.reason


def test_a_fault_whose_only_remedies_are_a_domains_goes_to_people():
    step = domains.on_its_own(draft("RecoverDomain").spec.plan, "three are left").step("Repair")
    assert (step.ladder, step.action, step.needs) == ([], None, "RepairFailed")


def test_a_plan_without_acts_on_a_domain_stays_as_it_is():
    plan = draft("RebootNode").spec.plan
    assert domains.single(plan) is plan


# --- the records of a group


def test_the_leader_names_all_members_and_no_two_groups_have_one_id():
    first = domains.led(draft("RecoverDomain"), membership(rack()))
    second = domains.led(draft("RecoverDomain", name="n0-aaaa-2"), membership(rack()))
    assert first.spec.group.members == ["n0", "n1", "n2", "n3"]
    assert first.spec.group.leader == "n0-aaaa-1"
    assert first.spec.group.id.startswith("r1-")
    assert first.spec.group.id != second.spec.group.id


@pytest.mark.parametrize("value", ["Rack/17 (hall 3)", "x" * 63, "----", "r1"])
def test_the_id_is_a_dns_label_whatever_the_label_says(value):
    made = domains.led(draft("RecoverDomain"), domains.Membership(RACK, value, rack(), frozenset()))
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", made.spec.group.id)


def test_another_member_follows_the_same_plan_under_its_own_pool():
    leader = domains.led(draft("RecoverDomain"), membership(rack()))
    own = pool("other", provider={"name": "redfish"})
    made = domains.member(leader, rack()[2], own, [], "n2-aaaa-1")
    assert (made.spec.node.name, made.spec.pool.name, made.spec.group) == ("n2", "other", leader.spec.group)
    assert rungs(made.spec.plan) == ["RecoverDomain"]
    assert made.spec.plan.provider.name == "redfish"
    assert made.spec.faults[0].source.kind == "Group"


@pytest.mark.parametrize(
    ("repair", "joins"),
    [
        pytest.param({}, True, id="nothing-has-begun"),
        pytest.param({"status": {"steps": {"Quarantine": {"started": "2027-03-01T08:00:00Z"}}}}, False, id="begun"),
        pytest.param({"status": {"phase": "Succeeded"}}, False, id="over"),
        pytest.param({"spec": {"group": {"id": "older"}}, "at": "2027-03-01T07:00:00Z"}, False, id="of-an-older-group"),
        pytest.param({"spec": {"group": {"id": "young"}}, "at": "2027-03-01T09:00:00Z"}, True, id="of-a-younger-group"),
    ],
)
def test_which_open_repair_becomes_part_of_a_group(repair, joins):
    leader = record(metadata={"creationTimestamp": "2027-03-01T08:00:00Z"}, spec={"group": {"id": "mine"}})
    meta = {"creationTimestamp": repair.pop("at", "2027-03-01T08:00:00Z")}
    assert domains.joins(record(metadata=meta, **repair), leader) is joins


# --- what never fits


def views(**limits):
    def view(found):
        return PoolView(found, 20, domain=lambda _key, _value: frozenset(n.name for n in rack()))

    return view, pool(**limits)


@pytest.mark.parametrize(
    ("limits", "nodes", "size", "why"),
    [
        pytest.param({"maxUnavailable": 4}, rack(), 0, "", id="it-fits"),
        pytest.param({"maxUnavailable": 3}, rack(), 0, "maxUnavailable of pool train is 3", id="the-pools-limit"),
        pytest.param({"maxUnavailable": "15%"}, rack(), 0, "maxUnavailable of pool train is 3", id="as-a-share"),
        pytest.param({"maxUnavailable": 3}, [*rack(3), node("n9", ready=False)], 0, "", id="one-offers-nothing-anyway"),
        pytest.param({"maxUnavailable": 9, "domains": [{"key": RACK, "maxUnavailable": 2}]}, rack(), 0,
                     "domains[].maxUnavailable", id="the-domains-limit"),
        pytest.param({"maxUnavailable": 9}, rack(), 3, "domains[].size is 3", id="more-than-there-should-be"),
        pytest.param({"maxUnavailable": "100%"}, rack(300), 0, "at most 256", id="more-than-a-record-holds"),
    ],
)  # fmt: skip
def test_a_limit_that_no_group_can_pass_is_named(limits, nodes, size, why):
    view, found = views(**limits)
    said = domains.misfit(nodes, size, lambda _: (found, []), view, lambda _: False)
    assert why in said
    assert bool(said) is bool(why)


def test_a_member_that_nobody_may_take_out_is_named():
    view, found = views(maxUnavailable=9)
    said = domains.misfit(rack(), 0, lambda n: (None if n.name == "n2" else found, []), view, lambda _: False)
    assert "n2 is in no pool with a rule" in said
    assert "only observes" in domains.misfit(rack(), 0, lambda _: (found, []), view, lambda _: True)


def test_an_envelope_is_a_limit_too():
    view, found = views(maxUnavailable=9)
    site = pool("site", rule=None, maxUnavailable=1)
    assert "pool site" in domains.misfit(rack(), 0, lambda _: (found, [site]), view, lambda _: False)


# --- limits and pacing per domain


def paced(out=(), moving=(), begun="", **settings):
    """Racks r1 (n0 to n3) and r2 (m0 to m3) under these settings."""
    all_ = {n.name: n for n in [*rack(), *rack(prefix="m", value="r2")]}
    members = {"r1": frozenset(n for n in all_ if n[0] == "n"), "r2": frozenset(n for n in all_ if n[0] == "m")}
    return PoolView(
        pool(domains=[{"key": RACK, **settings}]), 8, frozenset(out), lambda _key, value: members[value],
        {name: all_[name].labels for name in moving}, begun={RACK: begun} if begun else {},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("view", "admitted"),
    [
        pytest.param(paced(), True, id="no-limit"),
        pytest.param(paced(out=["n1", "n2"]), True, id="nor-one-when-others-are-out"),
        pytest.param(paced(out=["n1"], maxUnavailable=2), True, id="room"),
        pytest.param(paced(out=["n1", "n2"], maxUnavailable=2), False, id="full"),
        pytest.param(paced(out=["m1", "m2"], maxUnavailable=2), True, id="another-domain-is-full"),
        pytest.param(paced(out=["n1"], maxUnavailable="50%"), True, id="half-of-four-are-two"),
        pytest.param(paced(out=["n1", "n2"], maxUnavailable="50%"), False, id="and-not-three"),
        pytest.param(paced(maxUnavailable="1%"), True, id="a-share-is-at-least-one"),
        pytest.param(paced(out=["n1"], maxUnavailable="30%", size=10), True, id="a-share-of-the-size"),
        pytest.param(paced(out=["n0", "n1", "n2"], maxUnavailable=1), True, id="a-node-that-is-out-anyway"),
        pytest.param(paced(moving=["m0"], maxUnavailable=2), False, id="spread-another-domain-is-at-it"),
        pytest.param(paced(moving=["n1"], maxUnavailable=2), True, id="spread-its-own-is"),
        pytest.param(paced(moving=["m0"]), True, id="spread-without-a-step"),
        pytest.param(paced(moving=["m0"], pacing="Pack"), False, id="pack-another-domain-is-at-it"),
        pytest.param(paced(begun="r2", pacing="Pack"), False, id="pack-another-domain-is-not-finished"),
        pytest.param(paced(begun="r1", pacing="Pack"), True, id="pack-its-own-is-not"),
        pytest.param(paced(begun="r2", maxUnavailable=2), True, id="spread-may-go-on-anywhere"),
    ],
)
def test_who_may_leave_its_domain(view, admitted):
    assert (pacing.refusal(view, [rack()[0]]) == "") is admitted


def test_a_node_without_the_label_is_bound_by_no_domain():
    assert pacing.refusal(paced(moving=["m0"], maxUnavailable=1), [node("n9")]) == ""


def test_a_group_is_refused_as_a_whole():
    full = PoolView(pool(maxUnavailable=4), 20, frozenset({"x"}))
    assert slots.refusal(full, rack(), "Unavailable") != ""
    assert slots.refusal(full, rack(3), "Unavailable") == ""


def test_a_fault_of_a_domain_is_counted_by_the_domain():
    kind = typed(fault_type("test.rack", scope="Domain", domain=RACK))
    active = Active("test.rack", kind, None, "cel", "", "", ())
    assert domains.onset_key(active, {}) == ""
    assert domains.onset_key(active, {RACK: "r1"}) == f"{RACK}=r1"
