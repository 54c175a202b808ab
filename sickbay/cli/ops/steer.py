"""Commands that steer: hold, release, stop, repair, validate, resolve, clear.

Each writes what a person would write with kubectl, under the person's own identity; nothing is decided here.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

import click
import msgspec

from sickbay.api import kinds, names
from sickbay.api.actions import ACTIONS
from sickbay.api.duration import parse_duration
from sickbay.api.node_repair import NodeRepair
from sickbay.api.objectnames import dns_label
from sickbay.api.words import HoldLevel, Outcome
from sickbay.cli.ops import effects, session
from sickbay.cli.ops.cluster import connection
from sickbay.cli.ops.view import ClusterView
from sickbay.clock import parse_time, rfc3339
from sickbay.convert import clearing
from sickbay.decide import catalogue, past
from sickbay.decide.resolve import GO_ON
from sickbay.kube import errors, nodes
from sickbay.kube.client import Client

SHOWN = 10
"""Earlier incidents that are listed before a node is given back."""
RESOLUTIONS = (Outcome.REPAIRED, Outcome.CANCELLED_BY_PERSON, Outcome.LEFT_QUARANTINED, GO_ON)


CLOCKS_APART = timedelta(minutes=1)
"""Beyond that this machine's clock is not the cluster's, and a span of time ends by the latter."""


def _span(_: click.Context, __: click.Parameter, value: str) -> timedelta | None:
    try:
        return parse_duration(value) if value else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


_level = click.option(
    "--level", type=click.Choice([str(level) for level in HoldLevel]), default="NewRepairs", show_default=True
)
_for = click.option("--for", "lasts", default="", callback=_span, help="How long, such as 2h; default: until released.")


async def _hold(client: Client, name: str, spec: dict[str, Any], lasts: timedelta | None) -> str:
    here = session.current().clock.now()
    if lasts is not None:
        spec["until"] = rfc3339(here + lasts)
    try:
        made = await client.create(kinds.HOLD.raw, {"metadata": {"name": name}, "spec": spec})
    except errors.AlreadyExists:
        raise click.ClickException(
            f"there is a hold {name!r} already, and it stays as it is; to have this one in its place end that first "
            f"(sickbay release {name}), or choose another name: sickbay hold NAME"
        ) from None
    if lasts is not None:
        made = await _by_the_clusters_clock(client, made, here, lasts)
    with contextlib.suppress(errors.ApiError):  # made first: a hold is often wanted in a hurry
        async for what in _unknown(client, spec):
            click.echo(f"note: for now it holds nothing of it: there is no {what}", err=True)
    end = made["spec"].get("until")
    until = f" until {end}" if end else f"; end it with: sickbay release {name}"
    return f"hold {made['metadata']['name']} ({spec['level']}) is in force{until}"


async def _by_the_clusters_clock(
    client: Client, made: dict[str, Any], here: datetime, lasts: timedelta
) -> dict[str, Any]:
    """The hold with the end that was meant, also where this machine's clock is wrong: it would be over at once, or bind
    for days. The server stamps what is made."""
    there = parse_time(made["metadata"]["creationTimestamp"])
    if abs(there - here) <= CLOCKS_APART:
        return made
    apart = f"this machine's clock reads {rfc3339(here)}, and the cluster's {rfc3339(there)}"
    try:
        body = {"spec": {"until": rfc3339(there + lasts)}}
        made = await client.patch_merge(kinds.HOLD.raw, made["metadata"]["name"], body)
        click.echo(f"note: {apart}: the hold ends by the cluster's", err=True)
    except errors.ApiError as error:
        click.echo(f"note: {apart}, and the hold ends by this machine's: {error}", err=True)
    return made


async def _unknown(client: Client, spec: dict[str, Any]) -> AsyncIterator[str]:
    """What in a hold nobody knows. It is made all the same, since that may come, and where one may not look."""
    scope, faults = spec["scope"], spec.get("faults") or ()
    pools = (
        {pool.metadata.name for pool in (await client.list(kinds.REPAIR_POOL)).items} if scope.get("pools") else set()
    )
    for name in (name for name in scope.get("pools", ()) if name not in pools):
        yield f"RepairPool {name!r}; known: {', '.join(sorted(pools)) or 'none'}"
    for name in scope.get("nodes", ()):
        try:
            await client.get(kinds.NODE, name)
        except errors.NotFound:
            yield f"node {name!r}"
    types = catalogue.build((await client.list(kinds.FAULT_TYPE.raw)).items).types if faults else {}
    for name in (name for name in faults if name not in types):
        yield f"fault type {name!r}; list them with: sickbay catalogue"


@click.command()
@click.argument("name")
@click.option("--node", "nodes", multiple=True, help="A node; may be given several times.")
@click.option("--pool", "pools", multiple=True, help="All nodes of a RepairPool.")
@click.option("--fault", "faults", multiple=True, help="Only repairs of this fault type.")
@click.option("--reason", required=True, help="Why, for those who meet it.")
@_level
@_for
@connection
def hold(
    name: str, nodes: tuple[str, ...], pools: tuple[str, ...], faults: tuple[str, ...], reason: str, level: str,
    lasts: timedelta | None, call: Callable[..., Any],
) -> None:  # fmt: skip
    """Keep Sickbay from starting (or going on) on some nodes, under a NAME.

    Example: sickbay hold driver-roll-out --pool train --for 4h --reason "driver 595"
    """
    if not nodes and not pools:
        raise click.UsageError("name what is held with --node or --pool; to hold everything: sickbay stop")
    scope: dict[str, Any] = {"nodes": list(nodes), "pools": list(pools)}
    spec: dict[str, Any] = {"scope": scope, "level": level, "reason": reason, "faults": list(faults)}
    click.echo(call(lambda client: _hold(client, name, spec, lasts)))


@click.command()
@click.argument("name")
@connection
def release(name: str, call: Callable[..., Any]) -> None:
    """End the hold NAME.

    Example: sickbay release driver-roll-out
    """

    async def work(client: Client) -> str:
        await client.delete(kinds.HOLD, name)
        return f"hold {name} is ended"

    click.echo(call(work))


@click.command()
@click.option("--reason", required=True, help="Why, for those who meet it.")
@_level
@_for
@connection
def stop(reason: str, level: str, lasts: timedelta | None, call: Callable[..., Any]) -> None:
    """Stop everything: a hold over the whole cluster, named `stop`. It is ended with `sickbay release stop`.

    Example: sickbay stop --level EveryAct --reason "something is wrong with it"
    """
    spec: dict[str, Any] = {"scope": {"all": True}, "level": level, "reason": reason}
    click.echo(call(lambda client: _hold(client, "stop", spec, lasts)))


async def _by_hand(client: Client, node: str, action: str, reason: str, sure: bool = True) -> str:
    view, found = await ClusterView.read(client), await client.get(kinds.NODE, node)
    opened = view.open_repair(node)
    if opened is not None:
        raise click.ClickException(
            f"{node} is under repair already ({opened.metadata.name}); see: sickbay explain {node}"
        )
    if effects.disrupts(action):
        for line in effects.lines(action, await effects.read(client, [found]), view.pools):
            click.echo(line)
        if not sure:
            _type_the_name(node)
    name = dns_label(f"{node[:40].rstrip('.-')}-by-hand-{session.current().randomness.hex(6)}")
    spec = {
        "origin": "Manual",
        "node": {"name": found.name, "uid": found.uid},
        "plan": {"reason": reason, "steps": [{"step": "Repair", "action": action}]},
    }
    made = await client.create(kinds.NODE_REPAIR.raw, {"metadata": {"name": name}, "spec": spec})
    return f"repair {made['metadata']['name']} of {node} is open; follow it with: sickbay explain {node}"


@click.command()
@click.argument("node")
@click.option("--remedy", required=True, type=click.Choice(sorted(a for a in ACTIONS if a != "None")))
@click.option("--reason", required=True, help="Why, for the record.")
@click.option("-y", "--yes", is_flag=True, help="Do not have the name typed again.")
@connection
def repair(node: str, remedy: str, reason: str, yes: bool, call: Callable[..., Any]) -> None:
    """Repair NODE by hand, through the same gates and limits as any repair.

    What the remedy does to the jobs and GPUs of the node, and how much its pool has room for, is shown first. On a
    terminal the name of the node has to be typed again before anything that jobs do not survive.

    Example: sickbay repair gpu-node-17 --remedy RebootNode --reason "hangs now and then"
    """
    sure = yes or not sys.stdin.isatty()
    click.echo(call(lambda client: _by_hand(client, node, remedy, reason, sure)))


def _type_the_name(node: str) -> None:
    """Raises ClickException where something else is typed, Abort where nothing is."""
    typed = click.prompt("Type the name of the node to go on", err=True)
    if typed != node:
        raise click.ClickException(f"{typed!r} is not {node!r}: nothing was done")


@click.command()
@click.argument("node")
@click.option("--reason", default="a check by hand", show_default=True)
@connection
def validate(node: str, reason: str, call: Callable[..., Any]) -> None:
    """Check whether NODE is well, without touching it.

    Example: sickbay validate gpu-node-17
    """
    click.echo(call(lambda client: _by_hand(client, node, "None", reason)))


@click.command()
@click.argument("node")
@click.option("--outcome", required=True, type=click.Choice([str(o) for o in RESOLUTIONS]))
@click.option("--reason", default="", help="Why, for the record; must be given where no validation follows.")
@connection
def resolve(node: str, outcome: str, reason: str, call: Callable[..., Any]) -> None:
    """Say how the incident on NODE came out, so that it can go on or end.

    Repaired: the node is validated and returned. GoOn: the step goes on although a hook of it has failed.
    CancelledByPerson: everything is given back now, without a validation, which your name and the reason stand for in
    the record. LeftQuarantined: the record ends, the node stays out. After an end it takes back what is remembered of a
    cancel or a denial. Earlier incidents of the node are shown first.

    Example: sickbay resolve gpu-node-17 --outcome Repaired --reason "card replaced, ticket 4711"
    """

    async def work(client: Client) -> str:
        view = await ClusterView.read(client)
        found = view.open_repair(node) or next(reversed(view.of(node)), None)
        if found is None:
            raise click.ClickException(f"there is no repair of {node} on record")
        if outcome == Outcome.CANCELLED_BY_PERSON and not found.ended and not reason.strip():
            raise click.UsageError(
                f"{outcome} returns {node} without a validation: say why with --reason, your name is signed to it; "
                f"or let it be validated first: --outcome {Outcome.REPAIRED}"
            )
        for line in _history(view, found):
            click.echo(line, err=True)
        return await _resolve(client, found, outcome, reason)

    click.echo(call(work))


@click.command()
@click.argument("node")
@click.argument("condition")
@click.option("--reason", required=True, help="Why, for the record.")
@connection
def clear(node: str, condition: str, reason: str, call: Callable[..., Any]) -> None:
    """Say that CONDITION of NODE is over, where the detector that wrote it never takes it back.

    Your name and the reason stay in the condition and in an Event. The node is validated before it returns.

    Example: sickbay clear gpu-node-17 FrequentContainerdRestart --reason "runtime fixed"
    """
    click.echo(call(lambda client: _clear(client, node, condition, reason)))


async def _clear(client: Client, name: str, type_: str, reason: str) -> str:
    node = await client.get(kinds.NODE, name)
    why_not = clearing.refusal(node, type_)
    if why_not:
        raise click.ClickException(f"not cleared: {why_not}")
    condition = node.condition(type_)
    word = clearing.Word(
        by=await _who(client), reason=reason, at=session.now(),
        since=(condition.last_transition_time or "") if condition is not None else "",
    )  # fmt: skip
    value = msgspec.json.encode({**clearing.read(node), type_: word}).decode()
    await nodes.patch_node(client, node, nodes.annotation_ops(node, {names.CLEAR: value}))
    return f"{type_} of {name} will be cleared; see it with: kubectl describe node {name}"


async def _who(client: Client) -> str:
    """Who we are to the API server; "" where it does not say."""
    try:
        review = await client.create(kinds.SELF_SUBJECT_REVIEW, {})
    except errors.ApiError:
        return ""
    return str(((review.get("status") or {}).get("userInfo") or {}).get("username") or "")


def _history(view: ClusterView, found: NodeRepair) -> list[str]:
    """Earlier incidents of the node, the latest first: to be seen before it is given back."""
    node, now = found.spec.node, session.current().clock.now()
    earlier = past.incidents(view.of(node.name), node.uid, found.metadata.uid)
    shown = [f"  {past.line(repair, now)}" for repair in earlier[:SHOWN]]
    more = [f"  and {len(earlier) - SHOWN} more: sickbay history {node.name}"] if len(earlier) > SHOWN else []
    return [f"earlier incidents of {node.name}: {len(earlier)}", *shown, *more] if earlier else []


async def _resolve(client: Client, found: NodeRepair, outcome: str, reason: str) -> str:
    word = {"outcome": outcome, "reason": reason, "at": session.now(), "by": await _who(client)}
    value = msgspec.json.encode(word).decode()
    body = {"metadata": {"annotations": {names.RESOLVE: value}, "resourceVersion": found.metadata.resource_version}}
    await client.patch_merge(kinds.NODE_REPAIR.raw, found.metadata.name, body)
    return f"{found.metadata.name} is resolved as {outcome}"
