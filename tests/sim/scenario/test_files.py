"""Reading scenario files: what is accepted, and how a mistake is told."""

from __future__ import annotations

import pytest

from sickbay.sim.scenario.document import BadFileError
from sickbay.sim.scenario.spec import read

MINIMAL = """apiVersion: test.sickbay.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
"""


def scenario(spec: str) -> str:
    return MINIMAL + "".join(f"  {line}\n" for line in spec.splitlines())


def mistake(text: str) -> str:
    with pytest.raises(BadFileError) as raised:
        read("f.yaml", text)
    return str(raised.value)


def test_defaults_are_those_of_the_format():
    (run,) = read("f.yaml", scenario("fleet: [{pool: train, nodes: 2}]"))
    assert (run.seed, run.until, run.replicas, run.defaults) == (0, 3600.0, 1, True)
    assert run.components == ("agent", "decide", "execute", "recover", "notify", "convert")
    (entry,) = run.fleet
    assert (entry.gpus, entry.rack, entry.zone) == (8, 0, "")
    assert (entry.provider.name, entry.provider.reboot, entry.provider.fail) == ("fake", 180.0, 0.0)


def test_words_that_yaml_takes_for_booleans_can_be_names():
    variants = "variants: [{name: off, patch: {}}, {name: yes, patch: {}}, {name: 2, patch: {}}]"
    assert [run.name for run in read("f.yaml", scenario(variants))] == ["s/off", "s/yes", "s/2"]


def test_mappings_may_be_merged_and_their_own_keys_win():
    merged = "fleet: [&a {pool: a, nodes: 3, gpus: 2}, {<<: *a, pool: b}, {pool: c, <<: [{gpus: 4}, *a], nodes: 1}]"
    (run,) = read("f.yaml", scenario(merged))
    assert [(e.pool, e.nodes, e.gpus) for e in run.fleet] == [("a", 3, 2), ("b", 3, 2), ("c", 1, 4)]
    assert "<<: must name a mapping" in mistake(scenario("fleet: [{<<: text, pool: a, nodes: 1}]"))


def test_a_file_may_hold_several_documents():
    two = MINIMAL.replace("name: s", "name: t") + "  until: 2h\n"
    assert [run.name for run in read("f.yaml", scenario("until: 1h") + "---\n" + two)] == ["s", "t"]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param("untill: 1h", "f.yaml:5: spec.untill: unknown key; did you mean 'until'?", id="unknown key"),
        pytest.param("until: soon", "f.yaml:5: spec.until: must be a duration such as 90s, 30m, 24h or 7d", id="time"),
        pytest.param(
            "fleet: [{pool: a, node: 1}]", "spec.fleet[0].nodes: is missing; is it meant by 'node'?", id="nearly"
        ),
        pytest.param("seed: x", "f.yaml:5: spec.seed: must be a whole number, not 'x'", id="number"),
        pytest.param("components: [agnet]", "spec.components: 'agnet' is none of agent, decide", id="component"),
        pytest.param("fleet: [{nodes: 1}]", "f.yaml:5: spec.fleet[0].pool: is missing", id="missing"),
        pytest.param(
            "fleet:\n- {pool: a, nodes: 1}\n- {pool: a, nodes: 1}", "pool 'a' is given twice", id="pool twice"
        ),
        pytest.param("fleet: [{pool: a, nodes: 1, provider: {scrpt: []}}]", "did you mean 'script'?", id="nested key"),
        pytest.param(
            "fleet: [{pool: a, nodes: 1, provider: {script: [{call: reboot, answer: maybe}]}}]",
            "spec.fleet[0].provider.script[0].answer: must be one of ok, transient",
            id="answer",
        ),
        pytest.param(
            "timeline: [{at: 1s, do: explode}]", "timeline[0].do: unknown injection 'explode'", id="injection"
        ),
        pytest.param("timeline: [{do: cordon, node: a}]", "needs one of at, when, before, not none", id="no trigger"),
        pytest.param("timeline: [{at: 1s, do: cordon}]", "timeline[0].node: is missing", id="argument missing"),
        pytest.param(
            "timeline: [{at: 1s, do: cordon, node: a, nod: b}]", "timeline[0].nod: unknown key", id="argument"
        ),
        pytest.param(
            "timeline: [{at: 1s, do: label, node: a-1, set: {k: v}}]",
            "f.yaml:5: spec.timeline[0].node: unknown key; label takes object: Node/a-1",
            id="label a node",
        ),
        pytest.param(
            "timeline: [{at: 1s, do: annotate, node: [a-1, a-2], set: {k: v}}]",
            "spec.timeline[0].node: unknown key; annotate takes object: Node/a-1 (one entry for each node)",
            id="annotate nodes",
        ),
        pytest.param(
            "timeline: [{at: 1s, do: taint, object: Node/a-1, key: k}]",
            "spec.timeline[0].object: unknown key; taint takes node: a-1",
            id="taint an object",
        ),
        pytest.param("timeline: [{at: 1s, do: untaint, key: k}]", "timeline[0].node: is missing", id="untaint nothing"),
        pytest.param("timeline: [{at: 1s, do: label, set: {k: v}}]", "[0].object: is missing", id="label nothing"),
        pytest.param("timeline: [{at: 1s, do: cordon, node: a, times: 3}]", "needs every", id="times without every"),
        pytest.param(
            "timeline: [{when: 'nodde(1)', do: cordon, node: a}]", "undeclared reference to 'nodde'", id="when"
        ),
        pytest.param(
            "timeline: [{before: {write: train-3}, do: cordon, node: a}]", "must be Kind/name", id="before what"
        ),
        pytest.param("timeline: [{at: 1s, do: api}]", "needs one of errors, latency, stale, watch, history", id="api"),
        pytest.param(
            "timeline: [{at: 1s, do: condition, node: a, type: T, status: Maybe}]", "must be True, False", id="status"
        ),
        pytest.param("expect: [{that: 'true'}]", "expect[0]: needs one of by, at, always, never, count", id="no form"),
        pytest.param("expect: [{by: 1s, that: 'now <'}]", "expect[0].that: 'now <': ", id="syntax"),
        pytest.param("expect: [{by: 1s, that: 'now'}]", "not a condition", id="no condition"),
        pytest.param("expect: [{count: 'true', is: 3}]", "not a list", id="no list"),
        pytest.param("expect: [{by: 2h, that: 'true'}]", "after the end of the run; raise spec.until", id="too late"),
        pytest.param("expect: [{always: true, that: 'true', from: 5s, to: 1s}]", "is before from", id="window"),
        pytest.param("objects: [{kind: Pod, metadata: {name: a}}]", "objects[0].apiVersion: is missing", id="manifest"),
        pytest.param("variants: [{name: a}, {name: a}]", "'a' is given twice", id="variant twice"),
        pytest.param("until: 1h\nuntil: 2h", "f.yaml:6: until: is given twice (first in line 5)", id="key twice"),
    ],
)
def test_a_mistake_names_the_place_and_the_remedy(spec, told):
    assert told in mistake(scenario(spec))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "f.yaml: holds no scenario", id="empty"),
        pytest.param("a: [", "f.yaml:1: not YAML", id="not yaml"),
        pytest.param("- 1", "f.yaml:1: a document must be a mapping", id="list"),
        pytest.param("kind: Scenario\n", "apiVersion: is missing", id="no version"),
        pytest.param(MINIMAL.replace("v1alpha1", "v2"), "must be one of test.sickbay.dev/v1alpha1", id="version"),
        pytest.param(MINIMAL.rstrip() + " 5\n", "spec must be a mapping", id="spec"),
        pytest.param(scenario("until: 1h") + "---\n" + scenario("until: 1h"), "is also the name in line 1", id="twice"),
    ],
)
def test_what_is_no_scenario_file_is_told_so(text, told):
    assert told in mistake(text)


def test_variants_patch_the_spec_and_append_their_expectations():
    text = scenario(
        """until: 1h
fleet: [{pool: train, nodes: 2}]
timeline: [{at: 1s, do: cordon, node: train-0}]
expect: [{by: 1m, that: "true"}]
variants:
- name: plain
- {name: longer, patch: {until: 2h, timeline: [], expect: [{at: 90m, that: "false"}]}}"""
    )
    plain, longer = read("f.yaml", text)
    assert (plain.name, longer.name) == ("s/plain", "s/longer")
    assert (plain.until, longer.until) == (3600.0, 7200.0)
    assert (len(plain.timeline), len(longer.timeline)) == (1, 0)
    assert [e.text for e in longer.expect] == ["true", "false"]
    assert [e.line for e in longer.expect] == [8, 11]


def test_an_error_in_a_variants_patch_names_its_own_line():
    text = scenario("until: 1h\nvariants:\n- name: a\n  patch:\n    until: never")
    assert mistake(text).startswith("f.yaml:9: spec.until: must be a duration")


def test_bare_on_and_off_are_taken_for_words():
    (run,) = read("f.yaml", scenario("timeline: [{at: 1s, do: power, node: a, state: off}]"))
    assert run.timeline[0].do == "power"


def test_moments_repeat_and_expressions_are_kept_as_written():
    (run,) = read("f.yaml", scenario("timeline: [{at: 1m, do: reboot, node: [a, b], times: 3, every: 90s}]"))
    (entry,) = run.timeline
    assert (entry.trigger.at, entry.times, entry.every) == (60.0, 3, 90.0)
