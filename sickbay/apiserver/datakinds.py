"""Config maps and secrets: keys that can be file names, and what `immutable` means."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from sickbay.apiserver.errors import Cause, Obj
from sickbay.apiserver.metadata import invalid_value
from sickbay.apiserver.strategy import Strategy

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or"
    " 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
MAX_KEY = 253
MAX_BYTES = 1024 * 1024
"""Of all values together (core/v1, MaxSecretSize)."""


def _key_problem(key: str) -> str:
    if len(key) > MAX_KEY:
        return f"must be no more than {MAX_KEY} characters"
    if not _KEY.fullmatch(key):
        return _KEY_TEXT
    if key in (".", ".."):
        return f"must not be '{key}'"
    return "must not start with '..'" if key.startswith("..") else ""


def _check_keys(obj: Obj, field: str) -> list[Cause]:
    keys = obj.get(field) or {}
    return [
        invalid_value(f"{field}[{key}]", key, problem) for key in sorted(keys) if (problem := _key_problem(str(key)))
    ]


def _check_settled(new: Obj, old: Obj | None, *fields: str) -> list[Cause]:
    """An immutable object keeps its content, and stays immutable."""
    if old is None or not old.get("immutable"):
        return []
    changed = [field for field in fields if (new.get(field) or {}) != (old.get(field) or {})]
    if not new.get("immutable"):
        changed.insert(0, "immutable")
    text = "Forbidden: field is immutable when `immutable` is set"
    return [Cause("FieldValueForbidden", text, field) for field in changed]


class ConfigMapStrategy(Strategy):
    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        if old is not None and all(new.get(field) is old.get(field) for field in ("data", "binaryData", "immutable")):
            return []
        texts, binary = new.get("data") or {}, new.get("binaryData") or {}
        causes = _check_keys(new, "data")
        causes += [
            invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
            for key in sorted(texts)
            if key in binary
        ]
        causes += _check_keys(new, "binaryData")
        size = sum(len(text.encode()) for text in texts.values()) + sum(len(text) * 3 // 4 for text in binary.values())
        if size > MAX_BYTES:
            causes.append(Cause("FieldValueTooLong", f"Too long: may not be more than {MAX_BYTES} bytes", ""))
        return causes + _check_settled(new, old, "data", "binaryData")


class SecretStrategy(Strategy):
    def prepare_create(self, obj: Obj, store: Store) -> None:
        obj.setdefault("type", "Opaque")
        _encode_texts(obj)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        new.setdefault("type", old.get("type", "Opaque"))
        _encode_texts(new)

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        causes = _check_keys(new, "data")
        if old is not None and new["type"] != old.get("type", "Opaque"):
            causes.append(invalid_value("type", new["type"], "field is immutable"))
        if sum(len(text) * 3 // 4 for text in (new.get("data") or {}).values()) > MAX_BYTES:
            causes.append(Cause("FieldValueTooLong", f"Too long: may not be more than {MAX_BYTES} bytes", "data"))
        return causes + _check_settled(new, old, "data")


def _encode_texts(secret: Obj) -> None:
    """`stringData` is a way to write `data` and is never read back."""
    texts = secret.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}
