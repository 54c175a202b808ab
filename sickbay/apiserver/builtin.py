"""The built-in resources: those a GPU cluster's controllers, kubectl and Sickbay itself touch.

Everything is data. Kinds without a strategy of their own are stored as they come.
"""

from __future__ import annotations

from sickbay.apiserver import eventviews, kinds, workloads
from sickbay.apiserver.crds import CrdStrategy
from sickbay.apiserver.datakinds import ConfigMapStrategy, SecretStrategy
from sickbay.apiserver.rbackinds import BindingStrategy, RoleStrategy
from sickbay.apiserver.resources import Registry, ResourceType, Served
from sickbay.apiserver.strategy import SpecStatus, Strategy

_ADMISSION = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"

_POD_FIELDS = {
    "spec.nodeName": "",
    "spec.restartPolicy": "",
    "spec.schedulerName": "",
    "spec.serviceAccountName": "",
    "spec.hostNetwork": "false",
    "status.phase": "",
    "status.podIP": "",
    "status.podIPs": "",
    "status.nominatedNodeName": "",
}
_EVENT_FIELDS = dict.fromkeys(("reason", "reportingComponent", "source", "type", *eventviews.FIELD_NAMES.values()), "")


_SCALING = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")


def _kind(
    group: str,
    plural: str,
    kind: str,
    strategy: Strategy | None = None,
    *,
    short: str = "",
    categories: tuple[str, ...] = (),
    subresources: tuple[str, ...] = (),
    fields: dict[str, str] | None = None,
    cluster: bool = False,
) -> ResourceType:
    return ResourceType(
        group,
        "v1",
        plural,
        kind,
        not cluster,
        strategy or Strategy(),
        short_names=tuple(short.split()),
        categories=categories,
        subresources=subresources,
        fields=fields or {},
    )


_WORKLOAD_FIELDS = {
    "Job": {"status.successful": "0"},
    "ReplicationController": {"status.replicas": "0"},
}


def _workload(group: str, plural: str, kind: str, strategy: Strategy, short: str = "") -> ResourceType:
    fields = _WORKLOAD_FIELDS.get(kind, {})
    scales = ("scale",) if kind in _SCALING else ()
    return _kind(
        group, plural, kind, strategy, short=short, categories=("all",), subresources=("status", *scales), fields=fields
    )


def _core() -> list[ResourceType]:
    all_, status = ("all",), ("status",)
    return [
        _kind("", "namespaces", "Namespace", kinds.NamespaceStrategy(), short="ns", cluster=True,
              subresources=("status", "finalize"), fields={"status.phase": ""}),
        _kind("", "nodes", "Node", kinds.NodeStrategy(), short="no", cluster=True, subresources=status,
              fields={"spec.unschedulable": "false"}),
        _kind("", "pods", "Pod", kinds.PodStrategy(), short="po", categories=all_,
              subresources=("status", "binding", "eviction", "log"), fields=_POD_FIELDS),
        _kind("", "configmaps", "ConfigMap", ConfigMapStrategy(), short="cm"),
        _kind("", "secrets", "Secret", SecretStrategy(), fields={"type": ""}),
        _kind("", "serviceaccounts", "ServiceAccount", kinds.ReturnsDeleted(), short="sa"),
        _kind("", "services", "Service", kinds.ReturnsDeleted(), short="svc", categories=all_,
              fields={"spec.clusterIP": "", "spec.type": ""}),
        _kind("", "podtemplates", "PodTemplate", kinds.ReturnsDeleted()),
        _kind("", "persistentvolumeclaims", "PersistentVolumeClaim", kinds.ReturnsDeleted(), short="pvc"),
        _kind("", "persistentvolumes", "PersistentVolume", kinds.ReturnsDeleted(), short="pv", cluster=True),
        _workload("", "replicationcontrollers", "ReplicationController", workloads.REPLICA_SET, "rc"),
    ]  # fmt: skip


def _workloads() -> list[ResourceType]:
    return [
        _workload("apps", "daemonsets", "DaemonSet", workloads.DAEMON_SET, "ds"),
        _workload("apps", "deployments", "Deployment", workloads.DEPLOYMENT, "deploy"),
        _workload("apps", "replicasets", "ReplicaSet", workloads.REPLICA_SET, "rs"),
        _workload("apps", "statefulsets", "StatefulSet", workloads.STATEFUL_SET, "sts"),
        _kind("apps", "controllerrevisions", "ControllerRevision"),
        _workload("batch", "jobs", "Job", workloads.JobStrategy()),
        _workload("batch", "cronjobs", "CronJob", SpecStatus(), "cj"),
        _kind("policy", "poddisruptionbudgets", "PodDisruptionBudget", kinds.BudgetStrategy(), short="pdb",
              subresources=("status",)),
        _kind("scheduling.k8s.io", "priorityclasses", "PriorityClass", kinds.PriorityStrategy(), short="pc",
              cluster=True),
    ]  # fmt: skip


def _cluster() -> list[ResourceType]:
    return [
        _kind("coordination.k8s.io", "leases", "Lease", kinds.LeaseStrategy()),
        _kind(_RBAC, "roles", "Role", RoleStrategy(namespaced=True)),
        _kind(_RBAC, "rolebindings", "RoleBinding", BindingStrategy("Role", "ClusterRole")),
        _kind(_RBAC, "clusterroles", "ClusterRole", RoleStrategy(namespaced=False), cluster=True),
        _kind(_RBAC, "clusterrolebindings", "ClusterRoleBinding", BindingStrategy("ClusterRole"), cluster=True),
        _kind(_ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", cluster=True),
        _kind(_ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", cluster=True),
        _kind(_ADMISSION, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", cluster=True),
        _kind(_ADMISSION, "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", cluster=True),
        _kind("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", CrdStrategy(),
              short="crd crds", cluster=True, categories=("api-extensions",), subresources=("status",)),
        _kind("storage.k8s.io", "storageclasses", "StorageClass", short="sc", cluster=True),
        _kind("storage.k8s.io", "volumeattachments", "VolumeAttachment", cluster=True),
    ]  # fmt: skip


def register_builtin(registry: Registry) -> None:
    """Make everything here served."""
    for resource in (*_core(), *_workloads(), *_cluster()):
        registry.add(resource)
    events = _kind("", "events", "Event", kinds.EventStrategy(), short="ev", fields=_EVENT_FIELDS)
    modern = Served(
        events,
        "events.k8s.io",
        "v1",
        outward=eventviews.outward,
        inward=eventviews.inward,
        check=eventviews.check,
        cause_names=eventviews.CAUSE_NAMES,
        renamed_fields=eventviews.FIELD_NAMES,
    )
    registry.add(events, modern)
