"""What a repair back-end is: something that takes an act under a key and can be asked what became of it.

An act is dispatched with an idempotency key, and its answer may get lost. The caller therefore never concludes from
a missing answer: it looks (`observe`) before it repeats. The errors say what is known:

    ProviderError
    ├── Transient    not accepted; the same act may be sent again
    ├── Permanent    not accepted, and sending it again will not help
    ├── Withheld     not handed over, which says nothing about the machine
    └── Ambiguous    may or may not have been accepted
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable


class ProviderError(Exception):
    """A back-end did not carry out a call; the text is for people."""


class Transient(ProviderError):
    """Not accepted for a reason that may pass (conflict, throttling, connection refused)."""


class Permanent(ProviderError):
    """Not accepted, and will not be (unknown instance, not permitted, unsupported action)."""


class Withheld(ProviderError):
    """Never handed over: a right of ours is missing, or what we ask is refused before anybody looks at the machine. No
    remedy has failed by it, so none that is harsher may follow; people mend it."""


class Ambiguous(ProviderError):
    """The answer never arrived: the act may have been accepted."""


@dataclass(frozen=True, slots=True)
class Target:
    """The machine an act is for, as it was when the incident opened."""

    name: str
    uid: str
    provider_id: str = ""
    boot_id: str = ""


@dataclass(frozen=True, slots=True)
class Act:
    """One act. The same key is the same act, however often it is sent: `<repair UID>/<step>/<attempt>`, or with the
    group's id in place of the UID where the act takes a whole domain down."""

    key: str
    action: str
    target: Target
    repair: str
    args: dict[str, str] = field(default_factory=dict)
    owner: str = ""
    """UID of the repair; "" = the first part of the key."""
    members: tuple[str, ...] = ()
    """All nodes that the act takes down, where that is more than the target."""
    timeout: float = 900.0
    """Seconds after which nobody waits for it any more."""


class ActState(StrEnum):
    ABSENT = "Absent"
    RUNNING = "Running"
    DONE = "Done"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Observation:
    """What a back-end knows of an act. Done is the back-end's word, not proof."""

    state: ActState
    message: str = ""
    proof: dict[str, str] = field(default_factory=dict)
    begun: bool = True
    """False: accepted, and nobody has taken it up yet."""


class Provider(Protocol):
    """A repair back-end."""

    @property
    def keeps_keys(self) -> bool:
        """True when `observe` can tell that a key was never accepted (Absent), so that sending it again is safe."""
        ...

    def supports(self, action: str) -> bool: ...

    async def submit(self, act: Act) -> None:
        """Hand over the act. Returns once accepted; raises Transient, Permanent or Ambiguous otherwise."""
        ...

    async def observe(self, act: Act) -> Observation:
        """What became of the act with this key. Raises Transient when it cannot be asked now."""
        ...


class Power(StrEnum):
    ON = "On"
    OFF = "Off"
    UNKNOWN = "Unknown"


@runtime_checkable
class Fences(Protocol):
    """A back-end that reads the power state of a machine past its operating system."""

    async def power(self, target: Target) -> Power:
        """Off only when the machine draws no power and runs nothing. Raises ProviderError."""
        ...


@runtime_checkable
class Withdraws(Protocol):
    """A back-end that can take back what it has accepted but not begun."""

    async def withdraw(self, act: Act) -> None:
        """Take the act back. Nothing happens where it has begun, has ended or never came. Raises ProviderError."""
        ...
