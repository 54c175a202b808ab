"""The built-in fault types as documents, and how a FaultType object changes one: field by field.

Several layers read them, each for what it needs; here they are only loaded and merged. Whether an entry is usable is
for decide to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml

from sickbay.api.patches import apply_merge

Document = dict[str, Any]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def builtin() -> tuple[str, dict[str, Document]]:
    """Version and entries, by name, of the catalogue inside the package. Not to be changed by the caller."""
    version, entries = "", {}
    folder = resources.files("sickbay.catalogue")
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if not file.name.endswith((".yaml", ".yml")):
            continue
        for document in yaml.load_all(file.read_text(encoding="utf-8"), Loader=_LOADER):
            if not document:
                continue
            if document.get("kind") == "FaultType":
                entries[document["metadata"]["name"]] = document
            elif "version" in document:
                version = str(document["version"])
    return version, entries


def merged(overrides: Iterable[Mapping[str, Any]]) -> dict[str, Document]:
    """All entries by name, with these FaultType objects (as plain objects) merged over the built-in ones."""
    found = dict(builtin()[1])
    for override in overrides:
        name = override["metadata"]["name"]
        base = found.get(name, {"metadata": {"name": name}, "spec": {}})
        spec = apply_merge(base.get("spec") or {}, override.get("spec") or {})
        found[name] = {**base, "spec": spec}
    return found
