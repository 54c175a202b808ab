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
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar
from urllib.parse import urlencode

import httpx2
import msgspec

from sickbay.apiserver.requests import parse_target
from sickbay.apiserver.transport import DirectTransport
from sickbay.clock import Randomness
from sickbay.kube.exchange import Reply
from sickbay.sim.life import Life
from sickbay.sim.loop import LoopClock

T = TypeVar("T")

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


@lru_cache(maxsize=4096)
def _describe(component: str, node: str, method: str, path: str, watch: bool) -> Request:
    target = parse_target(path)
    verb = _VERBS.get(method, "get")
    if target is None:
        return Request(component, node, verb, "", "", "", "")
    if verb == "get" and not target.name:
        verb = "watch" if watch else "list"
    if target.subresource == "eviction":
        verb = "evict"
    return Request(component, node, verb, target.plural, target.namespace, target.name, target.subresource)


class Wire(httpx2.AsyncBaseTransport):
    """One process' way to the API server. `crash(restart)` ends the process."""

    def __init__(
        self,
        inner: DirectTransport,
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
        watch = b"watch=" in request.url.query
        described = _describe(self._component, self._node, request.method, request.url.path, watch)

        def refused(code: int) -> httpx2.Response:
            status, body, headers = _refusal(code)
            return httpx2.Response(status, headers=dict(headers), content=body, request=request)

        response = await self._carry(described, lambda: self._inner.handle_async_request(request), refused)
        return self._watched(response, described) if described.verb == "watch" else response

    async def exchange(
        self, method: str, path: str, query: bytes, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> Reply:
        """One request that has an end, without HTTP's objects around it."""
        described = _describe(self._component, self._node, method, path, False)

        async def ask() -> Reply:
            answer = await self._inner.exchange(method, path, query, headers, body)
            return Reply(answer.status, answer.body, {k.decode(): v.decode() for k, v in answer.headers})

        return await self._carry(described, ask, _refusal)

    async def _carry(self, asked: Request, go: Callable[[], Awaitable[T]], refused: Callable[[int], T]) -> T:
        """Everything that may befall a request on its way and back."""
        await self._life.breathe()
        plan = self._due_crash(asked)
        phase = plan.phase if plan is not None else ""
        if plan is not None and phase == "before":
            await self._die(plan)
        faults = self._weather.on(asked)
        await self._delay(faults)
        if asked.writes:
            for listener in list(self._weather.before):
                listener(asked)
            await self._life.breathe()
        code = self._refused(faults, asked)
        if code:
            return refused(code)
        answer = await go()
        if plan is not None and phase == "lost":
            await self._die(plan)
        if plan is not None and phase == "after":
            asyncio.get_running_loop().call_soon(self._crash, plan.restart)
        await self._life.breathe()
        return answer

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

    def _refused(self, faults: list[Fault], request: Request) -> int:
        """The status with which a fault in force answers instead of the server; 0 where none strikes."""
        randomness = self._weather.randomness
        if request.verb == "watch" and any(fault.cuts for fault in faults):
            return 503
        for fault in faults:
            if fault.rate and randomness.chance(fault.rate):
                return fault.codes[randomness.below(len(fault.codes))]
        return 0

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


def _refusal(code: int) -> Reply:
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
    return Reply(code, msgspec.json.encode(status), headers)


class Line:
    """The client's end of a wire: an `Exchange` under one token and one User-Agent."""

    def __init__(self, wire: Wire, token: str, user_agent: str) -> None:
        self._wire = wire
        self.who = [(b"authorization", f"Bearer {token}".encode()), (b"user-agent", user_agent.encode())]

    async def exchange(
        self, method: str, path: str, params: Mapping[str, str] | None, content: bytes | None, content_type: str
    ) -> Reply:
        """See `sickbay.kube.exchange`."""
        query = urlencode(params).encode() if params else b""
        headers = [*self.who, (b"content-type", content_type.encode())] if content_type else self.who
        return await self._wire.exchange(method, path, query, headers, content or b"")
