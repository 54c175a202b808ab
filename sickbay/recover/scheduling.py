"""Since when the scheduler says of each pod what it says now, as this process has seen it.

The time in the condition is the scheduler's. Compared with our clock it makes a pod of a second ago one that does not
start for ten minutes, where the two differ by as much; so a wait counts from when we saw it begin. A restart begins it
anew, which only delays.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sickbay.api.core import Pod
from sickbay.clock import Clock, seen_at
from sickbay.recover.view import RankPod


class SchedulingBook:
    """See the module."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[str, float]] = {}
        """By pod UID: status of PodScheduled, and our monotonic time."""

    def note(self, pod: Pod, gone: bool) -> None:
        """A pod as it is now, or as it was last."""
        condition = pod.condition("PodScheduled")
        if gone or condition is None:
            self._seen.pop(pod.uid, None)
        elif self._seen.get(pod.uid, ("", 0.0))[0] != condition.status:
            self._seen[pod.uid] = condition.status, self._clock.monotonic()

    def of(self, pods: Iterable[RankPod]) -> dict[str, datetime]:
        """By pod UID."""
        known = ((p.pod.uid, self._seen.get(p.pod.uid)) for p in pods)
        return {uid: seen_at(self._clock, seen[1]) for uid, seen in known if seen is not None}
