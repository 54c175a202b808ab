"""The polarity guard: a new or changed fault type that matches too many nodes at first sight is a mistake, not a storm.

`status == "False"` written for `"True"`, a label that every node carries: such a type would make a whole pool look
sick. When a generation of a FaultType is seen for the first time and matches more nodes of a pool than its breaker
bears, nobody acts on it until a person confirms that very generation. Built-in entries have been looked at before; what
they do when many nodes are truly sick is the breaker's business.

The verdict stands on the FaultType (condition MatchesTooMany with the generation it is about), so it is given once and
survives restarts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sickbay.api import names
from sickbay.api.repair_pool import RepairPool
from sickbay.decide import breaker


def confirmed(obj: Mapping[str, Any]) -> bool:
    """A person has confirmed this very generation."""
    meta = obj["metadata"]
    said = (meta.get("annotations") or {}).get(names.CONFIRM_MATCH)
    return said is not None and said == str(meta.get("generation", 0))


def verdict(obj: Mapping[str, Any]) -> str | None:
    """What stands on the object about this generation: why nobody acts on it, "" for nothing; None = not judged yet."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") != names.MATCHES_TOO_MANY:
            continue
        if condition.get("observedGeneration") == obj["metadata"].get("generation", 0):
            return str(condition.get("message", "")) if condition.get("status") == "True" else ""
    return None


def aside(obj: Mapping[str, Any]) -> str:
    """Why nobody acts on the type, by what stands on it; "" when somebody may."""
    return "" if confirmed(obj) else verdict(obj) or ""


def too_many(
    fault: str, generation: int, matched: Mapping[str, int], sizes: Mapping[str, int], pools: Iterable[RepairPool]
) -> str:
    """Why a type is set aside: the first pool in which it matches more nodes than the breaker bears; "" for none."""
    for pool in sorted(pools, key=lambda p: p.metadata.name):
        name = pool.metadata.name
        size, count = sizes.get(name, 0), matched.get(name, 0)
        most = breaker.limit(pool, size)
        if count > most:
            return (
                f"matches {count} of {size} nodes ({100 * count // size} %) of pool {name} at first sight, and its "
                f"breaker bears {most}: nobody acts on it until a person confirms it with kubectl annotate faulttype "
                f"{fault} {names.CONFIRM_MATCH}={generation} --overwrite"
            )
    return ""
