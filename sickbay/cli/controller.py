"""`sickbay controller`: the components that run beside the API server, each behind its own lease."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click
import httpx2
from prometheus_client import CollectorRegistry

from sickbay.api import names
from sickbay.api.repair_plan import ApprovalForm
from sickbay.cli import health
from sickbay.cli.approvalforms import FormError
from sickbay.cli.approvalforms import read as read_forms
from sickbay.cli.process import LEVELS, configure_logs, connect, run_until_signal
from sickbay.clock import Clock, Randomness, SystemClock
from sickbay.convert import intake
from sickbay.convert.controller import ConvertController, ConvertOptions
from sickbay.decide.controller import DecideController, DecideOptions
from sickbay.execute.controller import ExecuteController, ExecuteOptions
from sickbay.execute.governor import Limits
from sickbay.execute.hooks.endpoints import Endpoint, EndpointError
from sickbay.execute.hooks.endpoints import read as read_endpoints
from sickbay.kube.client import Client
from sickbay.kube.metrics import KubeMetrics
from sickbay.notify.channels import Webhook
from sickbay.notify.controller import NotifyController, NotifyOptions
from sickbay.providers.agent_tasks import AgentTasks
from sickbay.providers.base import Provider
from sickbay.recover.controller import RecoverController, RecoverOptions

Controller = DecideController | ExecuteController | RecoverController | NotifyController | ConvertController

COMPONENTS = ("decide", "execute", "recover", "notify", "convert")


@dataclass(frozen=True)
class Settings:
    kubeconfig: str
    context: str
    namespace: str
    components: tuple[str, ...]
    prefixes: dict[str, str]
    governor: Limits
    listen: str
    webhooks: tuple[tuple[str, str], ...] = ()
    """Name and URL of each webhook."""
    hooks: Mapping[str, Endpoint] = field(default_factory=dict)
    """Endpoints that hooks of rules may call."""
    automation: tuple[str, ...] = ()
    """User names of automation, as patterns, beside those that are known."""
    intake_listen: str = ""
    intake_token: Path | None = None
    """File with the token that senders show; without one nothing is taken by HTTP."""
    forms: Mapping[str, ApprovalForm] = field(default_factory=dict)
    """Label keys and values for approvals, by the name that rules use."""


def _webhooks(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    found = []
    for value in values:
        name, equals, url = value.partition("=")
        if not equals or not name or not url.startswith(("https://", "http://")):
            raise click.BadParameter(f"{value!r}: write NAME=URL, such as oncall=https://chat.example/hook")
        found.append((name, url))
    return tuple(found)


def read_prefixes(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, prefix = value.partition("=")
        if not equals or not name or not prefix or "/" in prefix:
            raise click.BadParameter(f"{value!r}: write NAME=PREFIX, such as acme=intervention.acme.example")
        found[name] = prefix
    return found


def _forms(_: click.Context, __: click.Parameter, value: str | None) -> Mapping[str, ApprovalForm]:
    if value is None:
        return {}
    try:
        return read_forms(value)
    except FormError as error:
        raise click.BadParameter(str(error)) from None


def _endpoints(_: click.Context, __: click.Parameter, value: str | None) -> Mapping[str, Endpoint]:
    if value is None:
        return {}
    try:
        return read_endpoints(value)
    except EndpointError as error:
        raise click.BadParameter(str(error)) from None


@click.command(name="controller")
@click.option("--kubeconfig", default="", help="Default: $KUBECONFIG, the service account, ~/.kube/config.")
@click.option("--context", default="", help="Context of the kubeconfig; default: its current one.")
@click.option("--namespace", default="sickbay-system", show_default=True, help="Where the Leases live.")
@click.option(
    "--component", "components", multiple=True, type=click.Choice(COMPONENTS), help="Run only these; default: all."
)
@click.option(
    "--approval-prefix", "prefixes", multiple=True, callback=read_prefixes, metavar="NAME=PREFIX",
    help="A further prefix of approval labels, under the name that rules use.",
)  # fmt: skip
@click.option(
    "--approval-forms", "forms", default=None, callback=_forms, metavar="FILE",
    help="Label keys and values of one's own for approvals, under the names that rules use.",
)  # fmt: skip
@click.option(
    "--automation", "automation", multiple=True, metavar="PATTERN",
    help="Beside the known ones: user names, as patterns, that are no persons when they change Sickbay's marks.",
)  # fmt: skip
@click.option(
    "--max-acts-10m", default=10, show_default=True, help="Destructive acts within 10 minutes; 0 = no ceiling."
)
@click.option("--max-acts-1h", default=30, show_default=True, help="Destructive acts within an hour; 0 = no ceiling.")
@click.option(
    "--webhook", "webhooks", multiple=True, callback=_webhooks, metavar="NAME=URL",
    help="Where messages to people go; a secret to sign them with is read from SICKBAY_WEBHOOK_SECRET_<NAME>.",
)  # fmt: skip
@click.option(
    "--hook-endpoints", "hooks", default=None, callback=_endpoints, metavar="FILE",
    help="The endpoints that hooks of rules may call, with what requests to them are signed with.",
)  # fmt: skip
@click.option(
    "--intake-token-file", "intake_token", default=None, type=click.Path(path_type=Path), metavar="FILE",
    help="Take alerts and announcements by HTTP: the bearer token that senders show, read again at each message.",
)  # fmt: skip
@click.option(
    "--intake-listen", default="127.0.0.1:8081", show_default=True, help="Where: /alerts and /announcements/SOURCE."
)
@click.option("--listen", default="127.0.0.1:8080", show_default=True, help="Address of /healthz, /readyz, /metrics.")
@click.option("--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True)
def controller(
    kubeconfig: str, context: str, namespace: str, components: tuple[str, ...], prefixes: dict[str, str],
    max_acts_10m: int, max_acts_1h: int, listen: str, webhooks: tuple[tuple[str, str], ...], log_level: str,
    hooks: Mapping[str, Endpoint], automation: tuple[str, ...], intake_token: Path | None, intake_listen: str,
    forms: Mapping[str, ApprovalForm],
) -> None:  # fmt: skip
    """Decide which nodes are repaired, and repair them.

    Several replicas may run; one of them acts. Example: sickbay controller --kubeconfig ~/.kube/config
    """
    configure_logs(log_level)
    governor = Limits(max_acts_10m, max_acts_1h)
    chosen = components or COMPONENTS
    settings = Settings(
        kubeconfig, context, namespace, chosen, prefixes, governor, listen, webhooks, hooks, automation,
        intake_listen if intake_token is not None else "", intake_token, forms,
    )  # fmt: skip
    run_until_signal(run(settings))


async def run(settings: Settings) -> None:
    """Run the chosen components until cancelled."""
    clock, randomness, registry = SystemClock(), Randomness(), CollectorRegistry()
    metrics = KubeMetrics(registry)
    identity = f"{socket.gethostname()}-{os.getpid()}"
    running: list[Controller] = []
    clients: list[Client] = []
    for component in settings.components:
        client = connect(settings.kubeconfig, settings.context, f"sickbay-{component}", clock)
        client.metrics = metrics
        clients.append(client)
        running.append(_build(component, client, clock, randomness.fork(), settings, identity, registry))

    def awaited() -> list[str]:
        return [text for controller in running for text in controller.awaited()]

    try:
        async with contextlib.AsyncExitStack() as serving:
            await serving.enter_async_context(health.served(settings.listen, health.app(registry, awaited)))
            await _serve_intake(serving, settings, running, registry)
            group = await serving.enter_async_context(asyncio.TaskGroup())
            for controller in running:
                group.create_task(controller.run())
    finally:
        for client in clients:
            await client.aclose()


async def _serve_intake(
    serving: contextlib.AsyncExitStack, settings: Settings, running: list[Controller], registry: CollectorRegistry
) -> None:
    """Take alerts and announcements where that is asked for and convert runs here. Raises ClickException."""
    convert = next((each for each in running if isinstance(each, ConvertController)), None)
    path = settings.intake_token
    if convert is None or path is None:
        return
    if not _token(path):
        raise click.ClickException(f"--intake-token-file {path}: cannot be read, or is empty; write the token into it")
    application = intake.app(convert.take_alerts, convert.take_notices, lambda: _token(path), registry)
    await serving.enter_async_context(health.served(settings.intake_listen, application, "--intake-listen"))


def _token(path: Path) -> str:
    """ "" where the file cannot be read: then nobody is let in."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _build(
    component: str, client: Client, clock: Clock, randomness: Randomness, settings: Settings, identity: str,
    registry: CollectorRegistry,
) -> Controller:  # fmt: skip
    if component == "decide":
        known = (*names.AUTOMATION, *settings.automation)
        options = DecideOptions(identity, settings.namespace, settings.prefixes, settings.forms, automation=known)
        return DecideController(client, clock, randomness, options, registry)
    if component == "recover":
        recovery = RecoverOptions(identity, settings.namespace)
        return RecoverController(client, clock, randomness, recovery, registry)
    if component == "notify":
        noted = NotifyOptions(identity, settings.namespace)
        return NotifyController(client, clock, randomness, _channels(settings, clock, randomness), noted, registry)
    if component == "convert":
        return ConvertController(client, clock, randomness, ConvertOptions(identity, settings.namespace), registry)
    providers: dict[str, Provider] = {"agent": AgentTasks(client, clock)}
    chosen = ExecuteOptions(identity, settings.namespace, settings.governor, hooks=settings.hooks)
    return ExecuteController(client, clock, randomness, providers, chosen)


def _channels(settings: Settings, clock: Clock, randomness: Randomness) -> list[Webhook]:
    """The webhooks, each with its secret from the environment: an argument would show in the process list."""
    http = httpx2.AsyncClient()
    found = []
    for name, url in settings.webhooks:
        secret = os.environ.get(f"SICKBAY_WEBHOOK_SECRET_{name.upper().replace('-', '_')}", "")
        found.append(Webhook(name, url, http, clock, randomness, secret))
    return found
