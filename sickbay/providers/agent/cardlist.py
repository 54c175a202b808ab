"""The list of cards that a device plug-in must not offer, as a file on the host.

    {"index": ["2"], "uuid": ["GPU-..."]}

is the format of ACK's NVIDIA device plug-in (`/etc/nvidia-device-plugin/unhealthyDevices.json`, plug-in 0.9.1 and
later, re-read while it runs). For a plug-in that reads its health from elsewhere a command is run after each change,
with the path of the file as its last argument: a script that translates it, or one that restarts the plug-in.

Entries of others in the file stay: which are ours is kept beside the agent's journal, and only those are taken out.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from sickbay.providers.agent.host import HostError

T = TypeVar("T", "_List", "_Ours")


class _List(msgspec.Struct):
    index: list[str] = []
    uuid: list[str] = []


class _Ours(msgspec.Struct):
    """What of the list is ours; `told`: the plug-in knows of the list as it is."""

    uuid: list[str] = []
    told: bool = True


class CardList:
    """`state` remembers which entries are ours; `run` runs the command, where there is one."""

    def __init__(
        self, path: Path, state: Path, command: Sequence[str], run: Callable[[Sequence[str]], Awaitable[object]]
    ) -> None:
        self._path, self._state, self._command, self._run = path, state, tuple(command), run

    async def set(self, cards: frozenset[str]) -> None:
        """Make the file list these cards beside those of others. Raises HostError that names the file."""
        ours, listed = self._read(self._state, _Ours), self._read(self._path, _List)
        others = [uuid for uuid in listed.uuid if uuid not in ours.uuid]
        mine = sorted(cards - set(others))
        new = _List(index=listed.index, uuid=[*others, *mine])
        if new == listed and ours == _Ours(uuid=mine):
            return
        # Ours are remembered first: an agent that dies between the two takes them out again, and nobody else's.
        self._write(self._state, _Ours(uuid=sorted({*ours.uuid, *mine}), told=False))
        self._write(self._path, new)
        if self._command:
            await self._run([*self._command, str(self._path)])
        self._write(self._state, _Ours(uuid=mine))

    def _read(self, path: Path, type_: type[T]) -> T:
        try:
            return msgspec.json.decode(path.read_bytes(), type=type_)
        except FileNotFoundError:
            return type_()
        except (OSError, msgspec.DecodeError) as error:
            raise HostError(f"{path} cannot be read: {error}; cards stay as they are") from None

    def _write(self, path: Path, content: _List | _Ours) -> None:
        draft = path.with_name(f"{path.name}.new")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as file:
                file.write(msgspec.json.encode(content))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError as error:
            raise HostError(f"{path} cannot be written: {error.strerror or error}") from None
