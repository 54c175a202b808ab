"""What happened in a run, in order: acts on machines and pods, calls to back-ends, writes of ours, messages to people.

Expectations and invariants read it; nothing in the product does. Moments are seconds since the start of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Action:
    """A destructive act of ours that reached a node or a back-end."""

    kind: str
    node: str
    at: float
    node_uid: str = ""
    target: str = ""
    """`namespace/name` of the pod, the service or the device concerned."""
    grace: int | None = None
    key: str = ""
    pod_uid: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A request of ours to a repair back-end, whatever its answer."""

    call: str
    answer: str
    node: str
    at: float
    key: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """A write of one of our identities that the API server carried out."""

    verb: str
    by: str
    at: float
    object: str
    """`Kind/name` or `Kind/namespace/name`."""
    subresource: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """Something that was sent to people."""

    channel: str
    category: str
    node: str
    text: str
    at: float


@dataclass(slots=True)
class Journal:
    """See the module. `now` gives the seconds since the start of the run."""

    now: Callable[[], float]
    actions: list[Action] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    writes: list[Written] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    on_change: list[Callable[[], None]] = field(default_factory=list)
    """Told of each act, call and message; writes are told of by the store."""

    def act(self, kind: str, node: str, **more: Any) -> None:
        action = Action(kind, node, **{"at": self.now(), **more})
        self.actions.append(action)
        self._tell()

    def call(self, call: str, answer: str, node: str, key: str = "") -> None:
        self.calls.append(Call(call, answer, node, self.now(), key))
        self._tell()

    def message(self, channel: str, category: str, node: str, text: str) -> None:
        # Text only: what an expression is shown must be plain data.
        self.messages.append(Message(str(channel), str(category), str(node), str(text), self.now()))
        self._tell()

    def _tell(self) -> None:
        for listener in list(self.on_change):
            listener()
