"""Words that people and tools match: golden."""

import pytest

from sickbay.api import names

CONDITIONS = {
    "gpu.xid.79": "NvidiaXID79Error",
    "gpu.xid.48": "NvidiaXID48Error",
    "pcie.aer.fatal": "PcieAerFatal",
    "gpu.count-mismatch": "GpuCountMismatch",
    "service.kubelet": "KubeletUnhealthy",
    "service.containerd": "ContainerRuntimeUnavailable",
    "gpu.driver.version-mismatch": "DriverVersionMismatch",
    "gpu.ecc.uncorrectable": "GpuEccUncorrectable",
    "gpu.sxid.12028": "GpuSxid12028",
    "job.suspect": "JobSuspect",
}


@pytest.mark.parametrize(("fault", "condition"), CONDITIONS.items(), ids=CONDITIONS)
def test_a_fault_type_has_its_condition_type(fault, condition):
    assert names.condition_type(fault) == condition


@pytest.mark.parametrize(
    ("prefix", "step", "label"),
    [
        ("sickbay", "Drain", "intervention.sickbay.dev/drain-node"),
        ("sickbay", "Unquarantine", "intervention.sickbay.dev/unquarantine-node"),
        ("ack", "Repair", "intervention.autorepair.node.k8s.aliyun.com/repair-node"),
    ],
)
def test_a_step_has_its_approval_label(prefix, step, label):
    assert names.approval_label(names.APPROVAL_PREFIXES[prefix], step) == label


@pytest.mark.parametrize(
    ("reason", "golden"),
    [
        (names.step_reason("Quarantine", "Done"), "QuarantineDone"),
        (names.step_reason("Drain", "Cancelled"), "DrainCancelled"),
        (names.step_reason("Repair", "Failed"), "RepairFailed"),
        (names.awaiting_approval("Drain"), "DrainAwaitingApproval"),
    ],
)
def test_a_transition_has_its_event_reason(reason, golden):
    assert reason == golden


def test_the_keys_on_a_node_are_those_of_the_contract():
    assert (names.QUARANTINE, names.INQUIRY, names.DEVICES, names.ISOLATE, names.CHANGED_BY) == (
        "sickbay.dev/quarantine",
        "sickbay.dev/inquiry",
        "sickbay.dev/devices",
        "sickbay.dev/isolate",
        "sickbay.dev/changed-by",
    )
    assert names.LIFECYCLE_CONDITIONS == ("DrainInProgress", "Drained", "MaintenancePlanned", "MaintenanceInProgress")
