"""The wire between one process of ours and the API server, and what can go wrong on it.

It is an httpx2 transport around the in-process one. For each request it tells those who wait for a certain write
(`before`), lets faults strike (errors, latency, watches that lag or break), and carries out a planned crash:

    before  the process dies and the request was never sent
    lost    the request is carried out, the process dies and never sees the answer
    after   the process sees the answer and dies at the next point where it has to wait

Renewals of Leases are no writes here: they would make every count depend on time. What a process asks of back-ends and
of its host does not go over the wire; `calls` strikes there in the same three ways.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import httpx2
import msgspec

from sickbay.apiserver.requests import parse_target
from sickbay.clock import Randomness
from sickbay.sim.life import Life
from sickbay.sim.loop import LoopClock

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Request:
    """A request of one of our processes, as faults and triggers look at it."""

    component: str
    node: str
    """The node of an agent, else empty."""
    verb: str
    resource: str
    namespace: str
    name: str
    subresource: str

    @property
    def writes(self) -> bool:
        """True for what changes an object, Leases aside."""
        return self.verb not in ("get", "list", "watch") and self.resource != "leases"


@dataclass(frozen=True, slots=True)
class Scope:
    """Which requests a fault strikes; an empty field means any."""

    component: str = ""
    verbs: tuple[str, ...] = ()
    object: str = ""
    """Kind, or Kind/name."""

    def covers(self, request: Request) -> bool:
        if self.component not in ("", "sickbay", request.component):
            return False
        if self.verbs and request.verb not in self.verbs:
            return False
        kind, _, name = self.object.partition("/")
        if kind and _plural(kind) != request.resource:
            return False
        return not name or name.rpartition("/")[2] == request.name


def _plural(kind: str) -> str:
    """The resource of a kind, as Kubernetes forms it."""
    word = kind.lower()
    if word.endswith("y"):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith("s") else "s")


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with the way to the API server."""

    rate: float = 0.0
    """Probability that a request is answered by an error instead of being carried out."""
    codes: tuple[int, ...] = (500,)
    latency: float = 0.0
    """Seconds before a request arrives."""
    stale: float = 0.0
    """Seconds by which watches lag behind. (Reads go to the quorum and are never stale.)"""
    loses: bool = False
    """What watches are sent meanwhile never arrives, and nothing tells that it is missing."""
    cuts: bool = False
    """No watch can be opened."""
    scope: Scope = Scope()


WRITE, REQUEST, CALL = "write", "request", "call"
"""What a planned crash counts: writes; requests of any kind, watches aside; calls to back-ends and to the host."""


@dataclass(slots=True)
class CrashPlan:
    """The process dies at its `count`-th write (or request, or call) from now, and starts again `restart` s later."""

    count: int
    phase: str = "before"
    restart: float = 5.0
    counts: str = WRITE


@dataclass(slots=True)
class Doom:
    """The crash that is planned for a process, if one is. It outlives the run in which it was planned."""

    plan: CrashPlan | None = None

    def due(self, *kinds: str) -> CrashPlan | None:
        """Count one event of these kinds. The plan, where this is the one it names; it is used up with that."""
        if self.plan is None or self.plan.counts not in kinds:
            return None
        self.plan.count -= 1
        if self.plan.count > 0:
            return None
        due, self.plan = self.plan, None
        return due


@dataclass(slots=True)
class Weather:
    """What all wires share: the faults in force, and those who wait for a write."""

    randomness: Randomness
    faults: list[Fault] = field(default_factory=list)
    before: list[Callable[[Request], None]] = field(default_factory=list)
    streams: dict[_Stream, Request] = field(default_factory=dict)
    """Open watches."""

    def cut(self, scope: Scope) -> None:
        """Break the open watches within a scope."""
        for stream, request in list(self.streams.items()):
            if scope.covers(request):
                stream.cut()

    def on(self, request: Request) -> list[Fault]:
        return [fault for fault in self.faults if fault.scope.covers(request)]


class Wire(httpx2.AsyncBaseTransport):
    """One process' way to the API server. `crash(restart)` ends the process."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        weather: Weather,
        life: Life,
        clock: LoopClock,
        component: str,
        node: str,
        crash: Callable[[float], None],
        doom: Doom,
    ) -> None:
        self._inner, self._weather, self._life, self._clock = inner, weather, life, clock
        self._component, self._node, self._crash = component, node, crash
        self._doom = doom

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await self._life.breathe()
        described = self._describe(request)
        plan = self._due_crash(described)
        phase = plan.phase if plan is not None else ""
        if plan is not None and phase == "before":
            await self._die(plan)
        faults = self._weather.on(described)
        await self._delay(faults)
        if described.writes:
            for listener in list(self._weather.before):
                listener(described)
            await self._life.breathe()
        refusal = self._refusal(faults, request)
        if refusal is not None:
            return refusal
        response = await self._inner.handle_async_request(request)
        if plan is not None and phase == "lost":
            await response.aclose()
            await self._die(plan)
        if plan is not None and phase == "after":
            asyncio.get_running_loop().call_soon(self._crash, plan.restart)
        await self._life.breathe()
        return self._watched(response, described) if described.verb == "watch" else response

    def _describe(self, request: httpx2.Request) -> Request:
        target = parse_target(request.url.path)
        verb = _VERBS.get(request.method, "get")
        if target is None:
            return Request(self._component, self._node, verb, "", "", "", "")
        if verb == "get" and not target.name:
            verb = "watch" if b"watch=" in request.url.query else "list"
        if target.subresource == "eviction":
            verb = "evict"
        return Request(
            self._component, self._node, verb, target.plural, target.namespace, target.name, target.subresource
        )

    # --- crashes

    def _due_crash(self, request: Request) -> CrashPlan | None:
        if request.resource == "leases" or request.verb == "watch":
            return None
        return self._doom.due(REQUEST, WRITE) if request.writes else self._doom.due(REQUEST)

    async def _die(self, plan: CrashPlan) -> None:
        self._crash(plan.restart)
        await self._life.breathe()

    # --- faults

    async def _delay(self, faults: list[Fault]) -> None:
        latency = sum(fault.latency for fault in faults)
        if latency:
            await self._clock.sleep(latency)
            await self._life.breathe()

    def _refusal(self, faults: list[Fault], request: httpx2.Request) -> httpx2.Response | None:
        randomness = self._weather.randomness
        if request.url.query and b"watch=" in request.url.query and any(fault.cuts for fault in faults):
            return _error(503, request)
        for fault in faults:
            if fault.rate and randomness.chance(fault.rate):
                code = fault.codes[randomness.below(len(fault.codes))]
                return _error(code, request)
        return None

    def _watched(self, response: httpx2.Response, request: Request) -> httpx2.Response:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        stream = _Stream(response.stream, self, request)
        self._weather.streams[stream] = request
        return httpx2.Response(response.status_code, headers=response.headers, stream=stream, request=response.request)

    async def lag(self, request: Request) -> None:
        """Hold a piece of a watch back while its process is frozen, and as long as the faults in force say."""
        stale = max((fault.stale for fault in self._weather.on(request)), default=0.0)
        if stale:
            await self._clock.sleep(stale)
        await self._life.breathe()

    def loses(self, request: Request) -> bool:
        """A piece of a watch that is lost on its way."""
        return any(fault.loses for fault in self._weather.on(request))

    def closed(self, stream: _Stream) -> None:
        self._weather.streams.pop(stream, None)


class _Stream(httpx2.AsyncByteStream):
    """A watch that can be held back and broken."""

    def __init__(self, inner: httpx2.AsyncByteStream, wire: Wire, request: Request) -> None:
        self._inner, self._wire, self._request = inner, wire, request
        self._cut: asyncio.Task[None] | None = None

    def cut(self) -> None:
        """The connection breaks: what was under way is lost, and the reader sees the end."""
        self._cut = asyncio.get_running_loop().create_task(self._inner.aclose(), name="cut")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            await self._wire.lag(self._request)
            if self._cut is not None:
                raise httpx2.ReadError("the connection broke")
            if not self._wire.loses(self._request):
                yield piece

    async def aclose(self) -> None:
        self._wire.closed(self)
        await self._inner.aclose()


_REASONS = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}


def _error(code: int, request: httpx2.Request) -> httpx2.Response:
    """An answer from something between us and the API server, or from its own overload protection."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"the simulated API server answers {code}",
        "reason": _REASONS.get(code, "InternalError"),
        "code": code,
    }
    headers = {"content-type": "application/json", **({"retry-after": "1"} if code == 429 else {})}
    return httpx2.Response(code, headers=headers, content=msgspec.json.encode(status), request=request)
