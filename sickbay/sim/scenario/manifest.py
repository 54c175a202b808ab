"""Manifests inside a scenario: objects of any kind, as they go to the API server."""

from __future__ import annotations

from typing import Any

from sickbay.sim.scenario.document import Reader, plain


class Manifest(dict[str, Any]):
    """An object to create, and where the file has it."""

    def __init__(self, body: dict[str, Any], line: int, path: str) -> None:
        super().__init__(body)
        self.line, self.path = line, path


def read_manifest(reader: Reader) -> Manifest:
    """A manifest must say what it is and how it is called; the rest is the API server's to judge."""
    for key in ("apiVersion", "kind"):
        reader.text(key)
    metadata = reader.nested("metadata")
    if metadata is None or not (metadata.has("name") or metadata.has("generateName")):
        raise reader.error("metadata", "name is missing")
    return Manifest(plain(reader.mapping), reader.mapping.line, reader.path)
