"""What makes a new pod invalid (core/validation), and what admission refuses: the part that GPU jobs run into.

Asked of pods that come over HTTP. Who puts pods into the store directly, as the simulator does, gives them as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from sickbay.api import quantity
from sickbay.apiserver.errors import Cause, Obj, forbidden, invalid
from sickbay.apiserver.metadata import (
    invalid_value,
    label_problems,
    qualified_name_problems,
    required,
    subdomain_problems,
    unsupported_value,
)
from sickbay.apiserver.podspec import SYSTEM_PRIORITIES

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store

_MAX_DEADLINE = 2147483647
_WORDS = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
}
_CONTAINER_WORDS = {
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
}


def check_new_pod(store: Store, pod: Obj) -> None:
    """Raises StatusError: 403 for a priority that is not for it, 422 for a spec that cannot be run."""
    spec, name = pod.get("spec") or {}, str(pod["metadata"].get("name") or "")
    _check_priority(store, spec, name)
    if causes := check_spec(spec):
        raise invalid("Pod", "", name, causes)


def _check_priority(store: Store, spec: Obj, name: str) -> None:
    wanted = spec.get("priorityClassName", "")
    found = store.find("priorityclasses.scheduling.k8s.io", wanted) if wanted else None
    if wanted and found is None and wanted not in SYSTEM_PRIORITIES:
        raise forbidden("pods", name, f"no PriorityClass with name {wanted} was found")
    value = int(found.get("value", 0)) if found is not None else SYSTEM_PRIORITIES.get(wanted, 0)
    if spec.get("priority") not in (None, value):
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission"
            f" controller computed {value} from the given PriorityClass name"
        )
        raise forbidden("pods", name, why)


def check_spec(spec: Obj) -> list[Cause]:
    """`spec` as it was sent, without its defaults."""
    if not spec.get("containers"):
        return []  # told by the kind's own rules, here as in the store
    causes = _check_containers(spec)
    causes += [
        unsupported_value(f"spec.{field}", spec[field], *words)
        for field, words in _WORDS.items()
        if spec.get(field) and spec[field] not in words
    ]
    node = spec.get("nodeName") or ""
    causes += [invalid_value("spec.nodeName", node, problem) for problem in subdomain_problems(node) if node]
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        causes += check_toleration(toleration, f"spec.tolerations[{index}]")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MAX_DEADLINE:
        why = f"must be between 1 and {_MAX_DEADLINE}, inclusive"
        causes.append(invalid_value("spec.activeDeadlineSeconds", deadline, why))
    if spec.get("ephemeralContainers"):
        causes.append(Cause("FieldValueForbidden", "Forbidden: cannot be set on create", "spec.ephemeralContainers"))
    return causes


def _check_containers(spec: Obj) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            causes += _check_container(container, f"spec.{field}[{index}]", seen)
    return causes


def _check_container(container: Obj, field: str, seen: set[str]) -> list[Cause]:
    name, image = container.get("name", ""), container.get("image", "")
    if not name:
        causes = [required(f"{field}.name")]
    else:
        causes = [invalid_value(f"{field}.name", name, problem) for problem in label_problems(name)]
    if name and name in seen:
        causes.append(Cause("FieldValueDuplicate", f'Duplicate value: "{name}"', f"{field}.name"))
    seen.add(name)
    if not image:
        causes.append(required(f"{field}.image"))
    elif image != image.strip():
        causes.append(invalid_value(f"{field}.image", image, "must not have leading or trailing whitespace"))
    for part, words in _CONTAINER_WORDS.items():
        if container.get(part) and container[part] not in words:
            causes.append(unsupported_value(f"{field}.{part}", container[part], *words))
    return causes + _check_resources(container.get("resources") or {}, f"{field}.resources")


def is_extended(resource: str) -> bool:
    """Whether a resource is none of Kubernetes' own, such as nvidia.com/gpu: whole, and never overcommitted."""
    return "/" in resource and not resource.partition("/")[0].endswith("kubernetes.io")


def _check_resources(resources: Obj, field: str) -> list[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    causes = [*_check_amounts(limits, f"{field}.limits"), *_check_amounts(requests, f"{field}.requests")]
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is None:
            if is_extended(name):
                causes.append(required(f"{field}.limits", "Limit must be set for non overcommitable resources"))
            continue
        asked, most = quantity.parse(request), quantity.parse(limit)
        if is_extended(name) and asked != most:
            causes.append(invalid_value(f"{field}.requests", str(request), f"must be equal to {name} limit of {limit}"))
        elif asked > most:
            why = f"must be less than or equal to {name} limit of {limit}"
            causes.append(invalid_value(f"{field}.requests", str(request), why))
    return causes


def _check_amounts(amounts: Obj, field: str) -> Iterable[Cause]:
    for name, amount in amounts.items():
        yield from check_amount(name, amount, f"{field}[{name}]")


def check_amount(name: str, amount: str | float, field: str) -> list[Cause]:
    """An amount of a resource: not negative, and whole where the resource is."""
    causes = [invalid_value(field, name, problem) for problem in qualified_name_problems(name)]
    return causes + [invalid_value(field, str(amount), problem) for problem in _amount_problems(name, amount)]


@lru_cache(maxsize=4096)
def _amount_problems(name: str, amount: str | float) -> tuple[str, ...]:
    value = quantity.parse(amount)
    if value < 0:
        return ("must be greater than or equal to 0",)
    whole = not is_extended(name) or value == value.to_integral_value()
    return () if whole else ("must be an integer",)


_OPERATORS = ("Equal", "Exists")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check_toleration(toleration: Obj, field: str) -> list[Cause]:
    key, operator, value = (toleration.get(part) or "" for part in ("key", "operator", "value"))
    effect = toleration.get("effect") or ""
    causes = [invalid_value(f"{field}.key", key, problem) for problem in qualified_name_problems(key) if key]
    if not key and operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        causes.append(invalid_value(f"{field}.operator", operator, why))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        causes.append(invalid_value(f"{field}.effect", effect, why))
    if operator == "Exists" and value:
        causes.append(invalid_value(f"{field}.operator", value, "value must be empty when `operator` is 'Exists'"))
    elif operator and operator not in _OPERATORS:
        causes.append(unsupported_value(f"{field}.operator", operator, *_OPERATORS))
    if effect and effect not in _EFFECTS:
        causes.append(unsupported_value(f"{field}.effect", effect, *_EFFECTS))
    return causes
