"""Why each default of the kinds that people write is what it is. Keys are `<Kind> <path>` as in the reference.

Generation of docs/defaults.md fails for a default without a reason, and for a reason without a default, so that nobody
changes the one and forgets the other.
"""

from __future__ import annotations

_STEP = "RepairRule spec.rules[].procedure[]"

REASONS: dict[str, str] = {
    "RepairPool spec.mode": "Nothing is touched before its owner has seen what would be done",
    "RepairPool spec.quarantine.taint": "A cordon is enough; DaemonSets that do not tolerate a taint would not return",
    "RepairPool spec.maxParallelRepairs": "One mistake of ours costs one node",
    "RepairPool spec.maxParallelValidations": "Checks disturb nobody, and what waits for them is idle hardware",
    "RepairPool spec.maxUnavailable": "A large job bears a few spares less, not a tenth of its nodes",
    "RepairPool spec.minInterval": "The other limits pace enough; set it where a repair shows its harm late",
    "RepairPool spec.breaker.threshold": "Hardware does not fail on a fifth of a pool at once; a roll-out does",
    "RepairPool spec.breaker.maxNodes": "In a large pool a share is too many nodes to be wrong about",
    "RepairPool spec.breaker.cooldown": "Longer than a reboot with its checks, so that repairs under way are counted",
    "RepairPool spec.breaker.reset": "One trial repair tells whether the cause is gone",
    "RepairPool spec.storm.nodes": "Independent faults of one kind hardly ever come five at a time",
    "RepairPool spec.storm.window": "A shared cause (switch, power, driver) shows on all its nodes within seconds",
    "RepairPool spec.domains[].size": "As many as there are nodes with the label's value",
    "RepairPool spec.domains[].pacing": "A job loses the redundancy of one domain at most",
    "RepairPool spec.windows[].zone": "The only zone without a summer time",
    "RepairPool spec.windows[].kind": "A window without a word is one in which repairs may start",
    "RepairPool spec.freezeOnFailure": "One node that cannot be repaired says little about the others",
    "RepairPool spec.deviceIsolation.maxDevicesPerNode": "With more cards gone the node is worth more repaired",
    "RepairPool spec.deviceIsolation.maxNodes": "Nodes of odd sizes are hard to schedule on",
    "RepairPool spec.budgets.perNode.repairs": "What three repairs within a week did not cure, a fourth will not",
    "RepairPool spec.budgets.perNode.window": "Long enough to see a fault that comes back every other day",
    "RepairPool spec.budgets.perNode.cooldown": "The budget ends a loop; a pause would only make it longer",
    "RepairPool spec.budgets.then": "A repeat offender needs other hands than ours",
    "RepairPool spec.cancelHold": "A person's no is worth a day",
    "RepairPool spec.allowControlPlane": "A control plane is not repaired by what runs on it",
    "RepairPool spec.provider.name": "The agent is where the faults are seen; others need credentials",
    "RepairPool spec.localDataDisposable": "Nobody but the owner knows whether a scratch disk is one",
    "RepairRule spec.approvalPrefix": "Labels under our own name collide with nobody's",
    f"{_STEP}.approval.by": "A gate is there because a person wants to be asked",
    f"{_STEP}.approval.timeout": "Somebody is at work once a day",
    f"{_STEP}.approval.onTimeout": "Silence is neither a yes nor a no",
    f"{_STEP}.approval.reminders": "Soon, before the end of a shift, and within the working day",
    f"{_STEP}.before[].timeout": "A hook that takes longer holds a node out of service for nothing",
    f"{_STEP}.before[].onFailure": "What was to happen before the step has not happened",
    f"{_STEP}.after[].timeout": "A hook that takes longer holds a node out of service for nothing",
    f"{_STEP}.after[].onFailure": "What was to happen after the step has not happened",
    f"{_STEP}.options.scope": "A reboot takes every pod with it",
    f"{_STEP}.options.grace.min": "A grace of 0 is a deletion without the kubelet's word",
    f"{_STEP}.options.grace.max": "One pod must not use up the drain's whole time",
    f"{_STEP}.options.order[].priority": "Pods that nobody ordered leave in the middle",
    f"{_STEP}.options.force.allowed": "A pod deleted without proof of power-off may still run",
    f"{_STEP}.allowUndrained": "An act that takes the node down waits until it is empty",
    "Hold spec.scope.all": "A hold names what it is about",
    "Hold spec.level": "The mildest: what has begun goes on to its end",
    "RecoveryPolicy spec.mode": "Nothing is touched before its owner has seen what would be done",
    "RecoveryPolicy spec.budget.transient": "What three retries in place did not cure is not transient",
    "RecoveryPolicy spec.budget.hardware": "Each attempt leaves one bad node behind",
    "RecoveryPolicy spec.budget.unknown": "Twice is chance; a third time somebody should look",
    "RecoveryPolicy spec.budget.window": "A day of a job that runs for weeks",
    "RecoveryPolicy spec.onNoFit": "The job keeps its place and its nodes",
    "RecoveryPolicy spec.noFitDeadline": "A reboot and its checks are over by then",
    "RecoveryPolicy spec.exclusions.maxNodes": "More suspects than this are a wrong suspicion",
    "RecoveryPolicy spec.exclusions.expire": "By then the repair loop has cleared or taken the node",
    "RecoveryPolicy spec.hang.progress.annotation": "Our own key collides with nobody's",
    "RecoveryPolicy spec.hang.stall": "Longer than a checkpoint or an evaluation usually takes",
    "RecoveryPolicy spec.checkpoint.notify": "Works for every job that can read its own pod",
    "RecoveryPolicy spec.checkpoint.window": "Large checkpoints are written within minutes",
}

BY_STEP: tuple[tuple[str, str, str, str], ...] = (
    (f"{_STEP}.timeout (Drain)", "30m", "duration", "A drain that no disruption budget blocks is over by then"),
    (f"{_STEP}.onTimeout (Drain)", "Escalate", "", "What keeps the pods there is for people to judge"),
    (f"{_STEP}.ceiling, soak (Validate)", "by remedy", "duration", "See below; the fault type may say otherwise"),
    (f"{_STEP}.level (Validate)", "by fault type", "", "How deep a check must look depends on what was broken"),
    ("FaultType spec.match[].condition.status", "True", "", "Conditions of detectors are True when something is wrong"),
    ("FaultType spec.match[].event.count", "1", "", "An Event is reported once for each time"),
    ("FaultType spec.match[].event.window", "10m", "duration", "Detectors repeat within minutes"),
    ("FaultType spec.for", "0s", "duration", "A detector has waited already"),
    ("FaultType spec.remedy[].attempts", "1", "", "A remedy that did not help once is followed by a stronger one"),
    ("FaultType spec.remedy[].timeout", "by remedy", "duration", "See below"),
    ("FaultType spec.urgency", "Now", "", "A fault that can wait says so"),
)
"""Defaults that no schema carries, because they depend on the step, or because absence has a meaning of its own."""
