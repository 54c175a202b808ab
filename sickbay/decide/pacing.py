"""Limits per failure domain: how many of its nodes may be out of service, and which domain comes next.

    maxUnavailable   members of one domain out of service for any reason, at most
    Spread           with that limit: while nodes of one domain are out by our hand, none of another one leaves
    Pack             a domain that was begun is finished before another one: nobody else starts while one of it waits

A node that offers no capacity anyway is admitted beyond all of this: taking it out costs nothing. Repairs that wait for
third parties or people count in the first, but hold up no other domain.
"""

from __future__ import annotations

from collections.abc import Sequence

from sickbay.api import quantity
from sickbay.api.core import Node
from sickbay.api.repair_pool import Domain
from sickbay.api.words import Pacing
from sickbay.decide.slots import PoolView, unavailable


def cap_of(view: PoolView, domain: Domain, value: str) -> int | None:
    """Members of this domain that may be out at once; None = no limit. A percentage rounds down, but to at least 1."""
    if domain.max_unavailable is None:
        return None
    return quantity.resolve(domain.max_unavailable, domain.size or len(view.domain(domain.key, value)), at_least=1)


def refusal(view: PoolView, nodes: Sequence[Node]) -> str:
    """Why the domains of this pool let these nodes not leave together now; "" when they do."""
    counted = unavailable(view)
    fresh = [node for node in nodes if node.name not in counted]
    for domain in view.pool.spec.domains if fresh else ():
        for value in sorted({node.labels[domain.key] for node in fresh if domain.key in node.labels}):
            mine = [node for node in fresh if node.labels.get(domain.key) == value]
            why = _full(view, domain, value, mine, counted) or _out_of_turn(view, domain, value)
            if why:
                return why
    return ""


def _full(view: PoolView, domain: Domain, value: str, fresh: Sequence[Node], counted: frozenset[str]) -> str:
    cap = cap_of(view, domain, value)
    out = len(view.domain(domain.key, value) & counted)
    if cap is None or out + len(fresh) <= cap:
        return ""
    return f"{out} of at most {cap} members of {domain.key}={value} are out of service (domains[].maxUnavailable)"


def _out_of_turn(view: PoolView, domain: Domain, value: str) -> str:
    packed = domain.pacing == Pacing.PACK
    if not packed and domain.max_unavailable is None:
        return ""
    others = sorted({labels.get(domain.key, "") for labels in view.moving.values()} - {"", value})
    if others:
        return f"nodes of {domain.key}={others[0]} are out, and one domain at a time is (pacing {domain.pacing})"
    begun = view.begun.get(domain.key, "") if packed else ""
    return f"{domain.key}={begun} is finished first (pacing Pack)" if begun not in ("", value) else ""


def never_fits(view: PoolView, nodes: Sequence[Node]) -> str:
    """Why these nodes can never be out at once under the limits per domain; "" when they can."""
    for domain in view.pool.spec.domains:
        for value in sorted({node.labels[domain.key] for node in nodes if domain.key in node.labels}):
            cap = cap_of(view, domain, value)
            count = sum(1 for node in nodes if node.labels.get(domain.key) == value)
            if cap is not None and count > cap:
                name = view.pool.metadata.name
                return (
                    f"domains[].maxUnavailable of pool {name} is {cap} for {domain.key}={value}, the group has {count}"
                    " members in service there"
                )
    return ""
