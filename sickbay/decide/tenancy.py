"""The pods that decide looks at: those of jobs, and only while a repair waits for one.

Most clusters never ask. The first repair whose urgency is not Now starts the watch; until its list is there the jobs of
a node are unknown, and what is unknown is waited for.
"""

from __future__ import annotations

from collections.abc import Callable

from sickbay.api import kinds
from sickbay.api.core import Pod
from sickbay.clock import Clock, Randomness
from sickbay.decide.gangs import Tenants, gang_of, is_job_pod
from sickbay.decide.ondemand import OnDemand
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer

UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


class Tenancy:
    """`cache` is the watch behind it; it runs once somebody has asked."""

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
        self.cache = OnDemand(self.pods)

    def on_change(self, handler: Callable[[Pod | None, Pod | None], None]) -> None:
        self.pods.on_change(handler)

    def of(self, node: str) -> Tenants | None:
        """The jobs on a node; None while they are not known."""
        if not self.cache.ask():
            return None
        return Tenants(tuple(self.pods.by_index("node", node)), lambda job: self.pods.by_index("gang", job))
