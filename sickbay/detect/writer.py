"""Writes what stands to the agent's own Node: conditions and the device annotation, in one patch per transition.

Level-based: what the Node says is compared with what it should say, so a lost write, a restart or a foreign hand that
set our conditions to Unknown is put right by the next look, and repetition writes nothing. The first critical change
goes out at once; what follows is gathered into at most one write in ten seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog

from sickbay.api import kinds, names
from sickbay.api.core import Node, NodeCondition
from sickbay.api.devices import DeviceFaults, write_devices
from sickbay.clock import Clock, Randomness, rfc3339
from sickbay.detect.alarm import Alarm
from sickbay.detect.ledger import FALSE, Wanted
from sickbay.kube import errors, nodes
from sickbay.kube.backoff import Backoff
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer

GATHER = 10.0
"""Seconds between two writes (design section 4: at most one write in 10 s)."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Desired:
    """What the Node should say."""

    conditions: Iterable[Wanted]
    devices: Iterable[DeviceFaults]


class StatusWriter:
    """See the module. `desired` gives what should stand; `written` is called when the Node says so."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        randomness: Randomness,
        nodes_seen: Informer[Node],
        node: str,
        desired: Callable[[], Desired],
        written: Callable[[], None],
    ) -> None:
        self._client, self._clock = client, clock
        self._nodes, self._node = nodes_seen, node
        self._desired, self._written = desired, written
        self._alarm = Alarm(clock)
        self._backoff = Backoff(randomness, 1.0, 30.0)
        self._dirty, self._urgent = True, False
        self._last = self._last_urgent = self._not_before = float("-inf")

    @property
    def clean(self) -> bool:
        """True when the Node says all that it should."""
        return not self._dirty

    def wake(self, urgent: bool = False) -> None:
        """Something may have changed; `urgent`: something critical is new."""
        self._dirty, self._urgent = True, self._urgent or urgent
        self._alarm.ring()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            wait = self._wait()
            if wait is None or wait > 0:
                await self._alarm.wait(wait)
                continue
            try:
                await self._write()
            except errors.ApiError as error:
                self._dirty = True
                pause = self._backoff.next()
                self._not_before = self._clock.monotonic() + pause
                log.warning("conditions not written", node=self._node, error=str(error), again_in=round(pause, 1))
            else:
                self._backoff.reset()

    def _wait(self) -> float | None:
        """Seconds until the next write may go out; None when there is nothing to write."""
        if not self._dirty or self._nodes.get(self._node) is None:
            return None
        earliest = (self._last_urgent if self._urgent else self._last) + GATHER
        return max(earliest, self._not_before) - self._clock.monotonic()

    async def _write(self) -> None:
        node = self._nodes.get(self._node)
        if node is None:
            return
        urgent, self._dirty, self._urgent = self._urgent, False, False
        body = patch(node, self._desired(), rfc3339(self._clock.now()))
        if body is not None:
            try:
                answer = await self._client.patch_strategic(kinds.NODE, self._node, body, subresource="status")
            except errors.ApiError:
                self._urgent = self._urgent or urgent
                raise
            self._nodes.observe_write(answer)
            self._last = self._clock.monotonic()
            self._last_urgent = self._last if urgent else self._last_urgent
        if not self._dirty:
            self._written()


def patch(node: Node, desired: Desired, now: str) -> dict[str, Any] | None:
    """The strategic merge patch that makes the Node say what it should; None when it does."""
    changed = [entry for want in desired.conditions if (entry := _condition(node, want, now)) is not None]
    value = write_devices(desired.devices)
    wanted = value if value != "[]" else None
    annotation = wanted != node.annotations.get(names.DEVICES)
    if not changed and not annotation:
        return None
    meta: dict[str, Any] = {"uid": node.uid}
    if annotation:
        meta["annotations"] = {names.DEVICES: wanted}
    return (nodes.conditions_patch(changed) if changed else {}) | {"metadata": meta}


def _condition(node: Node, want: Wanted, now: str) -> NodeCondition | None:
    """A condition that is False already is left alone: why it became so is history."""
    old = node.condition(want.type)
    if old is not None and want.status == FALSE and old.status == FALSE and want.type != names.DETECTION_BLIND:
        return None
    new = nodes.condition(node, want.type, want.status, want.reason, want.message, now)
    if new is None or not want.since or want.status == FALSE:
        return new
    return msgspec.structs.replace(new, last_transition_time=want.since)
