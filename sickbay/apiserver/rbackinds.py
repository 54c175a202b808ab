"""Roles and bindings as objects: their defaults, and what makes one invalid.

After kubernetes/pkg/apis/rbac/validation. A binding's roleRef never changes: whoever may edit a binding decides who is
bound, not to what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sickbay.apiserver.errors import Cause, Obj
from sickbay.apiserver.metadata import as_json, invalid_value, required, segment_problems, subdomain_problems
from sickbay.apiserver.metadata import unsupported_value as unsupported
from sickbay.apiserver.strategy import Strategy

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store

GROUP = "rbac.authorization.k8s.io"
_BY_NAME = ("User", "Group")


class RoleStrategy(Strategy):
    create_on_update = True
    name_problems = staticmethod(segment_problems)

    def __init__(self, *, namespaced: bool) -> None:
        self._namespaced = namespaced

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        return [
            cause
            for index, rule in enumerate(new.get("rules") or ())
            for cause in _check_rule(rule, f"rules[{index}]", self._namespaced)
        ]


def _check_rule(rule: Obj, field: str, namespaced: bool) -> list[Cause]:
    causes = [] if rule.get("verbs") else [required(f"{field}.verbs", "verbs must contain at least one value")]
    if paths := rule.get("nonResourceURLs"):
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            causes.append(invalid_value(f"{field}.nonResourceURLs", as_json(paths), why))
        if any(rule.get(part) for part in ("apiGroups", "resources", "resourceNames")):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            causes.append(invalid_value(f"{field}.nonResourceURLs", as_json(paths), why))
        return causes
    if not rule.get("apiGroups"):
        causes.append(required(f"{field}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        causes.append(required(f"{field}.resources", "resource rules must supply at least one resource"))
    return causes


class BindingStrategy(Strategy):
    create_on_update = True
    name_problems = staticmethod(segment_problems)

    def __init__(self, *kinds: str) -> None:
        self._kinds = kinds
        """Kinds of role that can be bound."""

    def prepare_create(self, obj: Obj, store: Store) -> None:
        _fill_groups(obj)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        _fill_groups(new)

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        role = new["roleRef"]
        causes = []
        if role["apiGroup"] != GROUP:
            causes.append(unsupported("roleRef.apiGroup", role["apiGroup"], GROUP))
        if role.get("kind", "") not in self._kinds:
            causes.append(unsupported("roleRef.kind", role.get("kind", ""), *self._kinds))
        if not role.get("name"):
            causes.append(required("roleRef.name"))
        elif problems := segment_problems(role["name"]):
            causes += [invalid_value("roleRef.name", role["name"], problem) for problem in problems]
        for index, subject in enumerate(new.get("subjects") or ()):
            causes += _check_subject(subject, f"subjects[{index}]", namespaced="Role" in self._kinds)
        if old is not None and old.get("roleRef") != role:
            shown = as_json({key.capitalize() if key != "apiGroup" else "APIGroup": role[key] for key in sorted(role)})
            causes.append(invalid_value("roleRef", shown, "cannot change roleRef"))
        return causes


def _fill_groups(binding: Obj) -> None:
    """Roles are of one group, and so are people; service accounts are of the core group."""
    role: Obj = binding.get("roleRef") or {}
    binding["roleRef"] = {**role, "apiGroup": role.get("apiGroup") or GROUP}
    if subjects := binding.get("subjects"):
        binding["subjects"] = [_filled(subject) for subject in subjects]


def _filled(subject: Obj) -> Obj:
    if subject.get("kind") not in _BY_NAME or subject.get("apiGroup"):
        return subject
    return {**subject, "apiGroup": GROUP}


def _check_subject(subject: Obj, field: str, *, namespaced: bool) -> list[Cause]:
    name, kind, group = (subject.get(key, "") for key in ("name", "kind", "apiGroup"))
    causes = [] if name else [required(f"{field}.name")]
    if kind == "ServiceAccount":
        problems: Any = subdomain_problems(name) if name else ()
        causes += [invalid_value(f"{field}.name", name, problem) for problem in problems]
        if group:
            causes.append(unsupported(f"{field}.apiGroup", group, ""))
        if not subject.get("namespace") and not namespaced:
            causes.append(required(f"{field}.namespace"))
    elif kind not in _BY_NAME:
        causes.append(unsupported(f"{field}.kind", kind, "ServiceAccount", *_BY_NAME))
    elif group != GROUP:
        causes.append(unsupported(f"{field}.apiGroup", group, GROUP))
    return causes
