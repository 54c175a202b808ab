"""Writes of recover: the record, and what is done to the job object.

The record goes first. Each write is conditional on the version that was judged, so that of two leaders only one gets
through, and a job that somebody has changed meanwhile is looked at again instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sickbay.api import kinds, names
from sickbay.api.job_recovery import JobRecovery
from sickbay.api.joblabels import JOB_NAME
from sickbay.api.patches import merge_diff
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.recover.adapters import ADAPTERS
from sickbay.recover.adapters.base import Adapter, again, held, released
from sickbay.recover.job import Job, Obj
from sickbay.recover.sources import Sources, job_of, rank_pod
from sickbay.recover.view import RankPod

MANIFEST_MAX = 48 * 1024
"""Bytes of a manifest that may be kept in a JobRecovery, which has to stay below 64 KiB."""


class Writer:
    def __init__(self, client: Client, sources: Sources, check: Callable[[], None]) -> None:
        self._client = client
        self._sources = sources
        self._check = check

    # --- the record

    async def record(self, before: JobRecovery, after: JobRecovery) -> JobRecovery:
        """Bring the JobRecovery to `after`; it is created where there is none. Raises Conflict: look again."""
        written = before
        if not before.metadata.uid:
            self._check()
            bare = JobRecovery(metadata=after.metadata, spec=after.spec)
            written = await self._client.create(kinds.JOB_RECOVERY, bare, after.namespace)
            self._sources.recoveries.observe_write(written)
        elif spec := merge_diff(msgspec.to_builtins(before.spec), msgspec.to_builtins(after.spec)):
            written = await self._patch(written, {"spec": spec}, "")
        status = merge_diff(msgspec.to_builtins(written.status), msgspec.to_builtins(after.status))
        return await self._patch(written, {"status": status}, "status") if status else written

    async def _patch(self, record: JobRecovery, body: Obj, subresource: str) -> JobRecovery:
        self._check()
        meta = {"resourceVersion": record.metadata.resource_version, "uid": record.metadata.uid}
        body = {**body, "metadata": {**body.get("metadata", {}), **meta}}
        written = await self._client.patch_merge(
            kinds.JOB_RECOVERY, record.name, body, record.namespace, subresource=subresource
        )
        self._sources.recoveries.observe_write(written)
        return written

    async def delete_record(self, record: JobRecovery) -> None:
        self._check()
        await self._client.delete(kinds.JOB_RECOVERY, record.name, record.namespace, uid=record.uid)

    # --- the job

    async def is_current(self, job: Job) -> bool:
        """Whether the job is as the API server has it; what is newer enters the cache."""
        adapter = ADAPTERS[job.id.kind]
        try:
            now = await self._client.get(adapter.kind, job.id.name, job.id.namespace)
        except errors.NotFound:
            return False  # its watch will tell
        if now["metadata"]["resourceVersion"] == job.meta["resourceVersion"]:
            return True
        self._sources.jobs[job.id.kind].observe_write(now)
        return False

    async def hold(self, adapter: Adapter, job: Job, after: int) -> None:
        await self._change(adapter, job, held(job, after))

    async def unmark(self, adapter: Adapter, job: Job) -> None:
        await self._change(adapter, job, _without_mark(job.raw))

    async def release(self, record: JobRecovery, adapter: Adapter, job: Job, excluded: list[str]) -> None:
        """Raises Invalid where the API server does not let the job be changed so."""
        attempt = record.status.attempts[-1].n
        await self._change(adapter, job, released(adapter, job, attempt, excluded, record.status.ranks))

    async def _change(self, adapter: Adapter, job: Job, wanted: Obj) -> None:
        self._check()
        patch = merge_diff(job.raw, wanted)
        meta = {"resourceVersion": job.meta["resourceVersion"], "uid": job.uid}
        patch["metadata"] = {**patch.get("metadata", {}), **meta}
        written = await self._client.patch_merge(adapter.kind, job.id.name, patch, job.id.namespace)
        self._sources.jobs[job.id.kind].observe_write(written)

    async def keep(self, record: JobRecovery, adapter: Adapter, job: Job, attempt: int, excluded: list[str]) -> bool:
        """Write the next attempt down before the old object goes. False where it is too large for that."""
        text = msgspec.json.encode(again(adapter, job, attempt, excluded, record.status.ranks)).decode()
        if len(text) > MANIFEST_MAX:
            return False
        await self._patch(record, {"metadata": {"annotations": {names.NEXT_ATTEMPT: text}}}, "")
        return True

    async def delete(self, adapter: Adapter, job: Job) -> None:
        self._check()
        try:
            await self._client.delete(
                adapter.kind, job.id.name, job.id.namespace, uid=job.uid, propagation=adapter.propagation
            )
        except errors.NotFound:
            return

    async def create(self, record: JobRecovery, adapter: Adapter) -> None:
        """Make the job that was written down. That it is there already is fine: a look tells whose it is."""
        self._check()
        manifest: Mapping[str, Any] = msgspec.json.decode(record.annotations[names.NEXT_ATTEMPT])
        try:
            made = await self._client.create(adapter.kind, dict(manifest), record.namespace)
        except errors.AlreadyExists:
            return
        self._sources.jobs[record.spec.job.kind].observe_write(made)

    async def forget(self, record: JobRecovery) -> None:
        await self._patch(record, {"metadata": {"annotations": {names.NEXT_ATTEMPT: None}}}, "")

    # --- pods

    async def pods_now(self, adapter: Adapter, job: Job) -> list[RankPod]:
        """The job's pods, read afresh: that none is left is proved by a list, not by a cache."""
        listing = await self._client.list(kinds.POD, job.id.namespace, labels=JOB_NAME)
        if listing.malformed:
            raise errors.Conflict(409, "Unreadable", f"pod {listing.malformed[0].identity.name} cannot be read")
        return [rank_pod(adapter, pod) for pod in listing.items if job_of(pod)[0] == job.id]

    async def annotate(self, namespace: str, requests: Mapping[str, str]) -> None:
        """Ask pods for a checkpoint. A pod that is gone needs none."""
        for name, value in requests.items():
            self._check()
            body = {"metadata": {"annotations": {names.CHECKPOINT_REQUEST: value}}}
            try:
                written = await self._client.patch_merge(kinds.POD, name, body, namespace)
            except errors.NotFound:
                continue
            self._sources.pods.observe_write(written)


def _without_mark(raw: Obj) -> Obj:
    meta = raw["metadata"]
    rest = {key: value for key, value in (meta.get("annotations") or {}).items() if key != names.HELD_FOR}
    return {**raw, "metadata": {**meta, "annotations": rest}}
