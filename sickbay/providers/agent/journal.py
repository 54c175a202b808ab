"""What the agent has begun, written to disk before it is begun.

An agent may die at any moment; a reboot even asks it to. On its next start the journal, not the API server, says which
acts were begun and in which boot, so that none is done twice.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import msgspec

KEEP = 200
"""Entries kept: far more than a node gets within the lifetime of a task."""


class Entry(msgspec.Struct, kw_only=True):
    """One act."""

    key: str
    action: str
    boot_id: str
    """Boot in which it was begun."""
    at: str
    """When, RFC 3339."""
    outcome: str = ""
    """Done or Failed; empty while nobody knows."""
    message: str = ""
    proof: dict[str, str] = {}


class Journal(Protocol):
    def find(self, key: str) -> Entry | None: ...

    def write(self, entry: Entry) -> None:
        """Keep the entry, replacing one of the same key. When it returns the entry survives a crash of the host."""
        ...


def keep(entries: dict[str, Entry], entry: Entry) -> None:
    """Add the entry as the latest, replacing one of the same key; the oldest go when there are too many."""
    entries.pop(entry.key, None)
    entries[entry.key] = entry
    while len(entries) > KEEP:
        entries.pop(next(iter(entries)))


class FileJournal:
    """Entries in one JSON file, replaced as a whole; each write is on the disk before it returns."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries = self._read()

    def find(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def write(self, entry: Entry) -> None:
        keep(self._entries, entry)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".new")
        with draft.open("wb") as file:
            file.write(msgspec.json.encode(list(self._entries.values())))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _read(self) -> dict[str, Entry]:
        """Raises ValueError for a journal that cannot be read: acting without it could repeat an act."""
        try:
            entries = msgspec.json.decode(self._path.read_bytes(), type=list[Entry])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            raise ValueError(
                f"journal {self._path} cannot be read: {error}; move it away to start without it"
            ) from error
        return {entry.key: entry for entry in entries}
