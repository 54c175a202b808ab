"""Nodes, notices and events for these tests, made from few words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from sickbay.api.core import Node
from sickbay.api.infra_event import InfraEvent
from sickbay.convert.clouds import vocabulary
from sickbay.convert.folding import fold
from sickbay.convert.notice import Notice

START = datetime(2027, 3, 1, 8, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def stamp(seconds: float) -> str:
    return at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def node(
    name: str = "n-1", uid: str = "u-1", boot: str = "b-1", provider: str = "",
    conditions: dict[str, Any] | None = None, ready: str = "True", annotations: dict[str, str] | None = None,
) -> Node:  # fmt: skip
    """`conditions` by type: a status, or (status, reason), or (status, reason, message)."""
    written = [{"type": "Ready", "status": ready, "reason": "KubeletReady"}]
    for type_, said in (conditions or {}).items():
        status, reason, message = (*([said] if isinstance(said, str) else said), "", "")[:3]
        written.append({"type": type_, "status": status, "reason": reason or type_, "message": message})
    raw = {
        "metadata": {"name": name, "uid": uid, "resourceVersion": "1", "annotations": annotations or {}},
        "spec": {"providerID": provider},
        "status": {"conditions": written, "nodeInfo": {"bootID": boot}},
    }
    return msgspec.convert(raw, Node)


def notice(phase: str, id_: str = "e-1", source: str = "alibaba-ecs", type_: str = "SystemMaintenance.Reboot",
           **more: Any) -> Notice:  # fmt: skip
    return Notice(source=source, id=id_, type=type_, phase=phase, **more)


def event(*phases: str, node_: Node | None = None, **more: Any) -> InfraEvent | None:
    """An event after lists with these phases, one a minute."""
    found: InfraEvent | None = None
    for minute, phase in enumerate(phases):
        one = notice(phase, **more)
        found = fold(found, [one], node_ or node(), vocabulary(one.source), at(60 * minute))
    return found
