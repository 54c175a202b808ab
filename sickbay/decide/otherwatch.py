"""Looks for other remediators every ten minutes. What a cluster does not have, or does not let us read, is not there.

Their kinds are read by plain lists: a watch on kinds that most clusters lack would fail for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog

from sickbay.api import kinds
from sickbay.api.core import Node
from sickbay.clock import Clock
from sickbay.decide import others
from sickbay.kube import errors
from sickbay.kube.client import Client

log = structlog.get_logger(__name__)

EVERY = 600.0
"""Seconds between two looks."""

NODE_HEALTH_CHECK = kinds.Kind(
    "remediation.medik8s.io", "v1alpha1", "NodeHealthCheck", "nodehealthchecks", False, dict[str, Any]
)
MACHINE_HEALTH_CHECKS = tuple(
    kinds.Kind("cluster.x-k8s.io", version, "MachineHealthCheck", "machinehealthchecks", True, dict[str, Any])
    for version in ("v1beta2", "v1beta1")
)
"""The newest version that the cluster has is read."""

Objects = list[dict[str, Any]]


class OtherWatch:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._next = 0.0
        self._looks = 0
        self._node_checks: Objects = []
        self._machine_checks: Objects = []
        self._daemon_sets: Objects = []
        self._known: dict[str, tuple[tuple[int, int], str]] = {}

    async def refresh(self) -> bool:
        """Look again when it is time. True when it was."""
        if self._clock.monotonic() < self._next:
            return False
        self._next = self._clock.monotonic() + EVERY
        self._node_checks = await self._list(NODE_HEALTH_CHECK)
        self._machine_checks = []
        for kind in MACHINE_HEALTH_CHECKS:
            self._machine_checks = self._machine_checks or await self._list(kind)
        self._daemon_sets = await self._list(kinds.DAEMON_SET)
        self._looks += 1
        return True

    def of(self, pool: str, members: Callable[[], list[Node]], size: int) -> str:
        """Who else may act on the pool's nodes, for people; "" for nobody."""
        version = self._looks, size
        kept = self._known.get(pool)
        if kept is None or kept[0] != version:
            nodes = members()
            found = others.on_nodes(nodes)
            if nodes:
                found += others.by_objects(nodes, self._node_checks, self._machine_checks, self._daemon_sets)
            kept = version, others.message(found)
            self._known[pool] = kept
        return kept[1]

    async def _list(self, kind: kinds.Kind[dict[str, Any]]) -> Objects:
        try:
            return (await self._client.list(kind)).items
        except (errors.NotFound, errors.Forbidden):
            return []
        except errors.ApiError as error:
            log.info("other remediators could not be looked for", kind=kind.kind, error=str(error))
            return []
