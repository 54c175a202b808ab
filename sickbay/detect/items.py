"""What the built-in catalogue says about a fault, as far as the agent needs it.

Severity and proof come from the same entries that decide works with: one code has one severity, whoever reports it.
The agent reads the built-in entries only; overrides by `FaultType` objects are decide's business, an agent may not even
read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from sickbay.api import entries
from sickbay.api.names import condition_type
from sickbay.api.words import ClearsBy, Severity

MEANING = "sickbay.dev/meaning"
VERDICT = "sickbay.dev/verdict"


@dataclass(frozen=True, slots=True)
class Item:
    """One entry. `condition` is the type of the Node condition that carries it."""

    name: str
    condition: str
    severity: str
    clears_by: str
    meaning: str
    verdict: str


@cache
def items() -> dict[str, Item]:
    """All built-in entries by name."""
    return {name: _item(document) for name, document in entries.builtin()[1].items()}


def _item(document: dict[str, Any]) -> Item:
    name, spec = document["metadata"]["name"], document["spec"]
    notes = document["metadata"]["annotations"]
    return Item(
        name,
        condition_type(name),
        spec["severity"],
        spec["clearsBy"],
        notes.get(MEANING, ""),
        notes.get(VERDICT, ""),
    )


def item(name: str) -> Item:
    """The entry of a fault. A code that the catalogue does not know is recorded and nothing more."""
    return items().get(name) or Item(name, condition_type(name), Severity.INFO, ClearsBy.SILENCE, "", "")


@cache
def by_condition() -> dict[str, Item]:
    """Entries by the condition type that the agent writes for them."""
    return {each.condition: each for each in items().values()}
