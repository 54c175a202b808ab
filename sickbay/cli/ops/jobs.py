"""Jobs in the commands: found by kind and name, explained, and listed where they need people."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click

from sickbay.api import kinds
from sickbay.api.job_recovery import JobRecovery
from sickbay.cli.ops.cluster import section
from sickbay.clock import parse_time
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.recover.adapters import ADAPTERS
from sickbay.recover.adapters.base import facts
from sickbay.recover.explain import JobExplanation, explain, needs_person, next_command
from sickbay.recover.job import Job

ANY = "job"
"""In `job/NAME`: of whatever kind. A kind's own name (`jobset/NAME`) asks for that kind."""


def is_job(what: str) -> bool:
    """Whether an argument names a job and no node: a node's name has no slash."""
    return "/" in what


async def explain_job(client: Client, what: str, namespace: str) -> JobExplanation:
    record = await _find(client, what, namespace)
    return explain(record, await _job(client, record))


async def _find(client: Client, what: str, namespace: str) -> JobRecovery:
    """The record of the job that is meant. Raises ClickException where there is none, or more than one."""
    kind, _, name = what.partition("/")
    known = {each.lower(): each for each in ADAPTERS}
    if not name or kind.lower() not in {ANY, *known}:
        raise click.ClickException(f"{what}: a job is named as job/NAME, or by its kind: {', '.join(known)}/NAME")
    records = (await client.list(kinds.JOB_RECOVERY, namespace)).items
    named = [r for r in records if r.spec.job.name == name]
    of_kind = [r for r in named if r.spec.job.kind.lower() == kind.lower()]
    found = of_kind or (named if kind.lower() == ANY else [])
    if not found:
        where = f" in namespace {namespace}" if namespace else ""
        raise click.ClickException(
            f"there is no record of {what}{where}: no RecoveryPolicy selects it, or it has not run yet"
        )
    if len(found) > 1:
        several = ", ".join(sorted(f"-n {r.namespace} {r.spec.job.kind.lower()}/{name}" for r in found))
        raise click.ClickException(f"{what} is not clear; say which: {several}")
    return found[0]


async def _job(client: Client, record: JobRecovery) -> Job | None:
    adapter = ADAPTERS.get(record.spec.job.kind)
    if adapter is None:
        return None
    try:
        return facts(adapter, await client.get(adapter.kind, record.spec.job.name, record.namespace))
    except errors.NotFound:
        return None


def explanation_lines(told: JobExplanation) -> Iterator[str]:
    """An explanation as it is printed."""
    yield f"{told.job} in namespace {told.namespace}: {told.summary}"
    yield f"Policy: {told.policy}   Phase: {told.phase}"
    for title, lines in (
        ("Attempts", told.attempts), ("Suspects", told.suspects), ("Keeps away from", told.excluded),
        ("Answers", told.answers),
    ):  # fmt: skip
        yield from section(title, lines)
    if told.message:
        yield f"Now: {told.message}"
    if told.until:
        yield f"Since: {told.since or '?'}   until {told.until}"
    if told.then:
        yield f"Then: {told.then}"
    if told.command:
        yield f"To move it on: {told.command}"


async def rows(client: Client, now: datetime) -> list[dict[str, Any]]:
    """What of jobs needs people, for the queue. A job holds no nodes while it waits, so it idles none."""
    needed = [r for r in (await client.list(kinds.JOB_RECOVERY)).items if needs_person(r)]
    jobs = await asyncio.gather(*(_job(client, r) for r in needed))
    return [_row(r, j, now) for r, j in zip(needed, jobs, strict=True)]


def _row(record: JobRecovery, job: Job | None, now: datetime) -> dict[str, Any]:
    since = parse_time(record.status.since) if record.status.since else now
    what = f"{record.spec.job.kind.lower()}/{record.spec.job.name}"
    return {
        "node": "",
        "job": what,
        "namespace": record.namespace,
        "repair": "",
        "group": "",
        "members": [],
        "needs": needs_person(record),
        "age": now - since,
        "idleGPUHours": 0.0,
        "owner": f"namespace {record.namespace}",
        "message": record.status.message,
        "command": next_command(record, job) or f"sickbay explain -n {record.namespace} {what}",
    }
