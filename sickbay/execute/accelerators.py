"""Which extended resources are accelerators, and how many of them a node has."""

from __future__ import annotations

import re

from sickbay.api.core import Node, Pod, Quantity

_WORD = re.compile(r"(^|[./_-])(gpu|mig-|gaudi|ascend|neuron|npu|tpu|mlu|dcu)", re.IGNORECASE)
"""How vendors name them: nvidia.com/gpu, nvidia.com/mig-1g.5gb, amd.com/gpu, habana.ai/gaudi, huawei.com/Ascend910,
aws.amazon.com/neuroncore, google.com/tpu, gpu.intel.com/i915, cambricon.com/mlu, hygon.com/dcu."""
MOST = 12
"""Resources counted: a record has room for 16 facts."""


def is_accelerator(resource: str) -> bool:
    """True for an extended resource whose name says accelerator."""
    return "/" in resource and _WORD.search(resource) is not None


def counts(node: Node) -> dict[str, str]:
    """Capacity of each accelerator resource, as text."""
    found = {name: str(value) for name, value in node.status.capacity.items() if is_accelerator(name)}
    return dict(sorted(found.items())[:MOST])


def devices_of(pod: Pod) -> frozenset[str] | None:
    """UUIDs of the NVIDIA GPUs that the pod has been given, as its kubelet reports them (KEP-4680).

    None where that is not known in full: the feature is off, a device is shown by something else than its UUID (an
    index, a MIG instance), more is asked for than is shown, or devices are claimed (DRA).
    """
    shown = [
        device.resource_id.partition("::")[0]
        for status in pod.status.container_statuses
        for entry in status.allocated_resources_status
        if is_accelerator(entry.name)
        for device in entry.resources
    ]
    if pod.spec.resource_claims or not all(device.startswith("GPU-") for device in shown) or len(shown) < _asked(pod):
        return None
    return frozenset(shown)


def _asked(pod: Pod) -> int:
    """Accelerators that its containers ask for; one that cannot be counted is more than anybody shows."""
    total = 0
    for container in pod.spec.containers:
        asked: dict[str, Quantity] = {**container.resources.requests, **container.resources.limits}
        for name, amount in asked.items():
            if is_accelerator(name):
                total += int(str(amount)) if str(amount).isdigit() else 1 << 16
    return total


def holds_accelerator(pod: Pod) -> bool:
    """True when a container of the pod asks for one, or the pod claims a device of whatever kind."""
    if pod.spec.resource_claims:
        return True
    for container in [*pod.spec.containers, *pod.spec.init_containers]:
        asked: dict[str, Quantity] = {**container.resources.requests, **container.resources.limits}
        if any(is_accelerator(name) and str(value) not in ("0", "") for name, value in asked.items()):
            return True
    return False
