"""Constants that operators meet, read from the modules where they stand: value by import, reason by docstring.

The reason is written once, beside the value, and so cannot be left behind when the value changes.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

from sickbay.api.duration import format_duration

SECONDS, COUNT, DURATION = "s", "count", "duration"


@dataclass(frozen=True, slots=True)
class Constant:
    """One constant: where it stands, and what people call it."""

    module: str
    name: str
    unit: str
    what: str


_DECIDE = (
    Constant("breaker", "LEAST", COUNT, "A breaker given in % opens above at least"),
    Constant("slots", "MIN_VALIDATIONS", COUNT, "maxParallelValidations given in % is at least"),
    Constant("tally", "UNKNOWN_AFTER", DURATION, "A blind node counts in the breaker after"),
    Constant("opening", "PENDING_AT", DURATION, "A longer `for` opens a repair at first sight"),
    Constant("entering", "CLEAR_PROOF_PATIENCE", DURATION, "A plan pauses for proof that a fault is gone, at most"),
    Constant("starting", "QUARANTINE_TIME", DURATION, "A cordon may take"),
    Constant("endings", "ROLLBACK_PATIENCE", DURATION, "A rollback may take"),
    Constant("running", "REPAIR_SLACK", DURATION, "Waited beyond an act's deadline"),
    Constant("work", "TOLD_AGAIN", DURATION, "People are told again of a wait without a foreseeable end"),
    Constant("controller", "LOOK_AGAIN", SECONDS, "Everything open is looked at again every"),
    Constant("sources", "RESYNC", SECONDS, "Caches are compared with a fresh list every"),
    Constant("typicaltimes", "ANSWER", DURATION, "`sickbay impact` takes an answer to come within"),
)
_EXECUTE = (
    Constant("backends", "CALL_SECONDS", SECONDS, "One call to a back-end may take"),
    Constant("pace", "PER_MINUTE", COUNT, "Evictions in one minute, at most"),
    Constant("podfilter", "DEFAULT_GRACE", SECONDS, "Grace of a pod that asks for none"),
    Constant("validate", "LOOK", SECONDS, "Validate looks every"),
)
_OTHERS = (
    Constant("kube.lease", "LEASE_DURATION", SECONDS, "Another replica takes over after a silent leader's"),
    Constant("notify.channels", "TRIES", COUNT, "A message is sent, at most"),
    Constant("convert.silence", "SILENT", SECONDS, "An agent without a sign of life is silent after"),
    Constant("convert.silence", "MANY", COUNT, "Agents that fall silent together are told of once from"),
    Constant("convert.watching", "LOOK", SECONDS, "convert looks at the agents' Leases every"),
    Constant("convert.polling", "ABSENT_READS", COUNT, "An announcement is gone when so many complete lists lack it"),
    Constant("convert.polling", "KEEP", DURATION, "The record of an ended announcement is kept for"),
    Constant("convert.others", "UNSEEN", SECONDS, "What objects said is unknown when their kind cannot be read for"),
    Constant("detect.group", "WINDOW", SECONDS, "Lines of one device within this time are one fault"),
    Constant("providers.agent.runner", "REBOOT_PATIENCE", DURATION, "A reboot that was asked for is waited for"),
)
ALL = (
    *(Constant(f"decide.{c.module}", c.name, c.unit, c.what) for c in _DECIDE),
    *(Constant(f"execute.{c.module}", c.name, c.unit, c.what) for c in _EXECUTE),
    *_OTHERS,
)


class StaleError(Exception):
    """The list names something that is not there any more."""


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """What, value, unit, reason and place of each constant. Raises StaleError."""
    for constant in ALL:
        where = f"sickbay.{constant.module}"
        module = importlib.import_module(where)
        if not hasattr(module, constant.name):
            raise StaleError(f"{where} has no {constant.name}; correct sickbay/cli/docgen/constants.py")
        reason = docstring(inspect.getsource(module), constant.name)
        if not reason:
            raise StaleError(f"{where}.{constant.name} does not say why; write a docstring below it")
        yield constant.what, _shown(getattr(module, constant.name)), constant.unit, reason, where


def docstring(source: str, name: str) -> str:
    """The text below an assignment to `name` (alone or among others), on one line; "" where there is none."""
    body = ast.parse(source).body
    for statement, following in pairwise(body):
        if name not in _assigned(statement) or not isinstance(following, ast.Expr):
            continue
        if isinstance(following.value, ast.Constant) and isinstance(following.value.value, str):
            return " ".join(following.value.value.split())
    return ""


def _assigned(statement: ast.stmt) -> set[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _shown(value: Any) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
