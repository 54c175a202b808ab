"""What the providers of a simulated fleet list: their own events, in their own words.

A word of the timeline enters here and is what the provider's API would list from then on; `Gone` takes an entry off the
list, as those providers do that have no word for the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sickbay.convert.notice import Notice
from sickbay.convert.polling import Listed, SourceError

LISTED_EVERY = 10.0
"""Seconds between two looks at the lists."""
OFF_THE_LIST = ("", "gone")
"""Words of the timeline, in any case, for an entry that is no longer listed."""


@dataclass(slots=True)
class Listings:
    """All lists of all providers."""

    entries: dict[tuple[str, str], Notice] = field(default_factory=dict)
    failing: str = ""
    """Why the providers cannot be asked now; empty while they can."""

    def put(self, notice: Notice) -> None:
        if notice.phase.lower() in OFF_THE_LIST:
            self.entries.pop(notice.key, None)
        else:
            self.entries[notice.key] = notice


class FakeEvents:
    """The lists as a process of ours reads them."""

    name = "fake"

    def __init__(self, listings: Listings, every: float = LISTED_EVERY) -> None:
        self._listings, self.every = listings, every

    def covers(self, source: str) -> bool:
        return True

    async def list(self) -> Listed:
        if self._listings.failing:
            raise SourceError(self._listings.failing)
        return Listed(list(self._listings.entries.values()))
