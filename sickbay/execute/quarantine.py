"""Quarantine: cordon and mark in one conditional write."""

from __future__ import annotations

from collections.abc import Callable

from sickbay.api.core import Node
from sickbay.api.markers import leaving_by
from sickbay.api.words import ReportState
from sickbay.clock import rfc3339
from sickbay.execute.marks import read_mark, set_ops
from sickbay.execute.progress import Look, Progress, done
from sickbay.kube.client import Client
from sickbay.kube.nodes import patch_node


class Quarantine:
    def __init__(self, client: Client, observe: Callable[[Node], None]) -> None:
        self._client = client
        self._observe = observe

    async def look(self, look: Look) -> Progress:
        node, repair = look.node, look.repair
        mark = read_mark(node)
        if mark is not None and mark.uid == repair.metadata.uid:
            # Written before, perhaps by a process that died. A person may have uncordoned it since: never twice.
            return done("cordoned", {"at": mark.at}, mark.prior)
        leaving = leaving_by(node)
        if leaving:
            return Progress(ReportState.CLAIMED, f"not touched: {leaving}", again=10)
        at = rfc3339(look.now)
        ops, prior = set_ops(node, repair, look.step.taint, at)
        self._observe(await patch_node(self._client, node, ops))
        primary = repair.spec.faults[0].type if repair.spec.faults else "a repair by hand"
        return done(f"cordoned for {primary}", {"at": at}, prior)
