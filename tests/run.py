"""Runs the tests in tiers and says at the end how long each took, against its budget, and what was skipped.

    python tests/run.py check | fast | all

A tier that exceeds its budget is named, never failed: machines differ. Heavy tiers (compilers, real servers) take a
lock that is shared by all checkouts of one user on a machine, so that two runs do not fight for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
RESULTS = ROOT / ".pytest_cache" / "tiers"


@dataclass
class Tier:
    name: str
    budget: float
    """Minutes it should take, on two cores with warm caches."""
    commands: list[list[str]]
    _: KW_ONLY
    heavy: bool = False
    prepares: bool = False
    """Whether it only makes what later tiers need. They skip or fail by name where it is missing."""
    junit: Path | None = None


@dataclass
class Result:
    tier: Tier
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)
    passed: int = 0
    wrong: int = 0
    skipped: list[str] = field(default_factory=list)


def pytest(name: str, budget: float, marks: str, *, workers: int, heavy: bool = False, python: str = "") -> Tier:
    junit = RESULTS / f"{name}.xml"
    command = [
        python or sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        marks,
        "--durations=15",
        f"--junitxml={junit}",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-n", str(workers), "--dist", "worksteal"] if workers > 1 else ["-p", "no:xdist"]
    return Tier(name, budget, [command], heavy=heavy, junit=junit)


CHECK = Tier(
    "check",
    1.5,
    [
        [str(BIN / "ruff"), "check", "."],
        [str(BIN / "ruff"), "format", "--check", "."],
        [str(BIN / "mypy")],
        [str(BIN / "lint-imports")],
    ],
)


def tiers(which: str) -> list[Tier]:
    fast = pytest("fast", 2.8, "not controlplane and not slow", workers=2)
    if which == "check":
        return [CHECK]
    if which == "fast":
        return [CHECK, fast]
    built = [[sys.executable, f"tests/controlplane/{name}.py"] for name in ("build", "jobset")]
    build = Tier("build", 0.1, built, heavy=True, prepares=True)
    slow = pytest("slow", 15.0, "slow and not controlplane", workers=2)
    real = pytest("controlplane", 20.0, "controlplane", workers=1, heavy=True)
    chosen = [CHECK, fast, build, real, slow]
    newer = python313()
    if newer:
        chosen.append(pytest("python3.13", 4.0, "not controlplane and not slow", workers=2, python=newer))
    else:
        print("python3.13: not found, its tier is left out", flush=True)
    return chosen


def python313() -> str:
    """A Python 3.13 with the locked dependencies in an environment of its own; "" where there is none."""
    roots = [os.environ.get("PYENV_ROOT", ""), str(Path.home() / ".pyenv")]
    found = ["python3.13", *(p for r in roots if r for p in sorted(glob.glob(f"{r}/versions/3.13*/bin/python3.13")))]
    works = (p for p in found if subprocess.run([p, "-c", ""], capture_output=True, check=False).returncode == 0)
    with contextlib.suppress(FileNotFoundError):
        base = next((p for p in works if shutil.which(p)), "")
        return environment313(base) if base else ""
    return ""


def environment313(base: str) -> str:
    folder = ROOT / ".venv313"
    python, stamp = folder / "bin" / "python", folder / ".dev"
    lock = ROOT / "requirements" / "dev.txt"
    if not stamp.exists() or stamp.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run([base, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
        subprocess.run([*install, "-r", str(lock)], check=True)
        stamp.touch()
    return str(python)


@contextlib.contextmanager
def heavy_lock() -> Iterator[None]:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sickbay"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "heavy.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another run on this machine is in a heavy tier; waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(tier: Tier) -> Result:
    result = Result(tier)
    print(f"\n=== {tier.name}", flush=True)
    with heavy_lock() if tier.heavy else contextlib.nullcontext():
        started = time.monotonic()
        for command in tier.commands:
            done = subprocess.run(command, cwd=ROOT, check=False)
            # 5: pytest found no test of that kind, which a tier may have.
            if done.returncode not in ((0, 5) if tier.junit else (0,)) and not tier.prepares:
                result.failed.append(" ".join([Path(command[0]).name, *command[1:4]]))
        result.seconds = time.monotonic() - started
    if tier.junit is not None:
        count(tier.junit, result)
    return result


def count(junit: Path, result: Result) -> None:
    if not junit.exists():
        return
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None:
            result.skipped.append(f"{case.get('classname')}.{case.get('name')}: {skipped.get('message')}")
        elif case.find("failure") is not None or case.find("error") is not None:
            result.wrong += 1
        else:
            result.passed += 1


def main(which: str) -> int:
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    results = [run(tier) for tier in tiers(which)]
    print("\ntier           minutes  budget  passed  failed  skipped")
    for r in results:
        over = "  over its budget" if r.seconds / 60 > r.tier.budget else ""
        row = (
            f"{r.tier.name:<14} {r.seconds / 60:7.1f} {r.tier.budget:7.1f} {r.passed:7} {r.wrong:7} {len(r.skipped):8}"
        )
        print(row + over)
    skipped = [text for r in results for text in r.skipped]
    for text in skipped:
        print(f"skipped: {text}")
    failed = [text for r in results for text in r.failed]
    for text in failed:
        print(f"failed: {text}")
    # A machine that could run a real part and did not has tested less than it claims.
    missing = bool(skipped) and os.environ.get("CI") == "true" and bool(shutil.which("go"))
    if missing:
        print("failed: CI on a machine with Go skips nothing")
    passed, wrong = sum(r.passed for r in results), sum(r.wrong for r in results)
    print(f"{passed} passed, {wrong} failed, {len(skipped)} skipped")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "all"))
