"""`sickbay controller`: decide and execute, each behind its own lease."""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import dataclass

import click
from prometheus_client import CollectorRegistry

from sickbay.cli import health
from sickbay.cli.process import LEVELS, configure_logs, connect, run_until_signal
from sickbay.clock import Clock, Randomness, SystemClock
from sickbay.decide.controller import DecideController, DecideOptions
from sickbay.execute.controller import ExecuteController, ExecuteOptions
from sickbay.execute.governor import Limits
from sickbay.kube.client import Client
from sickbay.kube.metrics import KubeMetrics
from sickbay.providers.agent_tasks import AgentTasks
from sickbay.providers.base import Provider

COMPONENTS = ("decide", "execute")


@dataclass(frozen=True)
class Settings:
    kubeconfig: str
    context: str
    namespace: str
    components: tuple[str, ...]
    prefixes: dict[str, str]
    governor: Limits
    listen: str


def _prefixes(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, prefix = value.partition("=")
        if not equals or not name or not prefix or "/" in prefix:
            raise click.BadParameter(f"{value!r}: write NAME=PREFIX, such as acme=intervention.acme.example")
        found[name] = prefix
    return found


@click.command(name="controller")
@click.option("--kubeconfig", default="", help="Default: $KUBECONFIG, the service account, ~/.kube/config.")
@click.option("--context", default="", help="Context of the kubeconfig; default: its current one.")
@click.option("--namespace", default="sickbay-system", show_default=True, help="Where the Leases live.")
@click.option(
    "--component", "components", multiple=True, type=click.Choice(COMPONENTS), help="Run only these; default: all."
)
@click.option(
    "--approval-prefix", "prefixes", multiple=True, callback=_prefixes, metavar="NAME=PREFIX",
    help="A further prefix of approval labels, under the name that rules use.",
)  # fmt: skip
@click.option(
    "--max-acts-10m", default=10, show_default=True, help="Destructive acts within 10 minutes; 0 = no ceiling."
)
@click.option("--max-acts-1h", default=30, show_default=True, help="Destructive acts within an hour; 0 = no ceiling.")
@click.option("--listen", default="127.0.0.1:8080", show_default=True, help="Address of /healthz, /readyz, /metrics.")
@click.option("--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True)
def controller(
    kubeconfig: str, context: str, namespace: str, components: tuple[str, ...], prefixes: dict[str, str],
    max_acts_10m: int, max_acts_1h: int, listen: str, log_level: str,
) -> None:  # fmt: skip
    """Decide which nodes are repaired, and repair them.

    Several replicas may run; one of them acts. Example: sickbay controller --kubeconfig ~/.kube/config
    """
    configure_logs(log_level)
    governor = Limits(max_acts_10m, max_acts_1h)
    chosen = components or COMPONENTS
    run_until_signal(run(Settings(kubeconfig, context, namespace, chosen, prefixes, governor, listen)))


async def run(settings: Settings) -> None:
    """Run the chosen components until cancelled."""
    clock, randomness, registry = SystemClock(), Randomness(), CollectorRegistry()
    metrics = KubeMetrics(registry)
    identity = f"{socket.gethostname()}-{os.getpid()}"
    running: list[DecideController | ExecuteController] = []
    clients: list[Client] = []
    for component in settings.components:
        client = connect(settings.kubeconfig, settings.context, f"sickbay-{component}", clock)
        client.metrics = metrics
        clients.append(client)
        running.append(_build(component, client, clock, randomness.fork(), settings, identity, registry))

    def awaited() -> list[str]:
        return [text for controller in running for text in controller.awaited()]

    try:
        async with health.served(settings.listen, health.app(registry, awaited)), asyncio.TaskGroup() as group:
            for controller in running:
                group.create_task(controller.run())
    finally:
        for client in clients:
            await client.aclose()


def _build(
    component: str, client: Client, clock: Clock, randomness: Randomness, settings: Settings, identity: str,
    registry: CollectorRegistry,
) -> DecideController | ExecuteController:  # fmt: skip
    if component == "decide":
        options = DecideOptions(identity, settings.namespace, settings.prefixes)
        return DecideController(client, clock, randomness, options, registry)
    providers: dict[str, Provider] = {"agent": AgentTasks(client, clock)}
    return ExecuteController(
        client, clock, randomness, providers, ExecuteOptions(identity, settings.namespace, settings.governor)
    )
