"""The schemas of built-in kinds, by group, version and kind.

They come from a file recorded from kube-apiserver (`record.py` makes it, NOTICE says whose it is) and are read when
they are first needed.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec

Schema = dict[str, Any]

FILE = "kubernetes-1.36.json.gz"
PREFIX = "#/components/schemas/"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
_KINDS = "x-kubernetes-group-version-kind"


@lru_cache(maxsize=1)
def definitions() -> dict[str, Schema]:
    """All recorded schemas by name. Shared: do not change them."""
    packed = resources.files(__package__).joinpath(FILE).read_bytes()
    found: dict[str, Schema] = msgspec.json.decode(gzip.decompress(packed))
    return found


@lru_cache(maxsize=1)
def _names() -> dict[tuple[str, str, str], str]:
    return {
        (entry["group"], entry["version"], entry["kind"]): name
        for name, schema in definitions().items()
        for entry in schema.get(_KINDS) or ()
    }


def name_of(group: str, version: str, kind: str) -> str | None:
    """The name of a kind's schema; None where it was not recorded."""
    return _names().get((group, version, kind))


def referred(schema: Any) -> str:
    """The name a reference points to; "" for what is no reference."""
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    return reference.removeprefix(PREFIX) if isinstance(reference, str) else ""


def references(schema: Any) -> Iterator[str]:
    """Names of all schemas that one refers to directly."""
    if isinstance(schema, dict):
        if name := referred(schema):
            yield name
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def closure(names: set[str]) -> dict[str, Schema]:
    """Schemas by name, with everything they refer to."""
    known = definitions()
    found: dict[str, Schema] = {}
    waiting = sorted(names & known.keys())
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = known[name]
            waiting += references(known[name])
    return found
