"""What ended a job: one verdict from all evidence, by rules in the order of how sure they are.

    policy      somebody meant it: time limit, eviction, preemption, shutdown
    gap         the node has just booted, and its device plug-in is not back: says nothing about the node
    shared      many nodes at once: one cause behind them, none of them is to blame
    hardware    a node of the gang was lost, or shows a fault that ends jobs, or a rank's log says so
    workload    the program says what is wrong with it, or its exit code does
    history     what the earlier attempts say: always this node, or always this failure wherever it runs
    transient   symptoms without a cause
    unknown     the rest: cannot see is neither the node's fault nor the program's

A node, a rank or a GPU is no part of a fingerprint: the same failure must look the same wherever it happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.job_recovery import JobAttempt
from sickbay.api.words import JobVerdict
from sickbay.recover.choose import since_further
from sickbay.recover.ends import ADMISSION_REASONS, SIGABRT, SIGKILL, SIGTERM, End, outcome
from sickbay.recover.evidence import Evidence, Onset, Suspect, Verdict
from sickbay.recover.logs import Reading, Shows, without_place
from sickbay.recover.signs import in_window, moment

SHARED_NODES, SHARED_WITHIN = 5, timedelta(seconds=60)
"""So many nodes with the same fault at once are one cause: the default of a RepairPool's storm."""
SHARED_STORAGE_NODES = 3
"""Ranks on so many nodes that cannot write: it is the storage."""
WHOLE_GANG = 3
"""A gang of so many nodes that shows the same fault everywhere at once has one cause."""
SAME_NODE, SAME_NODE_RANKS = 3, 2
"""Failures on one node that make it suspect: of any ranks, and of different ranks (within a day)."""
SAME_NODE_WITHIN, OTHER_JOBS_WITHIN = timedelta(hours=24), timedelta(days=7)
CONFIGURATION = (2, 126, 127)
"""Exit codes of a shell for bad arguments, not executable, not found."""
NO_RESTART = 93
"""Exit code by which NVIDIA's resiliency extension asks not to be restarted."""
TRY_AGAIN = 75
"""EX_TEMPFAIL of sysexits.h."""
CONTAINED = "gpu.xid.94"
"""A memory error that the GPU has contained: only the application that met it has to start again."""

GAP = "not admitted: the device plug-in is not back"
"""Fingerprint of a rank that a node would not start because it offers fewer devices than it has."""
STALLED = "stalled"
"""Fingerprint of a job that stood still."""

Rule = Callable[[Evidence], Verdict | None]


def classify(evidence: Evidence) -> Verdict:
    for rule in _RULES:
        found = rule(evidence)
        if found is not None:
            return found
    return Verdict(JobVerdict.UNKNOWN, _ends(evidence), fingerprint=fingerprint(evidence))


def fingerprint(evidence: Evidence) -> str:
    """What the failure looks like, free of nodes, ranks and GPUs."""
    if evidence.stalled:
        return STALLED
    root = evidence.root
    if root is None:
        return without_place(evidence.reason, _places(evidence)) or "unknown"
    told = outcome(root.code, root.signal) if root.how == "Exited" else root.how
    line = evidence.readings.get(root.uid, Reading()).line
    return f"{told}: {without_place(line, _places(evidence))}"[:512] if line else told


def _places(evidence: Evidence) -> frozenset[str]:
    return frozenset(filter(None, (*evidence.placement.values(), *(end.pod for end in evidence.ends))))


def _ends(evidence: Evidence) -> tuple[str, ...]:
    """The root first, then what else ended; few lines, since they stand in an object."""
    if evidence.stalled:
        return (evidence.stalled,)
    root = evidence.root
    if root is None:
        return (evidence.reason or "the job failed, and nothing shows why",)
    line = evidence.readings.get(root.uid, Reading()).line
    rest = sum(1 for end in evidence.ends if end is not root and not end.terminated)
    told = [f"first to fail: {root.words()}", *([f"its log: {line[:300]}"] if line else [])]
    return (*told, f"{rest} more ranks ended after it") if rest else tuple(told)


# --- policy


def _time_limit(evidence: Evidence) -> Verdict | None:
    if evidence.reason != "DeadlineExceeded":
        return None
    why = ("the job's own time limit (activeDeadlineSeconds) is over",)
    return Verdict(JobVerdict.POLICY, why, fingerprint="time limit", conclusive=True, final=True)


def _disrupted(evidence: Evidence) -> Verdict | None:
    """The rank that went first was taken away by a decision, and the node it ran on is well."""
    root = evidence.root
    if root is None or root.how not in ("Disrupted", "Deleted"):
        return None
    if _against(evidence, root.node):
        return None  # whoever took it away, there was something wrong with the node
    why = f"somebody's decision ended it: {root.words()}"
    return Verdict(JobVerdict.POLICY, (why,), fingerprint=f"policy: {root.reason or root.how}", conclusive=True)


def _scaled_away(evidence: Evidence) -> Verdict | None:
    """The node was deleted: there is nothing left to suspect."""
    root = evidence.root
    if root is None or not root.node or root.node in evidence.nodes:
        return None
    why = f"node {root.node} is gone: the infrastructure has taken it away"
    return Verdict(JobVerdict.POLICY, (why,), fingerprint="policy: node gone", conclusive=True)


# --- the gap after a boot


def _gap(evidence: Evidence) -> Verdict | None:
    """Pods that a kubelet refuses before its device plug-in has registered fail, and say nothing of the hardware."""
    root = evidence.root
    node = evidence.nodes.get(root.node) if root is not None else None
    if root is None or node is None or root.how != "Refused" or not root.reason.startswith(ADMISSION_REASONS):
        return None
    ours, sick = names.QUARANTINE in node.annotations, any(s.decisive for s in evidence.signs.get(node.name, ()))
    short = _short(node)
    if not short or (sick and not ours):
        return None
    why = f"{node.name} offers {short}: its device plug-in is not back, which says nothing about the node"
    return Verdict(JobVerdict.TRANSIENT, (why, *_ends(evidence)), fingerprint=GAP, conclusive=True)


def _short(node: Node) -> str:
    """What of its extended resources the node does not offer, in words; "" when it offers all there is."""
    for resource, capacity in sorted(node.status.capacity.items()):
        offered = node.status.allocatable.get(resource, "0")
        if "/" in resource and str(offered) != str(capacity):
            return f"{offered} of {capacity} {resource}"
    return ""


# --- shared causes


def _shared(evidence: Evidence) -> Verdict | None:
    onsets = [o for o in evidence.onsets if abs(o.at - evidence.at) <= timedelta(minutes=5)]
    gang = set(evidence.placement.values())
    for fault, _ in Counter(o.fault for o in onsets).most_common():
        nodes = _together_with([o for o in onsets if o.fault == fault], gang)
        everywhere = len(gang) >= WHOLE_GANG and gang <= nodes
        if len(nodes) >= SHARED_NODES or everywhere:
            why = f"{len(nodes)} nodes show {fault} at once: one cause behind them, so none of them is isolated"
            return Verdict(JobVerdict.SHARED_CAUSE, (why, *_ends(evidence)), fingerprint=f"shared: {fault}")
    return _storage(evidence)


def _together_with(onsets: list[Onset], gang: set[str]) -> set[str]:
    """The most nodes that began within one window, a node of the gang among them: what befell others at another time
    has nothing to do with this failure."""
    windows = ({o.node for o in onsets if first.at <= o.at <= first.at + SHARED_WITHIN} for first in onsets)
    return max((nodes for nodes in windows if nodes & gang), key=len, default=set())


def _storage(evidence: Evidence) -> Verdict | None:
    hit = {e.node for e in evidence.ends if _reading(evidence, e).shows is Shows.SHARED}
    if len(hit) < SHARED_STORAGE_NODES:
        return None
    line = next(_reading(evidence, e).line for e in evidence.ends if _reading(evidence, e).shows is Shows.SHARED)
    why = f"ranks on {len(hit)} nodes cannot use their storage: {line[:300]}"
    return Verdict(JobVerdict.SHARED_CAUSE, (why,), fingerprint="shared: storage")


# --- hardware


def _lost(evidence: Evidence, node: str) -> str:
    """Why a node counts as lost, "" when it does not."""
    found = evidence.nodes.get(node)
    ready = found.condition("Ready") if found is not None else None
    if found is None or found.ready:
        return ""
    since = moment(ready.last_transition_time) if ready is not None else None
    return f"Ready={ready.status if ready else 'absent'}" if in_window(since, evidence.at) else ""


def _hardware(evidence: Evidence) -> Verdict | None:
    suspects = [Suspect(node, why) for node in _nodes_in_order(evidence) if (why := _against(evidence, node))]
    if not suspects:
        return None
    reasons = tuple(f"{s.node}: {s.why}" for s in suspects)
    faults = sorted({s.why.split(" ")[0] for s in suspects})
    return Verdict(
        JobVerdict.HARDWARE,
        (*reasons[:4], *_ends(evidence)),
        tuple(suspects),
        fingerprint=f"hardware: {', '.join(faults)}"[:512],
        conclusive=True,
    )


def _nodes_in_order(evidence: Evidence) -> list[str]:
    """The root's node first, then the others by name."""
    root = evidence.root.node if evidence.root is not None else ""
    rest = sorted({node for node in evidence.placement.values() if node and node != root})
    return [root, *rest] if root else rest


def _against(evidence: Evidence, node: str) -> str:
    """The direct evidence against a node, "" for none."""
    signs = [s for s in evidence.signs.get(node, ()) if in_window(s.since, evidence.at)]
    decisive = next((s for s in signs if s.decisive), None)
    if decisive is not None:
        return f"{decisive.fault} {decisive.message}".strip()[:400]
    repair = next(iter(evidence.repairs.get(node, ())), "")
    if repair:
        return f"{repair} (under repair)"
    lost = _lost(evidence, node)
    if lost:
        return f"lost ({lost})"
    fabric = next((s for s in signs if s.of_network), None)
    if evidence.stalled and fabric is not None:
        return f"{fabric.fault} while the job stood still"
    ends = [e for e in evidence.ends if e.node == node]
    if any(e.how == "NodeLost" for e in ends):
        return "lost (the machine went down with its containers)"
    missing = next((e for e in ends if e.how == "Missing"), None)
    if missing is not None and _is_exception(evidence, "Missing") and not _was_missing_elsewhere(evidence, missing):
        return f"rank {missing.rank} is missing on it ({missing.reason})"
    line = next((r.line for e in ends if (r := _reading(evidence, e)).shows is Shows.HARDWARE), "")
    return f"log: {line}"[:400] if line else ""


def _is_exception(evidence: Evidence, how: str) -> bool:
    """Whether most nodes of the gang do better: what happens on half of them says nothing about any of them."""
    gang = {node for node in evidence.placement.values() if node}
    hit = {e.node for e in evidence.ends if e.how == how}
    return len(hit) * 2 < len(gang)


def _was_missing_elsewhere(evidence: Evidence, end: End) -> bool:
    """The same rank did not come up on another node either: that goes with the rank, not with the node."""
    kept = (e for a in evidence.attempts for e in a.ends if e.how == "Missing" and e.rank == end.rank)
    return any(e.node != end.node for e in kept)


def _reading(evidence: Evidence, end: End) -> Reading:
    return evidence.readings.get(end.uid, Reading())


# --- workload


def _deliberate(evidence: Evidence) -> Verdict | None:
    root = evidence.root
    if evidence.reason == "PodFailurePolicy":
        why = ("a rule of the job's own podFailurePolicy says that it has failed", *_ends(evidence))
    elif evidence.reason == "FailJobSetFailurePolicyAction":
        why = ("a rule of the JobSet's own failurePolicy says that it has failed", *_ends(evidence))
    elif root is not None and root.code == NO_RESTART:
        why = (f"exit code {NO_RESTART} asks not to be restarted", *_ends(evidence))
    else:
        return None
    return Verdict(JobVerdict.WORKLOAD, why, fingerprint=fingerprint(evidence), conclusive=True, final=True)


def _program(evidence: Evidence) -> Verdict | None:
    """The program's own words, or a code that only a program or its configuration gives."""
    root = evidence.root
    if root is None or root.how not in ("Exited", "OutOfMemory"):
        return None
    said = _reading(evidence, root).shows is Shows.WORKLOAD
    if not said and root.how != "OutOfMemory" and root.code not in CONFIGURATION:
        return None
    mark = fingerprint(evidence)
    return Verdict(JobVerdict.WORKLOAD, _ends(evidence), fingerprint=mark, established=bool(_same(evidence, mark)))


def _same(evidence: Evidence, mark: str) -> list[JobAttempt]:
    """Earlier attempts that failed just so, the latest first, since the job last got further."""
    counted = since_further(evidence.attempts, evidence.step)
    return [a for a in reversed(counted) if a.fingerprint == mark and a.verdict != JobVerdict.POLICY]


# --- history


def _always_this_node(evidence: Evidence) -> Verdict | None:
    """One node fails again and again, and nothing of the kind happens elsewhere."""
    root, mark = evidence.root, fingerprint(evidence)
    if root is None or not root.node or root.how in ("Disrupted", "Deleted"):
        return None
    if _reading(evidence, root).shows in (Shows.SYMPTOM, Shows.SHARED):
        return None  # it complains of somebody else
    same = _same(evidence, mark)
    if any(a.root_node and a.root_node != root.node for a in same):
        return None
    recent = [a for a in evidence.attempts if a.root_node == root.node and _within(a, evidence, SAME_NODE_WITHIN)]
    ranks = {root.rank, *(a.root_rank for a in recent)}
    strangers = [a for a in evidence.others if a.root_node == root.node and _within(a, evidence, OTHER_JOBS_WITHIN)]
    if len(recent) + 1 >= SAME_NODE:
        why = f"{len(recent) + 1} failures of this job on {root.node} within a day"
    elif recent and len(ranks) >= SAME_NODE_RANKS:
        why = f"different ranks of this job failed on {root.node} within a day"
    elif strangers:
        why = f"jobs of others failed on {root.node} within a week"
    else:
        return None
    suspect = Suspect(root.node, why)
    return Verdict(JobVerdict.HARDWARE, (why, *_ends(evidence)), (suspect,), fingerprint=mark)


def _within(attempt: JobAttempt, evidence: Evidence, window: timedelta) -> bool:
    ended = moment(attempt.ended)
    counts = attempt.verdict != JobVerdict.POLICY and attempt.fingerprint != GAP
    return ended is not None and evidence.at - ended <= window and counts


def _wherever_it_runs(evidence: Evidence) -> Verdict | None:
    """The same failure on different nodes without progress: it travels with the program."""
    root, mark = evidence.root, fingerprint(evidence)
    if root is None or not root.node or _is_symptom(evidence, root):
        return None
    same = [a for a in _same(evidence, mark) if a.root_node]
    elsewhere = next((a for a in same if a.root_node != root.node), None)
    if elsewhere is None:
        return None
    why = f"the same failure on {elsewhere.root_node} and on {root.node}, without progress in between"
    return Verdict(JobVerdict.WORKLOAD, (why, *_ends(evidence)), fingerprint=mark, established=True)


# --- symptoms


def _is_symptom(evidence: Evidence, root: End) -> bool:
    if root.signal in (SIGTERM, SIGKILL, SIGABRT) or root.code == TRY_AGAIN or root.how in ("Refused", "Missing"):
        return True
    return _reading(evidence, root).shows in (Shows.SYMPTOM, Shows.SHARED)


def _transient(evidence: Evidence) -> Verdict | None:
    root = evidence.root
    contained = _contained(evidence, root.node) if root is not None else ""
    if not evidence.stalled and not contained and (root is None or not _is_symptom(evidence, root)):
        return None
    reasons = (*((contained,) if contained else ()), *_ends(evidence))
    return Verdict(JobVerdict.TRANSIENT, reasons, fingerprint=fingerprint(evidence))


def _contained(evidence: Evidence, node: str) -> str:
    """A contained memory error on the root's node, in words."""
    found = next((s for s in evidence.signs.get(node, ()) if s.fault == CONTAINED), None)
    return f"{node}: {found.fault}: the GPU contained the error; the application starts again" if found else ""


_RULES: tuple[Rule, ...] = (
    _time_limit,
    _deliberate,
    _shared,
    _disrupted,
    _scaled_away,
    _gap,
    _hardware,
    _program,
    _always_this_node,
    _wherever_it_runs,
    _transient,
)
