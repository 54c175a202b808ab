"""RecoveryPolicy: what the job loop may do for which jobs of a namespace."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from sickbay.api.base import Nullable, Part, Rule, says
from sickbay.api.fields import Count, Duration, Key, Line, Word
from sickbay.api.meta import ConditionedStatus, LabelSelector, Object
from sickbay.api.words import CheckpointNotify, Mode, NoFit


class RecoveryBudget(Part):
    """Attempts a job may use, by kind of cause."""

    transient: Annotated[Count, says("For transient causes")] = 3
    hardware: Annotated[Count, says("For hardware")] = 10
    unknown: Annotated[Count, says("For causes nobody could name")] = 2
    window: Annotated[Duration, says("The window they are counted in")] = "24h"


class Exclusions(Part):
    """Nodes a job keeps away from."""

    max_nodes: Annotated[Count, says("At most so many")] = 8
    expire: Annotated[Duration, says("For so long")] = "24h"


class Progress(Part):
    """Where progress can be read."""

    annotation: Annotated[Key, says("Pod annotation that carries the step number")] = "sickbay.dev/step"


class HangPhase(Part):
    """A part of the job's life in which standing still is no stall."""

    name: Annotated[Word, says("Name of the phase", required=True, minLength=1)] = ""
    from_: Annotated[Line, says("Log pattern it begins with; none = when all ranks run")] = ""
    to: Annotated[Line, says("Log pattern it ends with; none = the first step that is reported")] = ""
    max: Annotated[Duration, says("Longest time it may take; longer is a stall")] = "30m"


class Hang(Part):
    """When a job that runs is called stalled."""

    progress: Annotated[Nullable[Progress], says("Where progress can be read")] = msgspec.field(
        default_factory=Progress
    )
    stall: Annotated[Duration, says("No progress for so long is a stall")] = "15m"
    phases: Annotated[
        Nullable[list[HangPhase]],
        says("Phases not judged as stalls", maxItems=16, list_type="map", list_map_keys=["name"]),
    ] = []


class Checkpoint(Part):
    """How a job is asked for a checkpoint; absent = not asked."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.notify) || self.notify == 'Annotation'",
            "jobs are not asked by Call or by Signal in this version",
            "set notify to Annotation: what calls or signals the job can watch for sickbay.dev/checkpoint-request",
            field=".notify",
        ),
    )

    notify: Annotated[str, says("How it is asked", enum=CheckpointNotify)] = "Annotation"
    window: Annotated[Duration, says("How long it may take")] = "10m"


class RecoveryPolicySpec(Part):
    """Jobs and what may be done for them."""

    job_selector: Annotated[
        Nullable[LabelSelector], says("The jobs; without one, or with an empty one, all of the namespace")
    ] = msgspec.field(default_factory=LabelSelector)
    kinds: Annotated[Nullable[list[Word]], says("Kinds of jobs; none = all known", maxItems=32)] = []
    mode: Annotated[str, says("Observe: decide and report. Act: recover", enum=Mode)] = "Observe"
    budget: Annotated[Nullable[RecoveryBudget], says("Attempts a job may use")] = msgspec.field(
        default_factory=RecoveryBudget
    )
    on_no_fit: Annotated[str, says("When the job no longer fits: Wait, Requeue or Shrink", enum=NoFit)] = "Wait"
    no_fit_deadline: Annotated[Duration, says("So long, then people")] = "1h"
    exclusions: Annotated[Nullable[Exclusions], says("Nodes a job keeps away from")] = msgspec.field(
        default_factory=Exclusions
    )
    hang: Annotated[Nullable[Hang], says("When a job that runs is called stalled")] = msgspec.field(
        default_factory=Hang
    )
    checkpoint: Annotated[Checkpoint | None, says("How it is asked for a checkpoint; absent = not asked")] = None


class RecoveryPolicy(Object):
    """What the job loop may do for which jobs."""

    kind: str = msgspec.field(default_factory=lambda: "RecoveryPolicy")
    spec: Annotated[Nullable[RecoveryPolicySpec], says("Jobs and what may be done", required=True)] = msgspec.field(
        default_factory=RecoveryPolicySpec
    )
    status: Annotated[Nullable[ConditionedStatus], says("What the controller found")] = msgspec.field(
        default_factory=ConditionedStatus
    )
