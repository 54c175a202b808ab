"""Nodes that somebody else has in hand are left alone and counted nowhere; other remediators of a pool are named."""

from __future__ import annotations

import pytest

from sickbay.api.markers import leaving_by
from sickbay.decide import others
from sickbay.decide.excuse import excused
from sickbay.decide.opening import hands_off
from tests.decide.made import at, node, pool


def condition(kind: str, reason: str = "Somebody") -> dict:
    return {"type": kind, "status": "True", "reason": reason}


MARKS = {
    "autoscaler deletes it": {"taints": ["ToBeDeletedByClusterAutoscaler"]},
    "autoscaler is about to": {"taints": ["DeletionCandidateOfClusterAutoscaler"]},
    "karpenter": {"taints": ["karpenter.sh/disrupted"]},
    "karpenter before 1.0": {"taints": ["karpenter.sh/disruption"]},
    "cloud provider": {"taints": ["node.cloudprovider.kubernetes.io/shutdown"]},
    "gke window": {"taints": ["cloud.google.com/maintenance-window-started"]},
    "gke maintenance": {"labels": {"cloud.google.com/active-node-maintenance": "true"}},
    "node maintenance operator": {"taints": ["medik8s.io/drain"]},
    "gpu operator": {"labels": {"nvidia.com/gpu-driver-upgrade-state": "pod-restart-required"}},
    "ack": {"labels": {"alibabacloud.com/node-needrepair": "Inquiring"}},
    "nvsentinel": {"labels": {"dgxc.nvidia.com/nvsentinel-state": "draining"}},
    "nvsentinel's events": {"annotations": {"quarantineHealthEvent": '[{"id": 1}]'}},
    "hyperpod": {"labels": {"sagemaker.amazonaws.com/node-health-status": "UnschedulablePendingReboot"}},
    "kured": {"annotations": {"weave.works/kured-reboot-in-progress": "2027-01-01T00:00:00Z"}},
    "cluster api": {"annotations": {"cluster.x-k8s.io/paused": ""}},
    "gardener": {"annotations": {"node.machine.sapcloud.io/preserve": "now"}},
    "a maintenance of somebody": {"conditions": [condition("MaintenanceInProgress")]},
    "a drain of somebody": {"conditions": [condition("DrainInProgress")]},
    "slurm reservation": {"conditions": [condition("SlurmMaintenance")]},
    "soperator": {"conditions": [condition("SoperatorChecksNodeMaintenance")]},
}


@pytest.mark.case("P093")
@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS)
def test_a_node_in_somebodys_hands_is_left_alone_and_counted_nowhere(marks):
    marked = node(faults=["test.reboot"], **marks)
    told = leaving_by(marked)
    key = next(iter([*marks.get("labels", {}), *marks.get("annotations", {}), *marks.get("taints", [])]), "condition")
    assert key in told, "explain names the mark"
    assert hands_off(marked, pool()) == told
    assert excused(marked, None, [], pool(), None, at(0))


NO_MARKS = {
    "nothing": {},
    "driver upgrade is over": {"labels": {"nvidia.com/gpu-driver-upgrade-state": "upgrade-done"}},
    "driver upgrade has not begun": {"labels": {"nvidia.com/gpu-driver-upgrade-state": "upgrade-required"}},
    "nvsentinel has ended": {"labels": {"dgxc.nvidia.com/nvsentinel-state": "remediation-succeeded"}},
    "nvsentinel knows nothing": {"annotations": {"quarantineHealthEvent": "[]"}},
    "gardener would keep it": {"annotations": {"node.machine.sapcloud.io/preserve": "when-failed"}},
    "our own maintenance": {"conditions": [condition("MaintenanceInProgress", "Sickbay")]},
    "gke says no": {"labels": {"cloud.google.com/active-node-maintenance": "false"}},
    "a maintenance that is over": {
        "conditions": [{"type": "MaintenanceInProgress", "status": "False", "reason": "Somebody"}]
    },
    "hyperpod is content": {"labels": {"sagemaker.amazonaws.com/node-health-status": "Schedulable"}},
}


@pytest.mark.parametrize("marks", NO_MARKS.values(), ids=NO_MARKS)
def test_what_is_no_work_under_way_keeps_nobody_off(marks):
    assert leaving_by(node(**marks)) == ""


def test_platforms_are_known_by_the_labels_of_their_nodes():
    nodes = [
        node(labels={"kubernetes.azure.com/agentpool": "gpu"}),
        node(labels={"karpenter.sh/nodepool": "x"}),
        node(),
    ]
    text = others.message(others.on_nodes(nodes))
    assert "AKS" in text and "Karpenter" in text and text.count("on 1 nodes") == 2


def check(name: str, **spec) -> dict:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def test_health_checks_count_where_they_select_nodes_of_the_pool():
    nodes = [node(labels={"pool": "train"}, annotations={"cluster.x-k8s.io/cluster-name": "c1"})]
    found = others.by_objects(
        nodes,
        [
            check("mine", selector={"matchLabels": {"pool": "train"}}),
            check("theirs", selector={"matchLabels": {"a": "b"}}),
        ],
        [check("mhc", clusterName="c1"), check("other", clusterName="c2")],
        [
            {"metadata": {"name": "kured", "namespace": "kube-system"}},
            {"metadata": {"name": "plugin", "namespace": "gpu"}},
        ],
    )
    assert sorted(found) == [
        "MachineHealthCheck default/mhc",
        "NodeHealthCheck mine",
        "kured (DaemonSet kube-system/kured)",
    ]


def test_a_selector_that_names_nothing_selects_nothing():
    assert others.by_objects([node()], [check("empty", selector={})]) == {}
