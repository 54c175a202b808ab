"""What a scenario file says, checked, as data. `read` is the only way in; defaults are those of the file format."""

from __future__ import annotations

from dataclasses import dataclass, field

from sickbay.sim.scenario.backend import ProviderSpec, read_provider
from sickbay.sim.scenario.document import BadFileError, Map, Reader, Seq, load, merge_patch, read_each
from sickbay.sim.scenario.expectation import Expectation, read_expectation
from sickbay.sim.scenario.manifest import Manifest, read_manifest
from sickbay.sim.scenario.timeline import Entry, read_entry

API_VERSION = "test.sickbay.dev/v1alpha1"
COMPONENTS = ("agent", "decide", "execute", "recover", "notify", "convert")
DEFAULT_UNTIL = 3600.0


@dataclass(frozen=True, slots=True)
class FleetEntry:
    """`nodes` hollow nodes named `<pool>-0` and so on."""

    pool: str
    nodes: int
    gpus: int = 8
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[dict[str, str], ...] = ()
    zone: str = ""
    rack: int = 0
    provider: ProviderSpec = field(default_factory=ProviderSpec)
    line: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run: a file's document with one variant applied."""

    file: str
    line: int
    name: str
    """`<name>` or `<name>/<variant>`."""
    labels: dict[str, str]
    seed: int
    until: float
    components: tuple[str, ...]
    components_given: bool
    replicas: int
    defaults: bool
    fleet: tuple[FleetEntry, ...]
    objects: tuple[Manifest, ...]
    timeline: tuple[Entry, ...]
    expect: tuple[Expectation, ...]


def read(file: str, text: str) -> list[Scenario]:
    """All runs of a file, in its order. Raises BadFileError for the first thing wrong with it."""
    runs: list[Scenario] = []
    documents = load(file, text)
    if not documents:
        raise BadFileError(file, 0, "", "holds no scenario")
    for document in documents:
        runs += _read_document(document)
    seen: dict[str, Scenario] = {}
    for run in runs:
        if run.name in seen:
            raise BadFileError(
                file, run.line, "metadata.name", f"{run.name!r} is also the name in line {seen[run.name].line}"
            )
        seen[run.name] = run
    return runs


def _read_document(document: Map) -> list[Scenario]:
    reader = Reader(document)
    reader.choice("apiVersion", (API_VERSION,))
    reader.choice("kind", ("Scenario",))
    metadata = reader.nested("metadata")
    if metadata is None:
        raise reader.error("metadata", "is missing")
    name, labels = metadata.text("name"), metadata.mapping_of_text("labels")
    metadata.done()
    spec = reader.need("spec")
    reader.done()
    reader.sub("spec", spec, "spec")  # a mapping
    runs = []
    for variant, patch in _variants(Reader(spec, "spec")):
        full = f"{name}/{variant}" if variant else name
        runs.append(_read_spec(_apply(spec, patch), document, full, labels))
    return runs


def _variants(spec: Reader) -> list[tuple[str, Map | None]]:
    variants: list[tuple[str, Map | None]] = []
    for reader in spec.each("variants"):
        name = reader.text("name")
        patch = reader.nested("patch")
        reader.done()
        if any(name == other for other, _ in variants):
            raise reader.error("name", f"{name!r} is given twice")
        if patch is not None and "variants" in patch.mapping:
            raise patch.error("variants", "a variant cannot have variants")
        variants.append((name, patch.mapping if patch else None))
    return variants or [("", None)]


def _apply(spec: Map, patch: Map | None) -> Map:
    """The merge patch of a variant, except that its `expect` is appended."""
    base = spec.copy()
    base.pop("variants", None)
    if patch is None:
        return base
    own = patch.get("expect")
    merged: Map = merge_patch(base, patch)
    if own is not None and isinstance(base.get("expect"), Seq) and isinstance(own, Seq):
        both = Seq(own.file, own.line)
        both.extend([*base["expect"], *own])
        both.lines = [*base["expect"].lines, *own.lines]
        merged["expect"] = both
    return merged


def _read_spec(mapping: Map, document: Map, name: str, labels: dict[str, str]) -> Scenario:
    spec = Reader(mapping, "spec")
    given = spec.has("components")
    components = spec.texts("components") if given else COMPONENTS
    for component in components:
        if component not in COMPONENTS:
            raise spec.error("components", f"{component!r} is none of {', '.join(COMPONENTS)}")
    scenario = Scenario(
        file=document.file,
        line=document.line,
        name=name,
        labels=labels,
        seed=spec.integer("seed", 0),
        until=spec.seconds("until", DEFAULT_UNTIL),
        components=components,
        components_given=given,
        replicas=spec.integer("replicas", 1, least=1),
        defaults=spec.boolean("defaults", True),
        fleet=read_each(spec, "fleet", _read_fleet),
        objects=tuple(read_manifest(reader) for reader in spec.each("objects")),
        timeline=read_each(spec, "timeline", read_entry),
        expect=read_each(spec, "expect", read_expectation),
    )
    spec.done()
    _check_fleet(spec, scenario)
    return scenario


def _check_fleet(spec: Reader, scenario: Scenario) -> None:
    pools = [entry.pool for entry in scenario.fleet]
    for pool in pools:
        if pools.count(pool) > 1:
            raise spec.error("fleet", f"pool {pool!r} is given twice")
    for expectation in scenario.expect:
        late = max(expectation.moments(), default=0.0)
        if late > scenario.until:
            raise BadFileError(
                scenario.file, expectation.line, "expect", f"{late:g}s is after the end of the run; raise spec.until"
            )


def _read_fleet(reader: Reader) -> FleetEntry:
    provider = reader.nested("provider")
    return FleetEntry(
        pool=reader.text("pool"),
        nodes=reader.integer("nodes"),
        gpus=reader.integer("gpus", 8),
        labels=reader.mapping_of_text("labels"),
        taints=read_each(reader, "taints", _read_taint),
        zone=reader.text("zone", ""),
        rack=reader.integer("rack", 0),
        provider=read_provider(provider) if provider else ProviderSpec(),
        line=reader.mapping.line,
    )


def _read_taint(reader: Reader) -> dict[str, str]:
    effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
    taint = {"key": reader.text("key"), "effect": reader.choice("effect", effects)}
    value = reader.text("value", "")
    return {**taint, "value": value} if value else taint
