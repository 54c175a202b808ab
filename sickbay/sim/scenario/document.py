"""YAML that remembers where it stood, and a reader that turns it into values or into an error that names the place.

`Map` and `Seq` are ordinary dicts and lists that also know their file and the line of every entry, so that an error
found long after loading (a bad duration in a variant's patch, an injection that names no node) can still point at it.
A `Reader` walks one `Map`: every key it is asked for is a key that the format knows, so what is left at the end is an
unknown key, and the message offers the nearest known one.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import yaml

from sickbay.api import yamldoc
from sickbay.api.duration import parse_duration

T = TypeVar("T")

_MERGE = "tag:yaml.org,2002:merge"


class BadFileError(Exception):
    """A scenario file is wrong; the text is `file:line: key: what and what to do`."""

    def __init__(self, file: str, line: int, key: str, message: str) -> None:
        where = f"{file}:{line}: " if line else f"{file}: "
        super().__init__(f"{where}{key}: {message}" if key else f"{where}{message}")
        self.file, self.line, self.key, self.message = file, line, key, message

    def __reduce__(self) -> tuple[type[BadFileError], tuple[str, int, str, str]]:
        """On its way between processes an exception is made anew from its arguments."""
        return type(self), (self.file, self.line, self.key, self.message)


class Map(dict[str, Any]):
    """A YAML mapping. `lines[key]` is the line of the key, `line` that of the mapping itself."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__()
        self.file, self.line = file, line
        self.lines: dict[str, int] = {}

    def copy(self) -> Map:
        copied = Map(self.file, self.line)
        copied.update(self)
        copied.lines = dict(self.lines)
        return copied


class Seq(list[Any]):
    """A YAML sequence."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__()
        self.file, self.line = file, line
        self.lines: list[int] = []


def load(file: str, text: str) -> list[Map]:
    """All documents of a file; empty ones are left out. Raises BadFileError."""
    try:
        nodes = yamldoc.compose(text)
    except yamldoc.BadYamlError as error:
        raise BadFileError(file, error.line, error.key, error.message) from None
    tree = _Tree(file)
    documents = []
    for node in nodes:
        value = tree.value(node)
        if value is None:
            continue
        if not isinstance(value, Map):
            raise BadFileError(file, node.start_mark.line + 1, "", "a document must be a mapping of keys to values")
        documents.append(value)
    return documents


class _Tree:
    """Builds the values of one file. Scalars follow YAML's rules, but dates and base-60 numbers stay text."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._scalars = yaml.constructor.SafeConstructor()

    def value(self, node: yaml.Node) -> Any:
        line = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            return self._map(line, node)
        if isinstance(node, yaml.SequenceNode):
            items = Seq(self._file, line)
            for item in node.value:
                items.append(self.value(item))
                items.lines.append(item.start_mark.line + 1)
            return items
        if node.tag.endswith(":timestamp") or (node.tag.endswith((":int", ":float")) and ":" in node.value):
            return node.value
        try:
            return self._scalars.construct_object(node, deep=True)
        except (yaml.YAMLError, ValueError):
            raise BadFileError(self._file, line, "", f"{node.value!r} cannot be read as {node.tag}") from None

    def _map(self, line: int, node: yaml.MappingNode) -> Map:
        mapping = Map(self._file, line)
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                self._merge(mapping, value_node)
        for key_node, value_node in node.value:
            key, key_line = key_node.value, key_node.start_mark.line + 1
            if key_node.tag == _MERGE:
                continue
            # `name: off` names something: YAML 1.1 alone takes it for a boolean.
            named = key == "name" and value_node.tag.endswith(":bool")
            mapping[key] = value_node.value if named else self.value(value_node)
            mapping.lines[key] = key_line
        return mapping

    def _merge(self, mapping: Map, node: yaml.Node) -> None:
        """`<<`: what the named mappings say, the first of them first; the mapping's own keys come later and win."""
        for source in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(source, yaml.MappingNode):
                line = node.start_mark.line + 1
                raise BadFileError(self._file, line, "<<", "must name a mapping (<<: *name) or a list of them")
            merged = self._map(source.start_mark.line + 1, source)
            for key in merged.keys() - mapping.keys():
                mapping[key], mapping.lines[key] = merged[key], merged.lines[key]


def plain(value: Any) -> Any:
    """A deep copy as ordinary dicts and lists, for the API."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


class Reader:
    """Reads one mapping key by key; `path` is how people would name it (`spec.fleet[0]`)."""

    def __init__(self, mapping: Map, path: str = "") -> None:
        self.mapping, self.path = mapping, path
        self._known: set[str] = set()

    # --- errors

    def error(self, key: str, message: str) -> BadFileError:
        line = self.mapping.lines.get(key, self.mapping.line)
        return BadFileError(self.mapping.file, line, self._name(key), message)

    def _name(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path and key else self.path or key

    def done(self) -> None:
        """Raise for the first key that nobody asked for."""
        for key in self.mapping:
            if key in self._known:
                continue
            near = difflib.get_close_matches(key, self._known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            known = ", ".join(sorted(self._known))
            raise self.error(key, f"unknown key{hint} (known here: {known})")

    # --- values

    def has(self, key: str) -> bool:
        self._known.add(key)
        return self.mapping.get(key) is not None

    def raw(self, key: str, default: Any = None) -> Any:
        return self.mapping[key] if self.has(key) else default

    def need(self, key: str) -> Any:
        if not self.has(key):
            near = difflib.get_close_matches(key, self.mapping.keys() - self._known, n=1, cutoff=0.75)
            raise self.error(key, f"is missing; is it meant by {near[0]!r}?" if near else "is missing")
        return self.mapping[key]

    def text(self, key: str, default: str | None = None) -> str:
        value = self.need(key) if default is None else self.raw(key, default)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise self.error(key, f"must be text, not {value!r}")
        return str(value)

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        value = self.need(key) if default is None else self.raw(key, default)
        if isinstance(value, bool):
            value = "on" if value else "off"  # YAML 1.1 reads the bare words as booleans
        if value not in choices:
            raise self.error(key, f"must be one of {', '.join(choices)}, not {value!r}")
        return str(value)

    def integer(self, key: str, default: int | None = None, least: int = 0) -> int:
        value = self.need(key) if default is None else self.raw(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(key, f"must be a whole number, not {value!r}")
        if value < least:
            raise self.error(key, f"must be at least {least}, not {value}")
        return value

    def number(self, key: str, default: float | None = None, least: float = 0.0, most: float | None = None) -> float:
        value = self.need(key) if default is None else self.raw(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(key, f"must be a number, not {value!r}")
        if value < least or (most is not None and value > most):
            bound = f" to {most:g}" if most is not None else " up"
            raise self.error(key, f"must be from {least:g}{bound}, not {value}")
        return float(value)

    def boolean(self, key: str, default: bool) -> bool:
        value = self.raw(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, not {value!r}")
        return value

    def seconds(self, key: str, default: float | None = None) -> float:
        """A duration such as 90s, 30m, 24h or 7d, in seconds."""
        value = self.need(key) if default is None else self.raw(key)
        if value is None and default is not None:
            return default
        try:
            return parse_duration(str(value)).total_seconds()
        except ValueError:
            raise self.error(key, f"must be a duration such as 90s, 30m, 24h or 7d, not {value!r}") from None

    def names(self, key: str) -> tuple[str, ...]:
        """One name or a list of names."""
        value = self.need(key)
        names = value if isinstance(value, list) else [value]
        if not names or not all(isinstance(name, str) and name for name in names):
            raise self.error(key, f"must be a name or a list of names, not {value!r}")
        return tuple(names)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.raw(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(key, f"must be a list of texts, not {value!r}")
        return tuple(value)

    def mapping_of_text(self, key: str, nulls: bool = False) -> dict[str, Any]:
        value = self.raw(key, {})
        good = isinstance(value, dict) and all(isinstance(v, str) or (nulls and v is None) for v in value.values())
        if not good:
            raise self.error(key, f"must map names to text{' or null' if nulls else ''} (quote numbers), not {value!r}")
        return dict(value)

    def nested(self, key: str) -> Reader | None:
        """A reader on the mapping under `key`; None where there is none."""
        if not self.has(key):
            return None
        return self.sub(key, self.mapping[key], key)

    def each(self, key: str) -> Iterator[Reader]:
        """Readers on the mappings of the list under `key`."""
        value = self.raw(key, [])
        if not isinstance(value, list):
            raise self.error(key, f"must be a list, not {value!r}")
        for index, item in enumerate(value):
            yield self.sub(key, item, f"{key}[{index}]")

    def sub(self, key: str, value: Any, name: str) -> Reader:
        if not isinstance(value, Map):
            raise self.error(key, f"{name} must be a mapping of keys to values, not {value!r}")
        return Reader(value, self._name(name))


def read_each(parent: Reader, key: str, read: Callable[[Reader], T]) -> tuple[T, ...]:
    """Read a list of mappings with `read`, refusing unknown keys in each."""
    items = []
    for reader in parent.each(key):
        items.append(read(reader))
        reader.done()
    return tuple(items)


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386 on data that remembers its lines; neither argument is changed."""
    if not isinstance(patch, Map):
        return patch
    merged = target.copy() if isinstance(target, Map) else Map(patch.file, patch.line)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
            continue
        merged[key] = merge_patch(merged.get(key), value)
        merged.lines[key] = patch.lines.get(key, patch.line)
    return merged
