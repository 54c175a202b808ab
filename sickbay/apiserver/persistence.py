"""Objects on disk: an SQLite file that holds the present state, durable before a write is answered.

The file holds objects, not history: after a restart every watch from before gets 410 and its client lists again, as
after any compaction. One process at a time: the file is locked while it is open.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from sickbay.apiserver.errors import Obj, StatusError

FORMAT = 1
"""Version of the file's layout; a file of another version is refused."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (
    resource TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (resource, key)
) WITHOUT ROWID;
"""


class CannotOpen(Exception):
    """The file cannot be used; the text names it, why, and the remedy."""


class Stored(NamedTuple):
    resource: str
    key: str
    revision: int
    obj: Obj


class Journal:
    """The file. Every call that changes it is durable when it returns."""

    def __init__(self, path: Path) -> None:
        """Open or create. Raises CannotOpen."""
        self._path = path
        try:
            # A second process that opens the file must hear so at once, not wait.
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None)
        except sqlite3.Error as error:
            raise CannotOpen(f"{path}: {error}. {_remedy(error)}") from None
        try:
            self._prepare()
        except sqlite3.Error as error:
            self.close()
            raise CannotOpen(f"{path}: {error}. {_remedy(error)}") from None

    def _prepare(self) -> None:
        connection = self._connection
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_SCHEMA)
        connection.execute("INSERT OR IGNORE INTO about VALUES ('format', ?)", (FORMAT,))
        found = self._about("format")
        if found != FORMAT:
            self.close()
            raise CannotOpen(
                f"{self._path} has format {found}, this version reads {FORMAT}: use the version that wrote it"
            )

    def _about(self, name: str) -> int:
        row = self._connection.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return 0 if row is None else int(row[0])

    @property
    def revision(self) -> int:
        """The last revision that was written; 0 for an empty file."""
        return self._about("revision")

    def objects(self) -> Iterator[Stored]:
        rows = self._connection.execute("SELECT resource, key, revision, body FROM objects ORDER BY resource, key")
        for resource, key, revision, body in rows:
            yield Stored(resource, key, revision, msgspec.json.decode(body))

    def put(self, resource: str, key: str, revision: int, body: bytes) -> None:
        """Raises StatusError(500) when the disk refuses; nothing is changed then."""
        self._write("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", (resource, key, revision, body), revision)

    def drop(self, resource: str, key: str, revision: int) -> None:
        """Raises StatusError(500)."""
        self._write("DELETE FROM objects WHERE resource = ? AND key = ?", (resource, key), revision)

    def _write(self, statement: str, values: tuple[str | int | bytes, ...], revision: int) -> None:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(statement, values)
            connection.execute("INSERT OR REPLACE INTO about VALUES ('revision', ?)", (revision,))
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                connection.rollback()
            message = f"Internal error occurred: {self._path}: {error}; nothing was written"
            raise StatusError(500, "InternalError", message) from None

    def close(self) -> None:
        self._connection.close()


def _remedy(error: sqlite3.Error) -> str:
    text = str(error)
    if "locked" in text:
        return "Another process has it open: stop that one, or give this one a file of its own"
    if "unable to open" in text:
        return "Create the folder and make it writable for this user"
    if "not a database" in text or "malformed" in text:
        return "It is no file of this program, or it is damaged: restore a backup, or move it away to start anew"
    return "Check the disk"
