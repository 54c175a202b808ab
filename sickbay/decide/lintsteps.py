"""What of an entry's steps can be accepted and then not do what its author expects: times, and missing steps."""

from __future__ import annotations

from collections.abc import Iterator

from sickbay.api.actions import ACTIONS
from sickbay.api.duration import format_duration, parse_duration
from sickbay.api.repair_rule import Approval, ProcedureStep, RuleEntry
from sickbay.api.words import Step
from sickbay.decide import entries
from sickbay.decide.catalogue import Catalogue

Said = tuple[bool, str, str]
"""Whether it is an error, the path, and the words."""


def steps(path: str, entry: RuleEntry, faults: set[str], known: Catalogue) -> Iterator[Said]:
    """All that is to be said of the steps of an entry that these faults come to."""
    for i, step in enumerate(entry.procedure):
        where = f"{path}.procedure[{i}]"
        yield from _gate(where, step)
        if step.step == Step.DRAIN:
            yield from _drain(where, step)
        if step.step == Step.VALIDATE:
            yield from _validate(where, step, entry, faults, known)
    yield from _missing(f"{path}.procedure", entry, faults, known)


def _gate(path: str, step: ProcedureStep) -> Iterator[Said]:
    gate = step.approval
    if gate is None or gate.reminders == Approval().reminders:
        return  # the default ones fit the default timeout, and end with a shorter one
    for i, text in enumerate(gate.reminders):
        if parse_duration(text) >= parse_duration(gate.timeout):
            late = f"{text} is never sent: the gate's timeout {gate.timeout} is over by then; use a shorter one"
            yield False, f"{path}.approval.reminders[{i}]", late


def _drain(path: str, step: ProcedureStep) -> Iterator[Said]:
    options, whole = step.options, parse_duration(step.timeout or "30m")
    if options is None:
        return
    if parse_duration(options.grace.max) > whole > parse_duration("0s"):
        text = f"{options.grace.max} can never be used up: Drain's timeout {format_duration(whole)} ends it"
        yield False, f"{path}.options.grace.max", f"{text}; raise timeout or lower max"
    for i, wait in enumerate(options.wait_for):
        if wait.timeout and parse_duration(wait.timeout) > whole:
            text = f"{wait.timeout} can never be waited out: Drain's timeout {format_duration(whole)} ends it"
            yield False, f"{path}.options.waitFor[{i}].timeout", f"{text}; raise timeout"


def _validate(path: str, step: ProcedureStep, entry: RuleEntry, faults: set[str], known: Catalogue) -> Iterator[Said]:
    if step.soak is None or step.ceiling is not None:
        return
    for action in sorted(entries.acts(entry, faults, known.types)):
        found = ACTIONS.get(action)
        if found is not None and parse_duration(step.soak) > found.ceiling:
            text = f"{step.soak} is above the ceiling after {action}, {format_duration(found.ceiling)}"
            yield True, f"{path}.soak", f"{text}: no validation can pass; give a ceiling above it"
            return


def _missing(path: str, entry: RuleEntry, faults: set[str], known: Catalogue) -> Iterator[Said]:
    has = {step.step for step in entry.procedure}
    if Step.QUARANTINE in has and Step.UNQUARANTINE not in has:
        yield (
            False,
            path,
            "no Unquarantine: the node stays out until a person uncordons it; add it if that is not meant",
        )
    if Step.QUARANTINE not in has and Step.UNQUARANTINE in has:
        yield False, path, "Unquarantine without Quarantine takes nothing back; add Quarantine or remove it"
    if Step.DRAIN in has and Step.QUARANTINE not in has:
        yield False, path, "Drain without Quarantine: new pods come to the node meanwhile; add Quarantine"
    repair = entry.step(Step.REPAIR)
    if repair is None or Step.DRAIN in has or repair.allow_undrained:
        return
    first = {rungs[0].action for f in faults if (rungs := known.types[f].spec.remedy or ())}
    emptying = entries.emptying({repair.action} if repair.action else first)
    if emptying:  # a ladder that only climbs to them gets Quarantine and Drain on its way
        text = f"{', '.join(emptying)} without Drain waits 30m for an empty node, then for people"
        yield False, path, f"{text}; add Quarantine and Drain, or say allowUndrained"
