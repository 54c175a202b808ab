#!/usr/bin/env python3
"""Build a real Kubernetes control plane from Go modules, once per machine, and print the folder it lies in.

The versions are those of go.mod beside this file; go.sum pins every byte of source. The folder is named after a hash of
both and of the flags, so a second checkout builds nothing, and a changed version never meets an old binary. Each binary
is built under another name and renamed, so a folder holds whole binaries only, whenever the build is interrupted.
A file lock lets the second of two callers wait for the first.

Runs with Python 3.11 or newer and nothing but the standard library. Progress goes to stderr, the folder to stdout.
Cold it takes about 7 minutes on two cores, with a warm Go build cache seconds.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

MODULE = Path(__file__).resolve().parent
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
}
GO_NEEDED = (1, 26)
KUBERNETES = re.compile(r"^\s*(?:require\s+)?k8s\.io/kubernetes\s+(v(\d+)\.(\d+)\.\d+)", re.MULTILINE)
VERSION_PACKAGE = "k8s.io/component-base/version"
HOW_TO_GET_GO = "install Go 1.26 or newer (https://go.dev/dl/) and put its bin folder on PATH"


class BuildError(Exception):
    """What keeps the control plane from being built, with the remedy, for a person to read."""


def kubernetes_version(module: Path = MODULE) -> tuple[str, str, str]:
    """Full version with `v`, major and minor of the Kubernetes that go.mod names."""
    found = KUBERNETES.search((module / "go.mod").read_text())
    if not found:
        raise BuildError(f"{module / 'go.mod'}: no line `require k8s.io/kubernetes vX.Y.Z`; restore it")
    return found.group(1), found.group(2), found.group(3)


def flags(module: Path = MODULE) -> list[str]:
    """Arguments of `go build`. Without the version stamps clients cannot parse what the server calls itself."""
    full, major, minor = kubernetes_version(module)
    stamps = {"gitVersion": full, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    linker = " ".join(["-s", "-w", *(f"-X {VERSION_PACKAGE}.{name}={value}" for name, value in stamps.items())])
    return ["-mod=readonly", "-buildvcs=false", "-ldflags", linker]


def folder(environment: Mapping[str, str], module: Path = MODULE) -> Path:
    """Where the binaries of this module at these flags belong, whether they are there or not."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((module / name).read_bytes())
    machine = os.uname()
    digest.update("\0".join([*flags(module), machine.sysname, machine.machine]).encode())
    cache = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".cache")
    return Path(cache) / "sickbay" / "controlplane" / digest.hexdigest()[:16]


def missing(target: Path) -> list[str]:
    """Names of the binaries that still have to be built."""
    return [name for name in PACKAGES if not (target / name).is_file()]


def go_command(environment: Mapping[str, str], module: Path = MODULE) -> str:
    """Path of a Go that can build the module. Raises BuildError, saying what to install, when there is none."""
    go = shutil.which("go", path=environment.get("PATH"))
    if go is None:
        raise BuildError(f"Go is not on PATH: {HOW_TO_GET_GO}")
    asked = subprocess.run(
        [go, "env", "GOVERSION"], cwd=module, env=dict(environment), capture_output=True, text=True, check=False
    )
    if asked.returncode:
        raise BuildError(f"{go} cannot build this module: {asked.stderr.strip()}; {HOW_TO_GET_GO}")
    version = re.match(r"go(\d+)\.(\d+)", asked.stdout.strip())
    if version is None:
        raise BuildError(f"{go} does not tell its version (it says {asked.stdout.strip()!r}); {HOW_TO_GET_GO}")
    if (int(version.group(1)), int(version.group(2))) < GO_NEEDED:
        raise BuildError(f"{go} is {asked.stdout.strip()}, too old: {HOW_TO_GET_GO}")
    return go


@contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold the folder's lock. The file stays: removing it would let two callers lock two different files."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / f"{target.name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another build into {target} is running, waiting for it", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_one(go: str, name: str, target: Path, environment: Mapping[str, str], module: Path = MODULE) -> None:
    """Build one binary and put it in place. Raises BuildError when Go fails; what it printed is on stderr."""
    unfinished = target / f".{name}.unfinished"
    command = [go, "build", *flags(module), "-o", str(unfinished), PACKAGES[name]]
    # Flags of the caller's own (-mod=vendor, a workspace) would change what is built; cgo would need a C compiler.
    clean = {**environment, "GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"}
    try:
        if subprocess.run(command, cwd=module, env=clean, stdout=sys.stderr, check=False).returncode:
            raise BuildError(f"go build of {name} ({PACKAGES[name]}) failed; what Go said stands above")
        unfinished.rename(target / name)
    finally:
        unfinished.unlink(missing_ok=True)


def build(environment: Mapping[str, str], module: Path = MODULE) -> Path:
    """The folder with all binaries, built if need be. Raises BuildError. Needs no Go when nothing is left to build."""
    target = folder(environment, module)
    if not missing(target):
        return target
    go = go_command(environment, module)
    with locked(target):
        target.mkdir(exist_ok=True)
        for name in missing(target):
            print(f"building {name} into {target}", file=sys.stderr, flush=True)
            build_one(go, name, target, environment, module)
    return target


def main() -> int:
    try:
        print(build(os.environ))
    except BuildError as problem:
        print(f"control plane not built: {problem}", file=sys.stderr)
        return 1
    except OSError as problem:
        print(f"control plane not built: {problem}; check space and rights of that path", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("control plane not built: interrupted; what is finished is kept", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
