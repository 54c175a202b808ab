"""Keeping watch over the agents: what is told to `Silence`, and when it is asked.

Whether an agent is silent is asked only while we surely see: each look begins with a small read of the Leases from the
quorum, and before a node is marked all Leases are read afresh. When looks fail or come late, the wait of every agent
begins anew. All replicas watch, so that a new leader need not wait; only the leader writes.
"""

from __future__ import annotations

import structlog

from sickbay.api import kinds, names
from sickbay.api.core import Lease, Node, ObjectReference
from sickbay.clock import Clock
from sickbay.convert import agents
from sickbay.convert.silence import SILENT, Gatherer, Silence
from sickbay.convert.sources import Sources
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.events import WARNING, EventRecorder, reference

log = structlog.get_logger(__name__)

LOOK = 15.0
"""Seconds between two looks."""
LATE = 4
"""Looks that may be missed before the time between counts as time in which we saw nothing."""
SHOWN = 10
"""Nodes that one Event names."""


class AgentWatch:
    """See the module. `silent` are the nodes whose agents are silent at this moment, as far as we know."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        sources: Sources,
        recorder: EventRecorder,
        every: float = LOOK,
        patience: float = SILENT,
    ) -> None:
        self._client, self._clock, self._sources, self._recorder = client, clock, sources, recorder
        self._every = every
        self._silence, self._gatherer = Silence(patience), Gatherer()
        self._looked = clock.monotonic()
        self.silent: frozenset[str] = frozenset()
        sources.leases.on_change(self._lease_changed)
        sources.nodes.on_change(self._node_changed)

    def _lease_changed(self, old: Lease | None, new: Lease | None) -> None:
        lease, now = new or old, self._clock.monotonic()
        assert lease is not None
        # That a Lease is gone is a change too: the agent has as long again to make another.
        mark = f"{lease.metadata.uid}/{lease.metadata.resource_version}" if new is not None else "no Lease"
        self._silence.see(lease.metadata.name, mark, now)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        now = self._clock.monotonic()
        if new is None:
            assert old is not None
            self._silence.forget(old.name)
        elif old is not None and agents.marked_silent(old) and not agents.marked_silent(new):
            # Somebody has replaced our word about the agent, which only the agent does: it lives.
            self._silence.see(new.name, f"wrote {new.metadata.resource_version}", now)
        elif new.condition(names.DETECTION_BLIND) is not None:
            self._silence.expect(new.name, now)

    async def look(self, leading: bool) -> set[str]:
        """One look. Returns the nodes for which something has changed by it."""
        before, now = self.silent, self._clock.monotonic()
        try:
            await self._client.current_version(kinds.LEASE, names.AGENT_LEASES)
        except errors.ApiError as error:
            log.debug("the agents' leases cannot be seen", error=str(error))
            return set()
        if now - self._looked > LATE * self._every:
            self._silence.after_gap(self._clock.monotonic())
        self._looked = self._clock.monotonic()
        silent = self._existing(self._silence.silent(self._looked))
        if set(silent) - before:
            silent = await self._confirmed()
        self.silent = frozenset(silent)
        if leading:
            self._tell()
        return set(self.silent ^ before)

    def _existing(self, agents_: list[str]) -> list[str]:
        return [name for name in agents_ if self._sources.nodes.get(name) is not None]

    async def _confirmed(self) -> list[str]:
        """The silent ones by a fresh list, or those we knew of before where it cannot be had."""
        try:
            await self._sources.leases.relist()
        except errors.ApiError as error:
            log.warning("silence not confirmed", error=str(error))
            return sorted(self.silent)
        return self._existing(self._silence.silent(self._clock.monotonic()))

    def _tell(self) -> None:
        for group in self._gatherer.take(self.silent, self._clock.monotonic()):
            if len(group) == 1:
                node = self._sources.nodes.get(group[0])
                if node is not None:
                    about = reference(kinds.NODE, node)
                    self._recorder.event(about, WARNING, agents.REASON, agents.MESSAGE)
                continue
            named = ", ".join(group[:SHOWN]) + (f" and {len(group) - SHOWN} more" if len(group) > SHOWN else "")
            text = f"{len(group)} agents fell silent together: suspect the detector or the way to it ({named})"
            where = ObjectReference(api_version="v1", kind="Namespace", name=names.AGENT_LEASES)
            self._recorder.event(where, WARNING, "DetectorSuspect", text)
            log.warning("detector suspect", agents=len(group))
