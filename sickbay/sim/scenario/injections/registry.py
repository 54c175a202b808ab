"""The table of injections: a word, and a function that reads its arguments and returns what it does to a world."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sickbay.sim.scenario.document import Reader

if TYPE_CHECKING:
    from sickbay.sim.world import World

Act = Callable[["World"], None]
"""Does something to the world, at once. Raises InjectionError where that cannot be."""

Read = Callable[[Reader], Act]

INJECTIONS: dict[str, Read] = {}


class InjectionError(Exception):
    """An injection could not be carried out (no such node, refused by the server) or had not the effect asked for."""


class NothingThereError(Exception):
    """There was nothing to be struck at that moment: no failure where the same entry strikes at another one."""


def injection(word: str) -> Callable[[Read], Read]:
    def register(read: Read) -> Read:
        assert word not in INJECTIONS, word
        INJECTIONS[word] = read
        return read

    return register
