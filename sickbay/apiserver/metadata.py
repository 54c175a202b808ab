"""The rules of `metadata` that all kinds share: what the server sets, what a client may change, what is well-formed.

After kubernetes' apimachinery (`api/validation/objectmeta.go`) and apiserver (`registry/rest/{create,update}.go`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

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
_NAME_PART_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes; keys and values of all annotations together."""
MAX_NAME = 253
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH = 5
MAX_GENERATED = 63
"""Length a generated name is cut to, suffix included (apiserver/pkg/storage/names)."""


def quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def invalid_value(field: str, value: Any, why: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {quoted(value)}: {why}", field)


def required(field: str, why: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value: {why}" if why else "Required value", field)


def is_subdomain(name: str) -> bool:
    return len(name) <= MAX_NAME and _SUBDOMAIN.fullmatch(name) is not None


def check_name(name: str, *, path_segment_only: bool = False) -> list[Cause]:
    """`path_segment_only`: RBAC names may hold colons and capitals."""
    if path_segment_only:
        if name in (".", "..") or "/" in name or "%" in name:
            return [invalid_value("metadata.name", name, "may not contain '/' or '%'")]
        return []
    if len(name) > MAX_NAME:
        return [invalid_value("metadata.name", name, f"must be no more than {MAX_NAME} characters")]
    if not is_subdomain(name):
        return [invalid_value("metadata.name", name, _SUBDOMAIN_TEXT)]
    return []


@lru_cache(maxsize=16384)
def qualified_name_problems(name: str) -> tuple[str, ...]:
    """Why `name` is no `prefix/name`; empty when it is one."""
    prefix, slash, rest = name.rpartition("/")
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
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


def check_types(metadata: Obj, old: Obj | None = None) -> str:
    """Why the metadata cannot be decoded at all, or "". What is shared with `old` has been looked at before."""
    for field in ("labels", "annotations"):
        value = metadata.get(field)
        if value is None or (old is not None and value is old.get(field)):
            continue
        if not isinstance(value, dict):
            return f"metadata.{field} must be a map of strings"
        for key, text in value.items():
            if text is not None and not isinstance(text, str):
                return f"metadata.{field}.{key}: a string is needed, not {text!r}"
    for field in ("finalizers", "ownerReferences"):
        value = metadata.get(field)
        if value is not None and not isinstance(value, list):
            return f"metadata.{field} must be a list"
    for field in ("name", "namespace", "generateName", "uid", "resourceVersion"):
        value = metadata.get(field)
        if value is not None and not isinstance(value, str):
            return f"metadata.{field}: a string is needed, not {value!r}"
    return ""


def normalise(metadata: Obj) -> Obj:
    """A copy with known, non-empty fields only."""
    result = {key: value for key, value in metadata.items() if key in KNOWN and value not in (None, "", {}, [])}
    for field in ("labels", "annotations"):
        values = result.get(field)
        if values and None in values.values():
            result[field] = {key: "" if value is None else value for key, value in values.items()}
    return result


def check_owners(owners: Any) -> list[Cause]:
    causes: list[Cause] = []
    controllers = 0
    field = "metadata.ownerReferences"
    for owner in owners or ():
        for part in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(part):
                why = "version must not be empty" if part == "apiVersion" else "must not be empty"
                causes.append(invalid_value(f"{field}.{part}", "", why))
        controllers += owner.get("controller") is True
    if controllers > 1:
        why = "Only one reference can have Controller set to true"
        causes.append(invalid_value("metadata.ownerReferences", "", why))
    return causes


STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
"""Finalizers without a domain that the server takes (apis/core/validation)."""


def check_finalizers(finalizers: Any) -> list[Cause]:
    causes: list[Cause] = []
    for index, finalizer in enumerate(finalizers or ()):
        field = f"metadata.finalizers[{index}]"
        causes += [invalid_value(field, finalizer, problem) for problem in qualified_name_problems(finalizer)]
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(invalid_value(field, finalizer, why))
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
