"""Objects of ours that say of themselves that they cannot work as they are written.

A pool whose rule does not exist repairs nothing, and a fault type whose expression cannot be read finds nothing: what a
scenario then sees is that nothing happens. The reason stands in a condition of the object, and a failed run shows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sickbay.api import names
from sickbay.apiserver.store import Store

_UNFIT = {names.VALID: "False", names.RULE_RESOLVED: "False", names.EXPRESSION_FAILED: "True"}
"""The status of each condition that tells of a mistake in the object."""


def unfit(store: Store) -> list[str]:
    """One line for each such condition of an object of ours, as they stand now."""
    keys = [resource.key for resource in store.resources if resource.group == names.GROUP]
    return [line for key in sorted(keys) for line in _of(store, key)]


def _of(store: Store, key: str) -> Iterator[str]:
    for obj in store.list(key):
        for condition in (obj.get("status") or {}).get("conditions") or ():
            if _UNFIT.get(condition["type"]) != condition["status"]:
                continue
            why = condition.get("message") or condition.get("reason", "")
            yield f"{obj['kind']} {obj['metadata']['name']}: {condition['type']} is {condition['status']}: {why}"
