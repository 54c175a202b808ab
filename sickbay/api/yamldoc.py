"""YAML of people: read strictly, and bounded, so that no file can hang or crash the program that reads it.

YAML allows more than a manifest needs. A key given twice would silently keep its last value; nesting goes as deep as
the stack; an alias may stand inside what it names, and a few lines of aliases stand for more values than memory holds.
All of these are refused here with the line where they stand. Aliases as such are fine.

The nodes keep their lines (`start_mark`), so that whoever judges the values later can still point at one.
"""

from __future__ import annotations

from typing import Any, ClassVar

import yaml

MOST_NESTED = 100
"""Levels. A Pod's deepest field stands about 15 deep; the parser's stack would last for some 300."""

MOST_REPEATED = 100_000
"""Values that the aliases of one document may stand for. What is written out is bounded by the size of its file."""


class BadYamlError(ValueError):
    """A text is no YAML that can be used. `line` counts from 1; `key` is "" where it is not about one key."""

    def __init__(self, line: int, key: str, message: str) -> None:
        super().__init__(f"line {line}: {key}: {message}" if key else f"line {line}: {message}")
        self.line, self.key, self.message = line, key, message


def compose(text: str) -> list[yaml.Node]:
    """The documents of a text as nodes with their lines. Raises BadYamlError."""
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        raise _unprintable(text, error) from None
    try:
        found: list[yaml.Node] = []
        while loader.check_node():
            node = loader.get_node()
            found += [node] if node is not None else []
        return found
    except yaml.reader.ReaderError as error:
        raise _unprintable(text, error) from None
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error) from None
    finally:
        loader.dispose()


def construct(node: yaml.Node) -> Any:
    """The plain value of a node, by the rules of YAML 1.1, times as text. Raises BadYamlError."""
    try:
        return _Values().construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error) from None


def load(text: str) -> list[Any]:
    """The values of all documents of a text; empty ones are left out. Raises BadYamlError."""
    return [value for node in compose(text) if (value := construct(node)) is not None]


def line_of(node: yaml.Node) -> int:
    """Where it begins, from 1."""
    return int(node.start_mark.line) + 1


_TIME = "tag:yaml.org,2002:timestamp"


class _Loader(yaml.SafeLoader):
    """A composer that counts while it goes. Times stay text, as they do with kubectl."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        first: [(tag, pattern) for tag, pattern in found if tag != _TIME]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._values = self._repeated = 0
        self._sizes: dict[str, int] = {}
        """Values that an anchor stands for; 0 while it is still being read."""

    def compose_document(self) -> yaml.Node | None:
        self._values = self._repeated = 0
        self._sizes.clear()
        found: yaml.Node | None = super().compose_document()
        return found

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            self._count(str(event.anchor), line)
            return self._super(parent, index)
        if self._depth >= MOST_NESTED:
            raise BadYamlError(line, "", f"nests deeper than {MOST_NESTED} levels, which no manifest does; correct it")
        before = self._values
        if event.anchor:
            self._sizes[event.anchor] = 0
        self._depth += 1
        node = self._super(parent, index)
        self._depth -= 1
        self._values += 1
        if event.anchor:
            self._sizes[event.anchor] = self._values - before
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
        return node

    def _super(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        node: yaml.Node | None = super().compose_node(parent, index)
        return node

    def _count(self, anchor: str, line: int) -> None:
        size = self._sizes.get(anchor)
        if size is None:
            return  # the composer says that there is no such anchor
        if not size:
            raise BadYamlError(line, "", f"*{anchor} stands inside what it names (&{anchor}); write it out")
        self._values += size
        self._repeated += size
        if self._repeated > MOST_REPEATED:
            message = f"the aliases up to *{anchor} stand for more than {MOST_REPEATED} values; use fewer"
            raise BadYamlError(line, "", message)


class _Values(yaml.constructor.SafeConstructor):
    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except BadYamlError:
            raise
        except (ValueError, TypeError, KeyError) as error:  # 2026-13-01, or a tag that the value does not fit
            raise BadYamlError(line_of(node), "", f"a value cannot be read ({error}); quote it") from None


def _check_keys(node: yaml.MappingNode) -> None:
    first: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise BadYamlError(line_of(key), "", "a key must be plain text")
        if key.value in first:
            message = f"is given twice (first in line {first[key.value]}); keep one"
            raise BadYamlError(line_of(key), key.value, message)
        first[key.value] = line_of(key)


def _not_yaml(error: yaml.MarkedYAMLError) -> BadYamlError:
    line = error.problem_mark.line + 1 if error.problem_mark else 1
    return BadYamlError(line, "", f"not YAML: {error.problem or error.context}; correct it here or just before")


def _unprintable(text: str, error: yaml.reader.ReaderError) -> BadYamlError:
    message = f"not YAML: character #x{ord(text[error.position]):x} may not stand in it; remove it"
    return BadYamlError(text.count("\n", 0, error.position) + 1, "", message)
