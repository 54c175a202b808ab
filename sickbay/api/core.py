"""Slim Kubernetes kinds: the fields a repair controller reads, and no others.

A Node of 12 KB on the wire keeps about one; what is left out here (images, managedFields, volumesInUse, ...) is never
decoded. They are for reading and for creating objects of our own. Never PUT one back: fields they do not know would be
lost. Times are RFC 3339 text, None when absent.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sickbay.api.base import CorePart, Nullable
from sickbay.api.meta import Identified, LabelSelector, ObjectMeta

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"

Quantity = str | int | float
"""A resource amount as it stands in the object; hand-written manifests carry bare numbers. Read by `quantity.parse`."""


class Taint(CorePart, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeCondition(CorePart, frozen=True):
    """One condition of a Node. Types are free text: other detectors bring their own."""

    type: str = ""
    status: str = ""
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class NodeInfo(CorePart, frozen=True):
    boot_id: str = ""
    machine_id: str = ""
    system_uuid: str = ""
    kernel_version: str = ""
    kubelet_version: str = ""


class NodeAddress(CorePart, frozen=True):
    type: str = ""
    address: str = ""


class NodeSpec(CorePart, frozen=True):
    provider_id: str = ""
    unschedulable: bool = False
    taints: Nullable[list[Taint]] = []


class NodeStatus(CorePart, frozen=True):
    capacity: Nullable[dict[str, Quantity]] = {}
    allocatable: Nullable[dict[str, Quantity]] = {}
    conditions: Nullable[list[NodeCondition]] = []
    addresses: Nullable[list[NodeAddress]] = []
    node_info: Nullable[NodeInfo] = msgspec.field(default_factory=NodeInfo)


class Node(CorePart, Identified, frozen=True):
    api_version: str = msgspec.field(default_factory=lambda: "v1")
    kind: str = msgspec.field(default_factory=lambda: "Node")
    metadata: Nullable[ObjectMeta] = msgspec.field(default_factory=ObjectMeta)
    spec: Nullable[NodeSpec] = msgspec.field(default_factory=NodeSpec)
    status: Nullable[NodeStatus] = msgspec.field(default_factory=NodeStatus)

    @property
    def taints(self) -> list[Taint]:
        return self.spec.taints

    @property
    def unschedulable(self) -> bool:
        return self.spec.unschedulable

    @property
    def conditions(self) -> list[NodeCondition]:
        return self.status.conditions

    @property
    def provider_id(self) -> str:
        return self.spec.provider_id

    @property
    def boot_id(self) -> str:
        return self.status.node_info.boot_id

    @property
    def serial(self) -> str:
        """Identity of the machine under it, whatever the Node is called: the UUID of its firmware (kubelet, SMBIOS)."""
        return self.status.node_info.system_uuid

    @property
    def ready(self) -> bool:
        """True only for condition Ready=True: an absent or Unknown one is not ready."""
        condition = self.condition("Ready")
        return condition is not None and condition.status == "True"

    def condition(self, type_: str) -> NodeCondition | None:
        for condition in self.status.conditions:
            if condition.type == type_:
                return condition
        return None

    def taint(self, key: str) -> Taint | None:
        return next((t for t in self.spec.taints if t.key == key), None)


class Toleration(CorePart, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """As the scheduler judges it: an empty key with Exists tolerates all, an empty effect all effects."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.operator in ("", "Equal") and self.value == taint.value


class Resources(CorePart, frozen=True):
    requests: Nullable[dict[str, Quantity]] = {}
    limits: Nullable[dict[str, Quantity]] = {}


class Container(CorePart, frozen=True):
    name: str = ""
    image: str = ""
    restart_policy: str = ""
    resources: Nullable[Resources] = msgspec.field(default_factory=Resources)


class HostPathVolume(CorePart, frozen=True):
    path: str = ""


class ClaimVolume(CorePart, frozen=True):
    claim_name: str = ""


class EmptyDirVolume(CorePart, frozen=True):
    medium: str = ""


class Volume(CorePart, frozen=True):
    """A pod's volume, of the kinds a drain asks about: data that dies with the node, and claims that must detach."""

    name: str = ""
    empty_dir: EmptyDirVolume | None = None
    host_path: HostPathVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None


class PodClaim(CorePart, frozen=True):
    """A device claimed through dynamic resource allocation; of which kind, only the claim itself tells."""

    name: str = ""


class PodSpec(CorePart, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority_class_name: str = ""
    priority: int | None = None
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    node_selector: Nullable[dict[str, str]] = {}
    tolerations: Nullable[list[Toleration]] = []
    containers: Nullable[list[Container]] = []
    init_containers: Nullable[list[Container]] = []
    volumes: Nullable[list[Volume]] = []
    resource_claims: Nullable[list[PodClaim]] = []


class PodCondition(CorePart, frozen=True):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class Terminated(CorePart, frozen=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class Waiting(CorePart, frozen=True):
    reason: str = ""
    message: str = ""


class Running(CorePart, frozen=True):
    started_at: str | None = None


class ContainerState(CorePart, frozen=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ResourceHealth(CorePart, frozen=True, rename={"resource_id": "resourceID"}):
    resource_id: str = ""


class AllocatedResource(CorePart, frozen=True):
    """What a container has been given of one resource, device by device (KEP-4680, gate ResourceHealthStatus)."""

    name: str = ""
    resources: Nullable[list[ResourceHealth]] = []


class ContainerStatus(CorePart, frozen=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: Nullable[ContainerState] = msgspec.field(default_factory=ContainerState)
    last_state: Nullable[ContainerState] = msgspec.field(default_factory=ContainerState)
    allocated_resources_status: Nullable[list[AllocatedResource]] = []


class PodStatus(CorePart, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    start_time: str | None = None
    conditions: Nullable[list[PodCondition]] = []
    container_statuses: Nullable[list[ContainerStatus]] = []
    init_container_statuses: Nullable[list[ContainerStatus]] = []


class Pod(CorePart, Identified, frozen=True):
    api_version: str = msgspec.field(default_factory=lambda: "v1")
    kind: str = msgspec.field(default_factory=lambda: "Pod")
    metadata: Nullable[ObjectMeta] = msgspec.field(default_factory=ObjectMeta)
    spec: Nullable[PodSpec] = msgspec.field(default_factory=PodSpec)
    status: Nullable[PodStatus] = msgspec.field(default_factory=PodStatus)

    @property
    def node_name(self) -> str:
        return self.spec.node_name

    @property
    def phase(self) -> str:
        return self.status.phase

    @property
    def finished(self) -> bool:
        """Succeeded or Failed: it runs no process any more and holds no resources."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_mirror(self) -> bool:
        """The API server's picture of a static pod: deleting it stops nothing."""
        return MIRROR_ANNOTATION in self.metadata.annotations

    @property
    def is_daemonset(self) -> bool:
        """Managed by a DaemonSet, which would put it back at once."""
        owner = self.metadata.controller
        return owner is not None and owner.kind == "DaemonSet"

    def condition(self, type_: str) -> PodCondition | None:
        for condition in self.status.conditions:
            if condition.type == type_:
                return condition
        return None

    def tolerates(self, taint: Taint) -> bool:
        return any(toleration.tolerates(taint) for toleration in self.spec.tolerations)


class DisruptionBudgetSpec(CorePart, frozen=True):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = ""


class DisruptionBudgetStatus(CorePart, frozen=True):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0
    disrupted_pods: Nullable[dict[str, str]] = {}


class PodDisruptionBudget(CorePart, frozen=True):
    api_version: str = msgspec.field(default_factory=lambda: "policy/v1")
    kind: str = msgspec.field(default_factory=lambda: "PodDisruptionBudget")
    metadata: Nullable[ObjectMeta] = msgspec.field(default_factory=ObjectMeta)
    spec: Nullable[DisruptionBudgetSpec] = msgspec.field(default_factory=DisruptionBudgetSpec)
    status: Nullable[DisruptionBudgetStatus] = msgspec.field(default_factory=DisruptionBudgetStatus)

    def selects(self, pod: Pod) -> bool:
        """Same namespace and matching labels. In policy/v1 an empty selector selects all, an absent one none."""
        if pod.namespace != self.metadata.namespace or self.spec.selector is None:
            return False
        return self.spec.selector.matches(pod.labels)


class LeaseSpec(CorePart, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(CorePart, frozen=True):
    api_version: str = msgspec.field(default_factory=lambda: "coordination.k8s.io/v1")
    kind: str = msgspec.field(default_factory=lambda: "Lease")
    metadata: Nullable[ObjectMeta] = msgspec.field(default_factory=ObjectMeta)
    spec: Nullable[LeaseSpec] = msgspec.field(default_factory=LeaseSpec)


class ObjectReference(CorePart, frozen=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(CorePart, frozen=True):
    component: str = ""
    host: str = ""


class EventSeries(CorePart, frozen=True):
    count: int = 0
    last_observed_time: str | None = None


class Event(CorePart, frozen=True):
    """A core/v1 Event, the form in which most detectors write and kubectl reads them."""

    api_version: str = msgspec.field(default_factory=lambda: "v1")
    kind: str = msgspec.field(default_factory=lambda: "Event")
    metadata: Nullable[ObjectMeta] = msgspec.field(default_factory=ObjectMeta)
    involved_object: Nullable[ObjectReference] = msgspec.field(default_factory=ObjectReference)
    related: ObjectReference | None = None
    type: str = ""
    reason: str = ""
    message: str = ""
    action: str = ""
    count: int | None = None
    source: Nullable[EventSource] = msgspec.field(default_factory=EventSource)
    series: EventSeries | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    reporting_component: str = ""
    reporting_instance: str = ""


class NamespaceStatus(CorePart, frozen=True):
    phase: str = ""


class Namespace(CorePart, frozen=True):
    api_version: str = msgspec.field(default_factory=lambda: "v1")
    kind: str = msgspec.field(default_factory=lambda: "Namespace")
    metadata: Nullable[ObjectMeta] = msgspec.field(default_factory=ObjectMeta)
    status: Nullable[NamespaceStatus] = msgspec.field(default_factory=NamespaceStatus)


Raw = dict[str, Any]
"""An object of a kind this package has no struct for, as plain JSON."""
