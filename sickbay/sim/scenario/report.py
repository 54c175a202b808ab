"""What people, CI and other programs are told of the runs: lines, JUnit XML, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from xml.etree import ElementTree

from sickbay.sim.scenario.functions import moment
from sickbay.sim.scenario.judge import Outcome
from sickbay.sim.scenario.runner import Result


def lines(result: Result) -> Iterator[str]:
    """One line per expectation, and below a failure what was seen."""
    for outcome in result.outcomes:
        word = "ok  " if outcome.ok else "FAIL"
        place = f"{result.scenario.file}:{outcome.line}" if outcome.line else result.scenario.file
        yield f"{word} {place} {result.scenario.name} {outcome.text}"
        if not outcome.ok:
            yield from details(outcome)
    yield from _unfit(result)


def _unfit(result: Result) -> Iterator[str]:
    """Below the failures of a run: what of its objects could not work."""
    if result.ok or not result.unfit:
        return
    yield f"     objects of {result.scenario.name} that cannot work as they are written:"
    for line in result.unfit:
        yield f"       {line}"


def details(outcome: Outcome) -> Iterator[str]:
    yield f"     at {moment(outcome.at)}"
    for seen in outcome.seen:
        yield f"     {seen}"
    if outcome.events:
        yield "     last events:"
        for event in outcome.events:
            yield f"       {event}"


def summary(results: list[Result]) -> str:
    outcomes = [outcome for result in results for outcome in result.outcomes]
    failed = sum(not outcome.ok for outcome in outcomes)
    runs = f"{len(results)} run{'' if len(results) == 1 else 's'}"
    return f"{runs}, {len(outcomes) - failed} ok, {failed} failed"


def as_json(results: list[Result]) -> str:
    return json.dumps(
        [
            {
                "file": result.scenario.file,
                "name": result.scenario.name,
                "labels": result.scenario.labels,
                "ok": result.ok,
                "expectations": [
                    {
                        "text": outcome.text,
                        "line": outcome.line,
                        "ok": outcome.ok,
                        **({} if outcome.ok else {"at": moment(outcome.at), "seen": outcome.seen}),
                        **({"events": outcome.events} if outcome.events else {}),
                    }
                    for outcome in result.outcomes
                ],
                **({"unfit": result.unfit} if result.unfit and not result.ok else {}),
            }
            for result in results
        ],
        indent=2,
    )


def as_junit(results: list[Result]) -> str:
    """One test suite per run, one test case per expectation."""
    root = ElementTree.Element("testsuites", name="sickbay test")
    for result in results:
        failed = sum(not outcome.ok for outcome in result.outcomes)
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=result.scenario.name,
            tests=str(len(result.outcomes)),
            failures=str(failed),
            file=result.scenario.file,
        )
        for outcome in result.outcomes:
            case = ElementTree.SubElement(suite, "testcase", name=outcome.text, classname=result.scenario.name)
            if not outcome.ok:
                failure = ElementTree.SubElement(case, "failure", message=printable(outcome.text))
                failure.text = printable("\n".join(details(outcome)))
        if unfit := list(_unfit(result)):
            ElementTree.SubElement(suite, "system-out").text = printable("\n".join(unfit))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def printable(text: str) -> str:
    """Without the control characters that XML cannot carry."""
    return "".join(letter for letter in text if letter in "\n\t" or letter >= " ")
