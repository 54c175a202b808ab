"""A command whose reader closes the pipe after the first line."""

from __future__ import annotations

import asyncio
import os
import sys


async def first_line_of(*arguments: str) -> tuple[int, str]:
    """Exit code and standard error of `sickbay ...` when only its first line is read."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sickbay", *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    await process.stdout.readline()
    process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
    err = await process.stderr.read()
    return await process.wait(), err.decode()
