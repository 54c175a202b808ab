"""Rules, pools and fault types judged without a cluster: is the schema kept, do the references hold, can it work?

Beyond what the API server refuses, it names what would be accepted and then do nothing or surprise: an entry that no
fault can reach, a name nobody knows, a limit that can never bind, a step that nothing asks about before it cannot be
undone.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import yaml

from sickbay.api import kinds, names, yamldoc
from sickbay.api.fault_type import FaultTypeSpec
from sickbay.api.hold import Hold, HoldSpec
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule
from sickbay.api.validate import Problem, validate
from sickbay.clock import parse_time
from sickbay.decide import catalogue, lintdomains, lintfaults, lintpools, lintrules, lintzero
from sickbay.decide.catalogue import Catalogue

ERROR, WARNING = "error", "warning"
OWN = {kind.kind: kind for kind in kinds.OWN}
NO_OBJECT = "a manifest is a mapping with apiVersion and kind"


@dataclass(frozen=True)
class Finding:
    file: str
    line: int
    severity: str
    object: str
    message: str


@dataclass(frozen=True)
class Document:
    """One object of a file, with the line each path of it stands on."""

    file: str
    line: int
    body: dict[str, Any]
    lines: dict[str, int]

    @property
    def name(self) -> str:
        meta = self.body.get("metadata")
        found = meta.get("name") if isinstance(meta, dict) else None
        return f"{self.body.get('kind', '?')}/{found or '?'}"

    def at(self, path: str) -> int:
        """The line of a path, or of its nearest parent that has one."""
        while path and path not in self.lines:
            cut = max(path.rfind("."), path.rfind("["))
            path = path[:cut] if cut > 0 else ""
        return self.lines.get(path, self.line)

    def finding(self, severity: str, path: str, message: str) -> Finding:
        where = f"{path}: " if path else ""
        return Finding(self.file, self.at(path), severity, self.name, f"{where}{message}")


def lint(files: Iterable[Path], now: datetime | None = None) -> list[Finding]:
    """All findings, by file and line. `now`: to judge what ends at a moment; None = not judged."""
    documents: list[Document] = []
    found: list[Finding] = []
    for file in dict.fromkeys(files):
        try:
            inside = read(str(file), file.read_text(encoding="utf-8"))
        except OSError as error:
            found.append(Finding(str(file), 1, ERROR, "-", f"cannot be read: {error.strerror}"))
            continue
        except UnicodeDecodeError:
            found.append(Finding(str(file), 1, ERROR, "-", "not UTF-8 text; save it as UTF-8"))
            continue
        except yamldoc.BadYamlError as error:
            message = f"{error.key}: {error.message}" if error.key else error.message
            found.append(Finding(str(file), error.line, ERROR, "-", message))
            continue
        documents += [d for d in inside if isinstance(d, Document)]
        found += [d for d in inside if isinstance(d, Finding)]
        if not inside:
            found.append(Finding(str(file), 1, ERROR, "-", f"holds no object: {NO_OBJECT}"))
    ours = [d for d in documents if d.body.get("kind") in OWN]
    found += [_not_ours(d) for d in documents if d not in ours]
    found += list(_twice(ours))
    sound = []
    for document in ours:
        wrong = problems(document)
        found += wrong
        sound += [] if wrong else [document]
    found += list(_meaning(sound, now))
    return sorted(found, key=lambda f: (f.file, f.line, f.message))


def _not_ours(document: Document) -> Finding:
    kind, version = document.body.get("kind"), document.body.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(version, str):
        return document.finding(ERROR, "kind" if isinstance(version, str) else "apiVersion", f"required: {NO_OBJECT}")
    if version.partition("/")[0] == names.GROUP:
        near = difflib.get_close_matches(kind, OWN, n=1)
        remedy = f"did you mean {near[0]}?" if near else f"use one of {', '.join(OWN)}"
        return document.finding(ERROR, "kind", f"{kind!r} is not a kind of Sickbay; {remedy}")
    if kind == "Scenario":
        return document.finding(WARNING, "kind", "a scenario: run it with sickbay test")
    return document.finding(WARNING, "kind", "not a kind of Sickbay: not judged")


def _twice(documents: list[Document]) -> Iterator[Finding]:
    """Objects that would overwrite each other when all of this is applied."""
    first: dict[tuple[Any, ...], Document] = {}
    for document in documents:
        meta = document.body.get("metadata")
        if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
            continue
        earlier = first.setdefault((document.body["kind"], str(meta.get("namespace")), meta["name"]), document)
        if earlier is not document:
            where = f"{earlier.file}:{earlier.at('metadata.name')}"
            yield document.finding(ERROR, "metadata.name", f"is given twice (first in {where}); rename or remove one")


def problems(document: Document) -> list[Finding]:
    """What is wrong with the form of an object of a kind of ours."""
    found = validate(str(document.body["kind"]), document.body)
    return [document.finding(ERROR, problem.path, _said(problem)) for problem in found]


def _said(problem: Problem) -> str:
    """Value, what is wrong with it, and the remedy; each only once."""
    value = "" if problem.value is None or isinstance(problem.value, dict | list) else str(problem.value)
    if isinstance(problem.value, bool):
        return f"{str(problem.value).lower()}: {problem.message}; {problem.remedy}"  # as it is written in YAML
    shown = f"{value[:80]!r}: " if value and value not in problem.message else ""
    return f"{shown}{problem.message}{f'; {problem.remedy}' if problem.remedy else ''}"


def read(file: str, text: str) -> list[Document | Finding]:
    """The documents of a file, with line numbers; a finding for one that is no object. Raises BadYamlError."""
    documents: list[Document | Finding] = []
    for node in yamldoc.compose(text):
        line, body = yamldoc.line_of(node), yamldoc.construct(node)
        if isinstance(body, dict):
            documents.append(Document(file, line, body, dict(_lines(node, ""))))
        elif body is not None:
            documents.append(Finding(file, line, ERROR, "-", f"is no object: {NO_OBJECT}"))
    return documents


def _lines(node: yaml.Node, path: str) -> Iterator[tuple[str, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = f"{path}.{key.value}" if path else str(key.value)
            yield inner, key.start_mark.line + 1
            yield from _lines(value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for i, value in enumerate(node.value):
            yield f"{path}[{i}]", value.start_mark.line + 1
            yield from _lines(value, f"{path}[{i}]")


def _meaning(documents: list[Document], now: datetime | None) -> Iterator[Finding]:
    """What schemas cannot say."""
    known = catalogue.build(d.body for d in documents if d.body["kind"] == "FaultType")
    rules = {d.body["metadata"]["name"]: d for d in documents if d.body["kind"] == "RepairRule"}
    for document in documents:
        kind = document.body["kind"]
        yield from _said_by(document, lintzero.durations(kind, document.body))
        if kind == "FaultType":
            yield from _fault_type(document, known)
        elif kind == "RepairRule":
            yield from _said_by(document, lintrules.rule(msgspec.convert(document.body, RepairRule), known))
        elif kind == "RepairPool":
            yield from _pool(document, msgspec.convert(document.body, RepairPool), rules, known)
        elif kind == "Hold":
            yield from _hold(document, msgspec.convert(document.body, Hold).spec, known, now)


def _hold(document: Document, spec: HoldSpec, known: Catalogue, now: datetime | None) -> Iterator[Finding]:
    yield from _said_by(document, lintrules.unknown("spec.faults", spec.faults, known, "it holds nothing"))
    if now is not None and spec.until is not None and parse_time(spec.until) <= now:
        yield document.finding(WARNING, "spec.until", f"{spec.until} is over already: it holds nothing")
    narrower = [key for key in ("pools", "nodes", "nodeSelector") if document.body["spec"]["scope"].get(key)]
    if spec.scope.all and narrower:
        text = f"true holds everything, whatever {', '.join(narrower)} says; remove one of them"
        yield document.finding(WARNING, "spec.scope.all", text)


def _fault_type(document: Document, known: Catalogue) -> Iterator[Finding]:
    problem = known.problems.get(document.body["metadata"]["name"])
    if problem:
        yield document.finding(ERROR, "spec", problem)
    merged = known.types.get(document.body["metadata"]["name"])
    if merged is not None:
        yield from _said_by(document, lintdomains.fault_type(merged))
        written = msgspec.convert(document.body["spec"], FaultTypeSpec)
        yield from _said_by(document, lintfaults.fault_type(merged, written))


def _said_by(document: Document, said: Iterable[tuple[bool, str, str]]) -> Iterator[Finding]:
    for wrong, path, text in said:
        yield document.finding(ERROR if wrong else WARNING, path, text)


def _pool(document: Document, pool: RepairPool, rules: dict[str, Document], known: Catalogue) -> Iterator[Finding]:
    spec = pool.spec
    if spec.rule and spec.rule not in rules:
        yield document.finding(WARNING, "spec.rule", f"RepairRule {spec.rule} is not in these files: not checked")
    yield from _said_by(document, lintpools.pool(pool))
    for i, override in enumerate(spec.overrides):
        path = f"spec.overrides[{i}].faults.names"
        yield from _said_by(document, lintrules.unknown(path, override.faults.names, known, "it never matches"))
    yield from _said_by(document, lintdomains.pool(pool, known))
    yield from _said_by(document, lintdomains.spread(document.body["spec"].get("domains")))
