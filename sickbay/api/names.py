"""Every label, annotation, taint, condition, finalizer and Event reason Sickbay writes or answers to.

The words are part of the contract: people, tools and tests match them.
"""

from __future__ import annotations

import re

GROUP = "sickbay.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

FINALIZER = f"{GROUP}/finalizer"
"""On a NodeRepair while we hold anything on its node."""

# On the Node.
QUARANTINE = f"{GROUP}/quarantine"
"""Annotation: JSON {repair, uid, nodeUID, at, prior}, written with the cordon. Also the key of the optional taint."""
INQUIRY = f"{GROUP}/inquiry"
"""Annotation: JSON {repair, uid, step, attempt, nodeUID, groups, by}, written with an approval label."""
DEVICES = f"{GROUP}/devices"
"""Annotation: JSON [{uuid, pci, index, faults, since}], the devices with faults, by the agent."""
ISOLATE = f"{GROUP}/isolate"
"""Annotation: JSON list of device UUIDs the agent shall isolate: the grant, by execute."""
GPUS_EXPECTED = "gpu.count.expected"
"""Label: how many GPUs the node should have, for owners who know better than the bus."""
CHANGED_BY = f"{GROUP}/changed-by"
OUT_OF_SERVICE_MARK = f"{GROUP}/out-of-service"
"""JSON {repair, uid, until}: the taint of that name is ours."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""Annotation: JSON {user, at, what}, stamped by the admission policy when another identity touches what is ours."""
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
EXCLUDE_FROM_REMEDIATION = "remediation.medik8s.io/exclude-from-remediation"
"""Label: "true" opts the node out; any other value is none."""

PROVIDER_LABEL = "origin"
"""Key in the labels of a fault type; value `provider`: what is matched is an announcement, not a finding."""
PROVIDER = "provider"

HEARD_OUT = "Silence"
"""Reason of a condition that convert made of Events and that ended because the soak of its type brought no more: that
silence need not be waited for again."""

# Answers by people, as annotations on our objects.
RESET_BREAKER = f"{GROUP}/reset-breaker"
"""On a RepairPool: status.breaker.openedAt of the breaker to close."""
END_STORM = f"{GROUP}/end-storm"
"""On a RepairPool: `since` of the storm to end."""
CONFIRM_MATCH = f"{GROUP}/confirm-match"
"""On a FaultType: the generation whose wide match a person has confirmed."""

RESOLVE = f"{GROUP}/resolve"
"""On a NodeRepair: JSON {outcome, reason, at}, a person's word on how the incident came out."""

# In records.
GROUP_ATTEMPT = "groupAttempt"
"""In the proof of a member's attempt that was done once for its group: the number of the original."""

WITHHELD = "withheld"
"""In the proof of an attempt that was never handed over: it says nothing about the node."""

CLEAR = f"{GROUP}/clear"
"""On a Node: JSON {condition type: {by, reason, at, since}}, a person's word that a condition is over. `since` is the
lastTransitionTime of the condition that is meant. Convert follows it and takes it off."""
CLEARED_BY_PERSON = "ClearedByPerson"
"""Reason of a condition that a person has cleared."""

# On pods.
WAIT_FOR_COMPLETION = f"{GROUP}/wait-for-completion"
CHECKPOINT_REQUEST = f"{GROUP}/checkpoint-request"
CHECKPOINT_DONE = f"{GROUP}/checkpoint-done"
PROGRESS_STEP = f"{GROUP}/step"

# On jobs and their pods.
ATTEMPT = f"{GROUP}/attempt"
"""Label on a job and its pods: number of the attempt they belong to; absent = the first."""
HELD_FOR = f"{GROUP}/held-for"
"""Annotation on a job that we have suspended: the attempt it is held after. Suspensions by others carry none."""
EXCLUDED_NODES = f"{GROUP}/excluded-nodes"
"""Annotation on a job: values of kubernetes.io/hostname that we have put into its affinity, comma-separated."""

MIN_RANKS = f"{GROUP}/min-ranks"
"""Annotation on a job, its owner's: it can run with so few ranks. Without it a job is never made smaller."""
FULL_RANKS = f"{GROUP}/full-ranks"
"""Annotation on a job that we have made smaller: how many ranks its owner gave it."""

# On a JobRecovery.
NEXT_ATTEMPT = f"{GROUP}/next-attempt"
"""Annotation: the job as it will be made again, kept from before the old one is deleted until the new one is there."""

AGENT_LEASES = "sickbay-agents"
"""Namespace of the agents' Leases; each is named after its node."""
MEDIK8S_LEASES = "medik8s-leases"
"""Namespace of the node Leases shared with the medik8s operators."""
MEDIK8S_HOLDER = "sickbay"

APPROVAL_PREFIXES = {
    "sickbay": f"intervention.{GROUP}",
    "ack": "intervention.autorepair.node.k8s.aliyun.com",
}
"""Built-in approval prefixes by name; the controller's configuration may add others."""

# Conditions.
DETECTION_BLIND = "DetectionBlind"
"""Always present where an agent is: False = sees, Unknown = silent or a source is broken; never True."""
DRAIN_IN_PROGRESS = "DrainInProgress"
DRAINED = "Drained"
MAINTENANCE_PLANNED = "MaintenancePlanned"
MAINTENANCE_IN_PROGRESS = "MaintenanceInProgress"
LIFECYCLE_CONDITIONS = (DRAIN_IN_PROGRESS, DRAINED, MAINTENANCE_PLANNED, MAINTENANCE_IN_PROGRESS)
"""KEP-5683 node lifecycle conditions that Sickbay writes."""

VALID = "Valid"
MATCHES_TOO_MANY = "MatchesTooMany"
EXPRESSION_FAILED = "ExpressionFailed"
"""On a FaultType whose expression fails on some node: there it matches nothing."""
ENTRIES_REACHABLE = "EntriesReachable"
"""On a RepairRule: False names entries that earlier ones hide."""
RULE_RESOLVED = "RuleResolved"
DAEMON_SETS_TOLERATE = "DaemonSetsTolerate"
OVERLAP = "Overlap"
OTHER_REMEDIATORS = "OtherRemediators"
"""On a RepairPool: others that may repair its nodes."""
LIMITS_FIT = "LimitsFit"
BREAKER_OPEN = "BreakerOpen"
WOULD_QUARANTINE = "WouldQuarantine"
CANCEL_HOLD_ENDS = "CancelHoldEnds"
"""On an ended NodeRepair an hour before what a person decided is over, while the fault is still there."""
POOL_WITHDRAWN = "PoolWithdrawn"
"""On a NodeRepair whose next step does not begin because its pool observes, is gone, or has lost the node."""
FROZEN = "Frozen"
"""On a NodeRepair while a Hold of level EveryAct keeps everything as it is."""

# Event reasons that belong to no step.
RETURNED_BY_HAND = "ReturnedByHand"
BREAKER_OPENED = "BreakerOpened"
BREAKER_CLOSED = "BreakerClosed"
STORM_SEEN = "StormSeen"
MARK_RESTORED = "MarkRestored"
REPAIR_ENDED = "RepairEnded"

AUTOMATION = (
    "*nvidia-driver*",
    "*gpu-operator*",
    "*kured*",
    "*node-maintenance*",
    "*cluster-autoscaler*",
    "*karpenter*",
)
"""User names of known automation, as patterns (api.md): what they take away is put back once."""

_CONDITION_EXCEPTIONS = {
    "service.kubelet": "KubeletUnhealthy",
    "service.containerd": "ContainerRuntimeUnavailable",
    "gpu.driver.version-mismatch": "DriverVersionMismatch",
}
METRICS = (
    "sickbay_nodes_quarantined",
    "sickbay_repairs_total",
    "sickbay_repair_step_seconds",
    "sickbay_breaker_open",
    "sickbay_watch_gaps_total",
    "sickbay_relandings_total",
)
"""The metrics of the contract (api.md): a question for them has an answer whatever components run."""

DEVICE = "Device"
"""Kind of `related` in an Event of our agent that is about one device; its name is the device's address."""
NOT_OFFERED = "GpusNotOffered"
"""Reason of GpuCountMismatch where the driver shows every GPU and only the device plug-in offers fewer."""
_CODE = re.compile(rf"S?XID\d+|{NOT_OFFERED}")
_XID = re.compile(r"gpu\.xid\.(\d+)")


def approval_label(prefix: str, step: str) -> str:
    """The label that asks for and gives approval of a step: `<prefix>/<step>-node`."""
    return f"{prefix}/{step.lower()}-node"


def condition_type(fault: str) -> str:
    """The Node condition that carries a fault type: `gpu.xid.79` is NvidiaXID79Error, others the id in CamelCase."""
    if fault in _CONDITION_EXCEPTIONS:
        return _CONDITION_EXCEPTIONS[fault]
    if xid := _XID.fullmatch(fault):
        return f"NvidiaXID{xid[1]}Error"
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", fault))


def agents_own(type_: str, reason: str) -> bool:
    """Whether a bad condition is in the form in which our agent writes it: reason = its type, or the code. Other
    detectors share some types with it, but bring reasons of their own."""
    return reason == type_ or _CODE.fullmatch(reason) is not None


def step_reason(step: str, state: str) -> str:
    """The Event reason of a step's transition: QuarantineDone, DrainCancelled, RepairFailed."""
    return f"{step}{state}"


def awaiting_approval(step: str) -> str:
    """The Event reason when a step asks for approval."""
    return f"{step}AwaitingApproval"
