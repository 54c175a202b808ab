"""Fields of a file's objects that no such kind has.

An API server drops them without a word, and the test would test something else than what was written. That is told on
standard error and is no mistake of the file: a cluster takes such a manifest too.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from sickbay.api.crds import schemas
from sickbay.api.names import API_VERSION
from sickbay.api.structural import unknown_fields
from sickbay.sim.scenario.spec import Scenario


def unknown(scenarios: Iterable[Scenario]) -> list[str]:
    """One line for each such field, with its place; those that several runs share once."""
    return list(dict.fromkeys(line for scenario in scenarios for line in _of(scenario)))


def _of(scenario: Scenario) -> Iterator[str]:
    for manifest in scenario.objects:
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
