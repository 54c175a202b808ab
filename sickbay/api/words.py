"""Every enumeration of the API.

Fields are typed `str`, because a value written by a newer version must still decode. Compare with these members (they
are strings), and treat a value that is in none of them as "hold, tell people".
"""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """Whether a pool or policy acts, or only decides and reports."""

    OBSERVE = "Observe"
    ACT = "Act"


class Step(StrEnum):
    """The five steps, in their only order."""

    QUARANTINE = "Quarantine"
    DRAIN = "Drain"
    REPAIR = "Repair"
    VALIDATE = "Validate"
    UNQUARANTINE = "Unquarantine"


class BreakerReset(StrEnum):
    AUTO = "Auto"
    MANUAL = "Manual"


class BreakerState(StrEnum):
    CLOSED = "Closed"
    OPEN = "Open"
    HALF_OPEN = "HalfOpen"


class Pacing(StrEnum):
    SPREAD = "Spread"
    PACK = "Pack"


class WindowKind(StrEnum):
    ALLOW = "Allow"
    DENY = "Deny"


class BudgetThen(StrEnum):
    REPAIR_HARDWARE = "RepairHardware"
    NEEDS_HUMAN = "NeedsHuman"


class SlotKind(StrEnum):
    UNAVAILABLE = "Unavailable"
    REPAIR = "Repair"
    VALIDATE = "Validate"
    ISOLATE = "Isolate"


class ApprovalBy(StrEnum):
    PEOPLE = "People"
    JOBS = "Jobs"
    PEOPLE_AND_JOBS = "PeopleAndJobs"


class ApprovalTimeout(StrEnum):
    ESCALATE = "Escalate"
    SKIP = "Skip"
    ABORT = "Abort"


class HookFailure(StrEnum):
    ESCALATE = "Escalate"
    CONTINUE = "Continue"


class DrainTimeout(StrEnum):
    ESCALATE = "Escalate"
    CONTINUE = "Continue"
    ROLL_BACK = "RollBack"


class DrainScope(StrEnum):
    ALL = "All"
    GPU_PODS = "GPUPods"


class NodeVolumes(StrEnum):
    """What a drain does with pods that can run nowhere else."""

    HOLD = "Hold"
    LEAVE = "Leave"
    EVICT = "Evict"


class FaultClass(StrEnum):
    """In order of arbitration, highest first."""

    NODE = "Node"
    GPU = "GPU"
    SYSTEM = "System"


class Severity(StrEnum):
    """In rising order."""

    INFO = "Info"
    WARNING = "Warning"
    ERROR = "Error"
    CRITICAL = "Critical"


class Scope(StrEnum):
    DEVICE = "Device"
    NODE = "Node"
    DOMAIN = "Domain"


class Urgency(StrEnum):
    NOW = "Now"
    AT_NEXT_INTERRUPTION = "AtNextInterruption"
    AT_JOB_END = "AtJobEnd"


class ClearsBy(StrEnum):
    CONDITION = "condition"
    SILENCE = "silence"
    PROBE = "probe"
    RESET = "reset"
    REBOOT = "reboot"
    REPLACEMENT = "replacement"


class Action(StrEnum):
    RESTART_SERVICE = "RestartService"
    RESTART_DEVICE_PLUGIN = "RestartDevicePlugin"
    RESET_GPU = "ResetGPU"
    RESET_FABRIC = "ResetFabric"
    SET_DEVICE_CONFIG = "SetDeviceConfig"
    REBOOT_NODE = "RebootNode"
    POWER_CYCLE = "PowerCycle"
    RECOVER_DOMAIN = "RecoverDomain"
    REPROVISION_NODE = "ReprovisionNode"
    REDEPLOY_NODE = "RedeployNode"
    REPAIR_HARDWARE = "RepairHardware"
    REPLACE_NODE = "ReplaceNode"
    RESTART_APPLICATION = "RestartApplication"
    CONTACT_SUPPORT = "ContactSupport"
    CUSTOM = "Custom"
    NONE = "None"


BEFORE = "before"
"""Argument of a running Drain: when the provider takes the machine (RFC 3339). No pod gets a longer grace."""
DIAGNOSE = "Diagnose"
"""What a NodeTask may ask for beside the remedies: active diagnostics. It is no remedy."""


class HoldLevel(StrEnum):
    NEW_REPAIRS = "NewRepairs"
    NEXT_STEP = "NextStep"
    EVERY_ACT = "EveryAct"


class Origin(StrEnum):
    FAULT = "Fault"
    MANUAL = "Manual"
    SUSPECT = "Suspect"


class Phase(StrEnum):
    """Phases of a NodeRepair."""

    PENDING = "Pending"
    WAITING_APPROVAL = "WaitingApproval"
    WAITING_SLOT = "WaitingSlot"
    WAITING_JOB = "WaitingJob"
    RUNNING = "Running"
    PARKED = "Parked"
    NEEDS_HUMAN = "NeedsHuman"
    CANCELLING = "Cancelling"
    SUCCEEDED = "Succeeded"
    CANCELLED = "Cancelled"
    FAILED = "Failed"
    WOULD_ACT = "WouldAct"


ENDED = frozenset({Phase.SUCCEEDED, Phase.CANCELLED, Phase.FAILED})
"""Phases without a way on. A WouldAct repair has ended when its outcome is set."""


class Outcome(StrEnum):
    REPAIRED = "Repaired"
    REPLACED = "Replaced"
    LEFT_QUARANTINED = "LeftQuarantined"
    SELF_RECOVERED = "SelfRecovered"
    CANCELLED_BY_PERSON = "CancelledByPerson"
    DENIED = "Denied"
    NODE_GONE = "NodeGone"
    GAVE_UP = "GaveUp"
    OBSERVED = "Observed"


class Needs(StrEnum):
    """Why people are needed."""

    APPROVAL_TIMEOUT = "ApprovalTimeout"
    DRAIN_BLOCKED = "DrainBlocked"
    REPAIR_FAILED = "RepairFailed"
    VALIDATION_FAILED = "ValidationFailed"
    BUDGET_SPENT = "BudgetSpent"
    CLEAR_PROOF_MISSING = "ClearProofMissing"
    GROUP_CANNOT_FIT = "GroupCannotFit"
    UNKNOWN_RESULT = "UnknownResult"
    CONTACT_SUPPORT = "ContactSupport"
    HOOK_FAILED = "HookFailed"
    POOL_WITHDRAWN = "PoolWithdrawn"


class Stage(StrEnum):
    """What of a running step is under way beside the step itself."""

    BEFORE = "Before"
    AFTER = "After"


class WaitsFor(StrEnum):
    APPROVAL = "Approval"
    SLOT = "Slot"
    JOB = "Job"
    CLEAR_PROOF = "ClearProof"
    WINDOW = "Window"
    HOLD = "Hold"
    BREAKER = "Breaker"
    STORM = "Storm"
    OTHER_OWNER = "OtherOwner"
    PROVIDER = "Provider"
    PODS = "Pods"
    CHECKS = "Checks"
    PEOPLE = "People"
    HOOK = "Hook"


class StepState(StrEnum):
    """decide's view of a step."""

    WAITING = "Waiting"
    RUNNING = "Running"
    DONE = "Done"
    SKIPPED = "Skipped"
    CANCELLED = "Cancelled"
    FAILED = "Failed"


class ReportState(StrEnum):
    """execute's view of a step."""

    CLAIMED = "Claimed"
    IN_PROGRESS = "InProgress"
    DONE = "Done"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


FINAL_REPORTS = (ReportState.DONE, ReportState.FAILED, ReportState.UNKNOWN)
"""Reports on a step that are the last word on its attempt."""


class PodState(StrEnum):
    EVICTING = "Evicting"
    BLOCKED = "Blocked"
    WAITING = "Waiting"
    TERMINATING = "Terminating"
    SKIPPED = "Skipped"


class PodWhy(StrEnum):
    BUSY = "Busy"
    NEVER = "Never"
    ERROR = "Error"
    PROTECTED = "Protected"
    WAIT = "Wait"


class RepairVerdict(StrEnum):
    CONFIRMED = "Confirmed"
    NOT_CONFIRMED = "NotConfirmed"
    NO_FAULT_FOUND = "NoFaultFound"
    FALSE_ALARM = "FalseAlarm"


class TaskPhase(StrEnum):
    PENDING = "Pending"
    ACCEPTED = "Accepted"
    RUNNING = "Running"
    DONE = "Done"
    FAILED = "Failed"
    REFUSED = "Refused"
    EXPIRED = "Expired"


class InfraPhase(StrEnum):
    INQUIRING = "Inquiring"
    SCHEDULED = "Scheduled"
    EXECUTING = "Executing"
    COMPLETED = "Completed"
    AVOIDED = "Avoided"
    CANCELLED = "Cancelled"
    FAILED = "Failed"
    GONE = "Gone"


class NoFit(StrEnum):
    WAIT = "Wait"
    REQUEUE = "Requeue"
    SHRINK = "Shrink"


class CheckpointNotify(StrEnum):
    ANNOTATION = "Annotation"
    CALL = "Call"
    SIGNAL = "Signal"


class RecoveryPhase(StrEnum):
    RUNNING = "Running"
    FAILING = "Failing"
    ISOLATING = "Isolating"
    TEARING_DOWN = "TearingDown"
    RELEASING = "Releasing"
    PLACING = "Placing"
    WAITING_CAPACITY = "WaitingCapacity"
    HELD = "Held"
    STOPPED = "Stopped"
    RECOVERED = "Recovered"


class JobVerdict(StrEnum):
    HARDWARE = "Hardware"
    TRANSIENT = "Transient"
    WORKLOAD = "Workload"
    SHARED_CAUSE = "SharedCause"
    POLICY = "Policy"
    UNKNOWN = "Unknown"


class JobAction(StrEnum):
    RESTART_IN_PLACE = "RestartInPlace"
    RETRY = "Retry"
    RESCHEDULE = "Reschedule"
    REQUEUE = "Requeue"
    HOLD = "Hold"
    STOP = "Stop"
    ESCALATE = "Escalate"
    NONE = "None"


class GateState(StrEnum):
    ASKED = "Asked"
    CHECKPOINTED = "Checkpointed"
    TIME_OVER = "TimeOver"
    GONE = "Gone"


class MoveState(StrEnum):
    ACCEPTED = "Accepted"
    MOVING = "Moving"
    GONE = "Gone"
    DECLINED = "Declined"


class ApprovalAnswer(StrEnum):
    """Values of an approval label on the Node; `inquiring` is ours, the others are people's."""

    INQUIRING = "inquiring"
    APPROVED = "approved"
    DENIED = "denied"


class MessageCategory(StrEnum):
    INFRA_EVENT = "InfraEvent"
    DEVICE_FAULT = "DeviceFault"
    REPAIR_PROGRESS = "RepairProgress"
    DIGEST = "Digest"
