"""Limits of single values: enumerations, lengths, patterns, formats, ranges, sizes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from sickbay.api.structural.formats import INTEGER_RANGES, READERS
from sickbay.api.structural.shape import Schema
from sickbay.api.structural.violation import TOO_LONG, TOO_MANY, TYPE, UNSUPPORTED, Violation, invalid


def broken_limits(schema: Schema, value: Any, path: str) -> Iterator[Violation]:
    """Every limit of the schema's own level that a value of the right type breaks."""
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        supported = ", ".join(json.dumps(str(word)) for word in allowed)
        message = f"Unsupported value: {json.dumps(value)}: supported values: {supported}"
        yield Violation(path, UNSUPPORTED, message, value, "enum", allowed)
    if isinstance(value, str):
        yield from _text(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(schema, value, path)
    elif isinstance(value, list):
        yield from _size(schema, value, path, "Items", "items")
    elif isinstance(value, dict):
        yield from _size(schema, value, path, "Properties", "properties")


def _text(schema: Schema, value: str, path: str) -> Iterator[Violation]:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if longest is not None and len(value) > longest:
        message = f"Too long: may not be more than {longest} bytes"
        yield Violation(path, TOO_LONG, message, value, "maxLength", longest)
    if shortest is not None and len(value) < shortest:
        yield invalid(path, value, f"should be at least {shortest} chars long", "minLength", shortest)
    pattern, form = schema.get("pattern"), schema.get("format")
    if pattern is not None and not _pattern(pattern).search(value):
        yield invalid(path, value, f"should match '{pattern}'", "pattern", pattern)
    reader = READERS.get(form) if isinstance(form, str) else None
    if reader is not None:
        try:
            reader(value)
        except ValueError:
            wrong = invalid(path, value, f"must be of type {form}: {json.dumps(value)}", "format", form)
            yield wrong._replace(reason=TYPE)


def _number(schema: Schema, value: float, path: str) -> Iterator[Violation]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and (value < low or (schema.get("exclusiveMinimum") and value == low)):
        than = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid(path, value, f"should be {than} {low}", "minimum", low)
    if high is not None and (value > high or (schema.get("exclusiveMaximum") and value == high)):
        than = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield invalid(path, value, f"should be {than} {high}", "maximum", high)
    step = schema.get("multipleOf")
    if step and value % step:
        yield invalid(path, value, f"should be a multiple of {step}", "multipleOf", step)
    bounds = INTEGER_RANGES.get(schema.get("format") or "")
    if bounds and not bounds[0] <= value <= bounds[1]:
        form = schema["format"]
        yield invalid(path, value, f"must be of type {form}: {json.dumps(value)}", "format", form)


def _size(schema: Schema, value: Any, path: str, what: str, word: str) -> Iterator[Violation]:
    most, least = schema.get(f"max{what}"), schema.get(f"min{what}")
    if most is not None and len(value) > most:
        message = f"Too many: {len(value)}: must have at most {most} items"
        yield Violation(path, TOO_MANY, message, value, f"max{what}", most)
    if least is not None and len(value) < least:
        yield invalid(path, len(value), f"should have at least {least} {word}", f"min{what}", least)


@lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    """RE2's meaning: `$` is the end of the text, never before a final line break, and classes are ASCII."""
    if text.endswith("$") and not text.endswith("\\$"):
        text = text[:-1] + r"\Z"
    return re.compile(text, re.ASCII)
