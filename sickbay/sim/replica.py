"""A store that is a copy of another API server's objects: simulated parts on it act on that server, in real time.

Parts of the simulator are synchronous: between what one reads and what it writes nobody else runs. A `Replica` lets
them be so on a server behind a wire. What they read is a copy, kept by list and watch. What they write changes the
copy at once and goes to the server as the same request, under the same identity, in order for each object. While a
write is on its way the server's news of that object wait; the answer, or what came meanwhile, then replaces the copy.
A write that the server refuses is undone by what the server has instead.

Creations are not copied: the server gives UIDs, and the object is there when it says so.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from sickbay.api import kinds
from sickbay.api.kinds import Kind
from sickbay.apiserver.deletion import Deleted
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.resources import Served
from sickbay.apiserver.store import JSON, MERGE, STRATEGIC, Store
from sickbay.apiserver.writes import SYSTEM, Caller, Write
from sickbay.clock import Clock, Randomness
from sickbay.kube import errors
from sickbay.kube.client import Client

RETRY_SECONDS = 0.5
WATCHED: tuple[Kind[Any], ...] = (kinds.NODE, kinds.POD)
WRITTEN = {kind.resource: kind.raw for kind in (*WATCHED, kinds.LEASE)}

Place = tuple[str, str, str]
"""Resource, namespace, name."""
Request = Callable[[], Awaitable[Obj | None]]


class Replica(Store):
    """See the module. `run` until cancelled; `writer` gives the client that speaks for a caller."""

    decides = False

    def __init__(
        self, clock: Clock, randomness: Randomness, reader: Client, writer: Callable[[Caller], Client]
    ) -> None:
        super().__init__(clock, randomness, history=0)
        self._reader, self._writer = reader, writer
        self._seen: dict[Place, int] = {}
        """The server's version of each copy: older news are none."""
        self._outbox: dict[Place, deque[Request]] = {}
        self._waiting: dict[Place, tuple[str, Obj]] = {}
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Keep the copy and carry out what is written on it, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for place in self._outbox:
                group.create_task(self._send(place))
            for kind in WATCHED:
                group.create_task(self._follow(kind.raw))

    # --- what the server has

    async def _follow(self, kind: Kind[Obj]) -> None:
        while True:
            try:
                listing = await self._reader.list(kind)
                self._replace(kind, listing.items)
                async with aclosing(self._reader.watch(kind, listing.resource_version)) as events:
                    async for event in events:
                        if event.object is not None:
                            self._hear(kind.resource, event.type, event.object)
            except errors.ApiError:
                await self.clock.sleep(RETRY_SECONDS)

    def _replace(self, kind: Kind[Obj], items: list[Obj]) -> None:
        present = {(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]) for obj in items}
        for obj in items:
            self._hear(kind.resource, "MODIFIED", obj)
        for obj in self.list(kind.resource):
            place = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
            if place not in present:
                self._forget((kind.resource, *place))

    def _hear(self, resource: str, change: str, obj: Obj) -> None:
        meta = obj["metadata"]
        place = (resource, meta.get("namespace", ""), meta["name"])
        if int(meta["resourceVersion"]) <= self._seen.get(place, 0):
            return
        self._seen[place] = int(meta["resourceVersion"])
        if self._outbox.get(place):
            self._waiting[place] = (change, obj)
        else:
            self._copy(place, change, obj)

    def _copy(self, place: Place, change: str, obj: Obj) -> None:
        if change == "DELETED":
            self._forget(place)
            return
        resource, namespace, name = place
        kind, old = self.type(resource), self.find(resource, name, namespace)
        if old is not None and old["metadata"]["uid"] != obj["metadata"]["uid"]:
            self._forget(place)
            old = None
        new = self.put(kind, {"apiVersion": kind.api_version, "kind": kind.kind, **obj})
        verb = "create" if old is None else "update"
        self.report(Write(verb, resource, kind.kind, namespace, name, "", SYSTEM.user, "", old, new))

    def _forget(self, place: Place) -> None:
        resource, namespace, name = place
        kind, old = self.type(resource), self.find(resource, name, namespace)
        if old is not None:
            self.drop(kind, old)
            self.report(Write("delete", resource, kind.kind, namespace, name, "", SYSTEM.user, "", old, None))

    # --- what is written here

    def create(
        self,
        resource: str,
        obj: Obj,
        namespace: str = "",
        *,
        caller: Caller = SYSTEM,
        dry_run: bool = False,
        view: Served | None = None,
    ) -> Obj:
        if caller is SYSTEM or dry_run:
            return super().create(resource, obj, namespace, caller=caller, dry_run=dry_run, view=view)
        client, kind = self._writer(caller), WRITTEN[resource]
        self._post((resource, namespace, obj["metadata"]["name"]), lambda: client.create(kind, obj, namespace))
        return obj

    def patch(
        self,
        resource: str,
        name: str,
        body: Any,
        patch_type: str = MERGE,
        namespace: str = "",
        *,
        subresource: str = "",
        caller: Caller = SYSTEM,
        dry_run: bool = False,
        view: Served | None = None,
    ) -> Obj:
        old = self.get(resource, name, namespace)
        new = super().patch(
            resource, name, body, patch_type, namespace, subresource=subresource, caller=caller, dry_run=dry_run
        )
        if new is old or dry_run:
            return new
        client, kind = self._writer(caller), WRITTEN[resource]
        meant: Any = body if patch_type == JSON else _only_for(body, old["metadata"]["uid"])

        async def request() -> Obj:
            if patch_type == JSON:
                return await client.patch_json(kind, name, meant, namespace, subresource)
            if patch_type == STRATEGIC:
                return await client.patch_strategic(kind, name, meant, namespace, subresource)
            return await client.patch_merge(kind, name, meant, namespace, subresource)

        self._post((resource, namespace, name), request)
        return new

    def delete(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        grace: int | None = None,
        propagation: str = "",
        caller: Caller = SYSTEM,
        dry_run: bool = False,
    ) -> Deleted:
        old = self.get(resource, name, namespace)
        # The caller's version is one of the copy: it is held against the copy, and the server is asked for the object.
        deleted = super().delete(
            resource,
            name,
            namespace,
            uid=uid,
            resource_version=resource_version,
            grace=grace,
            propagation=propagation,
            caller=caller,
            dry_run=dry_run,
        )
        if dry_run:
            return deleted
        client, kind, its = self._writer(caller), WRITTEN[resource], uid or old["metadata"]["uid"]
        self._post(
            (resource, namespace, name),
            lambda: _nothing(client.delete(kind, name, namespace, its, grace=grace, propagation=propagation)),
        )
        return deleted

    def _post(self, place: Place, request: Request) -> None:
        line = self._outbox.setdefault(place, deque())
        line.append(request)
        if len(line) == 1 and self._group is not None:
            self._group.create_task(self._send(place))

    async def _send(self, place: Place) -> None:
        """Everything that is to be written on one object, one after the other."""
        line = self._outbox[place]
        while line:
            try:
                answer = await line[0]()
            except (errors.Unreachable, errors.ServerError, errors.TooManyRequests, errors.Unauthorized):
                await self.clock.sleep(RETRY_SECONDS)
                continue
            except errors.ApiError:
                answer = await self._look(place)
            line.popleft()
            if answer is not None:
                self._hear(place[0], "MODIFIED", answer)
        del self._outbox[place]
        news = self._waiting.pop(place, None)
        if news is not None:
            self._copy(place, *news)

    async def _look(self, place: Place) -> Obj | None:
        """What the server has where it refused a write. The copy is made anew even if the version is the same."""
        resource, namespace, name = place
        while True:
            try:
                found = await self._reader.get(WRITTEN[resource], name, namespace)
            except (errors.NotFound, errors.Forbidden):
                self._forget(place)
                return None
            except errors.ApiError:
                await self.clock.sleep(RETRY_SECONDS)
                continue
            self._seen.pop(place, None)
            return found


def _only_for(body: Obj, uid: str) -> Obj:
    """The patch, refused where another object has taken the name."""
    return {**body, "metadata": {**(body.get("metadata") or {}), "uid": uid}}


async def _nothing(call: Awaitable[None]) -> None:
    await call
