"""`sickbay test` as people and CI call it."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from sickbay.sim.scenario.command import test_command as command

GOOD = """apiVersion: test.sickbay.dev/v1alpha1
kind: Scenario
metadata: {name: good, labels: {area: state}}
spec:
  until: 1m
  components: []
  fleet: [{pool: train, nodes: 1}]
  expect: [{by: 10s, that: "healthy('train-0')"}]
"""
BAD = GOOD.replace("name: good", "name: bad").replace("healthy(", "cordoned(")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(BAD)
    (tmp_path / "broken.yaml").write_text(GOOD.replace("until", "untill"))
    return tmp_path


def call(*arguments):
    return CliRunner().invoke(command, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(["good.yaml"], 0, id="as expected"),
        pytest.param(["good.yaml", "bad.yaml"], 1, id="not as expected"),
        pytest.param(["good.yaml", "broken.yaml"], 2, id="bad file"),
        pytest.param(["absent.yaml"], 2, id="no file"),
        pytest.param(["good.yaml", "--run", "other"], 2, id="no such run"),
        pytest.param(["bad.yaml", "good.yaml", "--run", "good"], 0, id="only one run"),
        pytest.param(["bad.yaml", "--check"], 0, id="only read"),
    ],
)
def test_the_exit_code_says_how_it_came_out(files, arguments, code):
    assert call(*arguments).exit_code == code


def test_one_line_per_expectation(files):
    lines = call("good.yaml", "bad.yaml").output.splitlines()
    assert lines[0] == "ok   good.yaml:8 good by 10s: healthy('train-0')"
    assert lines[1] == "FAIL bad.yaml:8 bad by 10s: cordoned('train-0')"
    assert "     cordoned('train-0') = False" in lines
    assert lines[-1] == "2 runs, 1 ok, 1 failed"


def test_a_bad_file_is_told_without_a_traceback(files):
    result = call("broken.yaml")
    assert result.output.startswith("broken.yaml:5: spec.untill: unknown key")
    assert "Traceback" not in result.output


def test_a_field_that_no_such_kind_has_is_told_and_fails_nothing(files):
    pool = "{apiVersion: sickbay.dev/v1alpha1, kind: RepairPool, metadata: {name: train}, spec: {maxUnavailabel: 1}}"
    (files / "typo.yaml").write_text(GOOD + f"  objects: [{pool}]\n  variants: [{{name: a}}, {{name: b}}]\n")
    result = call("typo.yaml")
    assert result.exit_code == 0
    (told,) = result.stderr.splitlines()
    assert told.startswith("typo.yaml:9: spec.objects[0]: RepairPool train: unknown field spec.maxUnavailabel")
    assert "did you mean 'maxUnavailable'?" in told


HOLD = "apiVersion: sickbay.dev/v1alpha1, kind: Hold, metadata: {name: h}"


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        pytest.param(
            "do: hold, name: h, spec: {scope: {nodez: [train-0], all: true}}",
            "spec.timeline[0].spec: Hold h: unknown field spec.scope.nodez, which the API server drops; "
            "did you mean 'nodes'?",
            id="hold",
        ),
        pytest.param(
            f"do: apply, manifest: {{{HOLD}, spec: {{scope: {{all: true}}, reasn: r}}}}",
            "spec.timeline[0].manifest: Hold h: unknown field spec.reasn, which the API server drops; "
            "did you mean 'reason'?",
            id="apply",
        ),
        pytest.param(
            "do: patch, object: RepairPool/train, patch: {spec: {maxUnavailabel: 1}}",
            "spec.timeline[0].patch: RepairPool train: unknown field spec.maxUnavailabel, which the API server drops; "
            "did you mean 'maxUnavailable'?",
            id="patch",
        ),
        pytest.param(
            f"do: patch, manifest: {{{HOLD}}}, patch: {{spec: {{reasn: r}}}}",
            "spec.timeline[0].patch: Hold h: unknown field spec.reasn, which the API server drops; "
            "did you mean 'reason'?",
            id="patch of a manifest",
        ),
        pytest.param(
            "do: patch, object: NodeRepair@train-0, subresource: status, patch: {status: {phasee: Ended}}",
            "spec.timeline[0].patch: NodeRepair @train-0: unknown field status.phasee, which the API server drops; "
            "did you mean 'phase'?",
            id="patch of a node's repair",
        ),
        pytest.param(
            "do: patch, object: Node/train-0, patch: {spec: {fancy: true}}", None, id="a kind that is not ours"
        ),
        pytest.param(
            "do: apply, manifest: {apiVersion: v1, kind: Pod, metadata: {name: p}, spax: 1}", None, id="a pod"
        ),
    ],
)
def test_a_field_that_an_object_of_the_timeline_has_for_nothing_is_told_too(files, entry, told):
    (files / "typo.yaml").write_text(GOOD + f"  timeline:\n  - {{at: 1s, {entry}}}\n")
    result = call("typo.yaml", "--check")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == ([f"typo.yaml:10: {told}"] if told else [])


KMSG = 'do: kmsg, node: train-0, line: "NVRM: Xid (PCI:0000:3b:00): 79"'
HUNG = "do: service, node: train-0, state: hung, name: "


@pytest.mark.parametrize(
    ("components", "entry", "source"),
    [
        pytest.param("[decide]", KMSG, "kernel log", id="kernel line"),
        pytest.param("[]", KMSG, "kernel log", id="no component at all"),
        pytest.param("[decide]", "do: nvml, node: train-0, gpu: 1, set: {lost: true}", "GPU driver", id="driver"),
        pytest.param("[decide]", f"{HUNG}nvidia-persistenced", "services", id="service"),
        pytest.param("[decide]", f"{HUNG}kubelet", None, id="a service that the node itself speaks of"),
        pytest.param("[agent, decide]", KMSG, None, id="with an agent"),
        pytest.param("null", KMSG, None, id="all components"),
        pytest.param("[decide]", "do: condition, node: train-0, type: T, status: 'True'", None, id="a condition"),
    ],
)
def test_an_entry_that_only_an_agent_sees_is_told_where_none_runs(files, components, entry, source):
    timeline = f"  timeline:\n  - {{at: 1s, {entry}}}\n  variants: [{{name: a}}, {{name: b}}]\n"
    (files / "blind.yaml").write_text(GOOD.replace("components: []", f"components: {components}") + timeline)
    result = call("blind.yaml", "--check")
    assert result.exit_code == 0
    word = entry.split()[1].rstrip(",")
    told = (
        f"blind.yaml:10: spec.timeline[0]: {word}: nothing in this run sees it, only the agent reads the {source} of a "
        "node; add agent to spec.components"
    )
    assert result.stderr.splitlines() == ([told] if source else [])


def test_a_directory_stands_for_its_files(files):
    (files / "broken.yaml").unlink()
    assert "2 runs, 1 ok, 1 failed" in call(".").output


def test_json_holds_what_the_lines_hold(files):
    good, bad = json.loads(call("good.yaml", "bad.yaml", "-o", "json").output)
    assert (good["name"], good["ok"], good["labels"]) == ("good", True, {"area": "state"})
    (expectation,) = bad["expectations"]
    assert (bad["ok"], expectation["ok"], expectation["at"], expectation["line"]) == (False, False, "10s", 8)


def test_junit_counts_failures_and_says_what_was_seen(files):
    call("good.yaml", "bad.yaml", "--junit", "out.xml")
    suites = ElementTree.parse(files / "out.xml").getroot()
    assert [(suite.get("name"), suite.get("failures")) for suite in suites] == [("good", "0"), ("bad", "1")]
    assert "cordoned('train-0') = False" in (suites[1].find("testcase/failure").text or "")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        pytest.param("nodir/out.xml", "there is no directory nodir; make it first, or name another", id="no directory"),
        pytest.param("good.yaml/out.xml", "there is no directory good.yaml", id="a file for a directory"),
        pytest.param("closed/out.xml", "cannot be written: allow it, or name another file", id="no permission"),
        pytest.param("old.xml", "cannot be written: allow it, or name another file", id="an old file of others"),
        pytest.param(".", "is a directory", id="a directory"),
    ],
)
def test_a_junit_file_that_cannot_be_written_is_told_before_the_first_run(files, monkeypatch, path, told):
    (files / "closed").mkdir()
    (files / "old.xml").touch()
    monkeypatch.setattr("os.access", lambda at, mode: str(at) not in ("closed", "old.xml"))
    result = call("good.yaml", "--junit", path)
    assert result.exit_code == 2
    assert "--junit" in result.output and path in result.output and told in result.output
    assert "ok   " not in result.output


def test_a_junit_file_of_an_earlier_time_is_written_anew(files):
    (files / "out.xml").write_text("old")
    assert call("good.yaml", "--junit", "out.xml").exit_code == 0
    assert ElementTree.parse(files / "out.xml").getroot().tag == "testsuites"


UNFIT = """apiVersion: test.sickbay.dev/v1alpha1
kind: Scenario
metadata: {name: unfit}
spec:
  until: 1m
  components: [decide]
  fleet: [{pool: train, nodes: 1}]
  objects:
  - {apiVersion: sickbay.dev/v1alpha1, kind: RepairPool, metadata: {name: train}, spec: {rule: nosuch}}
  - apiVersion: sickbay.dev/v1alpha1
    kind: FaultType
    metadata: {name: test.unread}
    spec: {class: Node, severity: Error, scope: Node, remedy: [], clearsBy: condition, match: [{cel: "node.a =="}]}
  - apiVersion: sickbay.dev/v1alpha1
    kind: FaultType
    metadata: {name: test.fails}
    spec: {class: Node, severity: Error, scope: Node, remedy: [], clearsBy: condition, match: [{cel: "node.a == 1"}]}
  expect: [{by: 10s, that: "size(nodes()) == 2"}]
"""


def test_a_failed_run_shows_which_objects_cannot_work(files):
    (files / "unfit.yaml").write_text(UNFIT)
    lines = call("unfit.yaml", "--junit", "out.xml").output.splitlines()
    start = lines.index("     objects of unfit that cannot work as they are written:")
    fails, unread, pool = lines[start + 1 : -1]
    assert fails.startswith("       FaultType test.fails: ExpressionFailed is True: ")
    assert unread.startswith("       FaultType test.unread: Valid is False: ")
    assert pool == "       RepairPool train: RuleResolved is False: there is no RepairRule nosuch; nothing is repaired"
    assert pool in (ElementTree.parse(files / "out.xml").getroot().findtext("testsuite/system-out") or "")
    (told,) = json.loads(call("unfit.yaml", "-o", "json").output)
    assert told["unfit"] == [line.strip() for line in (fails, unread, pool)]


def test_a_run_that_came_out_well_says_nothing_of_its_objects(files):
    (files / "unfit.yaml").write_text(UNFIT.replace("== 2", "== 1"))
    result = call("unfit.yaml")
    assert (result.exit_code, len(result.output.splitlines())) == (0, 2)
    (told,) = json.loads(call("unfit.yaml", "-o", "json").output)
    assert "unfit" not in told


def test_the_same_file_gives_the_same_output_twice(files):
    assert call("bad.yaml", "-o", "json").output == call("bad.yaml", "-o", "json").output
