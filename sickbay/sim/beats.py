"""Beats of idle parts without their price: a run of days must not consist of them.

Three shortcuts, for runs that are long enough to need them (`Settings.shortcuts`). Each leaves every object, every
moment and every act as they are without it; only the order of what happens at one and the same moment may differ.

* A renewal of a Lease is carried out in one step (`BeatClient`), while nothing is wrong with its way to the server.
* An agent's own Lease is renewed by a bell that all agents share (`Beats`, `BeatKeeper`), likewise.
* An agent at rest looks at its machine again when that has changed, at the moment at which it would have looked next
  (`MachineRhythm`): what a look in between would see is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from sickbay.api.kinds import LEASE, Kind
from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.renewal import LEASES, renewed
from sickbay.apiserver.writes import Caller
from sickbay.clock import Clock, rfc3339_micro
from sickbay.detect.alarm import Alarm
from sickbay.detect.rhythm import Rhythm
from sickbay.kube.client import Client
from sickbay.kube.decode import decode_object
from sickbay.kube.keeper import LeaseKeeper
from sickbay.sim.life import Life
from sickbay.sim.loop import VirtualLoop
from sickbay.sim.machine import Machine
from sickbay.sim.wire import Line, Weather

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode


class Lane:
    """The short way of one process to its Leases, open while nothing can befall a request."""

    def __init__(self, server: ApiServer, weather: Weather, life: Life, line: Line) -> None:
        self._server, self._weather, self._life = server, weather, life
        self._headers = dict(line.who)
        self._caller: Caller | None = None

    def renew(self, name: str, namespace: str, patch: Obj) -> Obj | None:
        """The renewed Lease; None, with nothing done, where only the ordinary way will do."""
        if self._weather.faults or self._life.frozen or not self._life.alive:
            return None
        if self._caller is None:
            self._caller = self._server.authenticator.caller(self._headers)
        return renewed(self._server.store, name, namespace, patch, self._caller)


class BeatClient(Client):
    """A client that renews Leases by its lane."""

    def __init__(self, lane: Lane, *args: Any) -> None:
        super().__init__(*args)
        self.lane = lane

    async def patch_merge(
        self, kind: Kind[T], name: str, body: Mapping[str, Any], namespace: str = "", subresource: str = ""
    ) -> T:
        """See `Client`."""
        found = self.lane.renew(name, namespace, dict(body)) if kind is LEASE and not subresource else None
        if found is None:
            return await super().patch_merge(kind, name, body, namespace, subresource)
        self.requests.answered("PATCH", 200, 0.0)
        return decode_object(kind.struct, _encode(found))


class Beats:
    """One bell for all whose next beat is due at the same moment."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._due: dict[float, dict[Callable[[], float | None], None]] = {}

    def join(self, at: float, beat: Callable[[], float | None]) -> None:
        """Call `beat` then. It says after how many seconds it wants to be called again; None = no more."""
        waiting = self._due.get(at)
        if waiting is None:
            waiting = self._due[at] = {}
            self._loop.call_at(at, self._ring, at)
        waiting[beat] = None

    def leave(self, beat: Callable[[], float | None]) -> None:
        for waiting in self._due.values():
            waiting.pop(beat, None)

    def _ring(self, at: float) -> None:
        for beat in self._due.pop(at):
            again = beat()
            if again is not None:
                self.join(at + again, beat)


class BeatKeeper(LeaseKeeper):
    """Renews once the ordinary way, and from then on with the bell, for as long as that works."""

    def __init__(self, client: Client, clock: Clock, *args: Any, beats: Beats, lane: Lane, **more: Any) -> None:
        super().__init__(client, clock, *args, **more)
        self._asked, self._wall, self._beats, self._lane = client, clock, beats, lane

    async def pause(self) -> None:
        """Wait for the moment of a renewal that takes the ordinary way."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()

        def beat() -> float | None:
            if not over.done() and self._renewed():
                return self.period
            if not over.done():
                over.set_result(None)
            return None

        self._beats.join(loop.time() + self.period, beat)
        try:
            await over
        finally:
            self._beats.leave(beat)

    def _renewed(self) -> bool:
        spec = self.spec(rfc3339_micro(self._wall.now()))
        if self._lane.renew(self.name, self.namespace, {"spec": spec}) is None:
            return False
        self._asked.requests.answered("PATCH", 200, 0.0)
        return True


class MachineRhythm(Rhythm):
    """Looks at a machine that tells when it changes."""

    def __init__(self, machine: Machine, loop: VirtualLoop) -> None:
        self._machine, self._loop = machine, loop
        self._resting: dict[asyncio.Future[None], None] = {}
        machine.listeners.append(self._changed)

    def stop(self) -> None:
        """See `Rhythm`."""
        self._machine.listeners.remove(self._changed)

    def _changed(self, what: str) -> None:
        self.stir()

    def stir(self) -> None:
        """See `Rhythm`."""
        for waiter in self._resting:
            if not waiter.done():
                waiter.set_result(None)

    async def pause(self, alarm: Alarm, seconds: float, rests: Callable[[], bool]) -> None:
        """Wait as long as the ordinary pause would, or as many times that as nothing changes."""
        due = self._loop.time() + seconds
        if not alarm.rung and rests():
            await self._change(alarm)
            due = self._next(due, seconds)
        await alarm.wait(due - self._loop.time())

    async def sleep(self, clock: Clock, seconds: float, rests: Callable[[], bool]) -> None:
        """See `Rhythm`."""
        due = self._loop.time() + seconds
        if rests():
            await self._change()
            due = self._next(due, seconds)
        await clock.sleep(due - self._loop.time())

    def _next(self, due: float, seconds: float) -> float:
        # Added up as the ordinary pauses would: their sum is not quite the same as a multiple.
        while due < self._loop.time():
            due += seconds
        return due

    async def _change(self, alarm: Alarm | None = None) -> None:
        """Wait until something changes, or the alarm rings."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._resting[waiter] = None

        def rung() -> None:
            if not waiter.done():
                waiter.set_result(None)

        if alarm is not None:
            alarm.heard = rung
        try:
            await waiter
        finally:
            if alarm is not None:
                alarm.heard = None
            del self._resting[waiter]


def at_rest(loop: VirtualLoop, resource: str, ready: Callable[[], None]) -> Callable[[], None]:
    """Watchers of Leases are told once of all renewals of one moment."""
    if resource != LEASES:
        return ready
    waiting = False

    def told() -> None:
        nonlocal waiting
        waiting = False
        ready()

    def soon() -> None:
        nonlocal waiting
        if not waiting:
            waiting = True
            loop.call_at_rest(told)

    return soon
