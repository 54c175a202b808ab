"""RepairRule: which steps, in which order, behind which gates. Knows no pool.

Fields that belong to one step only have no default in the schema, because a schema cannot give one to Drain and not to
Repair: `ProcedureStep.resolved` fills them in.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from sickbay.api.base import Nullable, Part, Rule, says
from sickbay.api.fault_selector import FaultSelector
from sickbay.api.fields import Duration, Name, Word
from sickbay.api.meta import ConditionedStatus, LabelSelector, Object
from sickbay.api.words import (
    Action,
    ApprovalBy,
    ApprovalTimeout,
    DrainScope,
    DrainTimeout,
    HookFailure,
    NodeVolumes,
    Step,
)

DRAIN_TIMEOUT = "30m"
"""Default of a Drain's deadline, counted from our start."""


def steps_in_order(steps: str) -> str:
    """CEL: the steps of the list at this path are in their order, each at most once."""
    order = ", ".join(f"'{step}'" for step in Step)
    return f"[{order}].filter(s, {steps}.exists(p, p.step == s)) == {steps}.map(p, p.step)"


def _only_on(step: Step, *fields: str) -> Rule:
    others = " && ".join(f"!has(self.{field})" for field in fields)
    names = ", ".join(fields)
    return Rule(f"self.step == '{step}' || ({others})", f"{names} belong to {step} only", f"put them on step {step}")


def _skip_before(step: Step, later: Step) -> Rule:
    return Rule(
        f"!self.procedure.exists(p, p.step == '{step}' && has(p.approval) && p.approval.onTimeout == 'Skip')"
        f" || !self.procedure.exists(p, p.step == '{later}')",
        f"onTimeout Skip would go to {later} without {step}",
        f"use Escalate or Abort on {step}, or remove {later}",
        field=".procedure",
    )


class Approval(Part):
    """A gate before a step; absent = none."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.by != 'Jobs' || !has(self.groups) || size(self.groups) == 0",
            "groups name people, and by Jobs asks none",
            "use by People or PeopleAndJobs, or remove groups",
            field=".groups",
        ),
    )

    by: Annotated[str, says("Who answers: People, Jobs, or both", enum=ApprovalBy)] = "People"
    timeout: Annotated[Duration, says("How long to wait for the answer")] = "24h"
    on_timeout: Annotated[
        str,
        says(
            "Escalate: people are told and the gate stays open. Skip: leave out the step. Abort: as if denied",
            enum=ApprovalTimeout,
        ),
    ] = "Escalate"
    reminders: Annotated[
        Nullable[list[Duration]],
        says("When people are reminded, from the question on", maxItems=8, default=["15m", "1h", "4h"]),
    ] = msgspec.field(default_factory=lambda: ["15m", "1h", "4h"])
    groups: Annotated[
        Nullable[list[Name]], says("User groups whose members may answer; none = whoever may write it", maxItems=16)
    ] = []


class JobHook(Part):
    """A Job made from a PodTemplate."""

    pod_template: Annotated[Name, says("Name of a PodTemplate", required=True, minLength=1)] = ""


class CallHook(Part):
    """A call to an endpoint of the controller's configuration."""

    endpoint: Annotated[Name, says("Name of an endpoint", required=True, minLength=1)] = ""


class Hook(Part):
    """Something of yours that runs before or after a step."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule("has(self.job) != has(self.call)", "a hook needs exactly one of job and call", "give one of them"),
    )

    name: Annotated[Word, says("Name of the hook", required=True, minLength=1)] = ""
    job: Annotated[JobHook | None, says("Run a Job")] = None
    call: Annotated[CallHook | None, says("Call an endpoint")] = None
    timeout: Annotated[Duration, says("How long it may take")] = "10m"
    on_failure: Annotated[
        str, says("Escalate: people are told and the repair waits. Continue: go on", enum=HookFailure)
    ] = "Escalate"


class Grace(Part):
    """Bounds for the grace period pods ask for."""

    min: Annotated[Duration, says("At least")] = "1s"
    max: Annotated[Duration, says("At most")] = "10m"


class DrainOrder(Part):
    """Pods that leave earlier or later than others."""

    selector: Annotated[Nullable[LabelSelector], says("Which pods", required=True)] = msgspec.field(
        default_factory=LabelSelector
    )
    priority: Annotated[int, says("Lowest first; pods named nowhere have 0", minimum=-1000, maximum=1000)] = 0


class WaitFor(Part):
    """Pods that are let finish."""

    selector: Annotated[Nullable[LabelSelector], says("Which pods", required=True)] = msgspec.field(
        default_factory=LabelSelector
    )
    timeout: Annotated[Duration | None, says("At most so long; absent = until the drain's own deadline")] = None


class Protection(Part):
    """Pods that are never evicted; all given keys must match."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.selector) || (has(self.namespaces) && size(self.namespaces) > 0)"
            " || (has(self.priorityClasses) && size(self.priorityClasses) > 0)",
            "the entry protects nothing in particular",
            "give selector, namespaces or priorityClasses",
        ),
    )

    selector: Annotated[LabelSelector | None, says("By label")] = None
    namespaces: Annotated[Nullable[list[Word]], says("By namespace, any of them", maxItems=32)] = []
    priority_classes: Annotated[Nullable[list[Name]], says("By priority class, any of them", maxItems=32)] = []


class Force(Part):
    """Deletion without eviction, where fencing is proven."""

    allowed: Annotated[bool, says("Allow it")] = False


class DrainOptions(Part):
    """How pods leave the node."""

    scope: Annotated[
        str,
        says(
            "All pods, or GPUPods: only those that hold GPUs, and of these not those that are known to hold other GPUs "
            "than the sick ones",
            enum=DrainScope,
        ),
    ] = "All"
    grace: Annotated[Nullable[Grace], says("Bounds for the grace period pods ask for")] = msgspec.field(
        default_factory=Grace
    )
    order: Annotated[Nullable[list[DrainOrder]], says("Who leaves first", maxItems=16)] = []
    wait_for: Annotated[
        Nullable[list[WaitFor]],
        says("Pods that are let finish, beside those labelled sickbay.dev/wait-for-completion=true", maxItems=16),
    ] = []
    protect: Annotated[Nullable[list[Protection]], says("Pods that are never evicted", maxItems=16)] = []
    force: Annotated[Nullable[Force], says("Deletion without eviction")] = msgspec.field(default_factory=Force)
    node_volumes: Annotated[
        str | None,
        says(
            "Pods with a volume that exists on this node alone: Hold = they keep the drain waiting, Leave = they stay, "
            "Evict = as any other; absent = Evict where the pool's local data is disposable, else Hold",
            enum=NodeVolumes,
        ),
    ] = None


class ProcedureStep(Part):
    """One step with its gate, hooks and settings; which settings are allowed depends on `step`."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.step != 'Validate' || !has(self.approval)",
            "Validate takes no approval",
            "put the gate on Unquarantine",
            field=".approval",
        ),
        Rule(
            "self.step != 'Unquarantine' || !has(self.approval) || self.approval.onTimeout != 'Skip'",
            "onTimeout Skip on Unquarantine would leave the node out for ever",
            "use Escalate or Abort, or remove the step",
            field=".approval.onTimeout",
        ),
        _only_on(Step.DRAIN, "timeout", "onTimeout", "options"),
        _only_on(Step.REPAIR, "action", "allowUndrained"),
        _only_on(Step.VALIDATE, "ceiling", "soak", "level"),
    )

    step: Annotated[str, says("Which of the five", required=True, enum=Step)] = ""
    approval: Annotated[Approval | None, says("Gate before the step; absent = none. Not on Validate")] = None
    before: Annotated[
        Nullable[list[Hook]], says("Hooks before it", maxItems=8, list_type="map", list_map_keys=["name"])
    ] = []
    after: Annotated[
        Nullable[list[Hook]], says("Hooks after it", maxItems=8, list_type="map", list_map_keys=["name"])
    ] = []
    timeout: Annotated[Duration | None, says("Drain: the deadline, from our start; 30m unless given")] = None
    on_timeout: Annotated[
        str | None,
        says(
            "Drain, when its deadline passes: Escalate (unless given), Continue with what is left on the node, or "
            "RollBack",
            enum=DrainTimeout,
        ),
    ] = None
    options: Annotated[DrainOptions | None, says("Drain: how pods leave the node")] = None
    action: Annotated[str | None, says("Repair: what to do, instead of the fault type's remedy", enum=Action)] = None
    allow_undrained: Annotated[
        bool,
        says("Repair: a node-wide act without a Drain step does not wait until only exempted pods are left"),
    ] = False
    ceiling: Annotated[Duration | None, says("Validate: give up after; absent = by action")] = None
    soak: Annotated[Duration | None, says("Validate: stay well for so long; absent = by action")] = None
    level: Annotated[
        int | None,
        says("Validate: diagnostics up to this level; absent = by fault type", minimum=0, maximum=3),
    ] = None

    def resolved(self) -> ProcedureStep:
        """A copy in which the defaults that depend on the step stand explicitly."""
        if self.step != Step.DRAIN:
            return msgspec.structs.replace(self)
        return msgspec.structs.replace(
            self,
            timeout=self.timeout or DRAIN_TIMEOUT,
            on_timeout=self.on_timeout or DrainTimeout.ESCALATE.value,
            options=self.options or DrainOptions(),
        )


class RuleEntry(Part):
    """What to do for which faults."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            steps_in_order("self.procedure"),
            "steps are out of order or repeated",
            "write each at most once, in the order Quarantine, Drain, Repair, Validate, Unquarantine",
            field=".procedure",
        ),
        _skip_before(Step.QUARANTINE, Step.DRAIN),
        _skip_before(Step.DRAIN, Step.REPAIR),
    )

    name: Annotated[Word, says("Name of the entry", required=True, minLength=1)] = ""
    faults: Annotated[
        Nullable[FaultSelector], says("Which faults; all given keys must match, none given = every fault")
    ] = msgspec.field(default_factory=FaultSelector)
    procedure: Annotated[
        Nullable[list[ProcedureStep]],
        says("Any subset of the five steps, in their order, each at most once", required=True, minItems=1, maxItems=5),
    ] = []

    def step(self, name: str) -> ProcedureStep | None:
        return next((step for step in self.procedure if step.step == name), None)


class RepairRuleSpec(Part):
    """Entries, first match wins."""

    approval_prefix: Annotated[
        Word,
        says(
            "Prefix of the approval labels: sickbay, ack (labels as platforms written for ACK expect them), or a name "
            "from the controller's configuration",
            minLength=1,
        ),
    ] = "sickbay"
    rules: Annotated[
        Nullable[list[RuleEntry]],
        says(
            "The entries; the first whose faults match is used",
            required=True,
            minItems=1,
            maxItems=64,
            list_type="map",
            list_map_keys=["name"],
        ),
    ] = []


class RepairRule(Object):
    """Which steps, in which order, behind which gates."""

    kind: str = msgspec.field(default_factory=lambda: "RepairRule")
    spec: Annotated[Nullable[RepairRuleSpec], says("The entries", required=True)] = msgspec.field(
        default_factory=RepairRuleSpec
    )
    status: Annotated[Nullable[ConditionedStatus], says("What the controller found")] = msgspec.field(
        default_factory=ConditionedStatus
    )
