"""The others in the story: a training platform that answers approval labels, and a person with kubectl."""

from __future__ import annotations

from collections.abc import Callable

from sickbay.api import names
from sickbay.sim.hand import NODES
from sickbay.sim.world import World

CHECKPOINT_SECONDS = 40.0
"""How long the stand-in's checkpoint takes."""
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
                await self._checkpoint(node["metadata"]["name"])
            await self._world.clock.sleep(LOOK_SECONDS)

    async def _checkpoint(self, node: str) -> None:
        self._say(node, f"training platform: sees {self._label}=inquiring, writes a checkpoint")
        await self._world.clock.sleep(CHECKPOINT_SECONDS)
        self._hand.merge(NODES, node, {"metadata": {"labels": {self._label: "approved"}}})
        self._say(node, f"training platform: checkpoint is complete, label {self._label}=approved")


def cordon(world: World, node: str, say: Say) -> None:
    world.person("jo").merge(NODES, node, {"spec": {"unschedulable": True}})
    say(node, f"jo: kubectl cordon {node}   (a person's cordon, for reasons of jo's own)")
