"""Whether the agent sees: which of its sources have been read, and which cannot be.

The condition `DetectionBlind` is False while everything is read and Unknown while a source is broken. It is never True:
what cannot be seen is unknown, not bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import structlog

from sickbay.api import names
from sickbay.detect import wording
from sickbay.detect.ledger import FALSE, UNKNOWN, Wanted

log = structlog.get_logger(__name__)


class Sight:
    """See the module. `changed` is called when the condition may read otherwise."""

    def __init__(self, watched: Iterable[str], changed: Callable[[], None]) -> None:
        self._watched = tuple(watched)
        self._changed = changed
        self._read: set[str] = set()
        self._broken: dict[str, str] = {}

    @property
    def missing(self) -> list[str]:
        """Sources that have not been read to their end yet."""
        return [name for name in self._watched if name not in self._read]

    @property
    def clear(self) -> bool:
        """True when everything has been read and nothing is broken."""
        return not self.missing and not self._broken

    @property
    def broken(self) -> bool:
        return bool(self._broken)

    def has_read(self, name: str) -> bool:
        return name in self._read

    def note(self, name: str, why_not: str = "") -> None:
        """A source was read to its end, or cannot be read and why."""
        before, first = self._broken.get(name, ""), name not in self._read
        self._read.add(name)
        if why_not:
            self._broken[name] = why_not
        else:
            self._broken.pop(name, None)
        if why_not and not before:
            log.warning("a source cannot be read", source=name, why=why_not)
        if first or why_not != before:
            self._changed()

    def wanted(self) -> list[Wanted]:
        """The condition; nothing before everything has been looked at once."""
        if self.missing:
            return []
        if self._broken:
            text = wording.blind(self._broken.items())
            return [Wanted(names.DETECTION_BLIND, UNKNOWN, "SourceBroken", text, "", critical=False)]
        text = f"read: {', '.join(self._watched) or 'nothing'}"
        return [Wanted(names.DETECTION_BLIND, FALSE, "Sees", text, "", critical=False)]
