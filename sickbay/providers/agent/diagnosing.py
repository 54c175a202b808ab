"""Active diagnostics of a host: one command for each level, and for each further check by name.

Levels follow NVIDIA's: 1 takes under a minute, 2 under 15 minutes, 3 is long. The defaults are those of DCGM (`dcgmi
diag`), whose JSON is read: one test that failed fails the level, and without any that passed nothing was tested. Any
other command says by its exit code what it found, as the plug-ins of node-problem-detector do: 0 well, 1 not well,
anything else nothing.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sickbay.providers.agent.commands import outcome
from sickbay.providers.agent.host import Finding, HostError

SECONDS = {"1": 120.0, "2": 1200.0, "3": 3 * 3600.0}
"""After which a command is ended and has found nothing; other names as level 2. More than they are meant to take."""
_NAME = re.compile(r"[1-3]|[a-z][a-z0-9-]{0,62}")
PASS, FAIL = 0, 1


@dataclass(frozen=True, slots=True)
class Check:
    """A command. `dcgm`: its output is the JSON of dcgmi."""

    command: tuple[str, ...]
    seconds: float
    dcgm: bool = False

    async def run(self, name: str, prefix: Sequence[str] = ()) -> Finding:
        """What it finds. Raises HostError when it finds nothing."""
        code, output = await outcome(self.command, self.seconds, prefix)
        if self.dcgm:
            return read_dcgm(name, code, output)
        last = output.strip()[-300:]
        if code not in (PASS, FAIL):
            raise HostError(f"diagnostics {name} found nothing: exit code {code}: {last}")
        return Finding(code == PASS, f"diagnostics {name}: {last or ('well' if code == PASS else 'not well')}")


DEFAULT_CHECKS = {
    level: Check(("dcgmi", "diag", "-r", level, "-j"), seconds, dcgm=True) for level, seconds in SECONDS.items()
}
"""Of a host with DCGM. Where it is not installed they find nothing, and no node is confirmed well by them."""


def parse_check(text: str) -> tuple[str, Check]:
    """Read `NAME=COMMAND`. Raises ValueError that says what is wrong."""
    name, equals, command = text.partition("=")
    if not equals or not _NAME.fullmatch(name):
        raise ValueError(f"--diagnostic {text!r}: write LEVEL=COMMAND or NAME=COMMAND, with level 1, 2 or 3")
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise ValueError(f"--diagnostic {text!r}: the command cannot be split into words: {error}") from None
    if not words:
        raise ValueError(f"--diagnostic {text!r}: the command is empty")
    return name, Check(words, SECONDS.get(name, SECONDS["2"]), dcgm=words[0].rpartition("/")[2] == "dcgmi")


def read_dcgm(name: str, code: int, output: str) -> Finding:
    """The JSON of `dcgmi diag -j`, whatever its version: every status in it counts."""
    try:
        found = json.loads(output[output.index("{") :])
    except ValueError:
        raise HostError(
            f"diagnostics {name}: dcgmi gave no result (exit code {code}): {output.strip()[-300:]}"
        ) from None
    results = list(_results(found, ""))
    failed = [test for test, status in results if status == "fail"]
    if failed:
        return Finding(False, f"diagnostics {name}: failed {', '.join(dict.fromkeys(failed))}"[:300])
    if code != 0 or not any(status == "pass" for _, status in results):
        raise HostError(f"diagnostics {name}: dcgmi tested nothing (exit code {code}); skipped is not passed")
    return Finding(True, f"diagnostics {name}: {sum(status == 'pass' for _, status in results)} results, none failed")


def _results(found: Any, test: str) -> Iterator[tuple[str, str]]:
    if isinstance(found, list):
        for each in found:
            yield from _results(each, test)
    elif isinstance(found, dict):
        test = str(found.get("name") or found.get("category") or test)
        for key, value in found.items():
            if key in ("status", "result") and isinstance(value, str):
                yield test, value.lower()
            else:
                yield from _results(value, test)
