"""Suspects and exclusions on the record: who is named, who is kept away from, and when that ends.

A suspect is handed to decide, which opens a repair by its own rules; until that repair has succeeded, or the exclusion
has expired, the job keeps away from the node. A node is known by its UID: another one under its name is no suspect.
"""

from __future__ import annotations

from datetime import datetime

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.duration import parse_duration
from sickbay.api.job_recovery import Excluded
from sickbay.api.job_recovery import Suspect as Named
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import Phase
from sickbay.clock import parse_time, rfc3339
from sickbay.recover.affinity import HOSTNAME
from sickbay.recover.evidence import Suspect
from sickbay.recover.signs import moment
from sickbay.recover.view import MAX_LISTED, View, Work


def name_suspects(work: Work, suspects: tuple[Suspect, ...]) -> None:
    """Put them on the record, and exclude them."""
    status = work.status
    for suspect in suspects:
        node = work.view.nodes.get(suspect.node)
        uid = node.uid if node is not None else ""
        known = next((s for s in status.suspects if (s.node, s.uid) == (suspect.node, uid)), None)
        if known is None and len(status.suspects) < MAX_LISTED:
            named = Named(node=suspect.node, uid=uid, reason=suspect.why[:2048], since=rfc3339(work.now))
            status.suspects = [*status.suspects, named]
        exclude(work, suspect.node, suspect.why)


def exclude(work: Work, node: str, why: str) -> None:
    status = work.status
    found = work.view.nodes.get(node)
    uid = found.uid if found is not None else ""
    until = rfc3339(work.now + parse_duration(work.policy.exclusions.expire))
    rest = [e for e in status.excluded if (e.node, e.uid) != (node, uid)]
    status.excluded = [*rest, Excluded(node=node, uid=uid, until=until, reason=why[:2048])][-MAX_LISTED:]


def too_many(work: Work) -> str:
    """Why the job keeps away from more nodes than its policy allows, "" when it does not.

    Nodes that are isolated for everybody cost the job nothing and do not count.
    """
    open_ = [e.node for e in work.status.excluded if not isolated(work.view.nodes.get(e.node), e.uid)]
    limit = work.policy.exclusions.max_nodes
    if len(open_) <= limit:
        return ""
    return f"it would keep away from {len(open_)} nodes ({', '.join(open_[:8])}), and exclusions.maxNodes is {limit}"


def isolated(node: Node | None, uid: str) -> bool:
    """Whether no new pod can come to the node any more, as the scheduler sees it."""
    if node is None or (uid and node.uid != uid):
        return True  # that machine is no node any more
    return node.unschedulable or any(taint.effect in ("NoSchedule", "NoExecute") for taint in node.taints)


def stays_open(view: View, node: str) -> str:
    """Why the node will not be isolated now, "" when it may still be: a gate, a limit, or a pool that only observes."""
    for repair in view.repairs.get(node, ()):
        if repair.ended:
            continue
        if repair.status.phase == Phase.WOULD_ACT:
            return "its pool only observes"
        if repair.status.phase in (Phase.WAITING_APPROVAL, Phase.NEEDS_HUMAN):
            return "its repair waits for people"
        condition = repair.status.condition(names.WOULD_QUARANTINE)
        if condition is not None and condition.status == "True":
            return "a limit of its pool forbids it"
    return ""


def host_names(work: Work) -> list[str]:
    """What the next attempt has to keep away from, as values of kubernetes.io/hostname."""
    nodes = work.view.nodes
    avoided = [e.node for e in work.status.excluded if (n := nodes.get(e.node)) is not None and e.uid in ("", n.uid)]
    found = [nodes[name] for name in (*avoided, *work.view.withheld) if name in nodes]
    return sorted({node.labels.get(HOSTNAME, node.name) for node in found})


def tidy(work: Work) -> None:
    """Drop suspects and exclusions that are over."""
    status, view = work.status, work.view
    status.suspects = [s for s in status.suspects if not _over(view, s.node, s.uid, moment(s.since))]
    status.excluded = [
        e
        for e in status.excluded
        if not _over(view, e.node, e.uid, began(work, e)) and not (e.until and parse_time(e.until) <= work.now)
    ]
    expire = parse_duration(work.policy.exclusions.expire)
    named = {s.node for s in status.suspects}
    status.excluded = [e for e in status.excluded if e.node in named or _is_repaired_now(view, e.node)]
    kept = {e.node for e in status.excluded}
    status.suspects = [
        s for s in status.suspects if s.node in kept or not s.since or parse_time(s.since) + expire > work.now
    ]
    for until in (parse_time(e.until) for e in status.excluded if e.until):
        work.wake(until)


def _is_repaired_now(view: View, node: str) -> bool:
    """A node that the job left for a repair, without a suspicion, is avoided as long as that repair is open."""
    return any(not repair.ended for repair in view.repairs.get(node, ()))


def began(work: Work, excluded: Excluded) -> datetime | None:
    """Since when the node is excluded; None where nobody can tell."""
    expire = parse_duration(work.policy.exclusions.expire)
    return parse_time(excluded.until) - expire if excluded.until else None


def _over(view: View, node: str, uid: str, since: datetime | None) -> bool:
    """The node is gone, is another one by now, or was repaired and validated after it was named."""
    found = view.nodes.get(node)
    if found is None or (uid and found.uid != uid):
        return True
    return any(_repaired(r, found.uid, since) for r in view.repairs.get(node, ()))


def _repaired(repair: NodeRepair, uid: str, since: datetime | None) -> bool:
    if repair.status.phase != Phase.SUCCEEDED or repair.spec.node.uid != uid or not repair.status.ended_at:
        return False
    return since is None or parse_time(repair.status.ended_at) >= since
