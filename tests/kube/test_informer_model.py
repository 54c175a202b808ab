"""The informer against a model: whatever a server loses, doubles, reorders, delays or forgets, in the end the cache is
the server's state, and at no time is a handler told a lie.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sickbay.api.core import Node
from sickbay.api.kinds import NODE
from sickbay.clock import Randomness
from sickbay.kube import errors
from sickbay.kube.informer import Informer
from sickbay.sim.loop import LoopClock, VirtualLoop, run_virtual
from tests.kube.history import History

RESYNC = 400.0

name = st.sampled_from("abcd")
delay = st.sampled_from([0.0, 0.5, 3.0, 20.0])

changes = st.one_of(
    st.tuples(st.just("put"), name),
    st.tuples(st.just("delete"), name),
    st.tuples(st.just("own"), name, delay),
    st.tuples(st.just("wait"), delay),
    st.tuples(st.just("relist"), delay),
)
trouble = st.one_of(
    st.sampled_from([("break",), ("end",), ("compact",), ("double",), ("swap",), ("bookmark",), ("fail",)])
)
loss = st.just(("lose",))
rewind = st.just(("rewind",))


class Mirror:
    """What a handler knows, built from nothing but what it was told."""

    def __init__(self) -> None:
        self.objects: dict[str, Node] = {}
        self.newest: dict[str, int] = {}
        self.dead: set[str] = set()
        self.strict = True

    def told(self, old: Node | None, new: Node | None) -> None:
        subject = new or old
        assert subject is not None
        assert self.objects.get(subject.name) == old, "told of a change of something else than what was told before"
        if new is None:
            del self.objects[subject.name]
            self.dead.add(subject.uid)
            return
        self.objects[new.name] = new
        version = int(new.metadata.resource_version)
        if self.strict:
            assert new.uid not in self.dead, "the dead do not rise"
            assert version > self.newest.get(new.uid, 0), "versions never fall"
        self.newest[new.uid] = version


class World:
    """One run: a server, an informer on it, and the steps that are done to both."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.clock = LoopClock(loop)
        self.history = History(self.clock)
        self.informer = Informer(self.history.client(), NODE, self.clock, Randomness(5), resync=RESYNC, silence=150)
        self.mirror = Mirror()
        self.informer.on_change(self.mirror.told)
        self.others: list[asyncio.Task[None]] = []

    async def step(self, step: tuple[Any, ...]) -> None:
        await getattr(self, step[0])(*step[1:])
        await asyncio.sleep(0)  # noqa: TID251 - let the informer run a little, or not, by lot

    async def put(self, which: str) -> None:
        if which in self.history.objects:
            self.history.update(which)
        else:
            self.history.create(which)

    async def delete(self, which: str) -> None:
        if which in self.history.objects:
            self.history.delete(which)

    async def own(self, which: str, late: float) -> None:
        """A write of our own whose answer comes late."""
        answer = self.history.struct(
            self.history.update(which) if which in self.history.objects else self.history.create(which)
        )
        era = self.history.era

        async def observe() -> None:
            await self.clock.sleep(late)
            if self.history.era == era:
                self.informer.observe_write(answer)

        self.others.append(asyncio.ensure_future(observe()))

    async def relist(self, late: float) -> None:
        """A list on demand whose answer comes late."""

        async def ask() -> None:
            self.history.list_delay = late
            try:
                await self.informer.relist()
            except errors.ApiError:
                pass
            finally:
                self.history.list_delay = 0.0

        self.others.append(asyncio.ensure_future(ask()))

    async def wait(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    async def fail(self) -> None:
        self.history.refuse.append(OSError("no route"))

    def __getattr__(self, mischief: str) -> Callable[[], Any]:
        found = {
            "break": "break_watches",
            "end": "end_watches",
            "double": "double_last",
            "swap": "swap_last",
            "lose": "lose_last",
        }.get(mischief, mischief)

        async def make() -> None:
            getattr(self.history, found)()

        return make

    async def run(self, steps: list[tuple[Any, ...]], calm: float) -> None:
        running = asyncio.ensure_future(self.informer.run())
        for step in steps:
            await self.step(step)
        await asyncio.gather(*self.others)
        self.history.bookmark()
        await self.clock.sleep(calm)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        self.check()

    def check(self) -> None:
        served = {n: obj["metadata"]["resourceVersion"] for n, obj in self.history.objects.items()}
        cached = {n.name: n.metadata.resource_version for n in self.informer.all()}
        assert cached == served
        assert {n: obj.metadata.resource_version for n, obj in self.mirror.objects.items()} == served


def play(steps: list[tuple[Any, ...]], seed: int, calm: float, strict: bool = True) -> World:
    async def main(loop: VirtualLoop) -> World:
        world = World(loop)
        world.mirror.strict = strict
        await world.run(steps, calm)
        return world

    return run_virtual(main, seed)


@settings(deadline=None)
@given(st.lists(st.one_of(changes, trouble), max_size=30), st.integers(0, 10_000))
def test_a_true_but_troubled_server_is_followed_without_a_comparison(steps: list[tuple[Any, ...]], seed: int) -> None:
    play(steps, seed, calm=RESYNC * 0.5)


@settings(deadline=None)
@given(st.lists(st.one_of(changes, trouble, loss), max_size=30), st.integers(0, 10_000))
def test_lost_events_are_made_good_by_the_comparison(steps: list[tuple[Any, ...]], seed: int) -> None:
    play(steps, seed, calm=RESYNC * 3)


@settings(deadline=None)
@given(st.lists(st.one_of(changes, trouble, loss, rewind), max_size=30), st.integers(0, 10_000))
def test_a_server_that_lost_its_history_is_followed_in_the_end(steps: list[tuple[Any, ...]], seed: int) -> None:
    play(steps, seed, calm=RESYNC * 3, strict=False)
