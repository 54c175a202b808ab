"""JobRecovery: what the job loop did and does for one job. Outlives the job."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from sickbay.api.base import Nullable, Part, Rule, says
from sickbay.api.fields import Count, Line, Name, Text, Time, Uid, Word
from sickbay.api.meta import Object
from sickbay.api.words import GateState, JobAction, JobVerdict, MoveState, RecoveryPhase


class JobRef(Part):
    """A job, by UID."""

    api_version: Annotated[Line, says("apiVersion of the job", required=True, minLength=1)] = ""
    kind: Annotated[Word, says("Its kind", required=True, minLength=1)] = ""
    name: Annotated[Name, says("Its name", required=True, minLength=1)] = ""
    uid: Annotated[Uid, says("Its UID")] = ""


class JobRecoverySpec(Part):
    """Which job, under which policy."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.job.kind == oldSelf.job.kind && self.job.name == oldSelf.job.name",
            "kind and name of the job are what the object is about",
            "create another JobRecovery for another job",
            field=".job",
        ),
    )

    job: Annotated[Nullable[JobRef], says("The job", required=True)] = msgspec.field(default_factory=JobRef)
    policy: Annotated[Name, says("Name of the RecoveryPolicy", required=True, minLength=1)] = ""


class AttemptTimes(Part):
    """When each part of a recovery was reached."""

    fault: Annotated[Time | None, says("The fault happened")] = None
    detected: Annotated[Time | None, says("The failure was seen")] = None
    localised: Annotated[Time | None, says("The suspect was known")] = None
    isolated: Annotated[Time | None, says("The suspect was out of the scheduler's sight")] = None
    torn_down: Annotated[Time | None, says("The old gang was gone")] = None
    queued: Annotated[Time | None, says("The job was released")] = None
    started: Annotated[Time | None, says("All ranks ran")] = None
    checkpoint_loaded: Annotated[Time | None, says("The checkpoint was loaded")] = None
    caught_up: Annotated[Time | None, says("The lost progress was made up for")] = None


class RankEnd(Part):
    """How one rank ended, as far as a verdict needs it: the pod that told it may be gone."""

    rank: Annotated[Word, says("The rank", required=True)] = ""
    node: Annotated[Name, says("Node it ran on")] = ""
    pod: Annotated[Name, says("Its pod")] = ""
    uid: Annotated[Uid, says("UID of the pod")] = ""
    at: Annotated[Time | None, says("When it ended")] = None
    code: Annotated[Count, says("Exit code of a plain exit")] = 0
    signal: Annotated[Count, says("Signal that killed it")] = 0
    how: Annotated[Word, says("Exited, OutOfMemory, Disrupted, Refused, Missing, NodeLost or Deleted")] = ""
    reason: Annotated[Line, says("In the words of the kubelet or of who ended it")] = ""
    line: Annotated[Line, says("The telling line of its log")] = ""


class JobAttempt(Part):
    """One life of the job, from placement to end."""

    n: Annotated[Count, says("Number of the attempt", required=True)] = 0
    started: Annotated[Time | None, says("When it began")] = None
    ended: Annotated[Time | None, says("When it ended")] = None
    placement: Annotated[Nullable[dict[str, Name]], says("Node by rank", maxProperties=4096)] = {}
    verdict: Annotated[str, says("What ended it", enum=[*JobVerdict, ""])] = ""
    evidence: Annotated[Nullable[list[Line]], says("What the verdict rests on", maxItems=8)] = []
    action: Annotated[str, says("What was done", enum=[*JobAction, ""])] = ""
    restarts: Annotated[Count, says("Restarts that the job's own controller had made when it began")] = 0
    root_rank: Annotated[Word, says("Rank that failed first")] = ""
    root_node: Annotated[Name, says("Node it ran on")] = ""
    fingerprint: Annotated[Line, says("What the failure looked like, free of nodes, ranks and GPUs")] = ""
    ends: Annotated[Nullable[list[RankEnd]], says("How its ranks ended, the first to fail first", maxItems=8)] = []
    youngest: Annotated[Time | None, says("When the last of its pods was made: a younger one has replaced a rank")] = (
        None
    )
    unplaced: Annotated[Count, says("Ranks for which no node was found, so that it never ran as a whole")] = 0
    first_step: Annotated[int | None, says("First step of progress that was seen; absent = unknown", minimum=0)] = None
    step: Annotated[int | None, says("Last step of progress that was seen; absent = unknown", minimum=0)] = None
    times: Annotated[Nullable[AttemptTimes], says("When each part was reached")] = msgspec.field(
        default_factory=AttemptTimes
    )


class Suspect(Part):
    """A node that may have failed the job; read by decide as fault job.suspect."""

    node: Annotated[Name, says("Name of the Node", required=True)] = ""
    uid: Annotated[Uid, says("UID of the Node")] = ""
    reason: Annotated[Text, says("Why it is suspected")] = ""
    since: Annotated[Time | None, says("Since when")] = None


class Excluded(Part):
    """A node the job keeps away from."""

    node: Annotated[Name, says("Name of the Node", required=True)] = ""
    uid: Annotated[Uid, says("UID of the Node")] = ""
    until: Annotated[Time | None, says("For how long")] = None
    reason: Annotated[Text, says("Why")] = ""


class Gate(Part):
    """The job's answer to a gate; read by decide."""

    repair: Annotated[Name, says("NodeRepair that asks", required=True)] = ""
    step: Annotated[Word, says("Its step", required=True)] = ""
    attempt: Annotated[Count, says("Its attempt")] = 0
    state: Annotated[str, says("How far the answer is", required=True, enum=GateState)] = ""
    until: Annotated[Time | None, says("When the job's time is over")] = None


class Move(Part):
    """The answer to a drain's offer; read by execute."""

    repair: Annotated[Name, says("NodeRepair that drains", required=True)] = ""
    attempt: Annotated[Count, says("Its attempt")] = 0
    state: Annotated[str, says("How far the move is", required=True, enum=MoveState)] = ""


class JobRecoveryStatus(Part):
    """Where the job stands."""

    phase: Annotated[str, says("Where the job stands", enum=RecoveryPhase)] = "Running"
    attempts: Annotated[Nullable[list[JobAttempt]], says("Its lives, the latest last", maxItems=32)] = []
    suspects: Annotated[Nullable[list[Suspect]], says("Nodes that may have failed it", maxItems=64)] = []
    excluded: Annotated[Nullable[list[Excluded]], says("Nodes it keeps away from", maxItems=64)] = []
    gates: Annotated[Nullable[list[Gate]], says("Its answers to gates", maxItems=64)] = []
    moves: Annotated[Nullable[list[Move]], says("Its answers to drains' offers", maxItems=64)] = []
    fingerprint: Annotated[Line, says("What the last failure looked like, free of nodes, ranks and GPUs")] = ""
    ranks: Annotated[Count, says("Ranks of the next attempt where it has to be smaller; 0 = all")] = 0
    message: Annotated[Text, says("For people: what is done, and what they can do")] = ""
    since: Annotated[Time | None, says("Since when it is in this phase")] = None
    deadline: Annotated[Time | None, says("Until when it waits here")] = None
    on_deadline: Annotated[Line, says("What happens then")] = ""
    template: Annotated[Word, says("Hash of the job's template: a changed one is another program")] = ""
    counted_from: Annotated[Count, says("First attempt that counts in the budgets")] = 0
    notified: Annotated[Nullable[dict[str, Line]], says("What people were told, and when", maxProperties=64)] = {}


class JobRecovery(Object):
    """What the job loop did and does for one job."""

    kind: str = msgspec.field(default_factory=lambda: "JobRecovery")
    spec: Annotated[Nullable[JobRecoverySpec], says("Which job", required=True)] = msgspec.field(
        default_factory=JobRecoverySpec
    )
    status: Annotated[Nullable[JobRecoveryStatus], says("Where the job stands")] = msgspec.field(
        default_factory=JobRecoveryStatus
    )
