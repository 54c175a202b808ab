"""Commands of the host: argument lists, never a shell; each has a time-out, and none is waited for beyond it.

Inside a container they run through nsenter in the namespaces of the host's process 1, for which the pod needs `hostPID`
and a privileged security context.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sickbay.providers.agent.host import HostError

NSENTER = ("nsenter", "--target", "1", "--mount", "--uts", "--ipc", "--net", "--pid", "--")
COMMAND_SECONDS = 60.0
OUTPUT = 2000
"""Characters of a command's output that are kept, from its end."""
_REAP = 5.0
"""Seconds a killed command has to end. One that is stuck in the kernel does not; it is left alone then."""


async def run(command: Sequence[str], seconds: float = COMMAND_SECONDS, prefix: Sequence[str] = ()) -> str:
    """Run a command and return what it printed. Raises HostError that names it."""
    code, text = await outcome(command, seconds, prefix)
    if code != 0:
        raise HostError(f"{' '.join(command)}: exit code {code}: {text.strip()[-300:]}")
    return text[-OUTPUT:]


async def outcome(
    command: Sequence[str], seconds: float = COMMAND_SECONDS, prefix: Sequence[str] = ()
) -> tuple[int, str]:
    """Run a command to its end: exit code and output. Raises HostError where it cannot be run or does not end."""
    shown = " ".join(command)
    try:
        process = await asyncio.create_subprocess_exec(
            *prefix, *command, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
    except OSError as error:
        raise HostError(f"{shown}: {error.strerror or error}") from None
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate()
    except TimeoutError:
        await _kill(process)
        raise HostError(f"{shown}: no end after {seconds:g} s") from None
    except asyncio.CancelledError:
        await _kill(process)
        raise
    return process.returncode or 0, output.decode("utf-8", "replace")


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.kill()
    try:
        async with asyncio.timeout(_REAP):
            await process.wait()
    except TimeoutError:
        return
