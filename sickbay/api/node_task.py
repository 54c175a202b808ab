"""NodeTask: one act for the agent of one node. Created by the controller only, its spec never changes."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from sickbay.api.base import Nullable, Part, Rule, says
from sickbay.api.fields import Line, Name, Text, Time, Uid
from sickbay.api.meta import Object
from sickbay.api.words import DIAGNOSE, Action, TaskPhase


class TaskNode(Part):
    """The node as it was when the task was made; an agent with another UID or boot refuses it."""

    name: Annotated[Name, says("Name of the Node", required=True, minLength=1)] = ""
    uid: Annotated[Uid, says("UID of the Node", required=True, minLength=1)] = ""
    boot_id: Annotated[Uid, says("Boot it is meant for", required=True, minLength=1)] = ""


class NodeTaskSpec(Part):
    """The act."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule("self == oldSelf", "the spec of a NodeTask never changes", "create another NodeTask with its own key"),
    )

    node: Annotated[Nullable[TaskNode], says("For which boot of which node", required=True)] = msgspec.field(
        default_factory=TaskNode
    )
    action: Annotated[str, says("What to do", required=True, enum=[*Action, DIAGNOSE])] = ""
    args: Annotated[Nullable[dict[str, Line]], says("What the action needs to know", maxProperties=16)] = {}
    key: Annotated[Line, says("Idempotency key: <repair UID>/<step>/<attempt>", required=True, minLength=1)] = ""
    expires: Annotated[Time | None, says("Not begun after this moment", required=True)] = None


class NodeTaskStatus(Part):
    """What the agent did."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(oldSelf.phase) || !(oldSelf.phase in ['Done', 'Failed', 'Refused', 'Expired'])"
            " || (has(self.phase) && self.phase == oldSelf.phase)",
            "the task has ended",
            "create another NodeTask with its own key",
            field=".phase",
        ),
    )

    phase: Annotated[str, says("How far it is", enum=TaskPhase)] = "Pending"
    started: Annotated[Time | None, says("When the agent began")] = None
    finished: Annotated[Time | None, says("When it ended")] = None
    boot_id: Annotated[Uid, says("Boot the agent ran in when it wrote this")] = ""
    proof: Annotated[Nullable[dict[str, Line]], says("What shows that it was done", maxProperties=16)] = {}
    output: Annotated[str, says("End of what the act printed", maxLength=8192)] = ""
    message: Annotated[Text, says("For people")] = ""


class NodeTask(Object):
    """One act for the agent of one node."""

    kind: str = msgspec.field(default_factory=lambda: "NodeTask")
    spec: Annotated[Nullable[NodeTaskSpec], says("The act; immutable", required=True)] = msgspec.field(
        default_factory=NodeTaskSpec
    )
    status: Annotated[Nullable[NodeTaskStatus], says("What the agent did")] = msgspec.field(
        default_factory=NodeTaskStatus
    )
