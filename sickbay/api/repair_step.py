"""The steps of a NodeRepair: the one at hand, and of each its attempts and what execute reports.

decide writes all of it but `report` and `hooks`, which are execute's.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from sickbay.api.base import Nullable, Part, says
from sickbay.api.fields import Count, Line, Name, Text, Time, Uid, Word
from sickbay.api.words import (
    Action,
    PodState,
    PodWhy,
    ReportState,
    Stage,
    Step,
    StepState,
    WaitsFor,
)

MOST_ATTEMPTS = 16
"""Attempts of one step that a record holds (the contract's bound). Of Repair no more are made: what cannot be counted
would be tried for ever."""


class Current(Part):
    """The step at hand, and how its wait ends."""

    step: Annotated[str, says("Which of the five; empty = none yet", enum=[*Step, ""])] = ""
    stage: Annotated[str, says("Its hooks run: before or after it; empty = the step itself", enum=[*Stage, ""])] = ""
    attempt: Annotated[Count, says("Number of the attempt, counted through the whole repair")] = 0
    plan_generation: Annotated[
        Count, says("Generation of the plan it belongs to; while spec.plan has another one nothing is done; 0 = any")
    ] = 0
    action: Annotated[str, says("Repair: the act of this attempt", enum=[*Action, ""])] = ""
    args: Annotated[Nullable[dict[str, Line]], says("What the step needs to know", maxProperties=16)] = {}
    since: Annotated[Time | None, says("Since when")] = None
    deadline: Annotated[Time | None, says("Until when")] = None
    waits_for: Annotated[str, says("What it waits for; empty = nothing, it runs", enum=[*WaitsFor, ""])] = ""
    on_deadline: Annotated[Line, says("What happens then")] = ""


class Attempt(Part):
    """One attempt of a step."""

    n: Annotated[Count, says("Number of the attempt", required=True)] = 0
    plan_generation: Annotated[Count, says("Generation of the plan it followed")] = 0
    action: Annotated[str, says("The act", enum=[*Action, ""])] = ""
    started: Annotated[Time | None, says("When it began")] = None
    ended: Annotated[Time | None, says("When it ended")] = None
    state: Annotated[str, says("How it ended", enum=[*ReportState, *StepState, ""])] = ""
    proof: Annotated[Nullable[dict[str, Line]], says("What shows that it was done", maxProperties=16)] = {}


class OfferedJob(Part):
    """A job, by UID."""

    api_version: Annotated[Line, says("apiVersion of the job")] = ""
    kind: Annotated[Word, says("Its kind")] = ""
    namespace: Annotated[Word, says("Its namespace")] = ""
    name: Annotated[Name, says("Its name")] = ""
    uid: Annotated[Uid, says("Its UID")] = ""


class Offer(Part):
    """A job that is asked to move away as a whole instead of being evicted pod by pod."""

    job: Annotated[Nullable[OfferedJob], says("The job", required=True)] = msgspec.field(default_factory=OfferedJob)
    until: Annotated[Time | None, says("Until when the offer stands")] = None


class BlockingPod(Part):
    """A pod that is still on the node."""

    pod: Annotated[str, says("namespace/name", required=True, maxLength=317)] = ""
    state: Annotated[str, says("What it does", enum=[*PodState, ""])] = ""
    why: Annotated[str, says("Why it is still there", enum=[*PodWhy, ""])] = ""
    pdb: Annotated[Name, says("PodDisruptionBudget that blocks it")] = ""
    until: Annotated[Time | None, says("Until when that is waited for")] = None


class Report(Part):
    """execute's report on a step."""

    attempt: Annotated[Count, says("Attempt it reports on")] = 0
    plan_generation: Annotated[Count, says("Generation of the plan it follows")] = 0
    term: Annotated[Count, says("Term of the leader that claimed it")] = 0
    state: Annotated[str, says("How far it is", enum=[*ReportState, ""])] = ""
    message: Annotated[Text, says("For people")] = ""
    waits_for: Annotated[
        str,
        says(
            "What keeps execute from acting; empty = nothing. Without a state: not even claimed", enum=[*WaitsFor, ""]
        ),
    ] = ""
    lost_to: Annotated[Line, says("Who has taken the node's shared Lease from us; empty = nobody")] = ""
    proof: Annotated[Nullable[dict[str, Line]], says("What shows that it was done", maxProperties=16)] = {}
    offers: Annotated[Nullable[list[Offer]], says("Jobs asked to move away", maxItems=64)] = []
    pods: Annotated[Nullable[list[BlockingPod]], says("Pods still on the node", maxItems=32)] = []


class HookReport(Part):
    """execute's report on one run of a hook."""

    name: Annotated[Word, says("Name of the hook", required=True, minLength=1)] = ""
    stage: Annotated[str, says("Whether it runs before or after the step", enum=[*Stage, ""])] = ""
    attempt: Annotated[Count, says("Attempt of the step")] = 0
    plan_generation: Annotated[Count, says("Generation of the plan it follows")] = 0
    state: Annotated[str, says("How far it is", enum=[*ReportState, ""])] = ""
    started: Annotated[Time | None, says("When it began")] = None
    ended: Annotated[Time | None, says("When it ended")] = None
    job: Annotated[Name, says("Name of the Job, for one that runs a Job")] = ""
    message: Annotated[Line, says("What came of it; the endpoint's answer")] = ""


class StepStatus(Part):
    """One step: decide writes `state` and what surrounds it, execute `report`."""

    state: Annotated[str, says("decide's view of it", enum=[*StepState, ""])] = ""
    started: Annotated[Time | None, says("When it began")] = None
    finished: Annotated[Time | None, says("When it ended")] = None
    approved_attempt: Annotated[Count, says("Attempt whose gate was opened; 0 = none")] = 0
    approved_at: Annotated[Time | None, says("When it was opened")] = None
    approved_by: Annotated[Line, says("Who opened it, where the stamping policy tells; otherwise unknown")] = ""
    attempts: Annotated[Nullable[list[Attempt]], says("Its attempts", maxItems=MOST_ATTEMPTS)] = []
    report: Annotated[Nullable[Report], says("execute's report")] = msgspec.field(default_factory=Report)
    hooks: Annotated[Nullable[list[HookReport]], says("execute's reports on the step's hooks", maxItems=32)] = []
    hooks_waived: Annotated[Count, says("Attempt whose failed hooks a person has waived; 0 = none")] = 0
