#!/usr/bin/env python3
"""Build the real JobSet controller from its Go module, once per machine, and print the folder it lies in.

It is built inside its own module, with its own go.sum; the module itself is pinned by the hash below, which `go mod
download` reports. Beside the binary lie the module's manifests as they are needed to run it: definitions, webhooks and
the manager's role. As for the control plane, the folder is named after everything that would change the result, and
holds whole files only.

Runs with Python 3.11 or newer and nothing but the standard library. Cold it takes about 4 minutes on two cores.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.controlplane.build import BuildError, go_command, locked

MODULE, VERSION = "sigs.k8s.io/jobset", "v0.11.1"
SUM = "h1:WgLEBnXTeX+4MxfVkIbfm4jIVgjvIY6Jfaei2okxKNk="
"""Hash of the module's source, as in a go.sum."""
BINARY = "jobset"
FLAGS = ["-mod=readonly", "-buildvcs=false", "-ldflags", "-s -w"]
MANIFESTS = {
    "crds.yaml": "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml",
    "webhooks.yaml": "config/components/webhook/manifests.yaml",
    "role.yaml": "config/components/rbac/role.yaml",
}


def folder(environment: Mapping[str, str]) -> Path:
    """Where this version belongs, whether it is there or not."""
    machine = os.uname()
    told = "\0".join([MODULE, VERSION, SUM, *FLAGS, *MANIFESTS.values(), machine.sysname, machine.machine])
    cache = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME", "~")).expanduser() / ".cache")
    name = f"jobset-{VERSION}-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
    return Path(cache) / "sickbay" / "controlplane" / name


def missing(target: Path) -> list[str]:
    return [name for name in (*MANIFESTS, BINARY) if not (target / name).is_file()]


def source(go: str, environment: Mapping[str, str]) -> Path:
    """The module's folder in Go's cache, downloaded if need be. Raises BuildError for another source than ours."""
    command = [go, "mod", "download", "-json", f"{MODULE}@{VERSION}"]
    asked = subprocess.run(command, env=_clean(environment), cwd="/", capture_output=True, text=True, check=False)
    if asked.returncode:
        raise BuildError(f"{MODULE}@{VERSION} cannot be had: {(asked.stderr or asked.stdout).strip()}")
    told = json.loads(asked.stdout)
    if told.get("Sum") != SUM:
        raise BuildError(f"{MODULE}@{VERSION} is not the source it was: its hash is {told.get('Sum')}, not {SUM}")
    return Path(told["Dir"])


def build(environment: Mapping[str, str]) -> Path:
    """The folder with binary and manifests, built if need be. Raises BuildError."""
    target = folder(environment)
    if not missing(target):
        return target
    go = go_command(environment)
    with locked(target):
        target.mkdir(exist_ok=True)
        if left := missing(target):
            print(f"building {MODULE} {VERSION} into {target}", file=sys.stderr, flush=True)
            module = source(go, environment)
            for name in left:
                _put(go, module, target, name, environment)
    return target


def _put(go: str, module: Path, target: Path, name: str, environment: Mapping[str, str]) -> None:
    unfinished = target / f".{name}.unfinished"
    try:
        if name in MANIFESTS:
            shutil.copyfile(module / MANIFESTS[name], unfinished)
        else:
            command = [go, "build", *FLAGS, "-o", str(unfinished), "."]
            done = subprocess.run(command, cwd=module, env=_clean(environment), stdout=sys.stderr, check=False)
            if done.returncode:
                raise BuildError(f"go build of {MODULE} failed; what Go said stands above")
        unfinished.rename(target / name)
    finally:
        unfinished.unlink(missing_ok=True)


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Without flags of the caller's own, which would change what is built; cgo would need a C compiler."""
    return {**environment, "GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"}


def main() -> int:
    try:
        print(build(os.environ))
    except (BuildError, OSError) as problem:
        print(f"JobSet not built: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("JobSet not built: interrupted; what is finished is kept", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
