"""Strategies of built-in kinds that have ways of their own.

Each mirrors the `strategy.go` of its kind in kubernetes/pkg/registry, as far as clients can see it: what a create
resets, what each endpoint may touch, which defaults an object gets.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from sickbay.apiserver.errors import Cause, Obj
from sickbay.apiserver.metadata import (
    invalid_value,
    label_problems,
    label_value_problems,
    qualified_name_problems,
    required,
    segment_problems,
)
from sickbay.apiserver.podspec import DEFAULT_GRACE, admitted, check_change, qos_class, with_defaults
from sickbay.apiserver.strategy import SpecStatus, Strategy, keep

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store


class NodeStrategy(Strategy):
    """Nodes are registered with their status; they have no generation."""

    has_status = True

    def prepare_create(self, obj: Obj, store: Store) -> None:
        obj.setdefault("spec", {})
        obj.setdefault("status", {})

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
        taints = spec.get("taints")
        causes = [] if taints is before.get("taints") else check_taints(taints or [])
        if before.get("providerID") and before["providerID"] != spec.get("providerID", ""):
            message = 'Forbidden: node updates may not change providerID except from "" to valid'
            causes.append(Cause("FieldValueForbidden", message, "spec.providerID"))
        return causes


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
        obj["spec"] = admitted(with_defaults(obj.get("spec") or {}), store)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}

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


class BudgetStrategy(SpecStatus):
    unconditional = False
    name_problems = staticmethod(segment_problems)

    def prepare_create(self, obj: Obj, store: Store) -> None:
        counts = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
        obj["status"] = dict.fromkeys(counts, 0)

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        spec = new.get("spec") or {}
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            return [invalid_value("spec", "", "minAvailable and maxUnavailable cannot be both set")]
        return []


class LeaseStrategy(Strategy):
    create_on_update = True
    unconditional = False


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


class SecretStrategy(Strategy):
    def prepare_create(self, obj: Obj, store: Store) -> None:
        obj.setdefault("type", "Opaque")
        _encode_texts(obj)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        new.setdefault("type", old.get("type", "Opaque"))
        _encode_texts(new)


def _encode_texts(secret: Obj) -> None:
    """`stringData` is a way to write `data` and is never read back."""
    texts = secret.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}
