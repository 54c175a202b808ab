"""What convert reads from the API server: one informer per kind."""

from __future__ import annotations

import asyncio
from typing import Any

from sickbay.api import kinds, names
from sickbay.api.core import Event, Lease, Node
from sickbay.api.infra_event import InfraEvent
from sickbay.api.node_repair import NodeRepair
from sickbay.clock import Clock, Randomness
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer

RESYNC = 240.0
"""Seconds between comparisons of a cache with a fresh list, as in decide."""


class Sources:
    def __init__(self, client: Client, clock: Clock, randomness: Randomness, resync: float = RESYNC) -> None:
        def informer(kind: kinds.Kind[Any], **options: Any) -> Informer[Any]:
            return Informer(client, kind, clock, randomness.fork(), resync=resync, **options)

        self.nodes: Informer[Node] = informer(kinds.NODE)
        self.leases: Informer[Lease] = informer(kinds.LEASE, namespace=names.AGENT_LEASES)
        self.infra: Informer[InfraEvent] = informer(
            kinds.INFRA_EVENT, indexes={"node": lambda event: [event.spec.node.name]}
        )
        self.types: Informer[dict[str, Any]] = informer(kinds.FAULT_TYPE.raw)
        self.repairs: Informer[NodeRepair] = informer(
            kinds.NODE_REPAIR, indexes={"node": lambda repair: [repair.spec.node.name]}
        )
        self.events: Informer[Event] = informer(
            kinds.EVENT,
            fields="involvedObject.kind=Node",
            indexes={"node": lambda event: [event.involved_object.name]},
        )

    @property
    def all(self) -> list[Informer[Any]]:
        return [self.nodes, self.leases, self.infra, self.types, self.repairs, self.events]

    async def wait_synced(self) -> None:
        await asyncio.gather(*(informer.synced.wait() for informer in self.all))

    async def read_afresh(self) -> None:
        """When a new term begins: nothing is written from a cache that is older than the term."""
        for informer in self.all:
            await informer.read_afresh()
