"""The Lease that remediators of one node share (medik8s' convention): who holds it may act on the node.

One Lease per node, `node-<name>` in namespace `medik8s-leases`. Where that namespace does not exist nobody uses the
convention, and neither do we (no role can be bound there, so the server answers Forbidden before NotFound). A foreign
holder that has been silent for as long as its Lease says, by our own observation, is taken for dead. Ours is deleted
when we are done, which is how medik8s itself gives one back.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sickbay.api import names
from sickbay.api.core import Lease, Node
from sickbay.api.kinds import LEASE, NAMESPACE
from sickbay.api.objectnames import medik8s_lease_name
from sickbay.clock import Clock, rfc3339_micro
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.leadership import Observation

DURATION = 3600
"""Seconds others wait for us after our last renewal; what node-maintenance-operator takes too."""


class Hold(StrEnum):
    """The answer to taking a node's Lease."""

    HELD = "Held"
    OTHER = "Other"
    UNUSED = "Unused"


@dataclass(frozen=True, slots=True)
class Taken:
    """`holder` is who holds it: us, or the other. With Unused the convention is not in use on this cluster."""

    hold: Hold
    holder: str = ""

    @property
    def free_to_act(self) -> bool:
        return self.hold is not Hold.OTHER


class NodeLease:
    """Takes, renews and gives back the Leases of nodes. Every method raises ApiError."""

    def __init__(
        self, client: Client, clock: Clock, namespace: str = names.MEDIK8S_LEASES, holder: str = names.MEDIK8S_HOLDER
    ) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._holder = holder
        self._seen: dict[str, Observation] = {}

    async def take(self, node: Node, duration: int = DURATION) -> Taken:
        """Take or renew the Lease of a node. Losing a race for it reads as held by the other."""
        name = medik8s_lease_name(node.name)
        try:
            lease = await self._client.get(LEASE, name, self._namespace)
        except errors.NotFound:
            return await self._create(node, duration)
        except errors.Forbidden:
            if await self.in_use():
                raise
            return Taken(Hold.UNUSED)
        seen = self._seen.setdefault(name, Observation())
        now = self._clock.monotonic()
        seen.see(lease, now)
        holder = lease.spec.holder_identity or ""
        if holder != self._holder and not seen.expired(lease, now):
            return Taken(Hold.OTHER, holder)
        try:
            written = await self._client.patch_merge(LEASE, name, self._taking(lease, duration), self._namespace)
        except (errors.Conflict, errors.NotFound):
            return Taken(Hold.OTHER, holder)
        seen.see(written, now)
        return Taken(Hold.HELD, self._holder)

    async def release(self, node_name: str) -> None:
        """Give the Lease back if it is ours; one that is another's, or gone, is left alone."""
        name = medik8s_lease_name(node_name)
        self._seen.pop(name, None)
        try:
            lease = await self._client.get(LEASE, name, self._namespace)
            if lease.spec.holder_identity == self._holder:
                meta = lease.metadata
                await self._client.delete(LEASE, name, self._namespace, meta.uid, meta.resource_version)
        except (errors.NotFound, errors.Conflict):
            return
        except errors.Forbidden:
            if await self.in_use():
                raise

    async def _create(self, node: Node, duration: int) -> Taken:
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid}
        meta = {"name": medik8s_lease_name(node.name), "namespace": self._namespace, "ownerReferences": [owner]}
        body = {"metadata": meta, "spec": self._spec(duration) | {"leaseTransitions": 1}}
        try:
            await self._client.create(LEASE, body, self._namespace)
        except errors.AlreadyExists:
            return Taken(Hold.OTHER)
        except errors.NotFound:
            if await self.in_use():
                raise
            return Taken(Hold.UNUSED)
        return Taken(Hold.HELD, self._holder)

    async def in_use(self) -> bool:
        """Whether the convention is in use on this cluster: its namespace exists."""
        try:
            await self._client.get(NAMESPACE, self._namespace)
        except errors.NotFound:
            return False
        return True

    def _taking(self, lease: Lease, duration: int) -> dict[str, Any]:
        spec = self._spec(duration)
        if lease.spec.holder_identity == self._holder:
            del spec["acquireTime"]
        else:
            spec["leaseTransitions"] = (lease.spec.lease_transitions or 0) + 1
        return {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": spec}

    def _spec(self, duration: int) -> dict[str, Any]:
        now = rfc3339_micro(self._clock.now())
        return {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": duration,
            "acquireTime": now,
            "renewTime": now,
        }
