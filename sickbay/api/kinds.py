"""Where each kind lives on the API server, and which struct it decodes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sickbay.api import names
from sickbay.api.core import Event, Lease, Namespace, Node, Pod, PodDisruptionBudget
from sickbay.api.fault_type import FaultType
from sickbay.api.hold import Hold
from sickbay.api.infra_event import InfraEvent
from sickbay.api.job_recovery import JobRecovery
from sickbay.api.node_repair import NodeRepair
from sickbay.api.node_task import NodeTask
from sickbay.api.recovery_policy import RecoveryPolicy
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of object. `group` is empty for the core API."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    struct: type[T]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """Plural with group, as RBAC and errors name it: `nodes`, `noderepairs.sickbay.dev`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def raw(self) -> Kind[dict[str, Any]]:
        """The same kind, decoded to plain dicts: every field is kept."""
        return Kind(self.group, self.version, self.kind, self.plural, self.namespaced, dict)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """URL path of the collection, object or subresource.

        An empty namespace means all namespaces. Raises ValueError for an object of a namespaced kind without one.
        """
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if not self.namespaced:
            namespace = ""
        elif name and not namespace:
            raise ValueError(f"{self.kind} {name!r} is namespaced: name its namespace")
        parts = [root, *(["namespaces", namespace] if namespace else []), self.plural]
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


NODE = Kind("", "v1", "Node", "nodes", False, Node)
POD = Kind("", "v1", "Pod", "pods", True, Pod)
NAMESPACE = Kind("", "v1", "Namespace", "namespaces", False, Namespace)
EVENT = Kind("", "v1", "Event", "events", True, Event)
PDB = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True, PodDisruptionBudget)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases", True, Lease)

REPAIR_POOL = Kind(names.GROUP, names.VERSION, "RepairPool", "repairpools", False, RepairPool)
REPAIR_RULE = Kind(names.GROUP, names.VERSION, "RepairRule", "repairrules", False, RepairRule)
FAULT_TYPE = Kind(names.GROUP, names.VERSION, "FaultType", "faulttypes", False, FaultType)
HOLD = Kind(names.GROUP, names.VERSION, "Hold", "holds", False, Hold)
NODE_REPAIR = Kind(names.GROUP, names.VERSION, "NodeRepair", "noderepairs", False, NodeRepair)
NODE_TASK = Kind(names.GROUP, names.VERSION, "NodeTask", "nodetasks", False, NodeTask)
INFRA_EVENT = Kind(names.GROUP, names.VERSION, "InfraEvent", "infraevents", False, InfraEvent)
RECOVERY_POLICY = Kind(names.GROUP, names.VERSION, "RecoveryPolicy", "recoverypolicies", True, RecoveryPolicy)
JOB_RECOVERY = Kind(names.GROUP, names.VERSION, "JobRecovery", "jobrecoveries", True, JobRecovery)

OWN: tuple[Kind[Any], ...] = (
    REPAIR_POOL,
    REPAIR_RULE,
    FAULT_TYPE,
    HOLD,
    NODE_REPAIR,
    NODE_TASK,
    INFRA_EVENT,
    RECOVERY_POLICY,
    JOB_RECOVERY,
)
"""The kinds of the product."""


def _plain(group: str, version: str, kind: str, plural: str, namespaced: bool = True) -> Kind[dict[str, Any]]:
    return Kind(group, version, kind, plural, namespaced, dict)


# Kinds handled as plain dicts: their owners' fields are not ours to know.
CONFIG_MAP = _plain("", "v1", "ConfigMap", "configmaps")
SECRET = _plain("", "v1", "Secret", "secrets")
SERVICE_ACCOUNT = _plain("", "v1", "ServiceAccount", "serviceaccounts")
CLAIM = _plain("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
VOLUME = _plain("", "v1", "PersistentVolume", "persistentvolumes", False)
POD_TEMPLATE = _plain("", "v1", "PodTemplate", "podtemplates")
JOB = _plain("batch", "v1", "Job", "jobs")
DAEMON_SET = _plain("apps", "v1", "DaemonSet", "daemonsets")
DEPLOYMENT = _plain("apps", "v1", "Deployment", "deployments")
REPLICA_SET = _plain("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SET = _plain("apps", "v1", "StatefulSet", "statefulsets")
PRIORITY_CLASS = _plain("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False)
CRD = _plain("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
SELF_SUBJECT_REVIEW = _plain("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False)
JOB_SET = _plain("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets")
TRAIN_JOB = _plain("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs")
PYTORCH_JOB = _plain("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs")
MPI_JOB = _plain("kubeflow.org", "v2beta1", "MPIJob", "mpijobs")
RAY_JOB = _plain("ray.io", "v1", "RayJob", "rayjobs")
VOLCANO_JOB = _plain("batch.volcano.sh", "v1alpha1", "Job", "jobs")
LEADER_WORKER_SET = _plain("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")
