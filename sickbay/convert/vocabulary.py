"""A provider's own words and what they mean here: one table per source.

A word that is in no table means "hold, tell people": it is kept as it came and changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sickbay.api.words import InfraPhase
from sickbay.convert.kinds import EventKind, plain

TERMINAL = frozenset({InfraPhase.COMPLETED, InfraPhase.AVOIDED, InfraPhase.CANCELLED, InfraPhase.FAILED})
"""Nothing more comes of the event. Gone is none of them: what vanished from a list may be in the next one again."""
RANK = {InfraPhase.INQUIRING: 0, InfraPhase.SCHEDULED: 1, InfraPhase.EXECUTING: 2}
"""The way forward; a terminal phase is behind all of them."""

PLAIN_PHASES = {
    "inquiring": InfraPhase.INQUIRING,
    "scheduled": InfraPhase.SCHEDULED,
    "pending": InfraPhase.SCHEDULED,
    "upcoming": InfraPhase.SCHEDULED,
    "executing": InfraPhase.EXECUTING,
    "started": InfraPhase.EXECUTING,
    "ongoing": InfraPhase.EXECUTING,
    "inprogress": InfraPhase.EXECUTING,
    "executed": InfraPhase.COMPLETED,
    "completed": InfraPhase.COMPLETED,
    "succeeded": InfraPhase.COMPLETED,
    "avoided": InfraPhase.AVOIDED,
    "canceled": InfraPhase.CANCELLED,
    "cancelled": InfraPhase.CANCELLED,
    "failed": InfraPhase.FAILED,
}
"""Words that cannot be mistaken, whoever says them; a source's own table goes before."""

PLAIN_KINDS = {
    "freeze": EventKind.FREEZE,
    "reboot": EventKind.REBOOT,
    "maintenance": EventKind.REBOOT,
    "redeploy": EventKind.REDEPLOY,
    "stop": EventKind.STOP,
    "retirement": EventKind.RETIREMENT,
    "terminate": EventKind.TERMINATE,
    "preempt": EventKind.PREEMPT,
}


@dataclass(frozen=True)
class Vocabulary:
    """One source. `phases` and `kinds` are by `plain` words; `patterns` for types that come in families."""

    source: str
    phases: Mapping[str, InfraPhase] = field(default_factory=dict)
    kinds: Mapping[str, EventKind] = field(default_factory=dict)
    patterns: tuple[tuple[str, EventKind], ...] = ()
    """Regular expressions on the whole type as the provider writes it."""
    says_the_end: bool = False
    """The provider says how an event ended. Where it does not, absence from a complete list is the end."""
    moves_back: bool = True
    """An event may go back from running to planned (its time was moved)."""

    def phase(self, word: str) -> InfraPhase | None:
        """None for a word that nobody knows."""
        known = plain(word)
        return self.phases.get(known) or PLAIN_PHASES.get(known)

    def kind(self, type_: str, word: str = "") -> EventKind | None:
        """None for a type that nobody knows. Some sources have no types, only states: then `word` tells."""
        known = self.kinds.get(plain(type_)) or PLAIN_KINDS.get(plain(type_))
        if known is not None:
            return known
        for pattern, kind in self.patterns:
            if re.fullmatch(pattern, type_) or (word and re.fullmatch(pattern, word)):
                return kind
        return None
