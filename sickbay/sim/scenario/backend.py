"""The part of a scenario that says how a fake back-end behaves."""

from __future__ import annotations

from dataclasses import dataclass

from sickbay.sim.cloud import ANSWERS, SCRIPTABLE, Behaviour, ScriptLine
from sickbay.sim.machine import DEFAULT_BOOT_SECONDS
from sickbay.sim.scenario.document import Reader, read_each


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """The fake back-end of a fleet entry."""

    name: str = "fake"
    reboot: float = DEFAULT_BOOT_SECONDS
    fail: float = 0.0
    keys: bool = True
    script: tuple[ScriptLine, ...] = ()

    def behaviour(self) -> Behaviour:
        """A fresh one: scripts are used up in a run."""
        lines = [ScriptLine(line.call, line.answer, line.message, line.times) for line in self.script]
        return Behaviour(self.fail, lines, self.keys)


def read_provider(reader: Reader) -> ProviderSpec:
    spec = ProviderSpec(
        name=reader.text("name", "fake"),
        reboot=reader.seconds("reboot", DEFAULT_BOOT_SECONDS),
        fail=reader.number("fail", 0.0, most=1.0),
        keys=reader.boolean("keys", True),
        script=read_each(reader, "script", read_script_line),
    )
    reader.done()
    return spec


def read_script_line(reader: Reader) -> ScriptLine:
    """One line of a back-end's script; the timeline's `provider` injection has the same."""
    return ScriptLine(
        call=reader.choice("call", SCRIPTABLE),
        answer=reader.choice("answer", ANSWERS, "ok"),
        message=reader.text("message", ""),
        times=reader.integer("times", 1, least=1),
    )
