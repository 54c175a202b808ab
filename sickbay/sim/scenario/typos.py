"""Fields of a file's objects, and of those that its timeline writes, that no such kind has.

An API server drops them without a word, and the test would test something else than what was written. That is told on
standard error and is no mistake of the file: a cluster takes such a manifest too.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

from sickbay.api.crds import schemas
from sickbay.api.names import API_VERSION
from sickbay.api.structural import unknown_fields
from sickbay.sim.scenario.document import Reader, plain
from sickbay.sim.scenario.manifest import Manifest, read_manifest
from sickbay.sim.scenario.spec import Scenario
from sickbay.sim.scenario.timeline import Entry


def unknown(scenarios: Iterable[Scenario]) -> list[str]:
    """One line for each such field, with its place; those that several runs share once."""
    return list(dict.fromkeys(line for scenario in scenarios for line in _of(scenario)))


def _of(scenario: Scenario) -> Iterator[str]:
    written = (part for entry in scenario.timeline if (part := _written(entry)) is not None)
    for manifest in (*scenario.objects, *written):
        if manifest["apiVersion"] != API_VERSION or manifest["kind"] not in schemas():
            continue
        for field in unknown_fields(schemas()[manifest["kind"]], dict(manifest)):
            name = field.path.rpartition(".")[2]
            near = difflib.get_close_matches(name, field.known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            what = f"{manifest['kind']} {manifest['metadata'].get('name', '')}"
            yield (
                f"{scenario.file}:{manifest.line}: {manifest.path}: {what}: unknown field {field.path}, "
                f"which the API server drops{hint}"
            )


def _written(entry: Entry) -> Manifest | None:
    """The object, or the part of one, that an entry of the timeline writes; None where it brings none."""
    said = entry.arguments
    if entry.do == "apply":
        return read_manifest(said.sub("manifest", said.need("manifest"), "manifest"))
    if entry.do == "hold":
        identity = {"apiVersion": API_VERSION, "kind": "Hold", "metadata": {"name": said.text("name")}}
        return _part(said, "spec", {**identity, "spec": plain(said.need("spec"))})
    if entry.do == "patch":
        return _part(said, "patch", {**plain(said.need("patch")), **_patched(said)})
    return None


def _part(said: Reader, key: str, body: dict[str, Any]) -> Manifest:
    part = said.sub(key, said.need(key), key)
    return Manifest(body, part.mapping.line, part.path)


def _patched(said: Reader) -> dict[str, Any]:
    """What the object of a patch is: its manifest says it, or else its kind, which is ours where we have one."""
    if said.has("manifest"):
        manifest = read_manifest(said.sub("manifest", said.need("manifest"), "manifest"))
        return {key: manifest[key] for key in ("apiVersion", "kind", "metadata")}
    kind, slash, name = said.text("object").partition("/")
    if not slash:
        kind, at, node = kind.partition("@")
        name = f"{at}{node}"
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}}
