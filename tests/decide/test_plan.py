"""From a fault, its pool and the rule's entry to the plan; which rung is next; which fault leads."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.api.actions import ACTIONS
from sickbay.decide import plan as planning
from sickbay.decide.arbitration import ordered, rank
from sickbay.decide.faults import Active
from sickbay.decide.ladder import next_rung
from tests.decide.made import FULL, fault_type, pool, procedure, record, rule, typed


def active(name="test.reboot", **spec) -> Active:
    return Active(name, typed(fault_type(name, **spec)), None, "cel", "", "", ())


def built(*steps, fault=None, the_pool=None, **gates):
    entry = rule(procedure(*steps, **gates)).spec.rules[0]
    return planning.build(fault or active(), the_pool or pool(), entry, "prefix")


SUBSETS = [subset for n in range(1, 6) for subset in itertools.combinations(FULL, n)]


@pytest.mark.parametrize("subset", SUBSETS, ids="-".join)
def test_a_plan_has_the_steps_of_the_rule_and_a_validation_before_any_return(subset):
    steps = [s.step for s in built(*subset).steps]
    implied = {"Validate"} if {"Unquarantine", "Repair"} & set(subset) else set()
    assert steps == [s for s in FULL if s in set(subset) | implied]


def test_steps_are_put_in_their_order():
    assert [s.step for s in built("Unquarantine", "Quarantine", "Repair", "Drain").steps] == list(FULL)


def test_everything_is_resolved_into_the_plan():
    hooks = [{"name": "h", "call": {"endpoint": "e"}}]
    drain = {"step": "Drain", "timeout": "7m", "onTimeout": "RollBack", "before": hooks, "after": hooks}
    back = {"name": "redfish", "config": {"x": "y"}}
    plan = built("Quarantine", drain, "Repair", the_pool=pool(provider=back), Quarantine={"by": "Jobs"})
    quarantine, drained, repair, _ = plan.steps
    assert quarantine.approval.by == "Jobs"
    assert (drained.timeout, drained.on_timeout, drained.options.scope) == ("7m", "RollBack", "All")
    assert [h.name for h in (*drained.before, *drained.after)] == ["h", "h"]
    assert [r.action for r in repair.ladder] == ["RebootNode", "PowerCycle"]
    assert (repair.action, plan.provider.name, plan.provider.config) == ("RebootNode", "redfish", {"x": "y"})
    assert (plan.approval_prefix, plan.urgency, plan.generation) == ("prefix", "Now", 1)


def test_a_drain_without_settings_has_the_defaults():
    drain = built().steps[1]
    assert (drain.timeout, drain.on_timeout, drain.options.grace.max) == ("30m", "Escalate", "10m")


@pytest.mark.parametrize(
    ("taint", "value"),
    [pytest.param(False, "", id="a-cordon-alone"), pytest.param(True, "GPU", id="and-a-taint-of-the-class")],
)
def test_quarantine_taints_where_the_pool_says_so(taint, value):
    assert built(the_pool=pool(quarantine={"taint": taint})).steps[0].taint == value


def test_the_settings_of_the_rule_go_before_those_of_the_fault_type():
    validation = {"ceiling": "2h", "soak": "0s", "level": 3, "checks": ["nccl"]}
    fault = active(validation=validation)
    own = {"step": "Validate", "ceiling": "5m"}
    step = built("Quarantine", "Repair", own, "Unquarantine", fault=fault).step("Validate")
    assert (step.ceiling, step.soak, step.level, step.checks) == ("5m", "0s", 3, ["nccl"])


def test_an_action_in_the_rule_replaces_the_ladder():
    plan = built({"step": "Repair", "action": "PowerCycle"})
    assert [r.action for r in plan.step("Repair").ladder] == ["PowerCycle"]


@pytest.mark.parametrize("remedy", [["None"], ["RestartApplication"], []])
def test_what_asks_nothing_of_the_node_is_no_rung(remedy):
    plan = built(fault=active(remedy=remedy))
    assert plan.step("Repair").ladder == []
    assert plan.step("Repair").action is None
    assert built({"step": "Repair", "action": "None"}).step("Repair").ladder == []


@pytest.mark.parametrize(
    ("first", "scope"),
    [
        pytest.param("RebootNode", "All", id="the-whole-node-goes-down"),
        pytest.param("ResetGPU", "GPUPods", id="a-card-is-reset"),
        pytest.param("FreezeTime", "GPUPods", id="an-act-of-a-later-version"),
    ],
)
def test_a_drain_of_gpu_pods_is_widened_for_an_act_on_the_whole_node(first, scope):
    drain = {"step": "Drain", "options": {"scope": "GPUPods", "grace": {"max": "3m"}}}
    options = built("Quarantine", drain, "Repair", fault=active(remedy=[first])).step("Drain").options
    assert (options.scope, options.grace.max) == (scope, "3m")


@pytest.mark.parametrize(
    ("last", "ceiling", "soak"),
    [
        pytest.param("RestartService", "10m", "1m", id="service"),
        pytest.param("ResetGPU", "20m", "5m", id="reset"),
        pytest.param("RebootNode", "30m", "5m", id="reboot"),
        pytest.param("PowerCycle", "40m", "10m", id="power-cycle"),
        pytest.param("RepairHardware", "1d", "30m", id="hardware"),
        pytest.param("", "30m", "5m", id="nothing-was-done"),
    ],
)
def test_how_long_validate_may_take_follows_the_act(last, ceiling, soak):
    assert planning.validation_times(built(), last) == (ceiling, soak)


# --- a node-wide act


@pytest.mark.parametrize("action", sorted(ACTIONS))
def test_steps_are_added_before_disruptive_acts_on_the_whole_node_alone(action):
    plan = built("Repair")
    grown = planning.with_empty_node(plan, action)
    if ACTIONS[action].node_wide and ACTIONS[action].disruptive:
        assert [s.step for s in grown.steps] == list(FULL)
        assert grown.generation == 2
        assert (grown.step("Quarantine").approval.by, grown.step("Drain").approval) == ("People", None)
        assert grown.step("Drain").on_timeout == "Escalate"
    else:
        assert grown is plan


def test_a_plan_that_has_them_all_stays_as_it_is():
    plan = built()
    assert planning.with_empty_node(plan, "RebootNode") is plan


def test_only_the_missing_ones_are_added():
    grown = planning.with_empty_node(built("Quarantine", "Repair"), "RebootNode")
    assert [s.step for s in grown.steps] == ["Quarantine", "Drain", "Repair", "Validate"]
    assert grown.step("Quarantine").approval is None
    assert grown.step("Drain").approval.by == "People"


def test_a_first_rung_adds_nothing_of_its_own():
    """Without a Drain step the owner empties the node: execute waits for that."""
    plan = built("Repair")
    assert planning.with_empty_node(plan, "RebootNode", climbed=False) is plan


def test_the_rungs_that_were_tried_are_not_tried_again():
    fault = active(remedy=["RestartService", "ResetGPU", "RebootNode", "PowerCycle"])
    grown = planning.with_empty_node(built("Repair", fault=fault), "RebootNode")
    assert [r.action for r in grown.step("Repair").ladder] == ["RebootNode", "PowerCycle"]


# --- the ladder


def tried(*attempts, ladder, generation=1):
    return record(
        spec={"plan": {"generation": generation, "steps": [{"step": "Repair", "ladder": ladder}]}},
        status={"steps": {"Repair": {"attempts": [{"action": a, "planGeneration": g} for a, g in attempts]}}},
    )


TWICE = [{"action": "RebootNode", "attempts": 2}, {"action": "PowerCycle"}]


@pytest.mark.parametrize(
    ("attempts", "following"),
    [
        pytest.param([], "RebootNode", id="the-first"),
        pytest.param([("RebootNode", 1)], "RebootNode", id="once-of-twice"),
        pytest.param([("RebootNode", 1)] * 2, "PowerCycle", id="twice-of-twice"),
        pytest.param([("RebootNode", 1)] * 2 + [("PowerCycle", 1)], None, id="used-up"),
        pytest.param([("RebootNode", 0)] * 15, "RebootNode", id="the-last-that-is-made"),
        pytest.param([("RebootNode", 0)] * 16, None, id="no-more-than-are-counted"),
        pytest.param([("RebootNode", 0)] * 5, "RebootNode", id="another-plan's-attempts-do-not-count"),
    ],
)
def test_the_next_rung_is_the_first_with_attempts_left(attempts, following):
    rung = next_rung(tried(*attempts, ladder=TWICE))
    assert (rung.action if rung is not None else None) == following


def test_a_rung_that_comes_twice_is_tried_in_both_places():
    ladder = [{"action": "ResetGPU"}, {"action": "RebootNode"}, {"action": "ResetGPU"}]
    attempts = [("ResetGPU", 1), ("RebootNode", 1)]
    assert next_rung(tried(*attempts, ladder=ladder)).action == "ResetGPU"
    assert next_rung(tried(*attempts, ("ResetGPU", 1), ladder=ladder)) is None


def test_attempts_of_nought_are_one():
    assert next_rung(tried(ladder=[{"action": "RebootNode", "attempts": 0}])).action == "RebootNode"


def test_a_plan_without_repair_has_no_rung():
    assert next_rung(record(spec={"plan": {"steps": [{"step": "Quarantine"}]}})) is None


# --- arbitration

FAULTS = st.builds(
    lambda n, c, s, r: active(f"test.f{n}", class_=c, severity=s, remedy=r),
    st.integers(0, 50),
    st.sampled_from(["Node", "GPU", "System", "Later"]),
    st.sampled_from(["Info", "Warning", "Error", "Critical", "Later"]),
    st.lists(st.sampled_from(sorted(ACTIONS)), max_size=2),
)


@given(st.lists(FAULTS, max_size=6, unique_by=lambda a: a.name), st.randoms(use_true_random=False))
def test_the_order_of_faults_does_not_depend_on_their_arrival(faults, rnd):
    shuffled = list(faults)
    rnd.shuffle(shuffled)
    assert ordered(shuffled) == ordered(faults)


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        pytest.param(
            {"class_": "GPU", "severity": "Critical", "remedy": ["ReplaceNode"]},
            {"class_": "Node", "severity": "Info", "remedy": []},
            id="class-before-severity",
        ),
        pytest.param({"class_": "System"}, {"class_": "GPU"}, id="GPU-before-System"),
        pytest.param(
            {"severity": "Warning", "remedy": ["ReplaceNode"]},
            {"severity": "Error", "remedy": ["ResetGPU"]},
            id="severity-before-strength",
        ),
        pytest.param({"remedy": ["ResetGPU"]}, {"remedy": ["RebootNode"]}, id="the-stronger-remedy"),
        pytest.param({"remedy": []}, {"remedy": ["RestartService"]}, id="any-remedy-before-none"),
        pytest.param({"class_": "Later", "severity": "Critical"}, {"class_": "System"}, id="an-unknown-class-is-last"),
    ],
)
def test_which_fault_leads(weaker, stronger):
    a, b = active("test.a", **weaker), active("test.b", **stronger)
    assert rank(a.type) < rank(b.type)
    assert [f.name for f in ordered([a, b])] == ["test.b", "test.a"]


def test_equal_faults_are_ordered_by_name():
    assert [f.name for f in ordered([active("test.b"), active("test.a")])] == ["test.a", "test.b"]
