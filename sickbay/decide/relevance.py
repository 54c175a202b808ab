"""Does a change of a Node matter to a decision? Heartbeats, most of all changes, do not."""

from __future__ import annotations

from sickbay.api.core import Node, NodeCondition


def relevant(old: Node, new: Node) -> bool:
    if old.uid != new.uid or old.labels != new.labels or old.annotations != new.annotations or old.spec != new.spec:
        return True
    if old.boot_id != new.boot_id or old.deleting != new.deleting:
        return True
    if old.status.allocatable != new.status.allocatable or old.status.capacity != new.status.capacity:
        return True
    return [_facts(c) for c in old.conditions] != [_facts(c) for c in new.conditions]


def _facts(condition: NodeCondition) -> tuple[str, str, str, str | None]:
    return condition.type, condition.status, condition.reason, condition.last_transition_time
