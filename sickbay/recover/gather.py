"""From a look at a job to the evidence about its failure."""

from __future__ import annotations

from datetime import datetime

from sickbay.api.core import Node
from sickbay.api.job_recovery import JobAttempt
from sickbay.api.node_repair import NodeRepair
from sickbay.clock import parse_time
from sickbay.recover.ends import End
from sickbay.recover.evidence import Evidence
from sickbay.recover.kept import readings, with_kept
from sickbay.recover.root import natural, root_of
from sickbay.recover.signs import BEFORE, Sign, in_window, moment
from sickbay.recover.view import Work

SUSPECT_FAULT = "job.suspect"


def gather(work: Work, ends: list[End], stalled: str = "") -> Evidence:
    """About the present attempt, with what was kept of ends that cannot be seen any more."""
    attempt = work.attempt
    return evidence_of(work, attempt, with_kept(ends, attempt), stalled)


def evidence_of(work: Work, attempt: JobAttempt, ends: list[End], stalled: str = "") -> Evidence:
    view = work.view
    known = readings(view.readings, ends)
    root = root_of(ends, known)
    at = root.at if root is not None else moment(attempt.times.fault) or work.now
    placement = dict(attempt.placement)
    placement.update({end.rank: end.node for end in ends if end.node})
    nodes = {name: node for name in set(placement.values()) if (node := view.nodes.get(name)) is not None}
    present = attempt is work.attempt
    return Evidence(
        at=at,
        root=root,
        ends=tuple(sorted(ends, key=lambda end: (end.at, natural(end.rank)))),
        readings=known,
        placement=placement,
        nodes=nodes,
        signs={name: _signs(work, node) for name, node in nodes.items()},
        repairs={name: _repairs(view.repairs.get(name, ()), node, at) for name, node in nodes.items()},
        onsets=view.onsets,
        reason=view.job.reason if view.job is not None and present else "",
        attempts=tuple(work.earlier(attempt)),
        others=view.others,
        stalled=stalled,
        behind=view.standing.behind if present else (),
        step=view.standing.step if present else attempt.step,
    )


def _signs(work: Work, node: Node) -> tuple[Sign, ...]:
    return tuple(work.view.signs(node))


def _repairs(repairs: tuple[NodeRepair, ...], node: Node, at: datetime) -> tuple[str, ...]:
    """Faults that decide has put on record for this very node around the failure; our own suspicion is none."""
    found = []
    for repair in repairs:
        if repair.ended or repair.spec.node.uid != node.uid:
            continue
        for fault in repair.spec.faults:
            seen = parse_time(fault.first_seen) if fault.first_seen else None
            if fault.type != SUSPECT_FAULT and seen is not None and _near(seen, at):
                found.append(fault.type)
    return tuple(found)


def _near(seen: datetime, at: datetime) -> bool:
    return at - seen <= BEFORE and in_window(seen, at)
