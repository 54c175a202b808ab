"""One function per component: from a process of the simulation to the running component.

Imports are late: a world that runs no agent loads none of it.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from sickbay.notify.messages import Message
from sickbay.sim.components import NAMESPACE, Main, Outside
from sickbay.sim.journal import Journal
from sickbay.sim.process import Running

SLOWEST = 10.0
"""How much rarer than usual decide's look at everything gets at most: 10 minutes. What waits has its own moments."""


def _chosen(options: type[Any], component: str, outside: Outside) -> dict[str, Any]:
    """What the run sets of a component's options; the pace of its Lease where it has one."""
    paced = {"lease": outside.settings.lease} if any(field.name == "lease" for field in fields(options)) else {}
    return {**paced, **outside.settings.options_of(component)}


async def agent(running: Running, outside: Outside) -> None:
    from sickbay.sim.agent import run_agent

    await run_agent(running, outside)


async def decide(running: Running, outside: Outside) -> None:
    from sickbay.decide.controller import LOOK_AGAIN, DecideController, DecideOptions

    chosen = {"look": LOOK_AGAIN * min(outside.settings.pace, SLOWEST), **_chosen(DecideOptions, "decide", outside)}
    options = DecideOptions(identity=running.identity, namespace=NAMESPACE, **chosen)
    await DecideController(running.client, running.clock, running.randomness, options, running.registry).run()


async def execute(running: Running, outside: Outside) -> None:
    from sickbay.execute.controller import ExecuteController, ExecuteOptions
    from sickbay.execute.governor import Limits
    from sickbay.sim.endpoints import endpoints, transport

    governor = Limits() if outside.settings.governor else Limits(0, 0)
    hooks = {"hooks": endpoints(), "hook_transports": transport}
    chosen = {"governor": governor, **hooks, **_chosen(ExecuteOptions, "execute", outside)}
    options = ExecuteOptions(identity=running.identity, namespace=NAMESPACE, **chosen)
    providers = outside.providers(running)
    await ExecuteController(running.client, running.clock, running.randomness, providers, options).run()


async def recover(running: Running, outside: Outside) -> None:
    from sickbay.recover.controller import RecoverController, RecoverOptions

    options = RecoverOptions(
        identity=running.identity, namespace=NAMESPACE, **_chosen(RecoverOptions, "recover", outside)
    )
    await RecoverController(running.client, running.clock, running.randomness, options, running.registry).run()


class _Recorded:
    """A channel whose messages stand in the journal of the run."""

    name = "recorded"

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def send(self, message: Message) -> None:
        self._journal.message(self.name, message.category, message.node, f"{message.title}\n{message.text}")


async def notify(running: Running, outside: Outside) -> None:
    from sickbay.notify.controller import NotifyController, NotifyOptions

    options = NotifyOptions(identity=running.identity, namespace=NAMESPACE, **_chosen(NotifyOptions, "notify", outside))
    channels = [_Recorded(outside.journal)]
    client, clock, randomness = running.client, running.clock, running.randomness
    await NotifyController(client, clock, randomness, channels, options, running.registry).run()


async def convert(running: Running, outside: Outside) -> None:
    from sickbay.convert.controller import ConvertController, ConvertOptions
    from sickbay.convert.watching import LOOK

    chosen = {"look": LOOK * outside.settings.pace, **_chosen(ConvertOptions, "convert", outside)}
    options = ConvertOptions(identity=running.identity, namespace=NAMESPACE, **chosen)
    events = outside.events(running)
    client, clock, randomness = running.client, running.clock, running.randomness
    await ConvertController(client, clock, randomness, options, running.registry, events).run()


BUILDERS: dict[str, Main] = {
    "agent": agent,
    "decide": decide,
    "execute": execute,
    "recover": recover,
    "notify": notify,
    "convert": convert,
}
