"""JSON patch (RFC 6902), with the habits of the library kube-apiserver uses (evanphx/json-patch v4).

Documents are never changed in place: each operation copies the containers along its path and shares the rest, so a
patch of one field of a large object costs what that path costs. Anything that does not apply raises `PatchFailed`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sickbay.apiserver.texts import MAX_DEPTH, check_depth

MAX_COPIED = 3 * 1024 * 1024
"""Bytes that the copies of one patch may come to (kube-apiserver's limit on a body, which holds for this too)."""
MAX_OPERATIONS = 10000
"""kube-apiserver's limit on the operations of one patch."""

Path = tuple[str, ...]


class PatchFailed(Exception):
    """The patch is well-formed and does not apply to this document."""


class PatchMalformed(Exception):
    """The patch is no JSON patch."""


class PatchTooLong(Exception):
    """The patch has more operations than the server takes."""


def apply(document: Any, operations: Any) -> Any:
    """The patched document. Raises PatchMalformed, PatchTooLong or PatchFailed."""
    if not isinstance(operations, list):
        raise PatchMalformed("a JSON patch is a list of operations")
    if len(operations) > MAX_OPERATIONS:
        raise PatchTooLong(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}")
    copied = 0
    for operation in operations:
        document, size = _apply_one(document, operation)
        copied += size
        if copied > MAX_COPIED:
            raise PatchFailed(f"copies of more than {MAX_COPIED} bytes")
    return document


_TEXTS = ("op", "path", "from")


def _apply_one(document: Any, operation: Any) -> tuple[Any, int]:
    """The document after one operation, and how many bytes of it were copied."""
    if not isinstance(operation, dict) or not all(isinstance(operation.get(key, ""), str) for key in _TEXTS):
        raise PatchMalformed("each operation of a JSON patch is an object; its op, path and from are texts")
    if "path" not in operation:
        raise PatchFailed("an operation without a path: missing value")
    path = _parse(operation["path"])
    match operation.get("op"):
        case "test":
            return _test(document, path, operation), 0
        case "remove":
            return _remove(document, path, operation["path"]), 0
        case "add":
            return _add(document, path, _placed(_value(operation), path), operation["path"], "add"), 0
        case "replace":
            return _replace(document, path, _placed(_value(operation), path), operation["path"]), 0
        case "move" | "copy" as op:
            source = _parse(operation.get("from") or "")
            value = _get(document, source, op, operation.get("from") or "")
            if op == "move":
                document = _remove(document, source, operation.get("from") or "")
            size = len(msgspec.json.encode(value)) if op == "copy" else 0
            return _add(document, path, _placed(value, path), operation["path"], op), size
        case other:
            raise PatchFailed(f"Unexpected kind: {other}")


def _placed(value: Any, path: Path) -> Any:
    """A value that may stand at a path: operations one after the other could nest without end."""
    if isinstance(value, dict | list) or len(path) > MAX_DEPTH:
        try:
            check_depth(value, len(path))
        except ValueError as error:
            raise PatchFailed(str(error)) from None
    return value


def _value(operation: dict[str, Any]) -> Any:
    return operation.get("value")


def _parse(pointer: str) -> Path:
    if pointer == "":
        return ()
    # The server's library does not look at what stands before the first slash.
    _, slash, rest = pointer.partition("/")
    if not slash:
        raise PatchFailed(f"path {pointer!r} does not begin with /: missing value")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in rest.split("/"))


def _index(container: list[Any], token: str, *, end: int) -> int:
    if not token.lstrip("-").isdigit():
        raise PatchFailed(f'value was not a proper array index: "{token}"')
    index = int(token)
    if not -end <= index < end:
        raise PatchFailed(f"Unable to access invalid index: {index}: invalid index referenced")
    return index if index >= 0 else index + end


def _child(container: Any, token: str) -> Any:
    """The value under `token`; raises KeyError when there is none."""
    if isinstance(container, dict):
        return container[token]
    if isinstance(container, list):
        return container[_index(container, token, end=len(container))]
    raise KeyError(token)


def _get(document: Any, path: Path, op: str, pointer: str) -> Any:
    for token in path:
        try:
            document = _child(document, token)
        except KeyError:
            raise PatchFailed(f"error in {op} for path: '{pointer}': missing value") from None
    return document


def _test(document: Any, path: Path, operation: dict[str, Any]) -> Any:
    expected, pointer = _value(operation), operation["path"]
    current = document
    for position, token in enumerate(path):
        try:
            current = _child(current, token)
        except KeyError:
            if position < len(path) - 1:
                raise PatchFailed(f"error in test for path: '{pointer}': missing value") from None
            if expected is None:
                return document
            raise PatchFailed(f"testing path {pointer} failed: test failed") from None
    if not same(current, expected):
        raise PatchFailed(f"testing value {pointer} failed: test failed")
    return document


def same(one: Any, other: Any) -> bool:
    """JSON equality: Python's `True == 1` does not hold in JSON."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def _rebuild(document: Any, path: Path, pointer: str, op: str, leaf: Any) -> Any:
    """Copy the containers along `path`, and let `leaf(container, token)` change the last one's copy."""
    if not isinstance(document, dict | list):
        raise PatchFailed(f'{op} operation does not apply: doc is missing path: "{pointer}": missing value')
    copy = document.copy()
    if len(path) == 1:
        leaf(copy, path[0])
        return copy
    try:
        child = _child(copy, path[0])
    except KeyError:
        message = f'{op} operation does not apply: doc is missing path: "{pointer}": missing value'
        raise PatchFailed(message) from None
    changed = _rebuild(child, path[1:], pointer, op, leaf)
    if isinstance(copy, dict):
        copy[path[0]] = changed
    else:
        copy[_index(copy, path[0], end=len(copy))] = changed
    return copy


def _add(document: Any, path: Path, value: Any, pointer: str, op: str) -> Any:
    if not path:
        return value

    def leaf(container: Any, token: str) -> None:
        if isinstance(container, dict):
            container[token] = value
        elif token == "-":
            container.append(value)
        else:
            container.insert(_index(container, token, end=len(container) + 1), value)

    return _rebuild(document, path, pointer, op, leaf)


def _remove(document: Any, path: Path, pointer: str) -> Any:
    if not path:
        raise PatchFailed("remove operation does not apply: the whole document cannot be removed")

    def leaf(container: Any, token: str) -> None:
        if isinstance(container, list):
            del container[_index(container, token, end=len(container))]
        elif token in container:
            del container[token]
        else:
            raise PatchFailed(f"remove operation does not apply: doc is missing key: {pointer}: missing value")

    return _rebuild(document, path, pointer, "remove", leaf)


def _replace(document: Any, path: Path, value: Any, pointer: str) -> Any:
    if not path:
        return value

    def leaf(container: Any, token: str) -> None:
        if isinstance(container, list):
            container[_index(container, token, end=len(container))] = value
        else:
            # The server's library (unlike the RFC) lets `replace` add a key to an object that lacks it.
            container[token] = value

    return _rebuild(document, path, pointer, "replace", leaf)
