"""A log file that grows and is rotated, and standard input."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import BinaryIO

from sickbay.clock import Clock
from sickbay.detect.judge import Trust
from sickbay.detect.source import Batch, LineSplitter, SourceError

PIECE = 256 * 1024
LOOK = 1.0
"""Seconds between two looks at a file that did not grow."""


class FileSource:
    """Follows a file by name. Positions are `inode:offset` and hold over boots.

    Without a position it begins at the end, unless `from_start`: a file reaches back over boots that are of no concern.
    The lines of a file are believed only where they name the kernel as their writer.
    """

    per_boot = False

    def __init__(self, path: Path, clock: Clock, from_start: bool = False, trust: Trust = Trust.LIVE) -> None:
        self._path, self._clock, self._from_start = path, clock, from_start
        self.name, self.trust = str(path), trust
        self._file: BinaryIO | None = None
        self._inode, self._offset = 0, 0
        self._splitter = LineSplitter()
        self._ended = False

    async def open(self, position: str) -> None:
        self.close()
        inode, _, offset = position.partition(":")
        self._begin()
        size = self._size()
        if inode == str(self._inode) and offset.isdigit() and int(offset) <= size:
            self._offset = int(offset)
        elif not position and not self._from_start:
            self._offset = size
        self._ended = False

    async def read(self) -> Batch:
        while True:
            lines = self._more()
            if lines:
                return Batch(lines, self._position())
            if self._rotated():
                continue
            if not self._ended:
                self._ended = True
                return Batch([], self._position(), end=True)
            await self._clock.sleep(LOOK)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self) -> None:
        try:
            self._file = self._path.open("rb")
        except OSError as error:
            raise SourceError(f"{self._path}: {error.strerror or error}") from None
        self._inode, self._offset = os.fstat(self._file.fileno()).st_ino, 0
        self._splitter = LineSplitter()

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size if self._file is not None else 0

    def _more(self) -> list[str]:
        """Whole lines that were appended. Pieces without a line's end are read on, up to the end of the file."""
        if self._file is None:
            raise SourceError(f"{self._path}: it is not open")
        if self._size() < self._offset:
            self._offset, self._splitter = 0, LineSplitter()  # truncated in place
        while True:
            try:
                self._file.seek(self._offset)
                piece = self._file.read(PIECE)
            except OSError as error:
                raise SourceError(f"{self._path}: {error.strerror or error}") from None
            self._offset += len(piece)
            lines = self._splitter.feed(piece)
            if lines or not piece:
                return lines

    def _rotated(self) -> bool:
        """True when the name now stands for another file, which is then read from its beginning."""
        try:
            present = self._path.stat().st_ino
        except OSError:
            return False  # between two files; the old one is still open
        if present == self._inode:
            return False
        self.close()
        self._begin()
        return True

    def _position(self) -> str:
        return f"{self._inode}:{self._offset - self._splitter.rest}"


class StdinSource:
    """Standard input, for `dmesg --follow | sickbay agent --stdin`. What people pipe in is taken at its word."""

    name, trust, per_boot = "standard input", Trust.OFFLINE, True

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = stream or sys.stdin.buffer
        self._reader: asyncio.StreamReader | None = None
        self._splitter = LineSplitter()
        self._begun = False

    async def open(self, position: str) -> None:
        if self._reader is not None:
            raise SourceError("standard input has ended")
        self._reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(self._reader)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, self._stream)

    async def read(self) -> Batch:
        """What has come since. Input has no backlog that could be waited for: each batch is all there was."""
        if self._reader is None:
            raise SourceError("standard input is not open")
        if not self._begun:
            self._begun = True
            return Batch([], "", end=True)
        while True:
            piece = await self._reader.read(PIECE)
            if not piece:
                raise SourceError("standard input has ended")
            lines = self._splitter.feed(piece)
            if lines:
                return Batch(lines, "", end=True)

    def close(self) -> None:
        self._splitter = LineSplitter()
