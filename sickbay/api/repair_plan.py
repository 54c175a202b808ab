"""The plan of a NodeRepair: what is to be done, with everything resolved, so that no other object is needed for it."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from sickbay.api import names
from sickbay.api.base import Nullable, Part, Rule, says
from sickbay.api.fault_type import Rung
from sickbay.api.fields import Duration, Key, Line, Name, Text, Word
from sickbay.api.repair_pool import ProviderRef
from sickbay.api.repair_rule import Approval, DrainOptions, Hook, steps_in_order
from sickbay.api.words import (
    Action,
    DrainTimeout,
    Needs,
    Step,
    Urgency,
)


class PlanStep(Part):
    """One step with everything resolved."""

    step: Annotated[str, says("Which of the five", required=True, enum=Step)] = ""
    approval: Annotated[Approval | None, says("Gate before the step; absent = none")] = None
    before: Annotated[
        Nullable[list[Hook]], says("Hooks before it", maxItems=8, list_type="map", list_map_keys=["name"])
    ] = []
    after: Annotated[
        Nullable[list[Hook]], says("Hooks after it", maxItems=8, list_type="map", list_map_keys=["name"])
    ] = []
    taint: Annotated[Word, says("Quarantine: value of the taint sickbay.dev/quarantine; empty = no taint")] = ""
    timeout: Annotated[Duration | None, says("Deadline of the step, or of one attempt")] = None
    on_timeout: Annotated[str | None, says("Drain: when the deadline passes", enum=DrainTimeout)] = None
    options: Annotated[DrainOptions | None, says("Drain: how pods leave the node")] = None
    action: Annotated[str | None, says("Repair: the act of the current rung", enum=Action)] = None
    args: Annotated[Nullable[dict[str, Line]], says("What the step needs to know", maxProperties=16)] = {}
    ladder: Annotated[Nullable[list[Rung]], says("Repair: all rungs, in order", maxItems=8)] = []
    allow_undrained: Annotated[bool, says("Repair: does not wait for the node to be empty")] = False
    gate_irreversible: Annotated[
        bool, says("Repair: a rung that cannot be undone or wipes disks waits for people even without a gate")
    ] = False
    needs: Annotated[
        str, says("Repair: instead of an act people are asked, for this reason; empty = no", enum=[*Needs, ""])
    ] = ""
    ceiling: Annotated[Duration | None, says("Validate: give up after")] = None
    soak: Annotated[Duration | None, says("Validate: stay well for so long")] = None
    level: Annotated[int | None, says("Validate: diagnostics up to this level", minimum=0, maximum=3)] = None
    checks: Annotated[Nullable[list[Word]], says("Validate: further checks by name", maxItems=16)] = []


class ApprovalForm(Part):
    """How a question and its answer are written on the node: a label key, and the values that mean something."""

    key: Annotated[Key, says("Label key; {step} in it stands for the step in lower case", required=True)] = ""
    inquiring: Annotated[Word, says("Value of the question")] = "inquiring"
    approved: Annotated[Nullable[list[Word]], says("Values that say yes, in any case", maxItems=8)] = msgspec.field(
        default_factory=lambda: ["approved"]
    )
    denied: Annotated[Nullable[list[Word]], says("Values that say no, in any case", maxItems=8)] = msgspec.field(
        default_factory=lambda: ["denied"]
    )
    deletion_approves: Annotated[
        bool, says("That somebody deletes the label says yes, where the gate names no groups")
    ] = False

    def key_of(self, step: str) -> str:
        return self.key.replace("{step}", step.lower())

    @staticmethod
    def of_prefix(prefix: str) -> ApprovalForm:
        """The form of all prefixes: `<prefix>/<step>-node` = inquiring, approved, denied."""
        return ApprovalForm(key=names.approval_label(prefix, "{step}"))


class Plan(Part):
    """What is to be done, resolved; a new generation replaces it at a step boundary."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"!has(self.steps) || {steps_in_order('self.steps')}",
            "steps are out of order or repeated",
            "write each at most once, in the order Quarantine, Drain, Repair, Validate, Unquarantine",
            field=".steps",
        ),
        Rule(
            "!has(oldSelf.generation) || self.generation >= oldSelf.generation",
            "a plan's generation never goes back",
            "write a new plan under a higher generation",
            field=".generation",
        ),
    )

    generation: Annotated[int, says("Counts plans of this repair", minimum=0)] = 1
    reason: Annotated[Text, says("Why this plan")] = ""
    urgency: Annotated[str, says("When the node leaves", enum=Urgency)] = "Now"
    ceiling: Annotated[
        Duration | None, says("Longest wait of the urgency; then the next stronger one, behind a gate by People")
    ] = None
    approval_prefix: Annotated[Name, says("Prefix of the approval labels, resolved")] = ""
    approval_form: Annotated[
        ApprovalForm | None, says("Key and values of the approval labels; absent = those of the prefix")
    ] = None
    provider: Annotated[Nullable[ProviderRef], says("Repair back-end of the node, as its pool had it")] = msgspec.field(
        default_factory=ProviderRef
    )
    isolate: Annotated[Nullable[list[Word]], says("UUIDs of devices to isolate: decide's grant", maxItems=32)] = []
    steps: Annotated[Nullable[list[PlanStep]], says("The steps, in their order", maxItems=5)] = []

    @property
    def form(self) -> ApprovalForm:
        """How the gates of this plan ask, and are answered."""
        return self.approval_form or ApprovalForm.of_prefix(self.approval_prefix)

    def step(self, name: str) -> PlanStep | None:
        return next((step for step in self.steps if step.step == name), None)
