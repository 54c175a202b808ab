"""Make the file of recorded schemas from a running kube-apiserver:

    kubectl proxy --port 8001 &
    python -m sickbay.apiserver.openapi.record http://127.0.0.1:8001

Only the kinds this package serves or reads are kept, with everything their schemas refer to.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from sickbay.apiserver import reviews
from sickbay.apiserver.builtin import register_builtin
from sickbay.apiserver.openapi.schemas import FILE, Schema, references
from sickbay.apiserver.resources import Registry

READ = {
    ("", "v1", "Binding"),
    ("", "v1", "DeleteOptions"),
    ("autoscaling", "v1", "Scale"),
    ("policy", "v1", "Eviction"),
    *((group, "v1", kind) for (group, _), kind in reviews.KINDS.items()),
}
"""Kinds that come in bodies and are not kept."""


def recorded() -> set[tuple[str, str, str]]:
    """Group, version and kind of everything built in, and of what is read only."""
    registry = Registry()
    register_builtin(registry)
    return {(view.group, view.version, view.type.kind) for view in registry.served()} | READ


def cut(documents: list[Any], kinds: set[tuple[str, str, str]]) -> dict[str, Schema]:
    """The schemas of these kinds, and what they refer to, out of whole documents."""
    known = {name: schema for document in documents for name, schema in document["components"]["schemas"].items()}
    waiting = [
        name
        for name, schema in known.items()
        for entry in schema.get("x-kubernetes-group-version-kind") or ()
        if (entry["group"], entry["version"], entry["kind"]) in kinds
    ]
    kept: dict[str, Schema] = {}
    while waiting:
        name = waiting.pop()
        if name not in kept:
            kept[name] = known[name]
            waiting += references(known[name])
    return {name: kept[name] for name in sorted(kept)}


def documents(client: httpx2.Client) -> list[Any]:
    """The OpenAPI documents of all group-versions that hold something built in."""
    paths = {f"apis/{group}/{version}" if group else f"api/{version}" for group, version, _ in recorded()}
    return [client.get(f"/openapi/v3/{path}").raise_for_status().json() for path in sorted(paths)]


def packed(schemas: dict[str, Schema]) -> bytes:
    """The file's content: the same schemas give the same bytes."""
    return gzip.compress(msgspec.json.encode(schemas, order="sorted"), 9, mtime=0)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(
            "usage: python -m sickbay.apiserver.openapi.record URL  (of a kube-apiserver, such as kubectl proxy's)"
        )
    with httpx2.Client(base_url=sys.argv[1]) as client:
        content = packed(cut(documents(client), recorded()))
    Path(__file__).with_name(FILE).write_bytes(content)


if __name__ == "__main__":
    main()
