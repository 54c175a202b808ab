"""`sickbay agent`: one per node, as a DaemonSet's pod or a systemd unit."""

from __future__ import annotations

import os
import shlex
import socket
from dataclasses import dataclass
from pathlib import Path

import click
from prometheus_client import CollectorRegistry

from sickbay.cli import health
from sickbay.cli.process import LEVELS, configure_logs, connect, run_until_signal
from sickbay.clock import Clock, Randomness, SystemClock
from sickbay.detect import linux
from sickbay.detect.agent import Agent, AgentOptions
from sickbay.detect.linux import HostOptions
from sickbay.kube.client import Client
from sickbay.kube.metrics import KubeMetrics
from sickbay.providers.agent.diagnosing import Check, parse_check
from sickbay.providers.agent.runner import ALLOWED


@dataclass(frozen=True)
class AgentConfig:
    """Everything that `run_agent` needs."""

    node: str
    host: HostOptions
    allowed: tuple[str, ...] = ALLOWED
    kubeconfig: str = ""
    context: str = ""
    listen: str = "127.0.0.1:8081"


@click.command(name="agent")
@click.option("--node", envvar="NODE_NAME", default="", help="Name of this Node; default: $NODE_NAME, the host's name.")
@click.option("--kubeconfig", default="", help="Default: $KUBECONFIG, the service account, ~/.kube/config.")
@click.option("--context", default="", help="Context of the kubeconfig; default: its current one.")
@click.option(
    "--state", type=click.Path(path_type=Path, file_okay=False), default=linux.STATE, show_default=True,
    help="Directory on the host's disk for the journal and the reading position.",
)  # fmt: skip
@click.option("--kmsg", default=linux.KMSG, show_default=True, help="The kernel's log; empty = do not read it.")
@click.option(
    "--log", "logs", type=click.Path(path_type=Path, dir_okay=False), multiple=True, help="Follow this log file too."
)
@click.option("--stdin", is_flag=True, help="Read kernel lines from standard input too.")
@click.option("--gpus/--no-gpus", default=True, show_default=True, help="Ask the NVIDIA driver.")
@click.option("--services/--no-services", default=True, show_default=True, help="Watch kubelet, containerd, ...")
@click.option(
    "--host-namespaces", is_flag=True, help="Reach the host's commands through its process 1 (in a container)."
)
@click.option(
    "--allow", "allowed", type=click.Choice(ALLOWED), multiple=True, help="Carry out only these acts; default: all."
)
@click.option(
    "--card-list",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="File in which the device plug-in reads the cards not to offer; default: cards are not isolated.",
)
@click.option(
    "--card-list-command", default="", help="Run after each change of the card list, with its path as last argument."
)
@click.option("--no-acts", is_flag=True, help="Carry out no acts at all.")
@click.option(
    "--diagnostic", "diagnostics", multiple=True, metavar="NAME=COMMAND",
    help="Active diagnostics: level (1, 2, 3) or name, and the command. Exit code 0: pass; 1: fail; else unknown.",
)  # fmt: skip
@click.option("--listen", default="127.0.0.1:8081", show_default=True, help="Address of /healthz, /readyz, /metrics.")
@click.option("--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True)
def agent(
    node: str, kubeconfig: str, context: str, state: Path, kmsg: str, logs: tuple[Path, ...], stdin: bool, gpus: bool,
    services: bool, host_namespaces: bool, allowed: tuple[str, ...], card_list: Path | None, card_list_command: str,
    no_acts: bool, diagnostics: tuple[str, ...], listen: str, log_level: str,
) -> None:  # fmt: skip
    """Report what is wrong with this node, and carry out the tasks that are made for it.

    Example: sickbay agent --node gpu-17 --kubeconfig /etc/sickbay/kubeconfig
    """
    if no_acts and allowed:
        raise click.UsageError("--no-acts and --allow exclude each other")
    configure_logs(log_level)
    if card_list_command and card_list is None:
        raise click.UsageError("--card-list-command needs --card-list")
    host = HostOptions(
        state, kmsg, logs, stdin, gpus, services, host_namespaces, _checks(diagnostics),
        card_list, tuple(shlex.split(card_list_command)),
    )  # fmt: skip
    acts = () if no_acts else allowed or ALLOWED
    run_until_signal(
        run_agent(AgentConfig(node or socket.gethostname(), host, acts, kubeconfig, context, listen))
    )  # fmt: skip


def _checks(texts: tuple[str, ...]) -> dict[str, Check]:
    try:
        return dict(parse_check(text) for text in texts)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


async def run_agent(config: AgentConfig) -> None:
    """Run the agent until cancelled. /healthz answers from the first moment; /readyz says what start-up waits for."""
    clock, registry = SystemClock(), CollectorRegistry()
    client = connect(config.kubeconfig, config.context, "sickbay-agent", clock)
    client.metrics = KubeMetrics(registry)
    try:
        running = _build(config, client, clock, registry)
        async with health.served(config.listen, health.app(registry, running.awaited)):
            await running.run()
    finally:
        await client.aclose()


def _build(config: AgentConfig, client: Client, clock: Clock, registry: CollectorRegistry) -> Agent:
    identity = f"{socket.gethostname()}-{os.getpid()}"
    options = AgentOptions(config.node, identity, config.allowed)
    try:
        return Agent(client, clock, Randomness(), options, linux.parts(config.host, clock), registry)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or 'the host'}: {error.strerror or error}") from None
