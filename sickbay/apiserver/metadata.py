"""The rules of `metadata` that all kinds share: what the server sets, what a client may change, what is well-formed.

After kubernetes' apimachinery (`api/validation/objectmeta.go`) and apiserver (`registry/rest/{create,update}.go`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from sickbay.apiserver.errors import Cause, Obj

KNOWN = frozenset(
    {
        *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
        *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations"),
        *("ownerReferences", "finalizers"),
    }
)
"""Fields of ObjectMeta that are kept. managedFields are not: this server keeps no field ownership."""

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_KEY_TEXT = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g."
    " 'example.com/MyName')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_NAME_PART_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes; keys and values of all annotations together."""
MAX_NAME = 253
MAX_LABEL = 63
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
NameProblems = Callable[[str], list[str]]
"""Why a text cannot be the name of an object; empty when it can."""
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
MAX_GENERATED = 63
"""Length a generated name is cut to, suffix included (apiserver/pkg/storage/names)."""


_ESCAPED = re.compile(r'[\x00-\x1f\x7f"\\\\]')
_GO_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


class Raw(str):
    """A value that stands in a message as it is: JSON."""

    __slots__ = ()


def as_json(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value).decode())


def quoted(value: Any) -> str:
    """A value as Go's %q and %v show it."""
    if isinstance(value, Raw):
        return str(value)
    if not isinstance(value, str):
        return as_json(value) if value is None or isinstance(value, bool | dict | list) else str(value)
    if not _ESCAPED.search(value):
        return f'"{value}"'
    return '"' + _ESCAPED.sub(lambda found: _GO_ESCAPES.get(found[0], f"\\x{ord(found[0]):02x}"), value) + '"'


def invalid_value(field: str, value: Any, why: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {quoted(value)}: {why}", field)


def required(field: str, why: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value: {why}" if why else "Required value", field)


def unsupported_value(field: str, value: Any, *supported: str) -> Cause:
    listed = ", ".join(quoted(word) for word in supported)
    return Cause("FieldValueNotSupported", f"Unsupported value: {quoted(value)}: supported values: {listed}", field)


def is_subdomain(name: str) -> bool:
    return len(name) <= MAX_NAME and _SUBDOMAIN.fullmatch(name) is not None


def subdomain_problems(name: str) -> list[str]:
    """Why `name` is no DNS subdomain, as most objects' names must be."""
    if len(name) > MAX_NAME:
        return [f"must be no more than {MAX_NAME} characters"]
    return [] if is_subdomain(name) else [_SUBDOMAIN_TEXT]


def label_problems(name: str) -> list[str]:
    """Why `name` is no DNS label: those of namespaces, and of containers."""
    if len(name) > MAX_LABEL:
        return [f"must be no more than {MAX_LABEL} characters"]
    if "." in name and is_subdomain(name):
        return ["must not contain dots"]
    return [] if _LABEL.fullmatch(name) else [_LABEL_TEXT]


def segment_problems(name: str) -> list[str]:
    """Why `name` cannot stand in a path: all that RBAC and budgets ask of theirs."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{letter}'" for letter in ("/", "%") if letter in name]


def check_name(metadata: Obj, problems: NameProblems) -> list[Cause]:
    """The name of a new object, and what it was generated from."""
    base, name = metadata.get("generateName", ""), metadata["name"]
    causes: list[Cause] = []
    if base:
        # The letters that follow may end what could not end so by itself.
        tried = base[:-1] + "a" if base.endswith("-") and len(base) > 1 else base
        causes += [invalid_value("metadata.generateName", base, problem) for problem in problems(tried)]
    return causes + [invalid_value("metadata.name", name, problem) for problem in problems(name)]


@lru_cache(maxsize=16384)
def qualified_name_problems(name: str) -> tuple[str, ...]:
    """Why `name` is no `prefix/name`; empty when it is one."""
    if name.count("/") > 1:
        return (_KEY_TEXT,)
    prefix, slash, rest = name.rpartition("/")
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash and len(prefix) > MAX_NAME:
        problems.append(f"prefix part must be no more than {MAX_NAME} bytes")
    elif slash and not is_subdomain(prefix):
        problems.append(f"prefix part {_SUBDOMAIN_TEXT}")
    if not rest:
        problems.append("name part must be non-empty")
    elif len(rest) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _LABEL_NAME.fullmatch(rest):
        problems.append(_NAME_PART_TEXT)
    return tuple(problems)


@lru_cache(maxsize=16384)
def label_value_problems(value: str) -> tuple[str, ...]:
    """Why `value` cannot be a label's value (or a taint's); empty when it can."""
    if len(value) > 63:
        return ("must be no more than 63 bytes",)
    return (_LABEL_VALUE_TEXT,) if value and not _LABEL_NAME.fullmatch(value) else ()


def check_labels(labels: Any, field: str = "metadata.labels") -> list[Cause]:
    causes: list[Cause] = []
    for key, value in (labels or {}).items():
        causes += [invalid_value(field, key, problem) for problem in qualified_name_problems(key)]
        causes += [invalid_value(field, value, problem) for problem in label_value_problems(value)]
    return causes


def check_annotations(annotations: Any) -> list[Cause]:
    field = "metadata.annotations"
    causes: list[Cause] = []
    letters = 0
    for key, value in annotations.items():
        letters += len(key) + len(value)
        for problem in qualified_name_problems(key.lower()):
            causes.append(invalid_value(field, key, problem))
    # A letter has at least one byte and at most four: most annotations need no exact count.
    if letters * 4 > ANNOTATIONS_LIMIT and _bytes(annotations) > ANNOTATIONS_LIMIT:
        causes.append(Cause("FieldValueTooLong", f"Too long: may not be more than {ANNOTATIONS_LIMIT} bytes", field))
    return causes


def _bytes(texts: Obj) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in texts.items())


def normalise(metadata: Obj) -> Obj:
    """A copy with known, non-empty fields only."""
    result = {key: value for key, value in metadata.items() if key in KNOWN and value not in (None, "", {}, [])}
    for field in ("labels", "annotations"):
        values = result.get(field)
        if values and None in values.values():
            result[field] = {key: "" if value is None else value for key, value in values.items()}
    if len(result.get("ownerReferences") or ()) > 1:
        result["ownerReferences"] = list(
            {owner.get("uid"): owner for owner in reversed(result["ownerReferences"])}.values()
        )[::-1]
    return result


_OWNERS = "metadata.ownerReferences"


def check_owners(owners: Any) -> list[Cause]:
    causes = [cause for owner in owners or () for cause in _check_owner(owner)]
    controllers = [owner for owner in owners or () if owner.get("controller") is True]
    if len(controllers) > 1:
        first, second = (f"{owner.get('kind')}/{owner.get('name')}" for owner in controllers[:2])
        why = f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'
        causes.append(invalid_value(_OWNERS, as_json(owners), why))
    return causes


def _check_owner(owner: Obj) -> list[Cause]:
    version, kind = owner.get("apiVersion", ""), owner.get("kind", "")
    causes: list[Cause] = []
    if not version or version.count("/") > 1 or version.endswith("/"):
        causes.append(invalid_value(f"{_OWNERS}.apiVersion", version, "version must not be empty"))
    causes += [
        invalid_value(f"{_OWNERS}.{part}", "", "must not be empty")
        for part in ("kind", "name", "uid")
        if not owner.get(part)
    ]
    if (version, kind) == ("v1", "Event"):
        why = "/v1, Kind=Event is disallowed from being an owner"
        causes.append(invalid_value(_OWNERS, as_json(owner), why))
    return causes


STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
"""Finalizers without a domain that the server takes (apis/core/validation)."""


def check_finalizers(finalizers: Any) -> list[Cause]:
    causes: list[Cause] = []
    for index, finalizer in enumerate(finalizers or ()):
        problems = qualified_name_problems(finalizer)
        causes += [invalid_value("metadata.finalizers", finalizer, problem) for problem in problems]
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(invalid_value(f"metadata.finalizers[{index}]", finalizer, why))
    return causes


def check(metadata: Obj, old: Obj | None) -> list[Cause]:
    """Validate what is not the very object that was valid already."""
    causes: list[Cause] = []
    for field, checker in (
        ("labels", check_labels),
        ("annotations", check_annotations),
        ("ownerReferences", check_owners),
        ("finalizers", check_finalizers),
    ):
        value = metadata.get(field)
        if value is not None and (old is None or old.get(field) is not value):
            causes += checker(value)
    return causes


_IMMUTABLE = ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds")


def check_update(metadata: Obj, old: Obj) -> list[Cause]:
    """Fill in what a client left out and refuse what it may not change. Changes `metadata`."""
    for field in ("generateName", *_IMMUTABLE):
        if field in old:
            metadata.setdefault(field, old[field])
    metadata["creationTimestamp"] = old["creationTimestamp"]
    causes = [
        invalid_value(f"metadata.{field}", metadata.get(field, ""), "field is immutable")
        for field in _IMMUTABLE
        if metadata.get(field) != old.get(field)
    ]
    if old.get("deletionTimestamp"):
        added = [name for name in metadata.get("finalizers") or () if name not in (old.get("finalizers") or ())]
        if added:
            listed = ", ".join(quoted(name) for name in added)
            why = (
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers"
                f" []string{{{listed}}}"
            )
            causes.append(Cause("FieldValueForbidden", why, "metadata.finalizers"))
    return causes


def generated_name(base: str, draw: Any) -> str:
    """`base` and five letters; `draw(n)` gives an integer below n."""
    suffix = "".join(_SUFFIX_LETTERS[draw(len(_SUFFIX_LETTERS))] for _ in range(SUFFIX_LENGTH))
    return base[: MAX_GENERATED - SUFFIX_LENGTH] + suffix
