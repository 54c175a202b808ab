"""`sickbay impact`: what Act would have done, from the records of Observe."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click

from sickbay.api import kinds
from sickbay.api.actions import ACTIONS
from sickbay.api.duration import format_duration, parse_duration
from sickbay.cli.ops.cluster import connection, counted, output, print_json, print_table
from sickbay.cli.ops.view import ClusterView
from sickbay.decide.impact import Assumptions, Impact, impact
from sickbay.decide.typicaltimes import ANSWER
from sickbay.kube.client import Client


def _span(_: click.Context, __: click.Parameter, value: str) -> timedelta:
    try:
        return parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _acts(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, timedelta]:
    found = {}
    for value in values:
        name, _equals, span = value.partition("=")
        if name not in ACTIONS:
            raise click.BadParameter(f"{value!r}: write ACTION=DURATION, such as RebootNode=20m; no action {name!r}")
        found[name] = _span(context, parameter, span)
    return found


@click.command(name="impact")
@click.argument("pool", required=False)
@click.option("--since", default="30d", show_default=True, callback=_span, help="How far back, such as 7d.")
@click.option("--answer", default=format_duration(ANSWER), show_default=True, callback=_span,
              help="How long people are taken to need for an answer.")  # fmt: skip
@click.option("--time", "acts", multiple=True, callback=_acts, metavar="ACTION=DURATION",
              help="How long a remedy takes; default: measured here, or a typical time.")  # fmt: skip
@output
@connection
def impact_command(
    pool: str | None, since: timedelta, answer: timedelta, acts: dict[str, timedelta], output: str,
    call: Callable[..., Any],
) -> None:  # fmt: skip
    """Say what Act would have done, from the repairs that POOL (default: every pool) has observed.

    Each observed repair is replayed with its own plan, against the limits that the pools have now. Records of ended
    repairs are kept for 30 days.

    Example: sickbay impact train --since 30d
    """

    async def work(client: Client) -> Impact:
        view, nodes = await asyncio.gather(ClusterView.read(client), client.list(kinds.NODE))
        chosen = [p for p in view.pools if pool is None or p.metadata.name == pool or not p.spec.rule]
        if pool is not None and not any(p.metadata.name == pool and p.spec.rule for p in chosen):
            known = ", ".join(sorted(p.metadata.name for p in view.pools if p.spec.rule)) or "none"
            raise click.ClickException(f"there is no RepairPool {pool!r} with a rule; known: {known}")
        assumptions = Assumptions(answer, acts)
        return impact(view.repairs, chosen, nodes.items, view.now - since, view.now, assumptions)

    found: Impact = call(work)
    if output == "json":
        print_json(found)
        return
    _print(found)


def _print(found: Impact) -> None:
    pools = ", ".join(found.pools) or "no pool"
    click.echo(f"{found.since} to {found.until}, {pools}:")
    if not found.repairs:
        click.echo("nothing was observed that Act would have repaired")
        return
    click.echo(
        f"{counted(found.repairs, 'observed repair')} of {counted(found.nodes, 'node')}; Act would have taken out "
        f"{found.taken}, at most {found.most_out} at once, {found.gpu_hours:.1f} GPU-hours in all\n"
    )
    _print_faults(found)
    _print_gates(found)
    _print_limits(found)
    took = ", ".join(f"{name} {span}{' (measured)' * (name in found.measured)}" for name, span in found.assumed.items())
    click.echo(f"\nAssumed: {took}; change with --answer and --time")


def _print_faults(found: Impact) -> None:
    headings = ["FAULT", "REMEDY", "REPAIRS", "NODES", "TAKEN", "RECOVERED", "WAITING", "OUT", "GPU-H"]
    rows = [
        [
            line.fault, line.remedy, str(line.repairs), str(line.nodes), str(line.taken), str(line.recovered),
            str(line.waiting), _time(line.out_seconds), f"{line.gpu_hours:.1f}",
        ]
        for line in found.faults
    ]  # fmt: skip
    print_table(headings, rows, "")


def _print_gates(found: Impact) -> None:
    for gate in found.gates:
        click.echo(
            f"\nGate before {gate.step}: {gate.by} would have been asked {counted(gate.times, 'time')}", nl=False
        )
    if found.gates:
        click.echo()


def _print_limits(found: Impact) -> None:
    if not found.limits:
        click.echo("\nNo limit would have been in the way")
    for limit in found.limits:
        waits = f", {limit.waiting} of them to this moment" if limit.waiting else ""
        click.echo(
            f"\n{limit.limit}: in the way of {counted(limit.repairs, 'repair')} "
            f"(longest {_time(limit.longest_seconds)}){waits}",
            nl=False,
        )
    if found.limits:
        click.echo()


def _time(seconds: int) -> str:
    return format_duration(timedelta(seconds=seconds))
