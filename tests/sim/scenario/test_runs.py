"""Running scenarios: when things happen, what counts as fulfilled, and what expressions see.

No component of ours runs here: the subject is the runner itself.
"""

from __future__ import annotations

import pytest

from sickbay.sim.scenario.document import BadFileError
from sickbay.sim.scenario.runner import Result, run
from sickbay.sim.scenario.spec import read

HEAD = """apiVersion: test.sickbay.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
  until: 10m
  components: []
  fleet: [{pool: train, nodes: 2}]
"""


def play(spec: str, head: str = HEAD) -> Result:
    (scenario,) = read("f.yaml", head + "".join(f"  {line}\n" for line in spec.splitlines()))
    return run(scenario)


def verdicts(spec: str) -> list[bool]:
    return [outcome.ok for outcome in play(spec).outcomes]


def failures(spec: str) -> list[str]:
    return [" | ".join([o.text, *o.seen]) for o in play(spec).outcomes if not o.ok]


CORDON = "timeline: [{at: 60s, do: cordon, node: train-0}, {at: 120s, do: uncordon, node: train-0}]\n"


@pytest.mark.parametrize(
    ("expectation", "ok"),
    [
        pytest.param("{by: 60s, that: \"cordoned('train-0')\"}", True, id="by, at its very moment"),
        pytest.param("{by: 59s, that: \"cordoned('train-0')\"}", False, id="by, too early"),
        pytest.param("{by: 10m, that: \"cordoned('train-0')\"}", True, id="by, true once is enough"),
        pytest.param("{at: 60s, that: \"cordoned('train-0')\"}", True, id="at, after what happens then"),
        pytest.param("{at: 120s, that: \"cordoned('train-0')\"}", False, id="at, no longer"),
        pytest.param("{always: true, that: \"cordoned('train-0')\", from: 60s, to: 119s}", True, id="always in window"),
        pytest.param("{always: true, that: \"cordoned('train-0')\", from: 60s, to: 121s}", False, id="always, broken"),
        pytest.param(
            "{always: true, that: \"cordoned('train-0')\", from: 60s, to: 120s}", True, id="always, until then"
        ),
        pytest.param("{never: true, that: \"cordoned('train-0')\", from: 120s}", True, id="never, from then on"),
        pytest.param("{never: true, that: \"cordoned('train-1')\"}", True, id="never"),
        pytest.param("{never: true, that: \"cordoned('train-0')\"}", False, id="never, but once"),
        pytest.param("{never: true, that: \"cordoned('train-0')\", from: 121s}", True, id="never, later"),
        pytest.param("{count: \"nodes().filter(n, n.metadata.name == 'train-0')\", is: 1}", True, id="count"),
        pytest.param('{count: "nodes()", is: 3}', False, id="count, wrong"),
        pytest.param("{by: 1m, that: \"repair('train-0').status.phase == 'x'\"}", False, id="by, absent"),
        pytest.param("{never: true, that: \"repair('train-0').status.phase == 'x'\"}", False, id="never, absent fails"),
        pytest.param(
            "{never: true, that: \"repair('train-0').?status.?phase.orValue('') == 'x'\"}", True, id="never, asked"
        ),
        pytest.param("{always: true, that: \"!has(hold('h').spec)\"}", True, id="always, absence meant"),
        pytest.param("{at: 90s, that: \"now == duration('90s')\"}", True, id="now"),
    ],
)
def test_what_each_form_of_expectation_asks(expectation, ok):
    assert verdicts(f"{CORDON}expect: [{expectation}]") == [ok]


def test_a_failure_says_when_what_was_seen_and_the_last_events():
    spec = """objects:
- {apiVersion: v1, kind: Event, metadata: {name: e, namespace: default}, involvedObject: {kind: Node, name: train-0},
   reason: Something, message: happened, type: Warning}
expect: [{by: 30s, that: "cordoned('train-0') && size(nodes()) == 2"}]"""
    (outcome,) = play(spec).outcomes
    assert (outcome.ok, outcome.at, outcome.line) == (False, 30.0, 11)
    assert "cordoned('train-0') = False" in outcome.seen
    assert outcome.events == ["0s train-0 Something: happened"]


def test_what_was_seen_is_shown_in_the_same_order_each_time():
    (outcome,) = play(
        "expect: [{count: \"[{'g': 7, 'e': 5, 'c': [{'y': 1, 'x': 2}], 'a': 1, 'f': 6, 'b': 2}]\", is: 3}]"
    ).outcomes
    assert outcome.seen == ["the expression is [{'a': 1, 'b': 2, 'c': [{'x': 2, 'y': 1}], 'e': 5, 'f': 6, 'g': 7}]"]


@pytest.mark.parametrize(
    ("entries", "moments"),
    [
        pytest.param("[{at: 10s, do: label, object: Node/train-0, set: {n: '1'}}]", [10], id="at"),
        pytest.param(
            "[{at: 10s, do: label, object: Node/train-0, set: {n: '1'}},"
            " {when: \"node('train-0').metadata.labels['n'] == '1'\", do: label, object: Node/train-0, set: {n: '2'}}]",
            [10, 10],
            id="when, at once",
        ),
        pytest.param(
            "[{at: 10s, do: label, object: Node/train-0, set: {n: '1'}},"
            " {when: \"node('train-0').metadata.labels['n'] == '1'\", after: 30s, do: label, object: Node/train-0,"
            " set: {n: '2'}}]",
            [10, 40],
            id="when, after",
        ),
        pytest.param(
            "[{at: 10s, times: 3, every: 5s, do: annotate, object: Node/train-0, set: {n: x}},"
            " {at: 12s, times: 2, every: 5s, do: annotate, object: Node/train-0, set: {n: y}}]",
            [10, 12, 15, 17, 20],
            id="times",
        ),
    ],
)
def test_when_entries_fire(entries, moments):
    checks = ", ".join(
        f"{{at: {m}s, that: \"node('train-0') != nodeAt('train-0', duration('{m * 1000 - 1}ms'))\"}}"
        for m in sorted(set(moments))
    )
    total = len(set(moments))
    assert verdicts(f"timeline: {entries}\nexpect: [{checks}]") == [True] * total


def test_entries_of_one_moment_are_applied_in_the_order_of_the_file():
    spec = """timeline:
- {at: 10s, do: label, object: Node/train-0, set: {n: first}}
- {at: 10s, do: label, object: Node/train-0, set: {n: second}}
expect: [{at: 10s, that: "node('train-0').metadata.labels['n'] == 'second'"}]"""
    assert verdicts(spec) == [True]


def test_what_must_hold_throughout_is_asked_when_all_entries_of_a_moment_stand():
    spec = """timeline:
- {at: 0s, do: cordon, node: train-0}
- {at: 10s, do: uncordon, node: train-0}
- {at: 10s, do: cordon, node: train-1}
expect:
- {always: true, that: "cordoned('train-0') || cordoned('train-1')"}
- {always: true, that: "cordoned('train-1')", from: 10s}
- {never: true, that: "cordoned('train-0')", from: 10s}"""
    assert verdicts(spec) == [True] * 3


JOB = (
    "objects: [{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {backoffLimit: 0, template: "
    "{metadata: {labels: {app: j}}, spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}]\n"
)


@pytest.mark.parametrize(
    ("at", "failed"),
    [
        pytest.param("30s", [], id="struck once, and the pod is gone afterwards"),
        pytest.param("100s", [(160.0, ["no running pod default/app=j"])], id="never struck"),
    ],
)
def test_a_pod_that_is_gone_is_a_failure_only_where_none_was_ever_there(at, failed):
    entries = [
        f"{{at: {at}, times: 2, every: 1m, do: podExit, selector: app=j, code: 3}}",
        "{at: 40s, do: podExit, selector: app=j}" if failed else "{at: 40s, do: cordon, node: train-0}",
    ]
    outcomes = play(JOB + f"timeline: [{', '.join(entries)}]").outcomes
    assert [(outcome.at, outcome.seen) for outcome in outcomes] == failed


def test_a_pod_that_somebody_took_away_need_not_exit_any_more():
    """A test that ends a rank two seconds after its GPU was lost must not fail because the job had moved by then."""
    entries = "{at: 30s, do: evict, pod: default/p}, {at: 90s, do: podExit, pod: default/p}"
    lone = (
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: train-0, containers: [{name: c, image: x}]}}"
    )
    assert failures(f"objects: [{lone}]\ntimeline: [{entries}]") == []


def test_an_entry_that_was_never_reached_fails_the_file():
    (told,) = failures("timeline: [{when: \"cordoned('train-1')\", do: reboot, node: train-0}]")
    assert told == (
        "when cordoned('train-1'): reboot | was never reached | the expression is False | cordoned('train-1') = False"
    )


@pytest.mark.parametrize(
    ("trigger", "told"),
    [
        pytest.param(
            "when: \"pool('train').status.phas == 'x'\"",
            ["was never reached", 'Key not found in map : "phas"'],
            id="a mistyped field",
        ),
        pytest.param("when: \"cordoned('train-9')\"", ["was never reached", "there is no node train-9"], id="no node"),
        pytest.param("when: \"now > duration('1h')\"", ["was never reached", "the expression is False"], id="too late"),
        pytest.param(
            "when: \"now >= duration('9m')\", after: 90s",
            ["was never reached: its condition came true less than 90s before the end of the run"],
            id="no time left for after",
        ),
        pytest.param(
            "before: {write: Node/train-0}", ["was never reached: there was no such write"], id="no such write"
        ),
        pytest.param(
            "at: 11m",
            ["was never reached: that is after the end of the run; raise spec.until"],
            id="after the end",
        ),
    ],
)
def test_an_entry_that_was_never_reached_says_what_its_condition_came_to(trigger, told):
    (outcome,) = play(
        f"timeline: [{{{trigger}, do: reboot, node: train-0}}, {{at: 9m, do: cordon, node: train-1}}]"
    ).outcomes
    assert (outcome.at, outcome.line) == (600.0, 8)
    assert len(outcome.seen) >= len(told)
    assert all(text in seen for text, seen in zip(told, outcome.seen, strict=False))


def test_an_entry_that_failed_says_when():
    entry = "{at: 60s, times: 2, every: 5s, do: cordon, node: train-9}"
    outcomes = play(f"timeline: [{entry}]").outcomes
    assert [outcome.at for outcome in outcomes] == [60.0, 65.0]
    assert all(outcome.seen == ['the API server refuses: nodes "train-9" not found'] for outcome in outcomes)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        pytest.param("{at: 1s, do: cordon, node: train-9}", 'nodes "train-9" not found', id="no such node"),
        pytest.param("{at: 1s, do: reboot, node: train-9}", "there is no node 'train-9' in the fleet", id="no machine"),
        pytest.param("{at: 1s, do: crash, component: decide}", "component decide is not part of this run", id="absent"),
        pytest.param("{at: 1s, do: addNodes, pool: x, nodes: 1}", "there is no pool 'x' in the fleet", id="no pool"),
        pytest.param("{at: 1s, do: delete, object: Widget/x}", "knows no kind 'Widget'", id="no kind"),
        pytest.param("{at: 1s, do: nvml, node: train-0, gpu: 9, set: {lost: true}}", "has GPUs 0 to 7", id="no gpu"),
    ],
)
def test_an_entry_that_cannot_be_carried_out_fails_and_says_why(entry, told):
    (failure,) = failures(f"timeline: [{entry}]")
    assert told in failure


def test_refused_demands_a_refusal_with_its_text():
    bad = "{apiVersion: sickbay.dev/v1alpha1, kind: Hold, metadata: {name: h}, spec: {level: Sometimes}}"
    good = "{apiVersion: sickbay.dev/v1alpha1, kind: Hold, metadata: {name: h}, spec: {scope: {all: true}}}"
    assert failures(f"timeline: [{{at: 1s, do: apply, manifest: {bad}, refused: level}}]") == []
    assert "without 'cheese'" in failures(f"timeline: [{{at: 1s, do: apply, manifest: {bad}, refused: cheese}}]")[0]
    assert "was accepted" in failures(f"timeline: [{{at: 1s, do: apply, manifest: {good}, refused: level}}]")[0]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("objects: [{apiVersion: v1, kind: Podd, metadata: {name: p}}]", r"f.yaml:9: spec.objects\[0\]: Podd p: "),
        (
            "objects:\n- {apiVersion: sickbay.dev/v1alpha1, kind: Hold, metadata: {name: h}, spec: {level: Sometimes}}",
            r"f.yaml:10: spec.objects\[0\]: Hold h: .*level",
        ),
        ("until: 1m", r"f.yaml:7: spec.fleet\[0\]: Node .* lowercase"),
    ],
    ids=["an unknown kind", "a bad value", "a node"],
)
def test_what_the_api_server_does_not_take_is_told_with_its_place(spec, told):
    head = HEAD.replace("pool: train", "pool: Train") if spec.startswith("until") else HEAD + "  seed: 1\n"
    with pytest.raises(BadFileError, match=told):
        play(spec.replace("until: 1m", "seed: 1"), head)


def test_the_node_as_at_a_moment_is_the_node_before_our_answer_to_that_moment():
    """A reaction takes no time here: who names the moment of a fault means the node before it."""
    head = HEAD.replace("components: []", "components: [decide, execute]")
    spec = """timeline: [{at: 60s, do: condition, node: train-0, type: Bad, status: "True"}]
objects:
- apiVersion: sickbay.dev/v1alpha1
  kind: FaultType
  metadata: {name: test.bad}
  spec:
    {class: Node, severity: Error, scope: Node, match: [{condition: {type: Bad}}], remedy: [{action: RepairHardware}],
     clearsBy: condition}
expect:
- {at: 60s, that: "cordoned('train-0') && !same('train-0', duration('60s'))"}
- {at: 61s, that: "nodeAt('train-0', duration('60s')).status.conditions.exists(c, c.type == 'Bad')"}
- {at: 61s, that: "nodeAt('train-0', duration('61s')).spec.unschedulable"}"""
    assert all(outcome.ok for outcome in play(spec, head).outcomes), play(spec, head).outcomes


def test_defaults_bring_a_pool_and_the_rule_and_objects_are_merged_over_them():
    spec = """objects:
- {apiVersion: sickbay.dev/v1alpha1, kind: RepairPool, metadata: {name: train}, spec: {maxParallelRepairs: 1}}
expect:
- {at: 0s, that: "pool('train').spec.mode == 'Act' && pool('train').spec.maxParallelRepairs == 1"}
- {at: 0s, that: "pool('train').spec.provider.name == 'fake' && pool('train').spec.storm.nodes == 0"}
- {at: 0s, that: "size(object('RepairRule', '', 'automatic').spec.rules[0].procedure) == 5"}"""
    assert verdicts(spec) == [True, True, True]
    assert verdicts("defaults: false\nexpect: [{at: 0s, that: \"!has(pool('train').spec)\"}]") == [True]


FUNCTIONS = """objects:
- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default, labels: {a: b}},
   spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
timeline:
- {at: 10s, do: condition, node: train-0, type: Sick, status: "True", reason: R, message: M}
- {at: 20s, do: taint, node: train-1, key: k, value: v}
- {at: 30s, do: podExit, pod: default/p, code: 3, log: boom}
- {at: 40s, do: recreateNode, node: train-1}
- {at: 50s, do: addNodes, pool: train, nodes: 2}
- {at: 60s, do: hold, name: h, spec: {scope: {all: true}, reason: r, owner: o}}
- {at: 70s, do: release, name: h}
- {at: 80s, do: untaint, node: train-1, key: k}
expect:
"""


@pytest.mark.parametrize(
    "expectation",
    [
        "{at: 9s, that: \"healthy('train-0')\"}",
        "{at: 10s, that: \"!healthy('train-0') && healthy('train-1')\"}",
        "{at: 25s, that: \"tainted('train-1', 'k') && !tainted('train-0', 'k')\"}",
        "{at: 25s, that: \"!same('train-1', duration('15s')) && same('train-0', duration('15s'))\"}",
        "{at: 35s, that: \"pods('default', 'a=b')[0].status.phase == 'Failed'\"}",
        "{at: 35s, that: \"object('Pod', 'default', 'p').status.containerStatuses[0].state.terminated.exitCode == 3\"}",
        "{at: 45s, that: \"node('train-1').metadata.uid != nodeAt('train-1', duration('15s')).metadata.uid\"}",
        "{at: 45s, that: \"!healthy('train-1')\"}",
        "{at: 55s, that: \"healthy('train-1') && !tainted('train-1', 'k')\"}",
        "{at: 55s, that: \"size(nodes()) == 4 && nodes().exists(n, n.metadata.name == 'train-3')\"}",
        "{at: 65s, that: \"hold('h').spec.reason == 'r'\"}",
        "{at: 75s, that: \"!has(hold('h').spec)\"}",
        "{at: 75s, that: \"size(actions('train-0')) == 0 && size(calls('train-0')) == 0 && size(messages()) == 0\"}",
        "{at: 75s, that: \"size(writes('Node/train-0')) == 0\"}",
        "{at: 75s, that: \"size(repairs()) == 0 && size(repairs('train-0')) == 0 && size(tasks('train-0')) == 0\"}",
        "{at: 75s, that: \"metric('sickbay_nodes_quarantined', {}) == 0.0\"}",
    ],
)
def test_what_expressions_see(expectation):
    results = verdicts(f"{FUNCTIONS}- {expectation}")
    assert results[0]


@pytest.mark.parametrize(
    ("entries", "expectation"),
    [
        pytest.param("{at: 5s, do: power, node: train-0, state: off}", "!healthy('train-0')", id="power"),
        pytest.param("{at: 5s, do: heartbeat, node: train-0, state: stop}", "!healthy('train-0')", id="heartbeat"),
        pytest.param(
            "{at: 5s, do: service, node: train-0, name: containerd, state: hung}", "!healthy('train-0')", id="service"
        ),
        pytest.param(
            "{at: 5s, do: allocatable, node: train-0, resource: nvidia.com/gpu, value: '7'}",
            "node('train-0').status.allocatable['nvidia.com/gpu'] == '7'",
            id="allocatable",
        ),
        pytest.param("{at: 5s, do: deleteNode, node: train-0}", "size(nodes()) == 1", id="deleteNode"),
        pytest.param(
            "{at: 5s, do: patch, object: Node/train-0, patch: {metadata: {labels: {x: z}}}}",
            "node('train-0').metadata.labels['x'] == 'z'",
            id="patch",
        ),
        pytest.param(
            "{at: 5s, do: apply, manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {k: v}}}",
            "object('ConfigMap', 'default', 'c').data.k == 'v'",
            id="apply",
        ),
        pytest.param(
            "{at: 5s, do: label, object: Node/train-0, set: {pool: null}}",
            "!('pool' in node('train-0').metadata.labels)",
            id="label removed",
        ),
    ],
)
def test_what_injections_do(entries, expectation):
    assert verdicts(f'timeline: [{entries}]\nexpect: [{{at: 100s, that: "{expectation}"}}]') == [True]


BARE = """objects:
- {apiVersion: sickbay.dev/v1alpha1, kind: NodeRepair, metadata: {name: r}, spec: {origin: Manual,
   node: {name: train-0}, plan: {steps: [{step: Repair, action: RebootNode}]}}}
- {apiVersion: sickbay.dev/v1alpha1, kind: JobRecovery, metadata: {name: job-j},
   spec: {job: {apiVersion: batch/v1, kind: Job, name: j}, policy: p}}
timeline:
- {at: 10s, do: patch, object: NodeRepair/r, subresource: status, patch: {status: {phase: Running, steps: {Drain:
   {state: Running, report: {attempt: 1, planGeneration: 1, term: 1, state: InProgress}}}}}}
"""


@pytest.mark.parametrize(
    ("moment", "expression"),
    [
        pytest.param("0s", "repair('train-0').status.phase == 'Pending'", id="no status yet"),
        pytest.param("0s", "repairs('train-0').all(r, r.status.outcome == '')", id="no outcome"),
        pytest.param("10s", "repair('train-0').status.phase == 'Running'", id="what is written stands"),
        pytest.param("10s", "!repairs()[0].status.prior.unschedulable", id="nothing was there before"),
        pytest.param("10s", "size(repair('train-0').status.steps.Drain.report.pods) == 0", id="no pods reported"),
        pytest.param("10s", "!has(repair('train-0').status.steps.Repair)", id="a step that has not begun is absent"),
        pytest.param("10s", "!has(object('NodeRepair', '', 'r').status.endedAt)", id="an open end is absent"),
        pytest.param("10s", "size(pool('train').status.storms) == 0", id="pool without a storm"),
        pytest.param("10s", "recovery('default', 'j').status.attempts.all(a, a.n > 1)", id="recovery without attempts"),
        pytest.param("10s", "!has(repair('train-1').status)", id="an absent object stays absent"),
        pytest.param("10s", "!('x' in node('train-1').metadata.annotations)", id="node without annotations"),
        pytest.param("10s", "nodes().all(n, !('x' in n.metadata.annotations))", id="nodes without annotations"),
    ],
)
def test_what_an_object_leaves_out_reads_as_the_api_says(moment, expression):
    assert verdicts(BARE + f'expect: [{{at: {moment}, that: "{expression}"}}]') == [True]


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("pool('trian').status.faulty == 0", 'Key not found in map : "status": there is no pool trian'),
        ("node('train-9').spec.unschedulable", 'Key not found in map : "spec": there is no node train-9'),
        ("hold('h').spec.level == 'x'", 'Key not found in map : "spec": there is no hold h'),
        (
            "repair('train-1').status.phase == 'x'",
            'Key not found in map : "status": there is no repair of node train-1',
        ),
        (
            "repair('train-9').status.phase == 'x'",
            'Key not found in map : "status": there is no repair of node train-9, and no such node',
        ),
        ("job('Job', 'default', 'x').status.active == 1", ': "status": there is no Job default/x'),
        ("object('RepairRule', '', 'x').spec.rules == []", ': "spec": there is no RepairRule x'),
        ("recovery('default', 'x').status.phase == 'x'", ': "status": there is no recovery of job default/x'),
        (
            "nodeAt('train-9', duration('5s')).metadata.uid == 'x'",
            ': "metadata": there was no node train-9 at 5s',
        ),
        # The key is missing in what there is: the hold that is absent has no part in it.
        ("has(hold('h').spec) || pool('train').status.phas == 'x'", 'Key not found in map : "phas"'),
    ],
    ids=lambda value: value if "(" in value else "",
)
def test_an_error_names_what_does_not_exist(expression, told):
    (outcome,) = play(f'expect: [{{at: 10s, that: "{expression}"}}]').outcomes
    assert outcome.seen[0].endswith(told)


@pytest.mark.parametrize(
    "expression",
    [
        "!has(pool('trian').status)",
        "!has(node('train-9').spec) && pool('trian') == {}",
        "repair('train-9').?status.?phase.orValue('none') == 'none'",
        "size(hold('h')) == 0 && !('spec' in object('Hold', '', 'h'))",
        "!has(recovery('default', 'x').spec) && !has(nodeAt('train-9', duration('5s')).spec)",
    ],
)
def test_what_does_not_exist_can_be_asked_for(expression):
    assert verdicts(f'expect: [{{at: 10s, that: "{expression}"}}]') == [True]


@pytest.mark.parametrize(
    ("entries", "same"),
    [
        pytest.param("{at: 5s, do: condition, node: train-0, type: GpuX, status: 'True'}", True, id="while it stands"),
        pytest.param("{at: 5s, do: cordon, node: train-1}", False, id="left behind"),
    ],
)
def test_a_finding_of_the_agent_that_stands_is_no_trace_of_a_repair(entries, same):
    found = "{at: 5s, do: annotate, object: Node/train-0, set: {sickbay.dev/devices: '[]'}}"
    spec = f"timeline: [{entries}, {found}]\nexpect: [{{at: 1m, that: \"same('train-0', duration('1s'))\"}}]"
    assert verdicts(spec) == [same]


def test_watches_that_are_cut_for_a_time_stay_cut_and_the_gap_is_seen():
    head = HEAD.replace("components: []", "components: [decide]")
    spec = """timeline:
- {at: 60s, do: api, watch: cut, history: compact, for: 2m}
- {at: 70s, do: condition, node: train-0, type: NvidiaXID79Error, status: "True"}
- {at: 80s, do: label, object: Node/train-1, set: {x: "y"}}
expect:
- {at: 170s, that: "size(repairs()) == 0"}
- {by: 5m, that: "size(repairs()) == 1"}
- {at: 10m, that: "metric('sickbay_watch_gaps_total', {}) > 0.0"}"""
    assert [outcome.ok for outcome in play(spec, head).outcomes] == [True] * 3


@pytest.mark.parametrize(
    ("arguments", "ok"),
    [
        pytest.param("errors: {rate: 1, codes: [403, 404]}, verbs: [update, PUT], scope: decide", True, id="any code"),
        pytest.param("errors: {rate: 1, codes: [200]}", False, id="no error"),
        pytest.param("latency: 1s, verbs: [steal]", False, id="no verb"),
        pytest.param("latency: 1s, scope: decider", False, id="no component"),
    ],
)
def test_what_faults_of_the_api_server_can_be_named(arguments, ok):
    text = HEAD + f"  timeline: [{{at: 1s, do: api, for: 1m, {arguments}}}]\n"
    if ok:
        assert len(read("f.yaml", text)) == 1
        return
    with pytest.raises(BadFileError):
        read("f.yaml", text)


def test_an_empty_cluster_still_has_its_time():
    head = HEAD.replace("  fleet: [{pool: train, nodes: 2}]\n", "")
    assert [o.ok for o in play('expect: [{at: 10m, that: "size(nodes()) == 0"}]', head).outcomes] == [True]
