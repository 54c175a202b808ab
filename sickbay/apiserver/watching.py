"""Feeding a watch: what is there, then what happens, with bookmarks between and an end.

The stream ends at its time-out (the client's, or a drawn one between 30 and 60 minutes, so that clients do not all come
back together), when the resource goes away, or when the client does. All events that wait are sent in one piece.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from sickbay.apiserver.calls import encode
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.reading import INITIAL_END, WatchPlan, entry_json
from sickbay.apiserver.store import Store
from sickbay.apiserver.table import Entry, Watcher
from sickbay.apiserver.tables import TableView

BOOKMARK_SECONDS = 60.0
"""Pause between bookmarks (apiserver/pkg/storage/cacher, defaultBookmarkFrequency)."""
MIN_TIMEOUT = 1800
"""Seconds; kube-apiserver's --min-request-timeout. An unlimited watch lasts one to two times as long."""


Bell = Callable[[], None]


def at_once(resource: str, ready: Bell) -> Bell:
    """Send what there is as soon as there is something."""
    return ready


class WatchFeed:
    """The pieces of one watch."""

    def __init__(self, store: Store, plan: WatchPlan, bookmarks: float, told: Callable[[str, Bell], Bell]) -> None:
        self._store = store
        self._plan = plan
        self._pause, self._told = bookmarks, told
        self._ready = asyncio.Event()
        self._due = False
        self._defined = False
        self._watcher: Watcher | None = None
        self._table = TableView(store, plan.view, plan.form, plan.include_object) if plan.form else None

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        if self._plan.expired is not None:
            yield _line("ERROR", encode(self._plan.expired))
            return
        watcher = self._store.table(self._plan.view.type.key).watch(self._plan.chosen, self._plan.since)
        watcher.on_ready = self._told(self._plan.view.type.key, self._ready.set)
        self._watcher = watcher
        timer = asyncio.ensure_future(self._keep_time(watcher))
        try:
            if first := self._first():
                yield first
            async for piece in self._following(watcher):
                yield piece
        finally:
            timer.cancel()
            watcher.on_ready = None
            watcher.close()

    def stop(self) -> None:
        """End the watch from outside."""
        if self._watcher is not None:
            self._watcher.close()

    def _first(self) -> bytes:
        lines = [self._event("ADDED", entry) for entry in self._plan.initial]
        if self._plan.options.marks_end:
            lines.append(self._bookmark(initial_end=True))
        return b"".join(lines)

    async def _following(self, watcher: Watcher) -> AsyncGenerator[bytes, None]:
        while True:
            lines = [self._event(event.type, event.entry) for event in watcher.drain()]
            if self._due and not lines:
                lines.append(self._bookmark())
            self._due = False
            if lines:
                yield b"".join(lines)
            elif watcher.closed:
                return
            else:
                self._ready.clear()
                await self._ready.wait()

    async def _keep_time(self, watcher: Watcher) -> None:
        """Ring for bookmarks, and end the watch when its time is over."""
        clock = self._store.clock
        total = self._plan.options.timeout
        left = float(total) if total else MIN_TIMEOUT * self._store.randomness.uniform(1.0, 2.0)
        while left > self._pause:
            await clock.sleep(self._pause)
            left -= self._pause
            self._due = self._plan.options.bookmarks
            self._ready.set()
        await clock.sleep(left)
        watcher.close()

    def _event(self, kind: str, entry: Entry) -> bytes:
        if self._table is not None:
            return _line(kind, encode(self._once_defined(self._table.single(entry.obj))))
        return _line(kind, entry_json(self._plan.view, entry))

    def _once_defined(self, table: Obj) -> Obj:
        """Of the tables of one watch the first alone says what its columns are."""
        if not self._defined:
            self._defined = True
        elif "columnDefinitions" in table:
            table["columnDefinitions"] = None
        return table

    def _bookmark(self, *, initial_end: bool = False) -> bytes:
        view = self._plan.view
        meta: Obj = {"resourceVersion": str(self._store.revision)}
        if initial_end:
            meta["annotations"] = {INITIAL_END: "true"}
        mark = {"kind": view.type.kind, "apiVersion": view.api_version, "metadata": meta}
        if self._table is not None:
            return _line("BOOKMARK", encode(self._once_defined(self._table.bookmark(mark))))
        return _line("BOOKMARK", encode(mark))


def _line(kind: str, obj: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + obj + b"}\n"
