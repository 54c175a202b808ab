"""The list of cards a device plug-in must not offer: ours come and go, those of others stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sickbay.providers.agent.cardlist import CardList
from sickbay.providers.agent.host import HostError
from sickbay.providers.agent.linux import LinuxHost

A, B, C = "GPU-a", "GPU-b", "GPU-c"


class Disk:
    """A host's directory with the list, and the commands that were run."""

    def __init__(self, folder: Path, command: tuple[str, ...] = ()) -> None:
        self.path, self.ran = folder / "plugin" / "unhealthyDevices.json", []
        self.state = folder / "isolated.json"
        self.command = command

    async def run(self, command) -> None:
        self.ran.append((list(command), self.listed()))

    async def set(self, *cards: str) -> None:
        """Each call is another agent: nothing is remembered but on disk."""
        await CardList(self.path, self.state, self.command, self.run).set(frozenset(cards))

    def listed(self) -> list[str]:
        return json.loads(self.path.read_text())["uuid"] if self.path.exists() else []

    def written_by_others(self, *cards: str, index: tuple[str, ...] = ()) -> None:
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps({"index": list(index), "uuid": list(cards)}))


async def test_cards_come_and_go_over_restarts_of_the_agent(tmp_path):
    disk = Disk(tmp_path)
    for cards in ((A,), (A, B), (B,), ()):
        await disk.set(*cards)
        assert disk.listed() == list(cards)


@pytest.mark.case("P071")
async def test_what_others_have_listed_stays(tmp_path):
    disk = Disk(tmp_path)
    disk.written_by_others(C, index=("7",))
    await disk.set(A)
    assert disk.listed() == [C, A]
    await disk.set()
    assert json.loads(disk.path.read_text()) == {"index": ["7"], "uuid": [C]}


@pytest.mark.case("P071")
async def test_a_card_that_was_listed_before_us_is_not_ours_to_give_back(tmp_path):
    disk = Disk(tmp_path)
    disk.written_by_others(A)
    await disk.set(A)
    await disk.set()
    assert disk.listed() == [A]


async def test_a_command_is_run_after_each_change_and_only_then(tmp_path):
    disk = Disk(tmp_path, command=("tell-plugin", "--now"))
    await disk.set()
    await disk.set(A)
    await disk.set(A)
    await disk.set()
    told = ["tell-plugin", "--now", str(disk.path)]
    assert disk.ran == [(told, [A]), (told, [])]


async def test_a_command_that_fails_is_run_again(tmp_path):
    disk = Disk(tmp_path, command=("tell-plugin",))
    works, disk.run = disk.run, _broken
    with pytest.raises(HostError):
        await disk.set(A)
    disk.run = works
    await disk.set(A)
    assert disk.listed() == [A]
    assert len(disk.ran) == 1


async def _broken(_command):
    raise HostError("tell-plugin: exit code 1")


async def test_a_list_that_cannot_be_read_is_left_alone_and_named(tmp_path):
    disk = Disk(tmp_path)
    disk.path.parent.mkdir()
    disk.path.write_text("{")
    with pytest.raises(HostError, match=r"unhealthyDevices\.json cannot be read"):
        await disk.set(A)
    assert disk.path.read_text() == "{"


async def test_a_host_without_a_list_says_so_and_bears_that_nothing_is_asked(tmp_path):
    host = LinuxHost(state=tmp_path)
    await host.isolate(frozenset())
    with pytest.raises(HostError, match="--card-list"):
        await host.isolate(frozenset({A}))
