"""What an import says beside its manifests: where a setting stands, what became of it, and why it is refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_SHOWN = 100
"""Characters of a value shown to people."""


class RefusedError(Exception):
    """The settings cannot be imported as they are. The text names field, value and remedy."""


@dataclass(frozen=True, slots=True)
class Note:
    """A setting that was not taken over as it stood."""

    where: str
    """File and path of the setting."""
    value: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.value}: {self.text}" if self.value else f"{self.where}: {self.text}"


@dataclass(frozen=True)
class Setting:
    """One value of a document, and where it stands."""

    file: str
    path: str
    value: Any

    @property
    def where(self) -> str:
        return f"{self.file}: {self.path}" if self.path else self.file

    @property
    def shown(self) -> str:
        return f"{self.where}: {shorten(self.value)}"

    @property
    def place(self) -> Setting:
        """The place alone, for notes in which the value would say nothing."""
        return Setting(self.file, self.path, None)

    @property
    def given(self) -> bool:
        return self.value is not None

    def get(self, key: str) -> Setting:
        """The value below; None where there is none."""
        below = self.value.get(key) if isinstance(self.value, Mapping) else None
        return Setting(self.file, f"{self.path}.{key}" if self.path else key, below)

    def names(self) -> Iterator[str]:
        if isinstance(self.value, Mapping):
            yield from map(str, self.value)

    def items(self) -> list[Setting]:
        """The entries of a list; none where the value is absent. Raises RefusedError for what is no list."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise RefusedError(f"{self.shown}: not a list; give a list here")
        return [Setting(self.file, f"{self.path}[{i}]", each) for i, each in enumerate(self.value)]

    def mapping(self) -> Setting:
        """Itself. Raises RefusedError for a value that is there and is no mapping."""
        if self.value is not None and not isinstance(self.value, Mapping):
            raise RefusedError(f"{self.shown}: not a mapping; give keys and values here")
        return self

    def text(self) -> str:
        """The value as text, "" where it is absent. Raises RefusedError for lists and mappings."""
        if self.value is None:
            return ""
        if isinstance(self.value, list | Mapping):
            raise RefusedError(f"{self.shown}: not text; give one word here")
        return str(self.value).strip()

    def truth(self, default: bool) -> bool:
        """The value as yes or no; some answers of the API write "true" as text. Raises RefusedError otherwise."""
        if self.value is None:
            return default
        word = str(self.value).lower()
        if word not in ("true", "false"):
            raise RefusedError(f"{self.shown}: neither true nor false; write one of them")
        return word == "true"


@dataclass
class Ledger:
    """The notes of an import, in the order of the documents, each once."""

    notes: list[Note] = field(default_factory=list)

    def note(self, setting: Setting, text: str) -> None:
        found = Note(setting.where, shorten(setting.value) if setting.given else "", text)
        if found not in self.notes:
            self.notes.append(found)

    def strangers(self, setting: Setting, known: Iterable[str]) -> None:
        """Note every key that nobody here knows."""
        for key in setting.names():
            if key not in known:
                self.note(setting.get(key), "unknown to this importer, left out")


def contradiction(one: Setting, other: Setting, why: str) -> RefusedError:
    """Two settings that cannot both be meant; both are named."""
    return RefusedError(f"contradiction: {one.shown}\n          and: {other.shown}\n  {why}")


def shorten(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
