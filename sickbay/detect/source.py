"""Where lines come from: the kernel's own log, a log file, standard input.

A source hands out lines in batches, each with the position after it, and says when it has come to the end of what was
there already. A source that cannot be read raises SourceError; then the agent is blind and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sickbay.detect.judge import Trust
from sickbay.detect.record import MAX_LINE

BATCH = 2000
"""Lines handed out at a time: a few milliseconds of work."""


class SourceError(Exception):
    """The source cannot be read; the text says why, for people."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines in their order. `lost`: records that were overwritten before they could be read (at least so many)."""

    lines: Sequence[str]
    position: str
    end: bool = False
    """True when this was all there was at the moment."""
    lost: int = 0


class Source(Protocol):
    """One source of lines. Not used by two readers at once."""

    @property
    def name(self) -> str:
        """For messages and metrics."""
        ...

    @property
    def trust(self) -> Trust: ...

    @property
    def per_boot(self) -> bool:
        """True when positions of one boot mean nothing in the next."""
        ...

    async def open(self, position: str) -> None:
        """Begin after `position`, "" = at the first line there is. Raises SourceError."""
        ...

    async def read(self) -> Batch:
        """The next batch. Waits for lines, but returns an empty one with `end` the first time that there are none.
        Raises SourceError."""
        ...

    def close(self) -> None: ...


class LineSplitter:
    """Whole lines out of pieces of bytes. A line longer than `MAX_LINE` is cut, so memory stays bounded."""

    def __init__(self) -> None:
        self._rest = b""
        self._cut = False

    @property
    def rest(self) -> int:
        """Bytes of the line that has not ended yet; 0 where its beginning was handed out already."""
        return len(self._rest)

    def feed(self, piece: bytes) -> list[str]:
        *whole, rest = (self._rest + piece).split(b"\n")
        lines = [line[:MAX_LINE].decode("utf-8", "replace") for line in whole]
        if self._cut and lines:
            lines, self._cut = lines[1:], False
        if len(rest) > MAX_LINE:
            if not self._cut:
                lines.append(rest[:MAX_LINE].decode("utf-8", "replace"))
            rest, self._cut = b"", True
        self._rest = rest
        return lines
