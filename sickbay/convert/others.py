"""Any other Kubernetes objects that name a node, watched for the fault types that ask for them.

For each kind there is one informer. What an object says is an expression (`match.object.cel`), and so is the node it is
about; an expression that fails on an object makes nothing bad of it, and is told on the FaultType. A kind that cannot
be read is told there too; what stood before stays for a while and then reads Unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from sickbay.api.cel import CelError, Program, Variables
from sickbay.api.core import Node, NodeCondition
from sickbay.api.fault_type import ObjectMatch
from sickbay.api.kinds import Kind
from sickbay.clock import Clock, Randomness
from sickbay.convert.asked import Asked
from sickbay.convert.wanted import Wanted
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer
from sickbay.kube.objects import key_of

log = structlog.get_logger(__name__)

KindName = tuple[str, str]
"""apiVersion and kind."""

LOOK_AGAIN = 60.0
"""Seconds until a kind that the server does not have is asked for again."""
UNSEEN = 300.0
"""Seconds after which a kind that was never seen, or is seen no more, makes what it said unknown."""
_MARK = "(object "


@dataclass
class _Watched:
    since: float
    """Monotonic time from which it was watched."""
    informer: Informer[dict[str, Any]] | None = None
    error: str = "not read yet"
    said: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict)
    """By object: (condition, node) that it makes bad."""


class OtherObjects:
    """See the module. `changed` is told the node of every change; `complain` the state of a fault type's match."""

    def __init__(self, client: Client, clock: Clock, randomness: Randomness, changed: Callable[[str], None]) -> None:
        self._client, self._clock, self._randomness, self._changed = client, clock, randomness, changed
        self._types: dict[str, Asked] = {}
        self._watched: dict[KindName, _Watched] = {}
        self._tasks: dict[KindName, asyncio.Task[None]] = {}
        self._failing: dict[str, str] = {}
        self._by_node: dict[str, dict[tuple[str, KindName, tuple[str, str]], None]] = {}

    # --- which kinds

    def ask(self, types: Mapping[str, Asked], group: asyncio.TaskGroup) -> None:
        """Watch what these types ask for, and no more. Called again whenever a fault type changes."""
        self._types = {type_: one for type_, one in types.items() if one.objects}
        wanted = {(m.api_version, m.kind) for one in self._types.values() for m in one.objects}
        for kind in self._tasks.keys() - wanted:
            self._tasks.pop(kind).cancel()
            watched = self._watched.pop(kind)
            for key in list(watched.said):
                self._note(kind, watched, key, [])
        for kind in wanted - self._tasks.keys():
            self._watched[kind] = _Watched(self._clock.monotonic())
            self._tasks[kind] = group.create_task(self._watch(kind))
        self._failing.clear()
        for kind, watched in self._watched.items():
            for obj in watched.informer.all() if watched.informer is not None else ():
                self._judge(kind, watched, None, obj)

    async def _watch(self, name: KindName) -> None:
        watched = self._watched[name]
        while True:
            try:
                kind = await self._find(name)
                break
            except errors.ApiError as error:
                watched.error = str(error)[:512]
                await self._clock.sleep(LOOK_AGAIN)
        informer: Informer[dict[str, Any]] = Informer(self._client, kind, self._clock, self._randomness.fork())
        watched.informer = informer
        informer.on_change(lambda old, new: self._judge(name, watched, old, new))
        await informer.run()

    async def _find(self, name: KindName) -> Kind[dict[str, Any]]:
        api_version, kind = name
        for found in await self._client.resources(api_version):
            if found.kind == kind:
                return found
        raise errors.NotFound(404, "NotFound", f"the server has no {kind} in {api_version}")

    # --- what an object says

    def _judge(self, name: KindName, watched: _Watched, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        said = [] if new is None else [found for one in self._types.values() for found in self._says(one, name, new)]
        self._note(name, watched, key_of(obj), said)

    def _says(self, one: Asked, name: KindName, obj: dict[str, Any]) -> Iterable[tuple[str, str]]:
        for match in one.objects:
            if (match.api_version, match.kind) != name:
                continue
            try:
                node = _node_of(match, obj)
            except CelError as error:
                self._failing[one.name] = f"on {'/'.join(part for part in key_of(obj) if part)}: {error}"[:512]
                continue
            if node:
                yield one.condition, node
                return

    def _note(self, name: KindName, watched: _Watched, key: tuple[str, str], said: list[tuple[str, str]]) -> None:
        before = watched.said.pop(key, [])
        if said:
            watched.said[key] = said
        if before == said:
            return
        for type_, node in before:
            self._by_node.get(node, {}).pop((type_, name, key), None)
        for type_, node in said:
            self._by_node.setdefault(node, {})[type_, name, key] = None
        for node in {node for _, node in [*before, *said]}:
            self._changed(node)

    # --- what follows

    def wanted(self, node: Node, one: Asked) -> Wanted | None:
        """The condition as the objects say it should be; None where they say nothing of it."""
        bad = [(name, key) for type_, name, key in self._by_node.get(node.name, ()) if type_ == one.condition]
        old = node.condition(one.condition)
        mine = old is not None and old.status != "False" and is_from_objects(old)
        unseen = self._unseen(one)
        if bad:
            (_, kind), key = min(bad)
            named = "/".join(part for part in key if part)
            more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
            return Wanted(
                one.condition, "True", kind, f"as {kind} {named}{more} says; fault {one.name} {_MARK}{named})"
            )
        if not mine or old is None:
            return None
        if not unseen:
            return Wanted(one.condition, "False", "NoObject", f"no object says so; fault {one.name}")
        if not any(self._long_unseen(kind) for kind in unseen):
            return Wanted(one.condition, old.status, old.reason, old.message)
        text = f"{', '.join(kind for _, kind in unseen)} cannot be read; fault {one.name} {_MARK}unknown)"
        return Wanted(one.condition, "Unknown", "ObjectsUnseen", text)

    def _unseen(self, one: Asked) -> list[KindName]:
        kinds = {(m.api_version, m.kind) for m in one.objects}
        return sorted(kind for kind in kinds if not self._sees(kind))

    def _sees(self, kind: KindName) -> bool:
        watched = self._watched.get(kind)
        informer = watched.informer if watched is not None else None
        return informer is not None and informer.sees()

    def _long_unseen(self, kind: KindName) -> bool:
        """Not seen for so long that what stands is anybody's guess; a start of ours takes its time."""
        watched = self._watched.get(kind)
        return watched is not None and not self._sees(kind) and self._clock.monotonic() - watched.since >= UNSEEN

    def complaints(self) -> dict[str, str]:
        """Why the match of a fault type cannot be judged, by the type's name; "" where it can."""
        found = {}
        for one in self._types.values():
            problems = [_compiles(one), self._failing.get(one.name, "")]
            for kind in self._unseen(one):
                watched = self._watched.get(kind)
                informer = watched.informer if watched is not None else None
                error = str(informer.last_error or "") if informer is not None else watched.error if watched else ""
                problems.append(f"{kind[1]} of {kind[0]} cannot be read: {error or 'not yet'}")
            found[one.name] = "; ".join(problem for problem in problems if problem)[:1024]
        return found


def is_from_objects(condition: NodeCondition) -> bool:
    return _MARK in condition.message


def _compiles(one: Asked) -> str:
    for match in one.objects:
        for text in (match.cel, match.node):
            try:
                Program.compile(text, ["object"])
            except CelError as error:
                return str(error)
    return ""


def _node_of(match: ObjectMatch, obj: dict[str, Any]) -> str:
    """The node that an object makes bad; "" for none. Raises CelError."""
    variables = Variables(object=obj)
    if not Program.compile(match.cel, ["object"]).holds(variables):
        return ""
    node = Program.compile(match.node, ["object"]).evaluate_in(variables)
    if not isinstance(node, str):
        raise CelError(f"{match.node!r} is {type(node).__name__}, not the name of a node")
    return node
