"""build.py, against a stand-in for Go that writes what it was asked for into its output file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane import build
from tests.support.fixtures_controlplane import built_or_skipped

SCRIPT = Path(build.__file__)
STAND_IN = """#!/bin/sh
if [ "$1" = env ]; then echo "${FAKE_VERSION:-go1.26.8}"; exit 0; fi
echo "$*" >>"$FAKE_LOG"
while [ $# -gt 1 ]; do
    if [ "$1" = -o ]; then out=$2; fi
    shift
done
case "$1" in *"${FAKE_FAILS:-none}"*) echo half >"$out"; exit 1 ;; esac
echo "$1" >"$out"
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """An environment with the stand-in as the only Go and a cache of its own."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(STAND_IN)
    go.chmod(0o755)
    return {
        "PATH": f"{go.parent}:/usr/bin:/bin",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "FAKE_LOG": str(tmp_path / "log"),
    }


def run(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT], env=environment, capture_output=True, text=True, check=False)


def calls(environment: dict[str, str]) -> list[str]:
    log = Path(environment["FAKE_LOG"])
    return log.read_text().splitlines() if log.exists() else []


def test_all_five_binaries_lie_in_the_folder_it_prints(machine: dict[str, str]) -> None:
    result = run(machine)
    assert result.returncode == 0, result.stderr
    folder = Path(result.stdout.strip())
    assert folder.is_relative_to(machine["XDG_CACHE_HOME"])
    assert {path.name: path.read_text().strip() for path in folder.iterdir()} == build.PACKAGES


def test_a_second_run_builds_nothing_and_needs_no_go(machine: dict[str, str]) -> None:
    first = run(machine)
    again = run({**machine, "PATH": "/usr/bin:/bin"})
    assert (again.returncode, again.stdout) == (0, first.stdout)
    assert len(calls(machine)) == len(build.PACKAGES)


def test_the_server_is_told_its_version(machine: dict[str, str]) -> None:
    run(machine)
    assert all("version.gitVersion=v1.36.3" in call for call in calls(machine))
    assert all("version.gitMajor=1" in call and "version.gitMinor=36" in call for call in calls(machine))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"PATH": "/nowhere"}, "Go is not on PATH: install Go 1.26 or newer", id="no Go"),
        pytest.param({"FAKE_VERSION": "go1.25.9"}, "is go1.25.9, too old: install Go 1.26", id="too old"),
        pytest.param({"FAKE_VERSION": "devel"}, "does not tell its version (it says 'devel')", id="odd version"),
        pytest.param(
            {"FAKE_FAILS": "kubectl"}, "go build of kubectl (k8s.io/kubernetes/cmd/kubectl) failed", id="broken"
        ),
        pytest.param({"XDG_CACHE_HOME": "/dev/null"}, "check space and rights", id="unusable cache"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(machine: dict[str, str], change: dict[str, str], said: str) -> None:
    result = run({**machine, **change})
    assert result.returncode == 1
    assert result.stdout == ""
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_newer_go_will_do(machine: dict[str, str]) -> None:
    assert run({**machine, "FAKE_VERSION": "go1.30"}).returncode == 0


def test_a_failed_build_leaves_no_half_binary_and_is_taken_up_where_it_stopped(machine: dict[str, str]) -> None:
    run({**machine, "FAKE_FAILS": "kube-scheduler"})
    (folder,) = (
        path for path in (Path(machine["XDG_CACHE_HOME"]) / "sickbay" / "controlplane").iterdir() if path.is_dir()
    )
    assert sorted(path.name for path in folder.iterdir()) == ["etcd", "kube-apiserver", "kube-controller-manager"]
    assert run(machine).returncode == 0
    built = [call.split()[-1] for call in calls(machine)]
    assert built.count(build.PACKAGES["etcd"]) == 1
    assert built.count(build.PACKAGES["kube-scheduler"]) == 2


def test_two_at_once_build_once(machine: dict[str, str]) -> None:
    both = [
        subprocess.Popen(
            [sys.executable, SCRIPT], env=machine, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    folders = {process.communicate()[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(folders) == 1
    assert len(calls(machine)) == len(build.PACKAGES)


def test_flags_of_the_caller_do_not_reach_the_build(machine: dict[str, str], tmp_path: Path) -> None:
    go = tmp_path / "bin" / "go"
    go.write_text(STAND_IN + 'echo "GOFLAGS=$GOFLAGS GOWORK=$GOWORK CGO=$CGO_ENABLED" >>"$FAKE_LOG"\n')
    run({**machine, "GOFLAGS": "-mod=vendor", "GOWORK": "/some/go.work", "CGO_ENABLED": "1"})
    assert calls(machine)[1] == "GOFLAGS= GOWORK=off CGO=0"


@pytest.mark.parametrize("changed", ["go.mod", "go.sum"])
def test_another_version_gets_another_folder(tmp_path: Path, changed: str) -> None:
    for name in ("go.mod", "go.sum"):
        (tmp_path / name).write_bytes((build.MODULE / name).read_bytes())
    before = build.folder(os.environ, tmp_path)
    assert before == build.folder(os.environ)
    with open(tmp_path / changed, "a") as file:
        file.write("// changed\n")
    assert build.folder(os.environ, tmp_path) != before


def test_a_module_file_without_kubernetes_is_named(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module x\n")
    with pytest.raises(build.BuildError, match=r"go\.mod: no line `require k8s\.io/kubernetes"):
        build.kubernetes_version(tmp_path)


def test_every_package_is_a_tool_of_the_module() -> None:
    text = (build.MODULE / "go.mod").read_text()
    tools = text.split("tool (")[1].split(")")[0].split()
    assert sorted(tools) == sorted(build.PACKAGES.values())


@pytest.mark.parametrize(
    ("change", "outcome", "said"),
    [
        pytest.param({"PATH": "/nowhere"}, pytest.skip.Exception, "needs Go", id="no Go: skipped"),
        pytest.param({"PATH": "/nowhere", "CI": "true"}, pytest.skip.Exception, "needs Go", id="no Go in CI: skipped"),
        pytest.param({"FAKE_VERSION": "go1.25.1"}, pytest.skip.Exception, "too old", id="old Go: skipped"),
        pytest.param({"FAKE_FAILS": "etcd", "CI": "true"}, pytest.fail.Exception, "failed", id="broken in CI: fails"),
        pytest.param(
            {"FAKE_VERSION": "go1.25.1", "CI": "true"}, pytest.fail.Exception, "too old", id="old in CI: fails"
        ),
    ],
)
def test_ci_with_go_has_no_excuse(
    machine: dict[str, str], change: dict[str, str], outcome: type[BaseException], said: str
) -> None:
    with pytest.raises(outcome, match=said):
        built_or_skipped({**machine, **change})


def test_what_is_built_is_used(machine: dict[str, str]) -> None:
    assert built_or_skipped(machine) == Path(run(machine).stdout.strip())
