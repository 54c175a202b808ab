"""Write what `progress` decided: the difference to the record, the question on the node, the Events.

The order matters where a crash may come between two writes: what stands on the Node is taken back before the record is
closed, because nobody looks at a closed record again; the finalizer goes last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from sickbay.api import kinds, names
from sickbay.api.core import Node, ObjectReference
from sickbay.api.isolation import read_isolation
from sickbay.api.node_repair import NodeRepair
from sickbay.api.patches import merge_diff
from sickbay.decide.hand import holds_node, node_lost
from sickbay.decide.sources import Sources
from sickbay.decide.work import Note, Work
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.events import NORMAL, WARNING, EventRecorder
from sickbay.kube.nodes import patch_node


class Writer:
    """All writes of decide but those of slots. Each is conditional on the version that was judged."""

    def __init__(self, client: Client, sources: Sources, recorder: EventRecorder, check: Callable[[], None]) -> None:
        self._client = client
        self._sources = sources
        self._recorder = recorder
        self._check = check

    async def create(self, repair: NodeRepair) -> NodeRepair:
        self._check()
        made = await self._client.create(kinds.NODE_REPAIR, repair)
        self._sources.repairs.observe_write(made)
        return made

    async def remove(self, repair: NodeRepair) -> None:
        """Delete an ended record, as it was judged. One that is gone already is gone."""
        self._check()
        meta = repair.metadata
        try:
            version = meta.resource_version
            await self._client.delete(kinds.NODE_REPAIR, meta.name, uid=meta.uid, resource_version=version)
        except errors.NotFound:
            return

    async def apply(self, before: NodeRepair, work: Work) -> NodeRepair:
        """Bring the API server to what `work` says. Raises Conflict when something has changed since: look again."""
        repair = before
        spec = merge_diff(msgspec.to_builtins(before.spec), msgspec.to_builtins(work.repair.spec))
        if spec:
            repair = await self._patch(repair, {"spec": spec}, "")
        if work.node_ops and not node_lost(before, work.view.node):
            self._check()
            self._sources.nodes.observe_write(await patch_node(self._client, work.node, work.node_ops))
        ours = holds_node(work.repair) or bool(work.plan.isolate)
        if names.FINALIZER not in repair.metadata.finalizers and ours and not work.repair.ended:
            finalizers = [*repair.metadata.finalizers, names.FINALIZER]  # a person's record comes without it
            repair = await self._patch(repair, {"metadata": {"finalizers": finalizers}}, "")
        status = merge_diff(msgspec.to_builtins(before.status), msgspec.to_builtins(work.repair.status))
        if status:
            status["phase"] = work.status.phase  # also the default, which encoding leaves out: people read it
            repair = await self._patch(repair, {"status": status}, "status")
        for note in work.notes:
            self.note(before, work.view.node, note)
        # Execute takes back what it has put on the node; cards that are isolated keep the record until they are not.
        isolated = work.view.node is not None and bool(read_isolation(work.view.node))
        holds = (holds_node(repair) or isolated) and not node_lost(before, work.view.node)
        if repair.ended and not holds and names.FINALIZER in repair.metadata.finalizers:
            rest = [f for f in repair.metadata.finalizers if f != names.FINALIZER]
            repair = await self._patch(repair, {"metadata": {"finalizers": rest}}, "")
        return repair

    def note(self, repair: NodeRepair, node: Node | None, note: Note) -> None:
        """Publish an Event on the node of the incident, also when it is gone."""
        target = repair.spec.node
        uid = node.uid if node is not None and not node_lost(repair, node) else target.uid
        regarding = ObjectReference(api_version="v1", kind="Node", name=target.name, uid=uid)
        self._recorder.event(regarding, WARNING if note.warning else NORMAL, note.reason, note.message)

    async def _patch(self, repair: NodeRepair, body: dict[str, Any], subresource: str) -> NodeRepair:
        self._check()
        meta = {"resourceVersion": repair.metadata.resource_version, "uid": repair.metadata.uid}
        body["metadata"] = {**body.get("metadata", {}), **meta}
        name = repair.metadata.name
        written = await self._client.patch_merge(kinds.NODE_REPAIR, name, body, subresource=subresource)
        self._sources.repairs.observe_write(written)
        return written
