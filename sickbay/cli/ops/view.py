"""All objects that an answer is made from, read once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from sickbay.api import holds as holding
from sickbay.api import kinds
from sickbay.api.core import Node
from sickbay.api.hold import Hold
from sickbay.api.node_repair import NodeRepair
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule
from sickbay.cli.ops import session
from sickbay.decide import catalogue, polarity
from sickbay.decide.arbitration import ordered
from sickbay.decide.catalogue import Catalogue
from sickbay.decide.explain import Explanation, explain
from sickbay.decide.faults import Active, active_faults, displaced
from sickbay.decide.slots import owner_and_envelopes
from sickbay.kube.client import Client


@dataclass
class ClusterView:
    """Sickbay's objects as they are. Nodes are read by those who need them."""

    pools: list[RepairPool]
    rules: dict[str, RepairRule]
    holds: list[Hold]
    repairs: list[NodeRepair]
    catalogue: Catalogue
    now: datetime
    aside: dict[str, str] = field(default_factory=dict)
    """Fault types that nobody acts on, with the reason."""

    @classmethod
    async def read(cls, client: Client) -> ClusterView:
        pools, rules, types, holds, repairs = await asyncio.gather(
            client.list(kinds.REPAIR_POOL),
            client.list(kinds.REPAIR_RULE),
            client.list(kinds.FAULT_TYPE.raw),
            client.list(kinds.HOLD),
            client.list(kinds.NODE_REPAIR),
        )
        return cls(
            pools=pools.items,
            rules={rule.metadata.name: rule for rule in rules.items},
            holds=holds.items,
            repairs=repairs.items,
            catalogue=catalogue.build(types.items),
            now=session.current().clock.now(),
            aside={obj["metadata"]["name"]: why for obj in types.items if (why := polarity.aside(obj))},
        )

    def of(self, node: str) -> list[NodeRepair]:
        """Repairs of a node, oldest first."""
        mine = [r for r in self.repairs if r.spec.node.name == node]
        return sorted(mine, key=lambda r: (r.metadata.creation_timestamp or "", r.metadata.name))

    def open_repair(self, node: str) -> NodeRepair | None:
        return next((r for r in self.of(node) if not r.ended), None)

    def explain(self, node: Node) -> Explanation:
        active: list[Active] = ordered(active_faults(node, self.catalogue))
        pool, envelopes = owner_and_envelopes(self.pools, node)
        names = [p.metadata.name for p in [pool, *envelopes] if p is not None]
        faults = [a.name for a in active]
        binding = [h for h in self.holds if holding.binds(h, node, names, faults, self.now)]
        rule = self.rules.get(pool.spec.rule) if pool is not None and pool.spec.rule else None
        given_way = displaced(active, self.catalogue.own - self.aside.keys())
        return explain(node, active, pool, rule, self.of(node.name), binding, {**given_way, **self.aside})
