"""The built-in resources: those a GPU cluster's controllers, kubectl and Sickbay itself touch.

Everything is data. Kinds without a strategy of their own are stored as they come.
"""

from __future__ import annotations

from sickbay.apiserver import eventviews
from sickbay.apiserver.crds import CrdStrategy
from sickbay.apiserver.kinds import (
    EventStrategy,
    JobStrategy,
    LeaseStrategy,
    NamespaceStrategy,
    NodeStrategy,
    PodStrategy,
    ServiceAccountStrategy,
)
from sickbay.apiserver.resources import Registry, ResourceType, Served
from sickbay.apiserver.strategy import SpecStatus, Strategy

_PLAIN = Strategy()
_SPEC_STATUS = SpecStatus()
_POD_FIELDS = {
    "spec.nodeName": "",
    "spec.restartPolicy": "",
    "spec.schedulerName": "",
    "spec.serviceAccountName": "",
    "spec.hostNetwork": "false",
    "status.phase": "",
    "status.podIP": "",
    "status.nominatedNodeName": "",
}
EVENT_FIELDS = {
    "involvedObject.kind": "",
    "involvedObject.namespace": "",
    "involvedObject.name": "",
    "involvedObject.uid": "",
    "involvedObject.apiVersion": "",
    "involvedObject.resourceVersion": "",
    "involvedObject.fieldPath": "",
    "reason": "",
    "reportingComponent": "",
    "source": "",
    "type": "",
}
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"


def _core() -> list[ResourceType]:
    return [
        ResourceType(
            "",
            "v1",
            "namespaces",
            "Namespace",
            False,
            NamespaceStrategy(),
            short_names=("ns",),
            subresources=("status", "finalize"),
            fields={"status.phase": "", "name": ""},
        ),
        ResourceType(
            "",
            "v1",
            "nodes",
            "Node",
            False,
            NodeStrategy(),
            short_names=("no",),
            subresources=("status",),
            fields={"spec.unschedulable": "false"},
        ),
        ResourceType(
            "",
            "v1",
            "pods",
            "Pod",
            True,
            PodStrategy(),
            short_names=("po",),
            categories=("all",),
            subresources=("status", "binding", "eviction"),
            fields=_POD_FIELDS,
        ),
        ResourceType("", "v1", "configmaps", "ConfigMap", True, _PLAIN, short_names=("cm",)),
        ResourceType("", "v1", "secrets", "Secret", True, _PLAIN, fields={"type": ""}),
        ResourceType(
            "", "v1", "serviceaccounts", "ServiceAccount", True, ServiceAccountStrategy(), short_names=("sa",)
        ),
        ResourceType("", "v1", "services", "Service", True, Strategy(), short_names=("svc",), categories=("all",)),
        ResourceType("", "v1", "podtemplates", "PodTemplate", True, _PLAIN),
        ResourceType("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, _PLAIN, short_names=("pvc",)),
        ResourceType("", "v1", "persistentvolumes", "PersistentVolume", False, _PLAIN, short_names=("pv",)),
        ResourceType(
            "",
            "v1",
            "replicationcontrollers",
            "ReplicationController",
            True,
            _SPEC_STATUS,
            short_names=("rc",),
            categories=("all",),
            subresources=("status",),
        ),
    ]


def _workloads() -> list[ResourceType]:
    status = ("status",)
    return [
        ResourceType(
            "apps",
            "v1",
            "daemonsets",
            "DaemonSet",
            True,
            _SPEC_STATUS,
            short_names=("ds",),
            categories=("all",),
            subresources=status,
        ),
        ResourceType(
            "apps",
            "v1",
            "deployments",
            "Deployment",
            True,
            _SPEC_STATUS,
            short_names=("deploy",),
            categories=("all",),
            subresources=status,
        ),
        ResourceType(
            "apps",
            "v1",
            "replicasets",
            "ReplicaSet",
            True,
            _SPEC_STATUS,
            short_names=("rs",),
            categories=("all",),
            subresources=status,
        ),
        ResourceType(
            "apps",
            "v1",
            "statefulsets",
            "StatefulSet",
            True,
            _SPEC_STATUS,
            short_names=("sts",),
            categories=("all",),
            subresources=status,
        ),
        ResourceType("apps", "v1", "controllerrevisions", "ControllerRevision", True, _PLAIN),
        ResourceType(
            "batch",
            "v1",
            "jobs",
            "Job",
            True,
            JobStrategy(),
            categories=("all",),
            subresources=status,
            fields={"status.successful": "0"},
        ),
        ResourceType(
            "batch",
            "v1",
            "cronjobs",
            "CronJob",
            True,
            _SPEC_STATUS,
            short_names=("cj",),
            categories=("all",),
            subresources=status,
        ),
        ResourceType(
            "policy",
            "v1",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            True,
            _SPEC_STATUS,
            short_names=("pdb",),
            subresources=status,
        ),
        ResourceType("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, _PLAIN, short_names=("pc",)),
    ]


def _cluster() -> list[ResourceType]:
    return [
        ResourceType("coordination.k8s.io", "v1", "leases", "Lease", True, LeaseStrategy()),
        ResourceType(_RBAC, "v1", "roles", "Role", True, _PLAIN),
        ResourceType(_RBAC, "v1", "rolebindings", "RoleBinding", True, _PLAIN),
        ResourceType(_RBAC, "v1", "clusterroles", "ClusterRole", False, _PLAIN),
        ResourceType(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False, _PLAIN),
        ResourceType(_ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False, _PLAIN),
        ResourceType(
            _ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False, _PLAIN
        ),
        ResourceType(_ADMISSION, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", False, _PLAIN),
        ResourceType(
            _ADMISSION, "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", False, _PLAIN
        ),
        ResourceType(
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            False,
            CrdStrategy(),
            short_names=("crd", "crds"),
            categories=("api-extensions",),
            subresources=("status",),
        ),
        ResourceType("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, _PLAIN, short_names=("sc",)),
        ResourceType("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False, _PLAIN),
    ]


def register_builtin(registry: Registry) -> None:
    """Make everything here served."""
    for resource in (*_core(), *_workloads(), *_cluster()):
        registry.add(resource)
    events = ResourceType("", "v1", "events", "Event", True, EventStrategy(), short_names=("ev",), fields=EVENT_FIELDS)
    registry.add(
        events, Served(events, "events.k8s.io", "v1", eventviews.outward, eventviews.inward, eventviews.FIELD_NAMES)
    )
