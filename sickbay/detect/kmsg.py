"""The kernel's log ring, `/dev/kmsg`: one record per read, numbered since boot.

It holds kernel records only (and what user space writes into it, marked as such), so no chatter of other services can
push a fault out of it, and it reaches back to before the agent's start. Reading needs CAP_SYSLOG where
`kernel.dmesg_restrict` is set. Documentation/ABI/testing/dev-kmsg: EPIPE = records were overwritten before they were
read, EAGAIN = no more for now.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re

from sickbay.detect.judge import Trust
from sickbay.detect.source import BATCH, Batch, SourceError

RECORD_BYTES = 8192
_NUMBER = re.compile(rb"\d+,(\d+),")


class KmsgSource:
    """Positions are record numbers of the running boot."""

    name, trust, per_boot = "kernel log", Trust.LIVE, True

    def __init__(self, path: str = "/dev/kmsg") -> None:
        self._path = path
        self._fd = -1
        self._last = -1
        self._known = False
        """True once it is known which record should come next."""
        self._ended = False

    async def open(self, position: str) -> None:
        self.close()
        try:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise SourceError(f"{self._path}: {error.strerror or error}") from None
        self._known = position.isdigit()
        self._last = int(position) if self._known else -1
        self._ended = False

    async def read(self) -> Batch:
        while True:
            batch = self._drain()
            if batch.lines or batch.lost or not batch.end:
                self._ended = self._ended or batch.end
                return batch
            if not self._ended:
                self._ended = True
                return batch
            await self._readable()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _drain(self) -> Batch:
        lines: list[str] = []
        lost = 0
        while len(lines) < BATCH:
            try:
                record = os.read(self._fd, RECORD_BYTES)
            except BlockingIOError:
                return Batch(lines, self._position(), end=True, lost=lost)
            except OSError as error:
                if error.errno == errno.EPIPE:
                    lost += 1
                    continue
                raise SourceError(f"{self._path}: {error.strerror or error}") from None
            if not record:
                raise SourceError(f"{self._path}: it has ended")
            lost += self._take(record, lines)
        return Batch(lines, self._position(), lost=lost)

    def _take(self, record: bytes, lines: list[str]) -> int:
        """Note a record unless it was read before; returns how many are missing before it."""
        match = _NUMBER.match(record)
        if match is None:
            lines.append(record.decode("utf-8", "replace"))
            return 0
        number = int(match[1])
        if number <= self._last:
            return 0
        missing = number - self._last - 1 if self._known else 0
        self._last, self._known = number, True
        lines.append(record.decode("utf-8", "replace"))
        return missing

    def _position(self) -> str:
        return str(self._last) if self._last >= 0 else ""

    async def _readable(self) -> None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._fd, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._fd)
