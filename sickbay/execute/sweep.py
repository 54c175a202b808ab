"""Traces of ours on nodes that no repair holds any more.

There should be none: what a repair sets it takes back before its record is closed. But a write of a leader that has
lost its lease may arrive after everything was taken back, a process may die between the last report and the last
tidying, and a record can be removed by force. So the nodes are compared with the records once a minute. What is found
twice is judged on what the server says at that moment:

    the record is closed        the marks are left over: they go, and what was there before comes back
    the record is not there     nobody knows whether the node is well: people are told, the cordon stays until a person
                                takes it away, and the rest goes with it
    a question whose record is over or gone: nobody reads an answer to it; it goes
"""

from __future__ import annotations

from collections.abc import Callable

import structlog

from sickbay.api import holds, kinds, names
from sickbay.api.core import Node
from sickbay.api.meta import ObjectMeta
from sickbay.api.node_repair import NodeRepair
from sickbay.api.nodemarks import QuarantineMark, read_inquiry, read_mark
from sickbay.api.repair_plan import ApprovalForm
from sickbay.api.words import HoldLevel
from sickbay.clock import Clock
from sickbay.execute import guard, lifecycle
from sickbay.execute.fence import lift_ops, outlived
from sickbay.execute.marks import LIFECYCLE_REASON, clear_ops
from sickbay.execute.progress import Told
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer
from sickbay.kube.nodes import annotation_ops, label_ops, patch_node

log = structlog.get_logger(__name__)

SETTLED = 60.0
"""Seconds for which a trace must have stood without an owner: caches may lag behind each other."""


class Sweep:
    """Lives for one term. `pools` names the pools whose Holds bind a node, `tell` publishes an Event on it."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        nodes: Informer[Node],
        repairs: Informer[NodeRepair],
        pools: Callable[[Node], list[str]],
        check: Callable[[], None],
        tell: Callable[[Node, Told], None],
    ) -> None:
        self._client, self._clock = client, clock
        self._nodes, self._repairs, self._pools = nodes, repairs, pools
        self._check, self._tell = check, tell
        self._seen: dict[str, float] = {}
        self._told: set[tuple[str, str]] = set()

    async def run(self) -> None:
        """One comparison. A node that cannot be judged now is looked at with the next. Raises NotLeading."""
        await self._lift_fences()
        now = self._clock.monotonic()
        suspects = [node for node in self._nodes.all() if _has_traces(node) and not self._held(node)]
        self._seen = {node.uid: self._seen.get(node.uid, now) for node in suspects}
        self._told = {told for told in self._told if told[0] in self._seen}
        for node in suspects:
            if now - self._seen[node.uid] >= SETTLED:
                try:
                    await self._tidy(node.name)
                except errors.ApiError as error:
                    log.warning("traces not taken away yet", node=node.name, error=str(error))

    async def _lift_fences(self) -> None:
        """An out-of-service taint of ours never outlives the outage it was set for, whatever its repair does."""
        for node in [node for node in self._nodes.all() if outlived(node, self._clock.now())]:
            try:
                if await self._frozen(node):
                    continue
                fresh = await self._client.get(kinds.NODE, node.name)
                self._check()
                self._nodes.observe_write(await patch_node(self._client, fresh, lift_ops(fresh)))
            except errors.ApiError as error:
                log.warning("out-of-service taint not taken away yet", node=node.name, error=str(error))

    def _held(self, node: Node) -> bool:
        """True while a repair of this node has something to do with it, or still has to say that it has not."""
        mine = (r for r in self._repairs.by_index("node", node.name) if r.spec.node.uid == node.uid)
        return any(not repair.ended or repair.metadata.finalizers or guard.in_work(repair) for repair in mine)

    async def _tidy(self, name: str) -> None:
        node = await self._client.get(kinds.NODE, name)
        mark = read_mark(node)
        repair = await self._owner(mark) if mark is not None else None
        open_again = repair is not None and (not repair.ended or repair.metadata.finalizers)
        if not _has_traces(node) or open_again or await self._frozen(node):
            return
        if mark is None and read_inquiry(node) is not None:
            await self._forget_question(node)
            return
        if mark is not None and repair is None and node.unschedulable:
            self._ask_people(node, mark)
            return
        self._check()
        if mark is not None:
            owner = repair or NodeRepair(metadata=ObjectMeta(name=mark.repair, uid=mark.uid))
            node = await patch_node(self._client, node, clear_ops(node, mark.prior, owner))
        node = await lifecycle.remove(self._client, node, mark.prior if mark is not None else None)
        self._nodes.observe_write(node)
        self._tell(node, Told("TracesRemoved", "marks of a repair that is over were left on the node; they are gone"))

    async def _forget_question(self, node: Node) -> None:
        """Take a question off the node that no open record asks any more."""
        asked = read_inquiry(node)
        assert asked is not None
        repair = await self._owner(QuarantineMark(repair=asked.repair, uid=asked.uid))
        if repair is not None and not repair.ended:
            return
        forms = [ApprovalForm.of_prefix(prefix) for prefix in names.APPROVAL_PREFIXES.values()]
        if repair is not None:
            forms = [repair.spec.plan.form]
        keys = [key for form in forms if (key := form.key_of(asked.step)) in node.labels]
        self._check()
        ops = label_ops(node, dict.fromkeys(keys)) + annotation_ops(node, {names.INQUIRY: None})
        self._nodes.observe_write(await patch_node(self._client, node, ops))
        self._tell(node, Told("TracesRemoved", f"a question about {asked.step} that nobody asks any more is gone"))

    async def _owner(self, mark: QuarantineMark) -> NodeRepair | None:
        """The record that a mark names; None when it is not there, or another one has its name."""
        if not mark.repair:
            return None
        try:
            repair = await self._client.get(kinds.NODE_REPAIR, mark.repair)
        except errors.NotFound:
            return None
        return repair if repair.metadata.uid == mark.uid else None

    async def _frozen(self, node: Node) -> bool:
        """A Hold of level EveryAct keeps everything as it is; one that cannot be read counts as one."""
        listing = await self._client.list(kinds.HOLD)
        found = holds.strictest(listing.items, node, self._pools(node), [], self._clock.now())
        return bool(listing.malformed) or holds.known_level(found) == HoldLevel.EVERY_ACT

    def _ask_people(self, node: Node, mark: QuarantineMark) -> None:
        if (node.uid, mark.uid) in self._told:
            return
        self._told.add((node.uid, mark.uid))
        text = f"cordoned by repair {mark.repair}, whose record is gone: kubectl uncordon {node.name} when it is well"
        self._tell(node, Told("OwnerMissing", text))


def _has_traces(node: Node) -> bool:
    ours = any(c.type in names.LIFECYCLE_CONDITIONS and c.reason == LIFECYCLE_REASON for c in node.conditions)
    return ours or read_mark(node) is not None or read_inquiry(node) is not None
