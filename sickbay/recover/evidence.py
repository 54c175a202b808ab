"""What is known about one failure, and what is concluded from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sickbay.api.core import Node
from sickbay.api.job_recovery import JobAttempt
from sickbay.api.words import JobVerdict
from sickbay.recover.ends import End
from sickbay.recover.logs import Reading
from sickbay.recover.signs import Sign


@dataclass(frozen=True)
class Onset:
    """A node of the cluster that began to show a decisive fault, or fell silent."""

    node: str
    fault: str
    at: datetime


@dataclass(frozen=True)
class Evidence:
    """Everything a verdict may rest on."""

    at: datetime
    """When the job failed: the end of the rank that failed first."""
    root: End | None = None
    ends: tuple[End, ...] = ()
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """By pod UID."""
    placement: Mapping[str, str] = field(default_factory=dict)
    """Node by rank."""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    """Those of the placement that exist, by name."""
    signs: Mapping[str, tuple[Sign, ...]] = field(default_factory=dict)
    """By node of the placement."""
    repairs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Faults of open NodeRepairs that were first seen in the window, by node of the placement."""
    onsets: tuple[Onset, ...] = ()
    """In the whole cluster, around the failure."""
    reason: str = ""
    """Why the job has failed, in the words of its controller."""
    attempts: tuple[JobAttempt, ...] = ()
    """Earlier attempts of this job that count."""
    others: tuple[JobAttempt, ...] = ()
    """Failed attempts of other jobs on the nodes of the placement, within a week."""
    stalled: str = ""
    """Why the job is called stalled, in words; "" when ranks have ended."""
    behind: tuple[str, ...] = ()
    """Ranks whose last reported step is behind the others', when it stalled."""
    step: int | None = None
    """Last step that was seen."""


@dataclass(frozen=True)
class Suspect:
    node: str
    why: str


@dataclass(frozen=True)
class Verdict:
    """A judgement with its reasons."""

    verdict: JobVerdict
    reasons: tuple[str, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    fingerprint: str = ""
    conclusive: bool = False
    """Nothing that may still come in would change it: no need to wait for more."""
    final: bool = False
    """The owner or the job itself says that it must not run again."""
    established: bool = False
    """A deterministic failure that has been seen twice already."""
