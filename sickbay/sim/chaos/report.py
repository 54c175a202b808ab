"""What people, CI and other programs are told of seeds: lines, JUnit XML, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from xml.etree import ElementTree

from sickbay.sim.chaos.plan import Drawing, text_of
from sickbay.sim.chaos.run import Finding, Result
from sickbay.sim.scenario.functions import moment
from sickbay.sim.scenario.report import printable


def replay(result: Result) -> str:
    """The command that does it all again."""
    scenario = f" --scenario {result.file}" if result.file else ""
    return f"sickbay chaos --seeds {result.seed}{scenario} -v"


def lines(result: Result) -> Iterator[str]:
    """A line for each thing that broke, with what led up to it, and how to see it again. Nothing for a good seed."""
    for finding in result.findings:
        first, *rest = finding.text.splitlines()
        yield f"FAIL seed {result.seed} at {moment(round(finding.at, 3))}: {first}"
        yield from (f"     {line}" for line in rest)
        yield from _events(finding)
    if not result.ok:
        yield f"     replay: {replay(result)}"


def _events(finding: Finding) -> Iterator[str]:
    if finding.events:
        yield "     last events:"
        yield from (f"       {event}" for event in finding.events)


def story(drawing: Drawing, result: Result) -> str:
    """The seed as a scenario file, and below it what people and detectors did of their own accord."""
    reactions = "".join(f"# {line}\n" for line in result.reactions)
    return f"# seed {result.seed}; the weather ends at {drawing.storm:g}s\n{text_of(drawing.document)}{reactions}"


def summary(results: list[Result]) -> str:
    failed = sum(not result.ok for result in results)
    repairs, acts = sum(result.repairs for result in results), sum(result.acts for result in results)
    seeds = f"{len(results)} seed{'' if len(results) == 1 else 's'}"
    return f"{seeds}, {len(results) - failed} ok, {failed} failed; {repairs} repairs, {acts} acts"


def as_json(results: list[Result]) -> str:
    return json.dumps([_plain(result) for result in results], indent=2)


def _plain(result: Result) -> dict[str, object]:
    findings = [{"text": f.text, "at": moment(round(f.at, 3)), "events": f.events} for f in result.findings]
    return {
        "seed": result.seed,
        "ok": result.ok,
        "trace": result.trace,
        "virtualSeconds": round(result.seconds, 3),
        "writes": result.writes,
        "repairs": result.repairs,
        "acts": result.acts,
        "findings": findings,
        "replay": replay(result),
    }


def as_junit(results: list[Result]) -> str:
    """One test case per seed."""
    failed = sum(not result.ok for result in results)
    root = ElementTree.Element("testsuites", name="sickbay chaos")
    suite = ElementTree.SubElement(root, "testsuite", name="chaos", tests=str(len(results)), failures=str(failed))
    for result in results:
        case = ElementTree.SubElement(suite, "testcase", name=f"seed {result.seed}", classname="chaos")
        if not result.ok:
            failure = ElementTree.SubElement(case, "failure", message=printable(result.findings[0].text))
            failure.text = printable("\n".join(lines(result)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
