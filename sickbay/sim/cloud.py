"""A fake cloud: a repair back-end whose every answer can be scripted.

It keeps keys as a good back-end does (`keys: false` makes it one that does not), performs what it accepted on the
hollow machine after the time such an act takes, and records each call. How a call may go wrong (`answer`):

    ok                 accepted and carried out
    transient          not accepted, and the caller knows: conflict, throttling
    permanent          not accepted, and never will be
    timeout            not accepted, and the caller cannot know: no answer comes
    acceptThenTimeout  accepted and carried out, but no answer comes
    liesDone           accepted, called done at once, and nothing is done

The default time of each act is in `DURATIONS`; a reboot takes as long as the machine boots.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from sickbay.clock import Clock, Randomness
from sickbay.providers.base import Act, ActState, Ambiguous, Observation, Permanent, Power, Target, Transient
from sickbay.sim.journal import Journal
from sickbay.sim.machine import Machine

CALLS = {
    "RebootNode": "reboot",
    "PowerCycle": "powerCycle",
    "PowerOff": "powerOff",
    "PowerOn": "powerOn",
    "ReplaceNode": "replace",
    "RedeployNode": "redeploy",
    "ReprovisionNode": "reprovision",
    "RepairHardware": "repairHardware",
    "ContactSupport": "contactSupport",
    "ResetGPU": "resetGPU",
    "RestartService": "restartService",
    "RestartDevicePlugin": "restartDevicePlugin",
    "ResetFabric": "resetFabric",
    "RecoverDomain": "recoverDomain",
    "SetDeviceConfig": "setDeviceConfig",
    "Custom": "custom",
    "Diagnose": "diagnose",
}
"""The call a back-end gets for each remedy; also the words of `script[].call`."""

SCRIPTED = ("reboot", "powerCycle", "powerOff", "replace", "repairHardware", "observe", "resetGPU", "restartService")
SCRIPTABLE = (*SCRIPTED, *(call for call in CALLS.values() if call not in SCRIPTED))

ANSWERS = ("ok", "transient", "permanent", "acceptThenTimeout", "timeout", "liesDone")

NOT_DESTRUCTIVE = ("diagnose", "contactSupport", "powerOn")

ANSWER_SECONDS = 30.0
"""After which a caller gives up waiting for an answer that does not come."""

DURATIONS = {
    "repairHardware": 4 * 3600.0,
    "replace": 600.0,
    "redeploy": 600.0,
    "resetGPU": 10.0,
    "resetFabric": 120.0,
    "recoverDomain": 300.0,
    "diagnose": 60.0,
}
"""Seconds that acts other than boots take; what is not named takes one second."""


@dataclass(slots=True)
class ScriptLine:
    """The answer to the next `times` requests of one call."""

    call: str
    answer: str = "ok"
    message: str = ""
    times: int = 1


@dataclass(slots=True)
class Behaviour:
    """How the back-end of some nodes behaves."""

    fail: float = 0.0
    """Probability that an accepted act ends as failed and changes nothing."""
    script: list[ScriptLine] = field(default_factory=list)
    keeps_keys: bool = True

    def answer(self, call: str) -> ScriptLine:
        """Take the next scripted answer to `call`; without one it is ok."""
        for line in self.script:
            if line.call == call and line.times > 0:
                line.times -= 1
                return line
        return ScriptLine(call)


@dataclass(slots=True)
class _Operation:
    state: ActState
    message: str = ""
    proof: dict[str, str] = field(default_factory=dict)


class Cloud:
    """All fake back-ends of a world. `replace` is told of a machine whose instance is to be exchanged for a new one."""

    def __init__(self, clock: Clock, randomness: Randomness, journal: Journal) -> None:
        self._clock, self._randomness, self._journal = clock, randomness, journal
        self._operations: dict[str, _Operation] = {}
        self.machines: dict[str, Machine] = {}
        self.behaviours: dict[str, Behaviour] = {}
        """By node name, or else by pool name."""
        self.on_replace: Callable[[Machine], None] = lambda machine: None

    def behaviour(self, node: str) -> Behaviour:
        if node in self.behaviours:
            return self.behaviours[node]
        machine = self.machines.get(node)
        return self.behaviours.setdefault(machine.pool if machine else node, Behaviour())

    def behaviour_of_pool(self, pool: str) -> Behaviour:
        return self.behaviours.setdefault(pool, Behaviour())

    def accept(self, act: Act) -> ScriptLine:
        """One request. Starts what is accepted, raises what is refused at once, and returns the answer that is due."""
        call = CALLS[act.action]
        line = self.behaviour(act.target.name).answer(call)
        self._journal.call(call, line.answer, act.target.name, act.key)
        text = f": {line.message}" if line.message else ""
        if line.answer == "transient":
            raise Transient(f"the back-end is busy (409){text}")
        if line.answer == "permanent":
            raise Permanent(f"the back-end refuses {call} of {act.target.name}{text}")
        if line.answer != "timeout":
            self._start(call, act, lie=line.answer == "liesDone")
        return line

    def look(self, act: Act) -> tuple[ScriptLine, Observation]:
        line = self.behaviour(act.target.name).answer("observe")
        self._journal.call("observe", line.answer, act.target.name, act.key)
        operation = self._operations.get(act.key)
        if operation is None:
            known = self.behaviour(act.target.name).keeps_keys
            return line, Observation(ActState.ABSENT if known else ActState.UNKNOWN, "no such operation")
        return line, Observation(operation.state, operation.message, dict(operation.proof))

    def _start(self, call: str, act: Act, lie: bool) -> None:
        if act.key in self._operations and self.behaviour(act.target.name).keeps_keys:
            return  # the same key is the same act
        machine = self.machines.get(act.target.name)
        if machine is None:
            raise Permanent(f"there is no instance {act.target.name}")
        if call not in NOT_DESTRUCTIVE:
            # The kinds of actions are the remedies without the word for what they are done to.
            kind = act.action.removesuffix("Node")
            self._journal.act(kind, act.target.name, node_uid=act.target.uid, key=act.key, target=_target(act))
        operation = self._operations[act.key] = _Operation(ActState.RUNNING)
        if lie:
            operation.state = ActState.DONE
        elif call != "diagnose" and self._randomness.chance(self.behaviour(act.target.name).fail):
            operation.state, operation.message = ActState.FAILED, f"{call} of {act.target.name} failed"
        else:
            _Performance(self, machine, operation, act).begin(call)


def _target(act: Act) -> str:
    return act.args.get("service", "") or act.args.get("devices", "") or act.args.get("device", "")


class _Performance:
    """An accepted act, as it happens to the machine."""

    def __init__(self, cloud: Cloud, machine: Machine, operation: _Operation, act: Act) -> None:
        self._cloud, self._machine, self._operation, self._act = cloud, machine, operation, act

    def begin(self, call: str) -> None:
        if call == "diagnose":
            asyncio.get_running_loop().call_later(DURATIONS[call], self._diagnoses)
            return
        if call in ("reboot", "powerCycle", "reprovision"):
            self._boots()
            return
        acts: dict[str, Callable[[], None]] = {
            "powerOff": self._machine.power_off,
            "powerOn": self._machine.power_on,
            "resetGPU": self._resets,
            "resetFabric": lambda: self._resets_all((self._act.target.name,)),
            "recoverDomain": lambda: self._resets_all(self._act.members or (self._act.target.name,)),
            "restartService": self._restarts,
            "restartDevicePlugin": self._machine.offer_all,
            "repairHardware": self._repairs,
            "replace": lambda: self._cloud.on_replace(self._machine),
            "redeploy": lambda: self._cloud.on_replace(self._machine),
        }
        asyncio.get_running_loop().call_later(DURATIONS.get(call, 1.0), self._do, acts.get(call, lambda: None))

    def _do(self, act: Callable[[], None]) -> None:
        act()
        self._done()

    def _done(self) -> None:
        self._operation.state = ActState.DONE
        self._operation.proof = {"bootID": self._machine.boot_id}

    def _diagnoses(self) -> None:
        """Up to the level asked for; one that hangs is never heard of again."""
        args = self._act.args
        checks = [
            *map(str, range(1, int(args.get("level", "0")) + 1)),
            *filter(None, args.get("checks", "").split(",")),
        ]
        for check in checks:
            found = self._machine.diagnosis(check)
            if found.result == "hang":
                return
            if found.result != "pass":
                self._operation.message = found.message or f"diagnostics {check}: {found.result}"
                self._operation.proof = {"result": found.result}
                self._operation.state = ActState.FAILED if found.result == "error" else ActState.DONE
                return
        self._operation.state, self._operation.proof = ActState.DONE, {"result": "pass"}

    def _boots(self) -> None:
        machine, before = self._machine, self._machine.boot_id

        def notice(what: str) -> None:
            if what == "up" and machine.boot_id != before:
                machine.listeners.remove(notice)
                self._done()

        machine.listeners.append(notice)
        machine.powered = True
        machine.reboot()

    def _resets(self) -> None:
        wanted = _target(self._act)
        for card in self._machine.gpus:
            if not wanted or card.uuid in wanted:
                self._machine.reset_gpu(card.index)

    def _resets_all(self, nodes: tuple[str, ...]) -> None:
        """The fabric that joins them comes up anew, and every card on it."""
        for machine in [m for name in nodes if (m := self._cloud.machines.get(name)) is not None]:
            for card in machine.gpus:
                machine.reset_gpu(card.index)

    def _restarts(self) -> None:
        self._machine.restart_service(self._act.args.get("service", "kubelet"))

    def _repairs(self) -> None:
        self._machine.replace_hardware()
        self._machine.reboot()


class FakeProvider:
    """The cloud as one process of ours calls it; `clock` is that process's own, so that it can stop in mid-call."""

    def __init__(self, cloud: Cloud, clock: Clock) -> None:
        self._cloud, self._clock = cloud, clock

    @property
    def keeps_keys(self) -> bool:
        """One word for all nodes, as the protocol has it: one pool without keys makes it False."""
        return all(behaviour.keeps_keys for behaviour in self._cloud.behaviours.values())

    def supports(self, action: str) -> bool:
        return action in CALLS

    async def submit(self, act: Act) -> None:
        if act.action not in CALLS:
            raise Permanent(f"the fake back-end knows no {act.action}")
        line = self._cloud.accept(act)
        if line.answer in ("timeout", "acceptThenTimeout"):
            await self._clock.sleep(ANSWER_SECONDS)
            raise Ambiguous(f"no answer within {ANSWER_SECONDS:g} s{': ' + line.message if line.message else ''}")

    async def observe(self, act: Act) -> Observation:
        line, seen = self._cloud.look(act)
        if line.answer in ("timeout", "acceptThenTimeout"):
            await self._clock.sleep(ANSWER_SECONDS)
        if line.answer not in ("ok", "liesDone"):
            raise Transient(f"the back-end cannot be asked now{': ' + line.message if line.message else ''}")
        return seen

    async def power(self, target: Target) -> Power:
        """As a BMC tells it; scripted as any other look."""
        if self._cloud.behaviour(target.name).answer("observe").answer not in ("ok", "liesDone"):
            raise Transient("the back-end cannot be asked now")
        machine = self._cloud.machines.get(target.name)
        if machine is None:
            return Power.UNKNOWN
        return Power.ON if machine.powered else Power.OFF
