"""Strategies of built-in kinds that have ways of their own.

Each mirrors the `strategy.go` of its kind in kubernetes/pkg/registry, as far as clients can see it: what a create
resets, what each endpoint may touch, which defaults an object gets.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sickbay.apiserver.errors import Cause, Obj
from sickbay.apiserver.metadata import (
    invalid_value,
    label_problems,
    label_value_problems,
    qualified_name_problems,
    required,
    segment_problems,
    unsupported_value,
)
from sickbay.apiserver.poddefaults import DEFAULT_GRACE, with_defaults
from sickbay.apiserver.podrules import check_amount
from sickbay.apiserver.podspec import admitted, check_change, qos_class, with_default_tolerations
from sickbay.apiserver.selectorrules import check_selector
from sickbay.apiserver.strategy import SpecStatus, Strategy, keep
from sickbay.clock import rfc3339

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store


class NodeStrategy(Strategy):
    """Nodes are registered with their status; they have no generation."""

    has_status = True

    def prepare_create(self, obj: Obj, store: Store) -> None:
        obj["spec"] = _with_networks(obj.get("spec") or {})
        obj["status"] = _with_allocatable(obj.get("status") or {})

    def prepare_update(self, new: Obj, old: Obj) -> None:
        super().prepare_update(new, old)
        if new.get("spec") is not old.get("spec"):
            new["spec"] = _with_networks(new.get("spec") or {})

    def prepare_status(self, new: Obj, old: Obj) -> None:
        super().prepare_status(new, old)
        new["status"] = _with_allocatable(new.get("status") or {})

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
        taints = spec.get("taints")
        causes = [] if taints is before.get("taints") else check_taints(taints or [])
        networks = spec.get("podCIDRs") or ()
        causes += _check_networks(networks) if networks is not before.get("podCIDRs") else []
        causes += _check_capacity(new.get("status") or {}, (old or {}).get("status") or {})
        if before.get("providerID") and before["providerID"] != spec.get("providerID", ""):
            message = 'Forbidden: node updates may not change providerID except from "" to valid'
            causes.append(Cause("FieldValueForbidden", message, "spec.providerID"))
        return causes


def _with_networks(spec: Obj) -> Obj:
    """A node's first pod network stands in both fields."""
    one, several = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and not several:
        return {**spec, "podCIDRs": [one]}
    return {**spec, "podCIDR": several[0]} if several and not one else spec


def _with_allocatable(status: Obj) -> Obj:
    """Without an agent that says otherwise all there is can be used."""
    if status.get("capacity") and not status.get("allocatable"):
        return {**status, "allocatable": dict(status["capacity"])}
    return status


def _check_networks(networks: Iterable[str]) -> list[Cause]:
    causes: list[Cause] = []
    for index, network in enumerate(networks):
        try:
            ipaddress.ip_network(network, strict=False)
        except ValueError:
            why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            causes.append(invalid_value(f"spec.podCIDRs[{index}]", network, why))
    return causes


def _check_capacity(status: Obj, before: Obj) -> list[Cause]:
    return [
        cause
        for field in ("capacity", "allocatable")
        if status.get(field) is not before.get(field)
        for name, amount in (status.get(field) or {}).items()
        for cause in check_amount(name, amount, f"status.{field}.{name}")
    ]


EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check_taints(taints: list[Obj]) -> list[Cause]:
    """core/validation, validateNodeTaints; upstream calls the field metadata.taints."""
    causes: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        field, key = f"metadata.taints[{index}]", taint.get("key", "")
        value, effect = taint.get("value", ""), taint.get("effect", "")
        causes += [invalid_value(f"{field}.key", key, problem) for problem in qualified_name_problems(key)]
        causes += [invalid_value(f"{field}.value", value, problem) for problem in label_value_problems(value)]
        if not effect:
            causes.append(required(f"{field}.effect"))
        elif effect not in EFFECTS:
            message = f'Unsupported value: "{effect}": supported values: ' + ", ".join(f'"{word}"' for word in EFFECTS)
            causes.append(Cause("FieldValueNotSupported", message, f"{field}.effect"))
        if (key, effect) in seen:
            shown = json.dumps({"Key": key, "Value": value, "Effect": effect, "TimeAdded": None}, separators=(",", ":"))
            message = f"Duplicate value: {shown}: taints must be unique by key and effect pair"
            causes.append(Cause("FieldValueDuplicate", message, field))
        seen.add((key, effect))
    return causes


class NamespaceStrategy(Strategy):
    has_status = True
    name_problems = staticmethod(label_problems)

    def prepare_create(self, obj: Obj, store: Store) -> None:
        spec = dict(obj.get("spec") or {})
        spec.setdefault("finalizers", ["kubernetes"])
        obj["spec"] = spec
        obj["status"] = {"phase": "Active"}
        self._label(obj)

    @staticmethod
    def _label(obj: Obj) -> None:
        """A namespace can be selected by its name."""
        meta = obj["metadata"]
        meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta["name"]}

    def prepare_update(self, new: Obj, old: Obj) -> None:
        keep(new, old, "spec")
        keep(new, old, "status")
        self._label(new)


class PodStrategy(Strategy):
    """Pods start Pending, are bound by a subresource, and end in two steps: told to stop, then gone."""

    has_status = True
    generation = True
    returns_deleted = True

    def prepare_create(self, obj: Obj, store: Store) -> None:
        spec = with_defaults(obj.get("spec") or {})
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
        obj["spec"] = admitted(spec, store)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(spec)}
        if spec.get("schedulingGates"):
            obj["status"]["conditions"] = [_gated(rfc3339(store.clock.now()))]

    def prepare_update(self, new: Obj, old: Obj) -> None:
        super().prepare_update(new, old)
        if new.get("spec") is not old.get("spec"):
            spec = with_defaults(new.get("spec") or {})
            new["spec"] = {**spec, "tolerations": with_default_tolerations(spec.get("tolerations") or [])}

    def prepare_status(self, new: Obj, old: Obj) -> None:
        keep(new, old, "spec")
        keep(new["metadata"], old["metadata"], "ownerReferences")
        qos = (old.get("status") or {}).get("qosClass")
        if qos and "qosClass" not in (new.get("status") or {}):
            new["status"] = {**(new.get("status") or {}), "qosClass": qos}

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        spec = new.get("spec") or {}
        if old is not None:
            return check_change(spec, old.get("spec") or {})
        return [] if spec.get("containers") else [required("spec.containers")]

    def grace(self, obj: Obj, asked: int | None) -> int | None:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        period = asked
        if period is None:
            period = spec.get("terminationGracePeriodSeconds")
            period = DEFAULT_GRACE if period is None else int(period)
        if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
            return 0
        return period if period >= 0 else 1


def _gated(now: str) -> Obj:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastTransitionTime": now,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


class BudgetStrategy(SpecStatus):
    unconditional = False
    name_problems = staticmethod(segment_problems)

    def prepare_create(self, obj: Obj, store: Store) -> None:
        counts = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
        obj["status"] = dict.fromkeys(counts, 0)

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        spec = new.get("spec") or {}
        causes: list[Cause] = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            causes.append(invalid_value("spec", "", "minAvailable and maxUnavailable cannot be both set"))
        for field in ("minAvailable", "maxUnavailable"):
            causes += _check_count(spec.get(field), f"spec.{field}")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy not in (None, *_POLICIES):
            causes.append(unsupported_value("spec.unhealthyPodEvictionPolicy", policy, *_POLICIES))
        return causes + check_selector(spec.get("selector"), "spec.selector")


_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_PERCENT = re.compile(r"[0-9]+%")
_PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for"
    " validation is '[0-9]+%')"
)


def _check_count(value: int | str | None, field: str) -> list[Cause]:
    """A count, or a percentage of at most 100."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            return [invalid_value(field, value, _PERCENT_TEXT)]
        return [invalid_value(field, value, "must not be greater than 100%")] if int(value[:-1]) > 100 else []
    if value is not None and value < 0:
        return [invalid_value(field, value, "must be greater than or equal to 0")]
    return []


class LeaseStrategy(Strategy):
    create_on_update = True
    unconditional = False

    def prepare_create(self, obj: Obj, store: Store) -> None:
        obj["spec"] = _plain_lease(obj.get("spec") or {})

    def prepare_update(self, new: Obj, old: Obj) -> None:
        new["spec"] = _plain_lease(new.get("spec") or {})

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        spec = new["spec"]
        causes: list[Cause] = []
        if (seconds := spec.get("leaseDurationSeconds")) is not None and seconds <= 0:
            causes.append(invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        if (count := spec.get("leaseTransitions")) is not None and count < 0:
            causes.append(invalid_value("spec.leaseTransitions", count, "must be greater than or equal to 0"))
        return causes


def _plain_lease(spec: Obj) -> Obj:
    """Without the fields of coordinated elections, which are off."""
    return {key: value for key, value in spec.items() if key not in ("strategy", "preferredHolder")}


class EventStrategy(Strategy):
    """Events must lie in the namespace of what they are about; about cluster-scoped objects, in `default`."""

    create_on_update = True
    name_problems = staticmethod(segment_problems)

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        if old is not None:
            return []
        about = (new.get("involvedObject") or {}).get("namespace", "")
        namespace = new["metadata"]["namespace"]
        anywhere = ("default", "kube-system") if new.get("eventTime") else ("default",)
        if about != namespace if about else namespace not in anywhere:
            return [invalid_value("involvedObject.namespace", about, "does not match event.namespace")]
        return _check_modern(new) if new.get("eventTime") else []


def _check_modern(event: Obj) -> list[Cause]:
    """What an Event with an eventTime must say (core/validation, legacyValidateEvent)."""
    fields = ("reportingComponent", "reportingInstance", "action", "reason")
    causes = [required(field) for field in fields if not event.get(field)]
    causes += [
        invalid_value(field, "", f"can have at most {limit} characters")
        for field, limit in (("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024))
        if len(event.get(field) or "") > limit
    ]
    return causes


class ReturnsDeleted(Strategy):
    returns_deleted = True


class PriorityStrategy(Strategy):
    generation = True

    def prepare_create(self, obj: Obj, store: Store) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def prepare_update(self, new: Obj, old: Obj) -> None:
        new.setdefault("preemptionPolicy", "PreemptLowerPriority")
