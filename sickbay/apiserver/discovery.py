"""Discovery: which groups, versions and resources are served, in the plain form and aggregated (v2).

kubectl asks for the aggregated form first and falls back to the plain one by the answer's content type, so that must
name `g=apidiscovery.k8s.io;v=v2`. `pods/eviction` names group policy, version v1: without that kubectl drain deletes
pods instead of evicting them.
"""

from __future__ import annotations

from collections.abc import Iterable

from sickbay.apiserver import reviews
from sickbay.apiserver.calls import Answer, Call, encode, json_answer
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.resources import Registry, Served

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUBRESOURCE_VERBS = {
    "status": ["get", "patch", "update"],
    "scale": ["get", "patch", "update"],
    "eviction": ["create"],
    "binding": ["create"],
    "finalize": ["update"],
    "log": ["get"],
    "token": ["create"],
}
_SUBRESOURCE_KINDS = {
    "eviction": ("policy", "v1", "Eviction"),
    "binding": ("", "v1", "Binding"),
    "scale": ("autoscaling", "v1", "Scale"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}
REVIEWS = tuple((group, "v1", plural, kind) for (group, plural), kind in reviews.KINDS.items())
"""Questions rather than resources: they are created, answered and never stored."""


def answer(registry: Registry, call: Call) -> Answer | None:
    """The document at a discovery path; None for other paths and unknown groups."""
    parts = call.path.strip("/").split("/")
    match parts:
        case ["api"]:
            return _aggregated(registry, core=True) if _wants_aggregated(call) else json_answer(200, _legacy())
        case ["apis"]:
            return _aggregated(registry, core=False) if _wants_aggregated(call) else json_answer(200, _groups(registry))
        case ["api", "v1"]:
            return _document(_resources(registry, "", "v1"))
        case ["apis", group]:
            return _document(_group(registry, group))
        case ["apis", group, version]:
            return _document(_resources(registry, group, version))
        case _:
            return None


def _document(found: Obj | None) -> Answer | None:
    return None if found is None else json_answer(200, found)


def _wants_aggregated(call: Call) -> bool:
    return any(
        "as=APIGroupDiscoveryList" in part and "v=v2;" in part + ";" and "json" in part
        for part in call.accept.replace(" ", "").split(",")
    )


def _legacy() -> Obj:
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}


def group_versions(registry: Registry) -> dict[str, list[str]]:
    """Versions by group, the preferred one first."""
    found: dict[str, list[str]] = {}
    pairs = [(served.group, served.version) for served in registry.served()]
    pairs += [(group, version) for group, version, _, _ in REVIEWS]
    for group, version in pairs:
        versions = found.setdefault(group, [])
        if version not in versions:
            versions.append(version)
    return found


def _group_document(group: str, versions: Iterable[str]) -> Obj:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _groups(registry: Registry) -> Obj:
    found = group_versions(registry)
    groups = [_group_document(group, versions) for group, versions in found.items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _group(registry: Registry, group: str) -> Obj | None:
    versions = group_versions(registry).get(group)
    if not versions or not group:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group_document(group, versions)}


def _served(registry: Registry, group: str, version: str) -> list[Served]:
    return [served for served in registry.served() if (served.group, served.version) == (group, version)]


def _resources(registry: Registry, group: str, version: str) -> Obj | None:
    served = _served(registry, group, version)
    reviews = [entry for entry in REVIEWS if entry[:2] == (group, version)]
    if not served and not reviews:
        return None
    resources = [entry for one in served for entry in _resource_entries(one)]
    resources += [
        {"name": plural, "singularName": kind.lower(), "namespaced": False, "kind": kind, "verbs": ["create"]}
        for _, _, plural, kind in reviews
    ]
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}


def _resource_entries(served: Served) -> list[Obj]:
    kind = served.type
    main: Obj = {
        "name": kind.plural,
        "singularName": kind.singular or kind.kind.lower(),
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _VERBS,
    }
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    return [main, *(_subresource_entry(served, name) for name in kind.subresources)]


def _subresource_entry(served: Served, name: str) -> Obj:
    kind = served.type
    entry: Obj = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _SUBRESOURCE_VERBS[name],
    }
    if name in _SUBRESOURCE_KINDS:
        group, version, entry["kind"] = _SUBRESOURCE_KINDS[name]
        if (group, version) != (served.group, served.version):
            entry["group"], entry["version"] = group, version
    return entry


def _aggregated(registry: Registry, *, core: bool) -> Answer:
    items = []
    for group, versions in group_versions(registry).items():
        if (group == "") != core:
            continue
        listed = [
            {"version": version, "freshness": "Current", "resources": _aggregated_resources(registry, group, version)}
            for version in versions
        ]
        items.append({"metadata": {"name": group, "creationTimestamp": None}, "versions": listed})
    document = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }
    return Answer(200, encode(document), content_type=AGGREGATED.encode())


def _aggregated_resources(registry: Registry, group: str, version: str) -> list[Obj]:
    resources = [_aggregated_resource(served) for served in _served(registry, group, version)]
    resources += [
        {
            "resource": plural,
            "responseKind": {"group": group, "version": version, "kind": kind},
            "scope": "Cluster",
            "singularResource": kind.lower(),
            "verbs": ["create"],
        }
        for review_group, review_version, plural, kind in REVIEWS
        if (review_group, review_version) == (group, version)
    ]
    return resources


def _aggregated_resource(served: Served) -> Obj:
    kind = served.type
    entry: Obj = {
        "resource": kind.plural,
        "responseKind": {"group": served.group, "version": served.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular or kind.kind.lower(),
        "verbs": _VERBS,
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if kind.subresources:
        entry["subresources"] = [_aggregated_subresource(served, name) for name in kind.subresources]
    return entry


def _aggregated_subresource(served: Served, name: str) -> Obj:
    own = (served.group, served.version, served.type.kind)
    group, version, kind = _SUBRESOURCE_KINDS.get(name, own)
    return {
        "subresource": name,
        "responseKind": {"group": group, "version": version, "kind": kind},
        "verbs": _SUBRESOURCE_VERBS[name],
    }
