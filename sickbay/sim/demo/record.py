"""What happened when, read from the writes that reached the API server: nothing is told that did not happen there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sickbay.apiserver.writes import Write
from sickbay.clock import parse_time
from sickbay.sim.demo.people import Say

STEPS = ("Drain", "Repair", "Validate")


@dataclass
class Story:
    """One fault on one node. Moments are simulated seconds since the start; None until they have come."""

    node: str
    fault: str
    broke: float
    condition: float | None = None
    quarantined: float | None = None
    ended: float | None = None
    outcome: str = ""
    phase: str = ""
    message: str = ""
    waited: float = 0.0
    _waiting_since: float | None = None
    started: dict[str, float] = field(default_factory=dict)
    finished: dict[str, float] = field(default_factory=dict)

    def spent(self) -> dict[str, float]:
        """Seconds by part. What is left to `other` are the moments between the parts."""
        seen, cordon, end = self.condition or self.broke, self.quarantined, self.ended
        parts = {"detect": seen - self.broke, "decide": (cordon - seen) if cordon is not None else 0.0}
        parts["wait"] = self.waited
        for step in STEPS:
            parts[step.lower()] = self.finished.get(step, 0.0) - self.started.get(step, 0.0)
        parts["total"] = (end if end is not None else 0.0) - self.broke
        return parts

    def waits(self, waiting: bool, now: float) -> None:
        if waiting and self._waiting_since is None:
            self._waiting_since = now
        elif not waiting and self._waiting_since is not None:
            self.waited += now - self._waiting_since
            self._waiting_since = None


JOB_PARTS = ("detected", "isolated", "tornDown", "queued", "started")
"""Moments of the job loop, as an attempt's `times` name them, after `fault`."""


@dataclass(frozen=True)
class Failure:
    """One failed attempt of a job, as its JobRecovery tells it."""

    job: str
    n: int
    verdict: str
    action: str
    root: str
    moments: dict[str, float]
    """Seconds since the failure, by part; a part that the way did not lead through is absent."""

    @property
    def over(self) -> bool:
        return "started" in self.moments


class Record:
    """Listens to the store. `say` gets what a reader should hear of it."""

    def __init__(self, time: Callable[[], float], say: Say) -> None:
        self._time, self._say = time, say
        self.stories: list[Story] = []
        self._recoveries: dict[str, dict[str, Any]] = {}

    @property
    def failures(self) -> list[Failure]:
        """Attempts that have failed, in their order, job by job."""
        return [
            _failure(name, attempt)
            for name, recovery in sorted(self._recoveries.items())
            for attempt in (recovery.get("status") or {}).get("attempts") or ()
            if attempt.get("verdict")
        ]

    def phase(self, job: str) -> str:
        """Where the job loop stands with a job; "" while it has no record of it."""
        return str((self._recoveries.get(job, {}).get("status") or {}).get("phase", ""))

    def breaks(self, node: str, fault: str) -> None:
        self.stories.append(Story(node, fault, self._time()))

    @property
    def over(self) -> bool:
        return bool(self.stories) and all(story.ended is not None for story in self.stories)

    def note(self, write: Write) -> None:
        """The store's `after_write` hook."""
        if write.new is None or write.new is write.old:
            return
        if write.resource == "nodes":
            self._node(write.name, write.new, write.user_agent)
        elif write.resource == "noderepairs.sickbay.dev":
            self._repair(write.new)
        elif write.resource == "jobrecoveries.sickbay.dev":
            self._recoveries[write.new["spec"]["job"]["name"]] = write.new
        elif write.resource == "events" and write.verb == "create":
            self._event(write.new)

    def _open(self, node: str) -> Story | None:
        return next((s for s in self.stories if s.node == node and s.ended is None), None)

    def _node(self, name: str, node: dict[str, Any], writer: str) -> None:
        story = self._open(name)
        if story is None:
            return
        if story.condition is None and writer.startswith("sickbay-agent") and _is_bad(node):
            story.condition = self._time()
        if story.quarantined is None and "sickbay.dev/quarantine" in (node["metadata"].get("annotations") or {}):
            story.quarantined = self._time()

    def _repair(self, repair: dict[str, Any]) -> None:
        story, status = self._open(repair["spec"]["node"]["name"]), repair.get("status") or {}
        if story is None:
            return
        now = self._time()
        story.phase, story.message = status.get("phase", ""), status.get("message", "")
        story.waits(story.phase in ("WaitingApproval", "WaitingSlot", "WaitingJob"), now)
        for step, state in (status.get("steps") or {}).items():
            if state.get("state") == "Running":
                story.started.setdefault(step, now)
            elif state.get("state") == "Done":
                story.finished.setdefault(step, now)
        if status.get("endedAt") and story.quarantined is not None:
            story.ended, story.outcome = now, status.get("outcome", "")

    def _event(self, event: dict[str, Any]) -> None:
        source = (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
        if source.startswith("sickbay-"):
            node = (event.get("involvedObject") or event.get("regarding") or {}).get("name", "")
            self._say(node, f"{source}: {event.get('reason')}: {event.get('message') or event.get('note')}")


def _failure(job: str, attempt: dict[str, Any]) -> Failure:
    times = attempt.get("times") or {}
    begun = parse_time(times["fault"])
    moments = {part: (parse_time(times[part]) - begun).total_seconds() for part in JOB_PARTS if times.get(part)}
    root = attempt.get("rootNode", "")
    return Failure(job, attempt["n"], attempt["verdict"], attempt.get("action", ""), root, moments)


def _is_bad(node: dict[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(c["type"].startswith("Nvidia") and c["status"] == "True" for c in conditions)
