"""Who reacts in a drawn world: people who answer questions, and a detector that looks again after a repair.

What they do follows from the seed and from what they see; `done` tells it, for the reader of a run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sickbay.apiserver.errors import StatusError
from sickbay.apiserver.writes import Write
from sickbay.sim.chaos.dice import Dice
from sickbay.sim.hand import NODES, labels_of
from sickbay.sim.machine import Machine
from sickbay.sim.world import World

ASKED, PERSON = "inquiring", "alice"
DRAWN = "Chaos"
"""What the types of drawn conditions begin with."""


class Bystanders:
    """See the module. `calm` is set when the storm is over: then every question is answered with yes.

    acting  whether they do anything before
    """

    def __init__(self, world: World, dice: Dice, acting: bool = True) -> None:
        self._world, self._dice, self._acting = world, dice, acting
        self._acts = 0
        self.calm = False
        self.done: list[str] = []
        self._heals = dice.one([0.5, 0.8, 1.0])
        """How likely a drawn fault is gone after something was done about it."""
        world.store.after_write(self._written)
        world.journal.on_change.append(self._acted)
        world.fleet.on_machine.append(self._joined)

    def _later(self, seconds: float, what: str, do: Callable[[], Any]) -> None:
        def act() -> None:
            try:
                do()
            except (StatusError, LookupError) as error:
                self.done.append(f"{self._world.loop.time():.1f}s {what}: {error}")
            else:
                self.done.append(f"{self._world.loop.time():.1f}s {what}")

        self._world.loop.call_later(seconds, act)

    # --- people

    def _written(self, write: Write) -> None:
        if write.resource != NODES or write.new is None or write.old is write.new:
            return
        if not (self._acting or self.calm):
            return
        before = labels_of(write.old) if write.old is not None else {}
        for key, value in labels_of(write.new).items():
            if value == ASKED and before.get(key) != ASKED and key.endswith("-node"):
                self._answer(write.name, key)

    def _answer(self, node: str, label: str) -> None:
        if self.calm:
            self._later(5, f"{node}: {label}=approved", lambda: self._label(node, label, "approved"))
            return
        word = self._dice.weighted([(10, "approved"), (2, "denied"), (3, ""), (1, "perhaps"), (1, "APPROVED")])
        delay = self._dice.one([0.1, 2, 20, 90, 200])
        if word:
            self._later(delay, f"{node}: {label}={word}", lambda: self._label(node, label, word))

    def _label(self, node: str, label: str, word: str) -> None:
        """Most people look before they answer; some have opened the page a while ago."""
        asked = labels_of(self._world.node(node)).get(label) == ASKED
        if asked or (not self.calm and self._dice.chance(0.1)):
            self._world.person(PERSON).merge(NODES, node, {"metadata": {"labels": {label: word}}})

    def answer_all(self) -> None:
        """Say yes to whatever stands open."""
        for node in self._world.store.list(NODES):
            for key, value in labels_of(node).items():
                if value == ASKED and key.endswith("-node"):
                    self._answer(node["metadata"]["name"], key)

    # --- the detector

    def _acted(self) -> None:
        actions = self._world.journal.actions
        for action in actions[self._acts :] if self._acting else ():
            if action.kind not in ("Evict", "DeletePod") and self._dice.chance(self._heals):
                self._clear_later(action.node, 100.0 + self._dice.between(0, 20))
        self._acts = len(actions)

    def _joined(self, machine: Machine) -> None:
        def heard(what: str) -> None:
            if what == "up" and self._acting and self._dice.chance(self._heals):
                self._clear_later(machine.name, 10.0)

        machine.listeners.append(heard)

    def _clear_later(self, node: str, seconds: float) -> None:
        self._later(seconds, f"{node}: looks well", lambda: self.clear(node))

    def clear(self, node: str) -> None:
        """The detector finds the drawn faults of a node gone."""
        for condition in (self._world.node(node).get("status") or {}).get("conditions") or ():
            if condition["type"].startswith(DRAWN) and condition["status"] != "False":
                gone = {"type": condition["type"], "status": "False", "reason": "Well", "message": ""}
                self._world.set_condition(node, "node-problem-detector", gone)

    def clear_all(self) -> None:
        for node in self._world.store.list(NODES):
            self.clear(node["metadata"]["name"])


def end_weather(world: World, bystanders: Bystanders) -> None:
    """From here on nobody does any harm: what was broken works, what was forbidden is allowed again."""
    world.weather.faults.clear()
    for process in world.staff.everybody():
        process.crash_on(None)
        process.skew = 0.0
        process.resume()
    for process in world.staff.controllers():
        process.start()
    for machine in list(world.stage.machines.values()):
        machine.clock_skew = 0.0
        machine.power_on()
        machine.set_heartbeat(True)
        machine.offer_all()
        for service in machine.services:
            machine.set_service(service, "active")
    for behaviour in world.cloud.behaviours.values():
        behaviour.fail, behaviour.script = 0.0, []
    _allow(world)
    bystanders.calm = True
    bystanders.answer_all()


def _allow(world: World) -> None:
    admin = world.person("admin")
    for hold in world.store.list("holds.sickbay.dev"):
        admin.delete("holds.sickbay.dev", hold["metadata"]["name"])
    for node in world.store.list(NODES):
        name, taints = node["metadata"]["name"], (node.get("spec") or {}).get("taints") or []
        kept = [t for t in taints if t["key"] not in ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")]
        labels = {"remediation.medik8s.io/exclude-from-remediation": None}
        patch: dict[str, Any] = {"metadata": {"labels": labels}}
        if kept != taints:
            patch["spec"] = {"taints": kept or None}
        admin.merge(NODES, name, patch)
