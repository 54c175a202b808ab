"""Manifests inside a scenario: objects of any kind, as they go to the API server."""

from __future__ import annotations

from typing import Any

from sickbay.sim.scenario.document import Reader, plain


def read_manifest(reader: Reader) -> dict[str, Any]:
    """A manifest must say what it is and how it is called; the rest is the API server's to judge."""
    for key in ("apiVersion", "kind"):
        reader.text(key)
    metadata = reader.nested("metadata")
    if metadata is None or not (metadata.has("name") or metadata.has("generateName")):
        raise reader.error("metadata", "name is missing")
    manifest: dict[str, Any] = plain(reader.mapping)
    return manifest
