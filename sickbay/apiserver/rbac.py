"""Role-based access: Roles, ClusterRoles and their bindings, as they stand in the store.

A member of system:masters may do everything; everybody who is known may read discovery and ask what they may do. The
rules of a role with an aggregationRule are those of the roles it selects, worked out when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from sickbay.apiserver.attributes import Attributes
from sickbay.apiserver.auth import MASTERS
from sickbay.apiserver.errors import Obj, StatusError, forbidden
from sickbay.apiserver.selectors import selector_matches
from sickbay.apiserver.store import Store
from sickbay.apiserver.writes import Caller

_GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = f"roles.{_GROUP}", f"clusterroles.{_GROUP}"
BINDINGS, CLUSTER_BINDINGS = f"rolebindings.{_GROUP}", f"clusterrolebindings.{_GROUP}"
AUTHENTICATED = "system:authenticated"
_BASIC: tuple[tuple[str, Obj], ...] = (
    (
        "system:basic-user",
        {
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            "verbs": ["create"],
        },
    ),
    (
        "system:basic-user",
        {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]},
    ),
    (
        "system:discovery",
        {
            "nonResourceURLs": [
                *("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez"),
                *("/openapi", "/openapi/*", "/readyz", "/version", "/version/"),
            ],
            "verbs": ["get"],
        },
    ),
    (
        "system:public-info-viewer",
        {"nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"], "verbs": ["get"]},
    ),
)
"""What everybody who is known may do: roles that kube-apiserver makes, and that are not kept as objects here."""

CLUSTER_ADMIN: Obj = {
    "metadata": {"name": "cluster-admin"},
    "rules": [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ],
}


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    def decide(self, caller: Caller, wanted: Attributes) -> Decision: ...

    def rules(self, caller: Caller, namespace: str) -> list[Obj]:
        """The policy rules that speak for a caller in a namespace."""
        ...


class AllowAll:
    """No authorization: everybody who is let in may do everything."""

    def decide(self, caller: Caller, wanted: Attributes) -> Decision:
        return Decision(True, "no authorization is configured")

    def rules(self, caller: Caller, namespace: str) -> list[Obj]:
        return list(CLUSTER_ADMIN["rules"])


class Rbac:
    """Judges by the roles in a store. Makes sure that ClusterRole cluster-admin exists."""

    def __init__(self, store: Store) -> None:
        self._store = store
        if store.find(CLUSTER_ROLES, "cluster-admin") is None:
            store.create(CLUSTER_ROLES, CLUSTER_ADMIN)

    def decide(self, caller: Caller, wanted: Attributes) -> Decision:
        if MASTERS in caller.groups:
            return Decision(True)
        for source, rule in self._granted(caller, wanted.namespace):
            if _covers(rule, wanted):
                return Decision(True, f"RBAC: allowed by {source}")
        return Decision(False)

    def rules(self, caller: Caller, namespace: str) -> list[Obj]:
        if MASTERS in caller.groups:
            return list(CLUSTER_ADMIN["rules"])
        return [rule for _, rule in self._granted(caller, namespace)]

    def _granted(self, caller: Caller, namespace: str) -> Iterator[tuple[str, Obj]]:
        """Rules that apply to a caller, with the binding that grants them."""
        if AUTHENTICATED in caller.groups:
            yield from ((_basic_source(name), rule) for name, rule in _BASIC)
        for binding in self._store.list(CLUSTER_BINDINGS):
            if subject := _bound(binding, caller, ""):
                yield from ((_source(binding, subject), rule) for rule in self._rules_of(binding["roleRef"], ""))
        for binding in self._store.list(BINDINGS, namespace) if namespace else ():
            if subject := _bound(binding, caller, namespace):
                rules = self._rules_of(binding["roleRef"], namespace)
                yield from ((_source(binding, subject), rule) for rule in rules)

    def _rules_of(self, reference: Obj, namespace: str) -> list[Obj]:
        name = reference.get("name", "")
        if reference.get("kind") == "Role":
            role = self._store.find(ROLES, name, namespace)
        else:
            role = self._store.find(CLUSTER_ROLES, name)
        if role is None:
            return []
        if not role.get("aggregationRule"):
            return list(role.get("rules") or ())
        selectors = role["aggregationRule"].get("clusterRoleSelectors") or ()
        return [
            rule
            for other in self._store.list(CLUSTER_ROLES)
            if any(selector_matches(selector, other["metadata"].get("labels") or {}) for selector in selectors)
            for rule in other.get("rules") or ()
        ]


def _source(binding: Obj, subject: Obj) -> str:
    reference = binding["roleRef"]
    meta = binding["metadata"]
    name = f"{meta['name']}/{meta['namespace']}" if "namespace" in meta else meta["name"]
    whom = subject.get("name")
    if subject.get("kind") == "ServiceAccount":
        whom = f"{whom}/{subject.get('namespace') or meta.get('namespace', '')}"
    role = f'{reference.get("kind")} "{reference.get("name")}"'
    return f'{binding["kind"]} "{name}" of {role} to {subject.get("kind")} "{whom}"'


def _basic_source(name: str) -> str:
    return f'ClusterRoleBinding "{name}" of ClusterRole "{name}" to Group "{AUTHENTICATED}"'


def _path_matches(pattern: str, path: str) -> bool:
    return path.startswith(pattern[:-1]) if pattern.endswith("*") else path == pattern


def _bound(binding: Obj, caller: Caller, namespace: str) -> Obj | None:
    """As whom a binding binds a caller."""
    return next((entry for entry in binding.get("subjects") or () if _is_subject(entry, caller, namespace)), None)


def _is_subject(subject: Obj, caller: Caller, namespace: str) -> bool:
    match subject.get("kind"):
        case "User":
            return bool(subject.get("name") == caller.user)
        case "Group":
            return subject.get("name") in caller.groups
        case "ServiceAccount":
            account = f"system:serviceaccount:{subject.get('namespace') or namespace}:{subject.get('name')}"
            return account == caller.user
        case _:
            return False


def _covers(rule: Obj, wanted: Attributes) -> bool:
    if not {"*", wanted.verb} & set(rule.get("verbs") or ()):
        return False
    if wanted.path:
        return any(_path_matches(pattern, wanted.path) for pattern in rule.get("nonResourceURLs") or ())
    if not {"*", wanted.group} & set(rule.get("apiGroups") or ()):
        return False
    if not _resource_matches(rule.get("resources") or (), wanted):
        return False
    names = rule.get("resourceNames") or ()
    return not names or wanted.name in names


def _resource_matches(resources: list[str] | tuple[str, ...], wanted: Attributes) -> bool:
    accepted = {"*", wanted.full_resource}
    if wanted.subresource:
        accepted.add(f"*/{wanted.subresource}")
    return bool(accepted & set(resources))


def refused(caller: Caller, wanted: Attributes) -> StatusError:
    """403 in kube-apiserver's words."""
    if wanted.path:
        message = f'forbidden: User "{caller.user}" cannot {wanted.verb} path "{wanted.path}"'
        return StatusError(403, "Forbidden", message, details={})
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    what = f'resource "{wanted.full_resource}" in API group "{wanted.group}"'
    key = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    return forbidden(key, wanted.name, f'User "{caller.user}" cannot {wanted.verb} {what} {where}')
