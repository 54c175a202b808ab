"""The scheduler's picture of the cluster: nodes, the pods on them, and what those take."""

from __future__ import annotations

from collections.abc import Iterator

from sickbay.api import quantity
from sickbay.apiserver.errors import Obj
from sickbay.sim.parts.scheduling.terms import anti_terms

ENDED = ("Succeeded", "Failed")


def key_of(pod: Obj) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def priority_of(pod: Obj) -> int:
    return int(pod["spec"].get("priority") or 0)


def node_of(pod: Obj | None) -> str:
    return "" if pod is None else str((pod.get("spec") or {}).get("nodeName") or "")


def requests_of(pod: Obj) -> dict[str, float]:
    """What a pod takes of its node: its containers' sum or its largest init container, the overhead, and one pod."""
    spec = pod.get("spec") or {}
    total: dict[str, float] = {}
    for container in spec.get("containers") or ():
        for name, amount in _requests(container).items():
            total[name] = total.get(name, 0.0) + amount
    for container in spec.get("initContainers") or ():
        for name, amount in _requests(container).items():
            total[name] = max(total.get(name, 0.0), amount)
    for name, text in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, 0.0) + float(quantity.parse(text))
    total["pods"] = 1.0
    return total


def _requests(container: Obj) -> dict[str, float]:
    """Limits count where there is no request, as the API server defaults it."""
    resources = container.get("resources") or {}
    wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: float(quantity.parse(amount)) for name, amount in wanted.items()}


class Picture:
    """See the module. `put` and `take` are each other's undoing, so a plan can be tried on it and taken back."""

    def __init__(self) -> None:
        self.nodes: dict[str, Obj] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        """Labels of each namespace."""
        self.nominated: dict[str, tuple[str, Obj]] = {}
        """By the pod's key: the node that pods were preempted on for it, and the pod."""
        self._pods: dict[str, dict[str, Obj]] = {}
        self._requests: dict[str, dict[str, float]] = {}
        self._unsocial: dict[str, tuple[str, Obj]] = {}

    def put(self, node: str, pod: Obj) -> None:
        """The pod is on that node."""
        key = key_of(pod)
        self._pods.setdefault(node, {})[key] = pod
        self._requests[key] = requests_of(pod)
        if anti_terms(pod):
            self._unsocial[key] = (node, pod)

    def take(self, node: str, pod: Obj) -> None:
        """The pod is no longer there."""
        key = key_of(pod)
        self._pods.get(node, {}).pop(key, None)
        self._requests.pop(key, None)
        self._unsocial.pop(key, None)

    def pods_on(self, node: str) -> list[Obj]:
        return list(self._pods.get(node, {}).values())

    def count_on(self, node: str) -> int:
        return len(self._pods.get(node, ()))

    def placed(self) -> Iterator[tuple[Obj, Obj]]:
        """Every pod on a node that exists, with that node."""
        for name, pods in self._pods.items():
            node = self.nodes.get(name)
            if node is not None:
                for pod in pods.values():
                    yield pod, node

    def unsocial(self) -> Iterator[tuple[Obj, Obj]]:
        """Of those the pods with an anti-affinity of their own."""
        for name, pod in self._unsocial.values():
            node = self.nodes.get(name)
            if node is not None:
                yield pod, node

    def free(self, node: Obj, pod: Obj) -> dict[str, float]:
        """What is left on a node for this pod: room kept for pods of its priority or higher is not."""
        name = node["metadata"]["name"]
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        left = {resource: float(quantity.parse(amount)) for resource, amount in allocatable.items()}
        for key in self._pods.get(name, ()):
            _subtract(left, self._requests[key])
        own = key_of(pod)
        for key, (where, other) in self.nominated.items():
            if where == name and key != own and priority_of(other) >= priority_of(pod):
                _subtract(left, requests_of(other))
        return left


def _subtract(left: dict[str, float], taken: dict[str, float]) -> None:
    for resource, amount in taken.items():
        left[resource] = left.get(resource, 0.0) - amount
