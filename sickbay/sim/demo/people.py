"""The other in the story: a training platform that answers approval labels, as people do or programs for them."""

from __future__ import annotations

from collections.abc import Callable

from sickbay.api import names
from sickbay.sim.hand import NODES, PODS
from sickbay.sim.world import World

ANSWER_SECONDS = 40.0
"""How long the stand-in takes to be sure."""
LOOK_SECONDS = 2.0

Say = Callable[[str, str], None]


class TrainingPlatform:
    """Polls the labels of its nodes, as platforms written against ACK's handshake do; knows nothing of Sickbay."""

    def __init__(self, world: World, pool: str, say: Say) -> None:
        self._world, self._pool, self._say = world, pool, say
        self._hand = world.person("training-platform")
        self._label = names.approval_label(names.APPROVAL_PREFIXES["sickbay"], "Drain")

    async def run(self) -> None:
        while True:
            for node in self._hand.select(NODES, labels=f"pool={self._pool},{self._label}=inquiring"):
                await self._answer(node["metadata"]["name"])
            await self._world.clock.sleep(LOOK_SECONDS)

    async def _answer(self, node: str) -> None:
        left = len(self._world.store.list(PODS, "default", fields=f"spec.nodeName={node},status.phase=Running"))
        self._say(node, f"training platform: sees {self._label}=inquiring; ranks that run there: {left}")
        await self._world.clock.sleep(ANSWER_SECONDS)
        self._hand.merge(NODES, node, {"metadata": {"labels": {self._label: "approved"}}})
        self._say(node, f"training platform: label {self._label}=approved")
