"""Files of settings that hold one list, such as `endpoints:` or `forms:`, read with words for whoever wrote them.

What is wrong is told with the file, the line, the field and what to write there, as `sickbay check` does of manifests.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from sickbay.api import yamldoc

T = TypeVar("T", bound=msgspec.Struct)
_WRITE = {str: "a text, in quotes", bool: "true or false"}


class BadFileError(ValueError):
    """The file cannot be used; the text names file, line, field and remedy."""


def entries(path: str, key: str, kind: type[T], *, words: bool = False) -> list[T]:
    """What stands in the list `key` of the file; nothing in an empty file. Raises BadFileError.

    words   read `yes`, `no` and numbers as the words they are
    """
    nodes, plain = _read(path, key, words)
    if not nodes:
        return []
    if not isinstance(plain, dict) or list(plain) != [key] or not isinstance(plain[key], list):
        line = yamldoc.line_of(nodes[0])
        raise BadFileError(f"{path}:{line}: no list of {key}; write {key}: once, with a list below it and nothing else")
    (items,) = (below for name, below in nodes[0].value if name.value == key)
    lines = [yamldoc.line_of(item) for item in items.value]
    return [_entry(f"{path}:{lines[i]}: {key}[{i}]", each, kind, words) for i, each in enumerate(plain[key])]


def _read(path: str, key: str, words: bool) -> tuple[list[Any], Any]:
    """The nodes of the document, for their lines, and its value."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        nodes = [node for node in yamldoc.compose(text) if yamldoc.construct(node) is not None]
    except OSError as error:
        raise BadFileError(f"{path} cannot be read: {error.strerror}; name a file that holds {key}:") from None
    except UnicodeDecodeError:
        raise BadFileError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except yamldoc.BadYamlError as error:
        at = f"{error.key}: " if error.key else ""
        raise BadFileError(f"{path}:{error.line}: {at}{error.message}") from None
    if len(nodes) > 1:
        raise BadFileError(f"{path}:{yamldoc.line_of(nodes[1])}: a second document; put all of {key} into one")
    return nodes, yaml.load(text, Loader=yaml.BaseLoader if words else yaml.SafeLoader) if nodes else None


def _entry(where: str, given: Any, kind: type[T], words: bool) -> T:
    known = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    if not isinstance(given, dict):
        raise BadFileError(f"{where}: no mapping; write fields of {', '.join(known)}")
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"remove it, or use one of {', '.join(known)}"
            raise BadFileError(f"{where}.{name}: unknown field; {remedy}")
    for name, field in known.items():
        if field.required and name not in given:
            raise BadFileError(f"{where}.{name}: required; add it")
    try:
        return msgspec.convert(given, kind, strict=not words)
    except msgspec.ValidationError:
        wrong = next(name for name in given if not _fits(given[name], known[name].type, words))
        remedy = _WRITE.get(known[wrong].type, "a list of texts, each in quotes")
        raise BadFileError(f"{where}.{wrong}: wrong type; write {remedy}") from None


def _fits(value: Any, wanted: Any, words: bool) -> bool:
    try:
        msgspec.convert(value, wanted, strict=not words)
    except msgspec.ValidationError:
        return False
    return True
