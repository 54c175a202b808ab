"""A person's word on how an incident came out, in the annotation `sickbay.dev/resolve` of its NodeRepair.

Written by `sickbay resolve`, followed by decide, and looked at by execute before each act: a word that cancels counts
from the moment it stands there, whoever is slow to follow it.
"""

from __future__ import annotations

import msgspec

from sickbay.api import names
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import Outcome
from sickbay.clock import parse_time


class Word(msgspec.Struct, kw_only=True):
    """The value of the annotation."""

    outcome: str = ""
    reason: str = ""
    at: str = ""
    """When it was said; a word is followed once."""
    by: str = ""
    """Who says so, as the API server knows them; "" where the word was written without the command."""


def read(repair: NodeRepair) -> Word | None:
    """None where there is no word, or one that cannot be read: a word nobody can read is none."""
    text = repair.metadata.annotations.get(names.RESOLVE)
    if not text:
        return None
    try:
        word = msgspec.json.decode(text, type=Word)
        parse_time(word.at)
    except (msgspec.DecodeError, ValueError):
        return None
    return word


def cancelled(repair: NodeRepair) -> bool:
    """A word that gives everything back stands on the record and has not been followed yet."""
    word = read(repair)
    return word is not None and word.outcome == Outcome.CANCELLED_BY_PERSON and word.at != repair.status.resolved
