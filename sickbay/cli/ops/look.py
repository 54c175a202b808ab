"""Commands that only look: explain, queue, status, history, catalogue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import click

from sickbay.api import kinds, names
from sickbay.api.core import Node
from sickbay.api.duration import format_duration
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import Phase, WaitsFor
from sickbay.cli.ops import jobs
from sickbay.cli.ops.cluster import connection, output, print_json, print_table, section
from sickbay.cli.ops.view import ClusterView
from sickbay.clock import parse_time
from sickbay.decide.explain import Explanation, next_command
from sickbay.kube import errors
from sickbay.kube.client import Client


@click.command()
@click.argument("what", metavar="NODE|job/NAME")
@click.option("-n", "--namespace", default="", help="Of the job; needed where two have the same name.")
@output
@connection
def explain(what: str, namespace: str, output: str, call: Callable[..., Any]) -> None:
    """Say what is wrong with a node or a job, what is done about it, what that waits for and how to move it on.

    A job is named as job/NAME, or by its kind, such as jobset/NAME.

    Example: sickbay explain gpu-node-17
    """

    async def work(client: Client) -> tuple[Any, list[str]]:
        if jobs.is_job(what):
            job = await jobs.explain_job(client, what, namespace)
            return job, list(jobs.explanation_lines(job))
        view, found = await asyncio.gather(ClusterView.read(client), client.get(kinds.NODE, what))
        told = view.explain(found)
        return told, list(explanation_lines(told))

    told, lines = call(work)
    if output == "json":
        print_json(told)
        return
    for line in lines:
        click.echo(line)


def explanation_lines(told: Explanation) -> Iterator[str]:
    """An explanation as it is printed."""
    yield f"{told.node}: {told.summary}"
    yield from section("Faults", told.faults)
    if told.gpus:
        yield f"GPUs offered: {', '.join(told.gpus)}"
    if told.pool:
        yield f"Pool: {told.pool}   Rule: {told.rule or '-'}"
    yield from section("Entries of the rule", told.entries)
    yield from section("Holds", told.holds)
    if told.repair:
        yield f"Repair: {told.repair}   {told.phase}{f' ({told.outcome})' if told.outcome else ''}"
        if told.group:
            yield f"Group: {told.group}"
        yield from section("Cards isolated", told.isolated)
        yield from section("Steps", told.steps)
        if told.message:
            yield f"Now: {told.message}"
    wait = told.wait
    if wait.waits_for:
        yield f"Waits for: {wait.waits_for}   since {wait.since or '?'}   until {wait.until or '?'}"
    if wait.then:
        yield f"Then: {wait.then}"
    if wait.actor:
        yield f"Actor: {wait.actor}"
    if wait.next_step:
        yield f"Next step: {wait.next_step}"
    if wait.command:
        yield f"To move it on: {wait.command}"


@click.command()
@output
@connection
def queue(output: str, call: Callable[..., Any]) -> None:
    """List what needs a person: approvals, stuck repairs, cases at third parties, jobs; the costliest first.

    Example: sickbay queue -o json
    """

    async def work(client: Client) -> list[dict[str, Any]]:
        view = await ClusterView.read(client)
        needed = [r for r in view.repairs if needs_person(r)]
        nodes = await asyncio.gather(*(_node(client, r.spec.node.name) for r in needed))
        rows = _folded([_queue_row(r, n, view.now) for r, n in zip(needed, nodes, strict=True)])
        rows += await jobs.rows(client, view.now)
        rows.sort(key=lambda row: (-row["idleGPUHours"], -row["age"], row["node"], row["job"]))
        return [row | {"age": age(row["age"])} for row in rows]

    rows: list[dict[str, Any]] = call(work)
    if output == "json":
        print_json(rows)
        return
    table = [[_whom(r), r["needs"], r["age"], f"{r['idleGPUHours']:.1f}", r["owner"], r["command"]] for r in rows]
    print_table(["NODE OR JOB", "NEEDS", "AGE", "IDLE GPU-H", "OWNER", "NEXT"], table, "nothing needs a person")


def _whom(row: dict[str, Any]) -> str:
    others = len(row["members"]) - 1
    return f"{row['node'] or row['job']}{f' +{others}' if others > 0 else ''}"


def _folded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Members of a group that need the same are one matter: its leader's, with what all of them cost."""
    folded: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: not row.pop("leads")):
        first = folded.setdefault((row["group"] or row["repair"], row["needs"]), row)
        if first is not row:
            first["members"] = sorted({*first["members"], row["node"]})
            first["idleGPUHours"] = round(first["idleGPUHours"] + row["idleGPUHours"], 2)
            first["age"] = max(first["age"], row["age"])
    return list(folded.values())


def needs_person(repair: NodeRepair) -> bool:
    if repair.ended:
        return False
    return repair.status.phase in (Phase.NEEDS_HUMAN, Phase.PARKED, Phase.WAITING_APPROVAL)


async def _node(client: Client, name: str) -> Node | None:
    try:
        return await client.get(kinds.NODE, name)
    except errors.NotFound:
        return None


def _queue_row(repair: NodeRepair, node: Node | None, now: datetime) -> dict[str, Any]:
    status = repair.status
    since = parse_time(status.current.since) if status.current.since else now
    quarantined = status.step("Quarantine").finished
    idle = (now - parse_time(quarantined)) if quarantined else timedelta(0)
    return {
        "node": repair.spec.node.name,
        "job": "",
        "namespace": "",
        "repair": repair.metadata.name,
        "group": repair.spec.group.id,
        "leads": repair.spec.group.leader in ("", repair.metadata.name),
        "members": [repair.spec.node.name],
        "needs": status.needs or _asked(repair),
        "age": now - since,
        "idleGPUHours": round(_gpus(node) * idle.total_seconds() / 3600, 2),
        "owner": f"pool {repair.spec.pool.name}",
        "message": status.message,
        "command": next_command(repair),
    }


def _asked(repair: NodeRepair) -> str:
    if repair.status.current.waits_for == WaitsFor.APPROVAL:
        return f"Approval ({repair.status.current.step})"
    return "ThirdParty" if repair.status.phase == Phase.PARKED else "People"


def _gpus(node: Node | None) -> int:
    if node is None:
        return 0
    amounts = [v for k, v in node.status.capacity.items() if k.endswith("/gpu")]
    return sum(int(v) for v in amounts if str(v).isdigit())


def age(span: timedelta) -> str:
    """Coarse, for tables: the two largest units."""
    seconds = max(0, int(span.total_seconds()))
    coarse = seconds - seconds % (3600 if seconds >= 86400 else 60 if seconds >= 3600 else 1)
    return format_duration(timedelta(seconds=coarse))


@click.command()
@click.argument("pool", required=False)
@output
@connection
def status(pool: str | None, output: str, call: Callable[..., Any]) -> None:
    """Show pools: nodes, faulty, out of service, slots, breaker, open repairs.

    Example: sickbay status train
    """

    async def work(client: Client) -> ClusterView:
        return await ClusterView.read(client)

    view: ClusterView = call(work)
    chosen = [p for p in view.pools if pool is None or p.metadata.name == pool]
    if pool is not None and not chosen:
        known = ", ".join(sorted(p.metadata.name for p in view.pools)) or "none"
        raise click.ClickException(f"there is no RepairPool {pool!r}; known: {known}")
    rows = [_pool_row(p, view) for p in sorted(chosen, key=lambda p: p.metadata.name)]
    if output == "json":
        print_json(rows)
        return
    keys = ["pool", "mode", "rule", "nodes", "faulty", "unavailable", "slots", "breaker", "storms", "open", "others"]
    print_table([k.upper() for k in keys], [[str(row[k]) for k in keys] for row in rows], "there is no RepairPool")


def _pool_row(pool: Any, view: ClusterView) -> dict[str, Any]:
    found = pool.status
    held: dict[str, int] = {}
    for slot in found.slots:
        held[slot.kind] = held.get(slot.kind, 0) + 1
    opened = [r for r in view.repairs if r.spec.pool.name == pool.metadata.name and not r.ended]
    return {
        "pool": pool.metadata.name,
        "mode": pool.spec.mode,
        "rule": pool.spec.rule or "(envelope)",
        "nodes": found.nodes,
        "faulty": found.faulty,
        "unavailable": found.unavailable,
        "slots": ",".join(f"{kind}:{n}" for kind, n in sorted(held.items())) or "-",
        "breaker": found.breaker.state + (f" ({found.breaker.reason})" if found.breaker.reason else ""),
        "storms": "; ".join(storm.cause for storm in found.storms) or "-",
        "open": len(opened),
        "others": _others(found),
    }


def _others(status: Any) -> str:
    """Other remediators that may act on the pool's nodes."""
    told = [c.message for c in status.conditions if c.type == names.OTHER_REMEDIATORS and c.status == "True"]
    return told[0] if told else "-"


@click.command()
@click.argument("node")
@output
@connection
def history(node: str, output: str, call: Callable[..., Any]) -> None:
    """Show the repairs of NODE on record, oldest first.

    Example: sickbay history gpu-node-17
    """

    async def work(client: Client) -> list[NodeRepair]:
        found = (await ClusterView.read(client)).of(node)
        if not found and await _surely_absent(client, node):
            raise click.ClickException(f"no node is named {node!r}, and no repair of one is on record")
        return found

    repairs: list[NodeRepair] = call(work)
    rows = [_history_row(r) for r in repairs]
    if output == "json":
        print_json(rows)
        return
    keys = ["repair", "started", "ended", "phase", "outcome", "faults", "acts"]
    print_table(
        [k.upper() for k in keys], [[row[k] or "-" for k in keys] for row in rows], f"no repair of {node} on record"
    )


async def _surely_absent(client: Client, node: str) -> bool:
    """False also where one may not look: then the records alone are told of."""
    try:
        return await _node(client, node) is None
    except errors.Forbidden:
        return False


def _history_row(repair: NodeRepair) -> dict[str, str]:
    found = repair.status
    acts = [f"{a.action}:{a.state}" for a in found.step("Repair").attempts]
    return {
        "repair": repair.metadata.name,
        "started": found.started_at or "",
        "ended": found.ended_at or "",
        "phase": found.phase,
        "outcome": found.outcome,
        "faults": ",".join(f.type for f in repair.spec.faults),
        "acts": ",".join(acts),
        "message": found.message,
    }
