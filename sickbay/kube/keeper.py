"""A Lease that only says "I am alive": an agent's own, renewed for as long as it runs.

Nobody competes for it. Whoever watches it judges by its own clock since the last change it saw, so the times in it are
for people. What goes wrong is retried for ever; an agent never stops because it cannot renew.
"""

from __future__ import annotations

from typing import Any

import structlog

from sickbay.api.kinds import LEASE
from sickbay.clock import Clock, Randomness, rfc3339_micro
from sickbay.kube import errors
from sickbay.kube.backoff import Backoff
from sickbay.kube.client import Client

PERIOD = 30.0
"""Seconds between renewals (the contract's figure)."""

DURATION = 180
"""leaseDurationSeconds: after 3 minutes of silence the agent counts as blind."""

log = structlog.get_logger(__name__)


class LeaseKeeper:
    """Keeps one Lease. `owner` is an ownerReference (the agent's Node), so that the Lease goes with it."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        randomness: Randomness,
        *,
        name: str,
        namespace: str,
        identity: str,
        owner: dict[str, Any] | None = None,
        period: float = PERIOD,
        duration: int = DURATION,
    ) -> None:
        self._client = client
        self._clock = clock
        self.name, self.namespace, self._identity = name, namespace, identity
        self._owner = owner
        self.period, self._duration = period, duration
        self._backoff = Backoff(randomness, 1.0, period)

    async def run(self) -> None:
        """Renew until cancelled."""
        while True:
            try:
                await self.renew()
            except errors.ApiError as error:
                log.warning("own lease not renewed", lease=self.name, error=str(error))
                await self._clock.sleep(self._backoff.next())
                continue
            self._backoff.reset()
            await self.pause()

    async def pause(self) -> None:
        """Wait until the next renewal."""
        await self._clock.sleep(self.period)

    async def renew(self) -> None:
        """Renew once, making the Lease where it is missing. Raises ApiError."""
        now = rfc3339_micro(self._clock.now())
        spec = self.spec(now)
        try:
            await self._client.patch_merge(LEASE, self.name, {"spec": spec}, self.namespace)
        except errors.NotFound:
            meta: dict[str, Any] = {"name": self.name, "namespace": self.namespace}
            if self._owner is not None:
                meta["ownerReferences"] = [self._owner]
            await self._client.create(LEASE, {"metadata": meta, "spec": spec | {"acquireTime": now}}, self.namespace)

    def spec(self, now: str) -> dict[str, Any]:
        """What a renewal at `now` (RFC 3339 with microseconds) says."""
        return {"holderIdentity": self._identity, "leaseDurationSeconds": self._duration, "renewTime": now}
