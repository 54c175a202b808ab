"""jobset.py, against a stand-in for Go that knows one module."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import jobset

STAND_IN = """#!/bin/sh
if [ "$1" = env ]; then echo go1.26.8; exit 0; fi
echo "$*" >>"$FAKE_LOG"
if [ "$1" = mod ]; then cat "$FAKE_MODULE"; exit 0; fi
while [ $# -gt 1 ]; do
    if [ "$1" = -o ]; then out=$2; fi
    shift
done
if [ -n "$FAKE_FAILS" ]; then echo half >"$out"; exit 1; fi
echo "built in $PWD" >"$out"
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    go, module = tmp_path / "bin" / "go", tmp_path / "module"
    go.parent.mkdir()
    go.write_text(STAND_IN)
    go.chmod(0o755)
    for path in jobset.MANIFESTS.values():
        (module / path).parent.mkdir(parents=True, exist_ok=True)
        (module / path).write_text(path)
    told = tmp_path / "told.json"
    told.write_text(json.dumps({"Sum": jobset.SUM, "Dir": str(module)}))
    return {
        "PATH": f"{go.parent}:/usr/bin:/bin",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "FAKE_LOG": str(tmp_path / "log"),
        "FAKE_MODULE": str(told),
    }


def run(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, jobset.__file__], env=environment, capture_output=True, text=True)


def test_binary_and_manifests_lie_in_the_folder_it_prints(machine: dict[str, str], tmp_path: Path) -> None:
    result = run(machine)
    assert result.returncode == 0, result.stderr
    found = {path.name: path.read_text().strip() for path in Path(result.stdout.strip()).iterdir()}
    assert found == {**jobset.MANIFESTS, "jobset": f"built in {tmp_path / 'module'}"}


def test_a_second_run_builds_nothing_and_needs_no_go(machine: dict[str, str]) -> None:
    first = run(machine)
    again = run({**machine, "PATH": "/usr/bin:/bin"})
    assert (again.returncode, again.stdout) == (0, first.stdout)


def test_another_source_under_the_same_version_is_not_built(machine: dict[str, str]) -> None:
    Path(machine["FAKE_MODULE"]).write_text(json.dumps({"Sum": "h1:other", "Dir": "/"}))
    result = run(machine)
    assert result.returncode == 1
    assert "is not the source it was: its hash is h1:other" in result.stderr
    assert "build" not in Path(machine["FAKE_LOG"]).read_text()


def test_a_failed_build_leaves_no_half_binary(machine: dict[str, str]) -> None:
    failed = run({**machine, "FAKE_FAILS": "yes"})
    assert failed.returncode == 1
    assert "go build of sigs.k8s.io/jobset failed" in failed.stderr
    assert jobset.missing(jobset.folder(machine)) == [jobset.BINARY]
    assert run(machine).returncode == 0
