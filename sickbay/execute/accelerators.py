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


def holds_accelerator(pod: Pod) -> bool:
    """True when a container of the pod asks for one, or the pod claims a device of whatever kind."""
    if pod.spec.resource_claims:
        return True
    for container in [*pod.spec.containers, *pod.spec.init_containers]:
        asked: dict[str, Quantity] = {**container.resources.requests, **container.resources.limits}
        if any(is_accelerator(name) and str(value) not in ("0", "") for name, value in asked.items()):
            return True
    return False
