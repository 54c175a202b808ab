"""Which Node a provider's machine is. By providerID, never by a name that happens to look alike.

An event is bound to the Node's UID at first sight and stays bound: a Node that was created anew under the same name,
and on some clouds under the same providerID, is another one, and an old event does not act on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sickbay.api.core import Node
from sickbay.convert.notice import Notice

_AZURE_SET = re.compile(r"^(.*)_(\d+)$")


def resource_keys(source: str, resource: str) -> list[str]:
    """Every spelling under which a provider's id of a machine may stand in a providerID."""
    if not resource:
        return []
    if source != "azure":
        return [resource]
    found = _AZURE_SET.match(resource)
    return [resource.lower(), *([f"{found[1]}/{found[2]}".lower()] if found else [])]


def node_keys(node: Node) -> list[str]:
    """Under which a Node is found: its whole providerID, and the provider's own id within it.

    Forms: `aws:///zone/i-0abc`, `cn-hangzhou.i-xxxx` and `alicloud://cn-hangzhou.i-xxxx`, a bare OCID or `oci://ocid`,
    `azure:///.../virtualMachineScaleSets/V/virtualMachines/7`. On GCP the providerID holds a name that is used again;
    the numeric id stands in an annotation.
    """
    provider = node.provider_id
    numeric = node.annotations.get("container.googleapis.com/instance_id", "")
    keys = [numeric] if numeric else []
    if not provider:
        return keys
    scheme, _, rest = provider.partition("://")
    rest = rest or provider
    keys.append(provider)
    if scheme == "gce":
        return keys
    tail = rest.rsplit("/", 1)[-1]
    keys.append(tail)
    if re.fullmatch(r"[a-z0-9-]+\.(i|eb|hbm|acs)-[A-Za-z0-9]+", tail):
        keys.append(tail.partition(".")[2])
    if scheme == "azure":
        parts = [part for part in rest.split("/") if part]
        keys += [key.lower() for key in keys]
        if len(parts) >= 3 and parts[-2].lower() == "virtualmachines" and "virtualmachinescalesets" in rest.lower():
            keys.append(f"{parts[-3]}/{parts[-1]}".lower())
    return keys


def find(notice: Notice, by_key: dict[str, list[Node]], by_name: dict[str, Node]) -> Node | None:
    """The Node of a notice; None where there is none, or where two could be meant."""
    if notice.node:
        return by_name.get(notice.node)
    found = {node.uid: node for key in resource_keys(notice.source, notice.resource) for node in by_key.get(key, ())}
    return next(iter(found.values())) if len(found) == 1 else None


def index(nodes: Iterable[Node]) -> tuple[dict[str, list[Node]], dict[str, Node]]:
    by_key: dict[str, list[Node]] = {}
    by_name: dict[str, Node] = {}
    for node in nodes:
        by_name[node.name] = node
        for key in node_keys(node):
            by_key.setdefault(key, []).append(node)
    return by_key, by_name
