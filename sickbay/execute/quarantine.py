"""Quarantine: cordon and mark in one conditional write."""

from __future__ import annotations

from collections.abc import Callable

from sickbay.api.core import Node
from sickbay.api.nodemarks import read_mark
from sickbay.clock import rfc3339
from sickbay.execute.accelerators import counts
from sickbay.execute.marks import set_ops
from sickbay.execute.progress import Look, Progress, done
from sickbay.kube.client import Client
from sickbay.kube.nodes import patch_node


class Quarantine:
    def __init__(self, client: Client, observe: Callable[[Node], None]) -> None:
        self._client = client
        self._observe = observe

    async def look(self, look: Look) -> Progress:
        repair = look.repair
        mark = read_mark(look.node)
        if mark is None or mark.uid != repair.metadata.uid:
            node = (await look.permit()).node
            mark = read_mark(node)
        else:
            node = look.node
        proof = counts(node)
        if mark is not None and mark.uid == repair.metadata.uid:
            # Written before, perhaps by a process that died. A person may have uncordoned it since: never twice.
            return done("cordoned", {"at": mark.at, **proof}, mark.prior)
        at = rfc3339(look.now)
        ops, prior = set_ops(node, repair, look.step.taint, at)
        look.check()
        self._observe(await patch_node(self._client, node, ops))
        primary = repair.spec.faults[0].type if repair.spec.faults else "a repair by hand"
        return done(f"cordoned for {primary}", {"at": at, **proof}, prior)
