"""Which back-end carries an act out, and calls to it that end.

Acts inside a running node (a service, a card) are the agent's where the node has one, whatever the machines are made
of: it sees who still uses the card, and knows afterwards that it was reset. All else, and these on a node without an
agent, is for the pool's back-end. No call may last for ever: after a minute a submission counts as unanswered, which is
not the same as refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from sickbay.api.core import Node
from sickbay.api.names import DETECTION_BLIND
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import DIAGNOSE
from sickbay.providers.base import (
    Act,
    Ambiguous,
    Fences,
    Observation,
    Power,
    Provider,
    ProviderError,
    Target,
    Transient,
    Withdraws,
)

CALL_SECONDS = 60.0
"""Longest call. Cloud APIs answer within seconds; their own clients give up after 60 s (botocore's read timeout)."""

AGENT = "agent"
IN_NODE = ("RestartService", "RestartDevicePlugin", "ResetGPU", "ResetFabric", "SetDeviceConfig", DIAGNOSE)
"""Acts inside a running node."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A provider under the name people know it by."""

    name: str
    provider: Provider

    @property
    def keeps_keys(self) -> bool:
        return self.provider.keeps_keys

    async def submit(self, act: Act) -> None:
        """As `Provider.submit`; no answer in time is Ambiguous."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await self.provider.submit(act)
        except TimeoutError:
            raise Ambiguous(f"no answer within {CALL_SECONDS:g} s") from None

    async def observe(self, act: Act) -> Observation:
        """As `Provider.observe`; no answer in time is Transient."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await self.provider.observe(act)
        except TimeoutError:
            raise Transient(f"no answer within {CALL_SECONDS:g} s") from None

    async def withdraw(self, act: Act) -> None:
        """Take back an act that has not begun, where the back-end knows how. Raises ProviderError."""
        if not isinstance(self.provider, Withdraws):
            return
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await self.provider.withdraw(act)
        except TimeoutError:
            raise Transient(f"no answer within {CALL_SECONDS:g} s") from None


class Backends:
    """All back-ends of this process, by name."""

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self._providers = providers

    async def power(self, repair: NodeRepair, target: Target) -> Power:
        """Power state by the pool's back-end; Unknown where it cannot tell, or does not answer in time."""
        provider: object = self._providers.get(repair.spec.plan.provider.name)
        if not isinstance(provider, Fences):
            return Power.UNKNOWN
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await provider.power(target)
        except (TimeoutError, ProviderError):
            return Power.UNKNOWN

    def choose(self, repair: NodeRepair, action: str, node: Node) -> Backend | None:
        """The back-end for an act of this repair; None when none can do it."""
        names = [repair.spec.plan.provider.name]
        if action in IN_NODE:
            names.insert(0 if node.condition(DETECTION_BLIND) is not None else 1, AGENT)
        for name in names:
            provider = self._providers.get(name)
            if provider is not None and provider.supports(action):
                return Backend(name, provider)
        return None
