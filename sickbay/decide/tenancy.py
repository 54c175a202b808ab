"""The pods that decide looks at: those of jobs, and only while a repair waits for one.

Most clusters never ask. The first repair whose urgency is not Now starts the watch; until its list is there the jobs of
a node are unknown, and what is unknown is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sickbay.api import kinds
from sickbay.api.core import Pod
from sickbay.clock import Clock, Randomness
from sickbay.decide.gangs import Tenants, gang_of, is_job_pod
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer

UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


class Tenancy:
    """`run` keeps the cache current once somebody has asked."""

    def __init__(self, client: Client, clock: Clock, randomness: Randomness, resync: float) -> None:
        self.pods: Informer[Pod] = Informer(
            client,
            kinds.POD,
            clock,
            randomness,
            fields=UNFINISHED,
            resync=resync,
            indexes={
                "node": lambda pod: [pod.node_name] if is_job_pod(pod) else [],
                "gang": lambda pod: [gang_of(pod)] if is_job_pod(pod) else [],
            },
        )
        self._asked = asyncio.Event()

    async def run(self) -> None:
        await self._asked.wait()
        await self.pods.run()

    def on_change(self, handler: Callable[[Pod | None, Pod | None], None]) -> None:
        self.pods.on_change(handler)

    def of(self, node: str) -> Tenants | None:
        """The jobs on a node; None while they are not known."""
        self._asked.set()
        if not self.pods.synced.is_set():
            return None
        return Tenants(tuple(self.pods.by_index("node", node)), lambda job: self.pods.by_index("gang", job))
