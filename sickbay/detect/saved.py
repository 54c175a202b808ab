"""What an agent remembers over restarts and boots, in one small file on the host.

It is a memory, not the record: what is wrong with a node stands in the Node. Lost or damaged, the agent reads the
kernel log of the running boot again from its first message.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from sickbay.detect.devicemap import Device
from sickbay.detect.ledger import Mark

log = structlog.get_logger(__name__)


class Saved(msgspec.Struct, kw_only=True, omit_defaults=True):
    """See the module."""

    boot_id: str = ""
    """Boot in which this was written."""
    settled: str = ""
    """Boot whose clean start has been taken as proof: what an earlier boot left behind is cleared."""
    positions: dict[str, str] = {}
    """By source: where reading goes on."""
    devices: list[Device] = []
    marks: list[Mark] = []
    """Findings that stand, as they were last written to the Node."""
    written: list[str] = []
    """Items whose condition we have ever written, True or False."""
    node_uid: str = ""
    gpus: int = 0
    """Most GPUs that the driver ever showed while the Node was this one."""
    resets: list[str] = []
    """UUIDs of GPUs that were reset and have not been looked at since."""


class Store(Protocol):
    def load(self) -> Saved: ...

    def save(self, saved: Saved) -> None:
        """Keep it; when this returns it survives a crash of the host. Raises OSError."""
        ...


class MemoryStore:
    """For a host without a disk of its own: every start is the first."""

    def __init__(self) -> None:
        self.saved = Saved()

    def load(self) -> Saved:
        return msgspec.convert(msgspec.to_builtins(self.saved), Saved)

    def save(self, saved: Saved) -> None:
        self.saved = msgspec.convert(msgspec.to_builtins(saved), Saved)


class FileStore:
    """One JSON file, replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Saved:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Saved)
        except FileNotFoundError:
            return Saved()
        except (OSError, msgspec.DecodeError) as error:
            log.warning("saved state cannot be read; starting without it", path=str(self._path), error=str(error))
            return Saved()

    def save(self, saved: Saved) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".new")
        with draft.open("wb") as file:
            file.write(msgspec.json.encode(saved))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)
