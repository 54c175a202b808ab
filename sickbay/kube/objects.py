"""What every object has, read alike from a struct and from a plain dict.

A resourceVersion is opaque by contract and an integer in practice; since KEP-5504 (1.35) clients may compare two of
one resource. `version` gives the integer, or None where a server hands out something else: then nothing here is
"older", and what came last wins.
"""

from __future__ import annotations

from typing import Any

Key = tuple[str, str]
"""(namespace, name); namespace is empty for cluster-scoped kinds."""


def meta(obj: Any) -> Any:
    """The metadata of an object: a dict of a dict, else the attribute."""
    if not isinstance(obj, dict):
        return obj.metadata
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def key_of(obj: Any) -> Key:
    """Where an object is kept. The client hands out no object without a name."""
    found = meta(obj)
    if isinstance(found, dict):
        return found.get("namespace") or "", found.get("name") or ""
    return found.namespace, found.name


def nameless(obj: Any) -> str:
    """Why an object that decoded is of no use all the same; empty where it has a name."""
    name = key_of(obj)[1]
    return "" if isinstance(name, str) and name else "no metadata.name"


def uid_of(obj: Any) -> str:
    found = meta(obj)
    uid = found.get("uid") if isinstance(found, dict) else found.uid
    return uid or ""


def version_text(obj: Any) -> str:
    """metadata.resourceVersion as it stands."""
    found = meta(obj)
    text = found.get("resourceVersion") if isinstance(found, dict) else found.resource_version
    return text or ""


def version(text: str) -> int | None:
    """A resourceVersion as an integer, None when it is none."""
    return int(text) if text.isascii() and text.isdecimal() else None


def version_of(obj: Any) -> int | None:
    return version(version_text(obj))
