"""Rules, pools and fault types judged without a cluster: is the schema kept, do the references hold, can it work?

Beyond what the API server refuses, it names what would be accepted and then do nothing or surprise: an entry that no
fault can reach, a name nobody knows, a limit that can never bind, a step that nothing asks about before it cannot be
undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from sickbay.api import kinds, yamldoc
from sickbay.api.actions import ACTIONS
from sickbay.api.repair_pool import RepairPool
from sickbay.api.repair_rule import RepairRule, RuleEntry
from sickbay.api.validate import Problem, validate
from sickbay.decide import catalogue, lintdomains, windows
from sickbay.decide.actionable import wants_repair
from sickbay.decide.catalogue import Catalogue

ERROR, WARNING = "error", "warning"
OWN = {kind.kind: kind for kind in kinds.OWN}


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


def lint(files: Iterable[Path]) -> list[Finding]:
    """All findings, by file and line."""
    documents: list[Document] = []
    found: list[Finding] = []
    for file in files:
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
        documents += inside
        if not inside:
            found.append(
                Finding(str(file), 1, ERROR, "-", "holds no object: a manifest is a mapping with apiVersion and kind")
            )
    ours = [d for d in documents if d.body.get("kind") in OWN]
    found += [d.finding(WARNING, "kind", _not_ours(d)) for d in documents if d not in ours]
    for document in ours:
        problems = validate(str(document.body["kind"]), document.body)
        found += [document.finding(ERROR, p.path, _said(p)) for p in problems]
    sound = [d for d in ours if not any(f.file == d.file and f.object == d.name and f.severity == ERROR for f in found)]
    found += list(_meaning(sound))
    return sorted(found, key=lambda f: (f.file, f.line, f.message))


def _not_ours(document: Document) -> str:
    if document.body.get("kind") == "Scenario":
        return "a scenario: run it with sickbay test"
    return "not a kind of Sickbay: not judged"


def _said(problem: Problem) -> str:
    """Value, what is wrong with it, and the remedy; each only once."""
    value = "" if problem.value is None or isinstance(problem.value, dict | list) else str(problem.value)
    shown = f"{value[:80]!r}: " if value and value not in problem.message else ""
    return f"{shown}{problem.message}{f'; {problem.remedy}' if problem.remedy else ''}"


def read(file: str, text: str) -> list[Document]:
    """The documents of a file, with line numbers. Raises BadYamlError."""
    documents = []
    for node in yamldoc.compose(text):
        lines = dict(_lines(node, ""))
        body = yamldoc.construct(node)
        if isinstance(body, dict):
            documents.append(Document(file, yamldoc.line_of(node), body, lines))
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


def _meaning(documents: list[Document]) -> Iterator[Finding]:
    """What schemas cannot say."""
    known = catalogue.build(d.body for d in documents if d.body["kind"] == "FaultType")
    rules = {d.body["metadata"]["name"]: d for d in documents if d.body["kind"] == "RepairRule"}
    for document in documents:
        kind = document.body["kind"]
        if kind == "FaultType":
            yield from _fault_type(document, known)
        elif kind == "RepairRule":
            yield from _rule(document, msgspec.convert(document.body, RepairRule), known)
        elif kind == "RepairPool":
            yield from _pool(document, msgspec.convert(document.body, RepairPool), rules, known)


def _fault_type(document: Document, known: Catalogue) -> Iterator[Finding]:
    problem = known.problems.get(document.body["metadata"]["name"])
    if problem:
        yield document.finding(ERROR, "spec", problem)
    merged = known.types.get(document.body["metadata"]["name"])
    for wrong, path, text in lintdomains.fault_type(merged) if merged is not None else ():
        yield document.finding(ERROR if wrong else WARNING, path, text)


def _rule(document: Document, rule: RepairRule, known: Catalogue) -> Iterator[Finding]:
    reached: set[str] = set()
    for i, entry in enumerate(rule.spec.rules):
        path = f"spec.rules[{i}]"
        for name in entry.faults.names:
            if name not in known.types:
                text = f"{name} is no fault type of the catalogue or of these files: it never matches"
                yield document.finding(WARNING, f"{path}.faults.names", text)
        matching = {n for n, t in known.types.items() if _matches(entry, n, t) and wants_repair(t)}
        fresh = matching - reached
        if matching and not fresh:
            yield document.finding(
                WARNING, path, f"entry {entry.name} is never reached: earlier entries match all of it"
            )
        elif not matching and not entry.faults.names:
            yield document.finding(WARNING, path, f"entry {entry.name} matches no fault type that asks for a repair")
        yield from _irreversible(document, path, entry, fresh, known)
        reached |= matching


def _matches(entry: RuleEntry, name: str, fault: Any) -> bool:
    spec = fault.spec
    return bool(entry.faults.matches(name, spec.class_ or "", spec.severity or "", spec.labels or {}))


def _irreversible(
    document: Document, path: str, entry: RuleEntry, faults: set[str], known: Catalogue
) -> Iterator[Finding]:
    repair = entry.step("Repair")
    if repair is None or repair.approval is not None:
        return
    risky = sorted(
        {r.action for f in faults for r in known.types[f].spec.remedy or [] if ACTIONS[r.action].asks_first}
        | ({repair.action} if repair.action and ACTIONS[repair.action].asks_first else set())
    )
    if risky:
        text = f"{', '.join(risky)} cannot be undone and has no gate here: people are asked unless localDataDisposable"
        yield document.finding(WARNING, f"{path}.procedure", text)


def _pool(document: Document, pool: RepairPool, rules: dict[str, Document], known: Catalogue) -> Iterator[Finding]:
    spec = pool.spec
    if spec.rule and spec.rule not in rules:
        yield document.finding(WARNING, "spec.rule", f"RepairRule {spec.rule} is not in these files: not checked")
    for i, window in enumerate(spec.windows):
        try:
            windows.parse_cron(window.cron)
            windows.zone(window.zone)
        except ValueError as error:
            yield document.finding(ERROR, f"spec.windows[{i}]", f"{error}; nothing would ever start")
    if spec.max_unavailable in (0, "0%") and spec.rule:
        yield document.finding(WARNING, "spec.maxUnavailable", "0: no node in service is ever taken out")
    counts = isinstance(spec.max_unavailable, int) and isinstance(spec.max_parallel_repairs, int)
    if counts and int(spec.max_parallel_repairs) > int(spec.max_unavailable) > 0:
        text = f"{spec.max_parallel_repairs} can never bind: maxUnavailable is {spec.max_unavailable}"
        yield document.finding(WARNING, "spec.maxParallelRepairs", text)
    for wrong, path, text in lintdomains.pool(pool, known):
        yield document.finding(ERROR if wrong else WARNING, path, text)
