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


def test_a_file_given_twice_is_read_once_and_objects_in_two_files_overwrite_each_other(tmp_path):
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    for file in (one, other):
        file.write_text(HEAD.format(kind="Hold") + "  scope: {all: true}\n")
    assert lint([one, one]) == []
    (finding,) = lint([one, other])
    assert (finding.file, finding.line, finding.severity) == (str(other), 3, "error")
    assert f"metadata.name: is given twice (first in {one}:3)" in finding.message
