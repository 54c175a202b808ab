"""What `sickbay check` finds in files, without a process for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from sickbay.decide.lint import lint

HEAD = "apiVersion: sickbay.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: x}}\nspec:\n"
RULE = HEAD.format(kind="RepairRule") + "  rules:\n  - name: all\n    procedure:\n"


def found(tmp_path: Path, text: str) -> list[tuple[str, int, str]]:
    file = tmp_path / "file.yaml"
    file.write_text(text)
    return [(finding.severity, finding.line, finding.message) for finding in lint([file])]


def test_a_hold_of_a_fault_that_nobody_knows_is_a_warning(tmp_path):
    ((severity, line, text),) = found(tmp_path, HEAD.format(kind="Hold") + "  scope: {all: true}\n  faults: [gpu.79]\n")
    assert (severity, line) == ("warning", 6)
    assert "spec.faults: gpu.79 is no fault type of the catalogue or of these files: it holds nothing" in text


@pytest.mark.parametrize(
    ("drain", "act", "warns"),
    [
        pytest.param("Continue", "RebootNode", True, id="a reboot takes what is left with it"),
        pytest.param("Continue", "ResetGPU", False, id="a device only"),
        pytest.param("Continue", "RestartService", False, id="containers outlive a service"),
        pytest.param("Escalate", "RebootNode", False, id="people are asked"),
        pytest.param("RollBack", "RebootNode", False, id="it ends"),
    ],
)
def test_pods_that_die_with_the_act_are_a_warning(tmp_path, drain, act, warns):
    steps = ("step: Quarantine", f"step: Drain, onTimeout: {drain}", f"step: Repair, action: {act}")
    text = RULE + "".join(f"    - {{{step}}}\n" for step in steps)
    said = [message for severity, _, message in found(tmp_path, text) if severity == "warning"]
    assert any(f"dies with it in {act}" in message for message in said) is warns


POOL = HEAD.format(kind="RepairPool") + "  nodeSelector: {matchLabels: {pool: a}}\n  rule: r\n"


@pytest.mark.parametrize(
    ("setting", "severity", "says"),
    [
        pytest.param("windows: [{cron: '0 0 31 2 *', duration: 1h}]", "error", "never comes: nothing would ever start",
                     id="31 February"),
        pytest.param("windows: [{cron: '0 0 30 2 *', duration: 1h, kind: Deny}]", "warning", "it denies nothing",
                     id="a denial that never comes"),
        pytest.param("windows: [{cron: '0 0 29 2 *', duration: 1h}]", None, "never comes", id="29 February"),
        pytest.param("windows: [{cron: '0 0 31 2 mon', duration: 1h}]", None, "never comes", id="or Mondays"),
        pytest.param("windows: [{cron: '0 0 * * *', duration: 0s}]", "error", "0s has no time in it", id="no duration"),
        pytest.param("windows: [{cron: '0 0 * * *', duration: 1s}]", None, "no time in it", id="a second"),
        pytest.param("maxParallelRepairs: 0", "warning", "no act that disrupts a node", id="no repairs"),
        pytest.param("maxParallelValidations: 0", "warning", "no node is ever validated", id="no validations"),
        pytest.param("breaker: {maxNodes: 0}\n  maxParallelRepairs: 10%", "warning", "opens the breaker",
                     id="a breaker that bears nothing"),
        pytest.param("breaker: {maxNodes: 1}", None, "opens the breaker", id="a breaker that bears one"),
        pytest.param("maxUnavailable: 0", "warning", "is ever taken out", id="none unavailable"),
    ],
)  # fmt: skip
def test_settings_under_which_nothing_ever_begins_are_named(tmp_path, setting, severity, says):
    said = [(word, line) for word, line, message in found(tmp_path, f"{POOL}  {setting}\n") if says in message]
    assert said == ([(severity, 7)] if severity else [])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param("soak: 2h, ceiling: 1h", ["2h is above the ceiling 1h"], id="above"),
        pytest.param("soak: 1h, ceiling: 60m", [], id="as long"),
        pytest.param("soak: 2h", [], id="no ceiling given"),
    ],
)
def test_a_soak_that_no_ceiling_lets_end_is_an_error(tmp_path, given, says):
    text = f"{RULE}    - {{step: Quarantine}}\n    - {{step: Validate, {given}}}\n"
    errors = [message for severity, _, message in found(tmp_path, text) if severity == "error"]
    assert len(errors) == len(says)
    assert all(words in message for words, message in zip(says, errors, strict=True))


@pytest.mark.parametrize(
    ("name", "match", "severity"),
    [
        pytest.param("my.fault", "[]", "warning", id="no match"),
        pytest.param("gpu.xid.79", "[]", None, id="a built-in one switched off"),
        pytest.param("my.fault", "[{event: {reason: A, count: 0}}]", "error", id="no event needed"),
        pytest.param("my.fault", "[{event: {reason: A, count: 1}}]", None, id="one event"),
    ],
)
def test_a_fault_that_nothing_is_recognised_as_is_named(tmp_path, name, match, severity):
    rest = "{class: Node, severity: Error, scope: Node, remedy: [{action: RebootNode}], clearsBy: reboot"
    text = f"{HEAD.format(kind='FaultType')[:-6].replace('name: x', f'name: {name}')}spec: {rest}, match: {match}}}\n"
    said = [(word, message) for word, _, message in found(tmp_path, text)]
    assert [word for word, _ in said] == ([severity] if severity else []), said


def test_a_file_given_twice_is_read_once_and_objects_in_two_files_overwrite_each_other(tmp_path):
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    for file in (one, other):
        file.write_text(HEAD.format(kind="Hold") + "  scope: {all: true}\n")
    assert lint([one, one]) == []
    (finding,) = lint([one, other])
    assert (finding.file, finding.line, finding.severity) == (str(other), 3, "error")
    assert f"metadata.name: is given twice (first in {one}:3)" in finding.message
