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
    text = output.decode("utf-8", "replace")[-OUTPUT:]
    if process.returncode != 0:
        raise HostError(f"{shown}: exit code {process.returncode}: {text.strip()[-300:]}")
    return text


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.kill()
    try:
        async with asyncio.timeout(_REAP):
            await process.wait()
    except TimeoutError:
        return
