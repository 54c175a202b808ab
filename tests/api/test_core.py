"""Slim Kubernetes kinds: whatever an API server or a stranger's controller writes must decode, and keep its meaning."""

import gc

import msgspec
import pytest

from sickbay.api.core import (
    Container,
    DisruptionBudgetSpec,
    Event,
    Lease,
    LeaseSpec,
    Namespace,
    Node,
    NodeSpec,
    ObjectMeta,
    Pod,
    PodDisruptionBudget,
    PodSpec,
    Taint,
    Toleration,
)
from sickbay.api.meta import LabelSelector, OwnerReference, SelectorRequirement

TOP = (Node, Pod, PodDisruptionBudget, Lease, Event, Namespace)

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "train-0",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"pool": "train"},
        "annotations": {"a": "b"},
        "creationTimestamp": "2026-11-29T12:00:00Z",
        "finalizers": ["x"],
        "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
        "ownerReferences": [{"apiVersion": "a/v1", "kind": "B", "name": "c", "uid": "d", "controller": True}],
    },
    "spec": {
        "providerID": "aws:///z/i-1",
        "unschedulable": True,
        "podCIDRs": ["10.0.0.0/24"],
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-11-29T12:00:00Z"}],
    },
    "status": {
        "capacity": {"nvidia.com/gpu": "8", "cpu": "96"},
        "allocatable": {"nvidia.com/gpu": "7"},
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "lastHeartbeatTime": "2026-11-29T12:00:00Z",
                "lastTransitionTime": "2026-11-29T11:00:00Z",
                "reason": "KubeletReady",
                "message": "ok",
            },
            {"type": "CorruptDockerOverlay2", "status": "Unknown"},
        ],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "nodeInfo": {"bootID": "b1", "kubeletVersion": "v1.36.3", "systemUUID": "s", "machineID": "m"},
        "images": [{"names": None, "sizeBytes": 5}],
    },
}

POD = {
    "metadata": {
        "name": "llm-0",
        "namespace": "ml",
        "ownerReferences": [{"kind": "DaemonSet", "name": "d", "uid": "x", "controller": True}],
    },
    "spec": {
        "nodeName": "train-0",
        "schedulerName": "volcano",
        "priorityClassName": "high",
        "priority": 1000,
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}, {"key": "a", "tolerationSeconds": 300}],
        "containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
        "initContainers": [{"name": "i", "restartPolicy": "Always"}],
        "volumes": [
            {"name": "tmp", "emptyDir": {}},
            {"name": "host", "hostPath": {"path": "/data"}},
            {"name": "pvc", "persistentVolumeClaim": {"claimName": "claim"}},
            {"name": "cm", "configMap": {"name": "x"}},
        ],
    },
    "status": {
        "phase": "Failed",
        "reason": "NodeLost",
        "conditions": [{"type": "Ready", "status": "False", "lastProbeTime": None, "lastTransitionTime": None}],
        "containerStatuses": [
            {
                "name": "c",
                "ready": False,
                "restartCount": 2,
                "state": {"terminated": {"exitCode": 139, "signal": 11, "reason": "Error"}},
                "lastState": {},
            }
        ],
    },
}


def decode(struct, obj):
    return msgspec.json.decode(msgspec.json.encode(obj), type=struct)


def test_a_node_keeps_what_a_repair_controller_reads():
    node = decode(Node, NODE)
    assert (node.name, node.uid, node.boot_id, node.provider_id) == ("train-0", "u", "b1", "aws:///z/i-1")
    assert (node.labels, node.annotations) == ({"pool": "train"}, {"a": "b"})
    assert node.unschedulable and node.taint("k") == Taint("k", "v", "NoSchedule", "2026-11-29T12:00:00Z")
    assert node.ready and node.condition("Ready").last_transition_time == "2026-11-29T11:00:00Z"
    assert node.condition("CorruptDockerOverlay2").status == "Unknown"
    assert node.condition("Absent") is None and node.taint("absent") is None
    assert node.status.allocatable["nvidia.com/gpu"] == "7"
    assert node.status.node_info.system_uuid == "s"
    assert node.metadata.controller.name == "c"
    assert not node.deleting


def test_a_pod_keeps_what_a_drain_and_the_job_loop_read():
    pod = decode(Pod, POD)
    assert (pod.name, pod.namespace, pod.node_name) == ("llm-0", "ml", "train-0")
    assert pod.is_daemonset and not pod.is_mirror and pod.finished
    assert pod.spec.termination_grace_period_seconds == 0
    assert pod.status.container_statuses[0].state.terminated.exit_code == 139
    assert pod.status.container_statuses[0].state.terminated.signal == 11
    assert [v.name for v in pod.spec.volumes if v.empty_dir is not None] == ["tmp"]
    assert [v.persistent_volume_claim.claim_name for v in pod.spec.volumes if v.persistent_volume_claim] == ["claim"]
    assert pod.spec.containers[0].resources.limits == {"nvidia.com/gpu": "8"}
    assert pod.condition("Ready").last_transition_time is None


@pytest.mark.parametrize("struct", TOP, ids=lambda s: s.__name__)
@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"metadata": None, "spec": None, "status": None},
        {"metadata": {"labels": None, "annotations": None, "finalizers": None, "ownerReferences": None}},
        {"metadata": {"creationTimestamp": None}, "spec": {}, "status": {}},
        {"surprise": [1, {"a": None}], "spec": {"surprise": None}},
    ],
    ids=["empty", "null-parts", "null-metadata", "null-time", "unknown-fields"],
)
def test_an_odd_object_decodes_and_reads_as_empty(struct, odd):
    made = decode(struct, odd)
    assert made.kind == struct.__name__
    assert made.metadata.labels == {} and made.metadata.annotations == {}
    assert made.metadata.finalizers == [] and made.metadata.owner_references == []


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": None, "allocatable": None, "capacity": None, "nodeInfo": None, "addresses": None},
        {"conditions": [{"type": "A"}, {"status": "True"}, {}]},
        {"conditions": [{"type": "A", "lastHeartbeatTime": None, "lastTransitionTime": None}]},
        {"allocatable": {"nvidia.com/gpu": 8, "cpu": 0.5}},
    ],
    ids=["nulls", "bare-conditions", "null-times", "numbers-as-quantities"],
)
def test_an_odd_node_status_decodes(status):
    node = decode(Node, {"status": status})
    assert node.ready is False
    assert node.boot_id == ""
    assert isinstance(node.conditions, list)


def test_a_null_list_reads_as_a_list_of_its_own():
    one, other = decode(Node, {"spec": {"taints": None}}), decode(Node, {"spec": {"taints": None}})
    one.spec.taints.append(Taint("a"))
    assert other.spec.taints == []


@pytest.mark.parametrize(("struct", "obj"), [(Node, NODE), (Pod, POD)], ids=["node", "pod"])
def test_what_was_read_is_the_same_after_writing_and_reading_it_again(struct, obj):
    first = decode(struct, obj)
    assert msgspec.json.decode(msgspec.json.encode(first), type=struct) == first


def test_writing_leaves_out_what_is_empty_but_says_what_it_is():
    assert msgspec.to_builtins(Lease(metadata=ObjectMeta(name="n"), spec=LeaseSpec(holder_identity="me"))) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "n"},
        "spec": {"holderIdentity": "me"},
    }


def test_core_objects_cannot_be_changed_and_are_no_burden_to_the_garbage_collector():
    node = decode(Node, NODE)
    with pytest.raises(AttributeError):
        node.spec = NodeSpec()
    assert not any(map(gc.is_tracked, (node, node.metadata, node.spec, node.status, node.conditions[0])))


TOLERATIONS = [
    (Toleration(operator="Exists"), True),
    (Toleration(key="k", operator="Exists"), True),
    (Toleration(key="k", value="v"), True),
    (Toleration(key="k", operator="Equal", value="v", effect="NoSchedule"), True),
    (Toleration(key="k", value="other"), False),
    (Toleration(key="k", operator="Exists", effect="NoExecute"), False),
    (Toleration(key="other", operator="Exists"), False),
    (Toleration(value=""), False),
    (Toleration(key="k", operator="Unheard", value="v"), False),
]


@pytest.mark.parametrize(("toleration", "tolerates"), TOLERATIONS)
def test_a_toleration_is_judged_as_the_scheduler_judges_it(toleration, tolerates):
    taint = Taint("k", "v", "NoSchedule")
    assert toleration.tolerates(taint) is tolerates
    assert Pod(spec=PodSpec(tolerations=[toleration])).tolerates(taint) is tolerates


def test_a_mirror_pod_is_known_by_its_annotation():
    assert Pod(metadata=ObjectMeta(annotations={"kubernetes.io/config.mirror": "x"})).is_mirror


def test_only_the_managing_owner_makes_a_pod_a_daemon():
    owner = OwnerReference(kind="DaemonSet", uid="x")
    assert not Pod(metadata=ObjectMeta(owner_references=[owner])).is_daemonset


SELECTORS = [
    (LabelSelector(), True),
    (LabelSelector(match_labels={"a": "1"}), True),
    (LabelSelector(match_labels={"a": "2"}), False),
    (LabelSelector(match_labels={"a": "1", "b": ""}), False),
    (LabelSelector(match_expressions=[SelectorRequirement("a", "In", ["1", "2"])]), True),
    (LabelSelector(match_expressions=[SelectorRequirement("a", "NotIn", ["1"])]), False),
    (LabelSelector(match_expressions=[SelectorRequirement("b", "NotIn", ["1"])]), True),
    (LabelSelector(match_expressions=[SelectorRequirement("a", "Exists")]), True),
    (LabelSelector(match_expressions=[SelectorRequirement("a", "DoesNotExist")]), False),
    (LabelSelector(match_expressions=[SelectorRequirement("b", "DoesNotExist")]), True),
    (LabelSelector(match_expressions=[SelectorRequirement("b", "In", ["1"])]), False),
    (LabelSelector(match_expressions=[SelectorRequirement("a", "Resembles", ["1"])]), False),
    (LabelSelector({"a": "1"}, [SelectorRequirement("b", "Exists")]), False),
]


@pytest.mark.parametrize(("selector", "matches"), SELECTORS)
def test_a_selector_matches_as_in_kubernetes_and_an_unknown_one_nothing(selector, matches):
    assert selector.matches({"a": "1"}) is matches


@pytest.mark.parametrize(
    ("namespace", "selector", "selects"),
    [
        ("ml", LabelSelector(match_labels={"a": "1"}), True),
        ("ml", LabelSelector(), True),
        ("ml", None, False),
        ("other", LabelSelector(), False),
        ("ml", LabelSelector(match_labels={"a": "2"}), False),
    ],
)
def test_a_disruption_budget_selects_pods_of_its_namespace(namespace, selector, selects):
    budget = PodDisruptionBudget(metadata=ObjectMeta(namespace=namespace), spec=DisruptionBudgetSpec(selector=selector))
    pod = Pod(metadata=ObjectMeta(namespace="ml", labels={"a": "1"}), spec=PodSpec(containers=[Container("c")]))
    assert budget.selects(pod) is selects
