"""What was begun is on the disk before it is begun, and a journal that cannot be read stops the agent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sickbay.providers.agent import journal
from sickbay.providers.agent.journal import KEEP, Entry, FileJournal

BEGUN = Entry(key="u/Repair/1", action="RebootNode", boot_id="b1", at="2027-03-01T08:00:00Z")


def test_an_entry_is_found_by_the_next_agent(tmp_path: Path) -> None:
    FileJournal(tmp_path / "host" / "tasks.json").write(BEGUN)
    assert FileJournal(tmp_path / "host" / "tasks.json").find("u/Repair/1") == BEGUN
    assert FileJournal(tmp_path / "host" / "tasks.json").find("u/Repair/2") is None


def test_a_later_word_replaces_the_earlier(tmp_path: Path) -> None:
    made = FileJournal(tmp_path / "tasks.json")
    made.write(BEGUN)
    done = Entry(key=BEGUN.key, action=BEGUN.action, boot_id="b1", at=BEGUN.at, outcome="Done", proof={"x": "y"})
    made.write(done)
    assert FileJournal(tmp_path / "tasks.json").find(BEGUN.key) == done


def test_the_file_and_its_name_are_on_the_disk_when_write_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def synced(fd: int) -> None:
        calls.append("sync folder" if os.path.isdir(f"/proc/self/fd/{fd}") else "sync file")
        fsync(fd)

    def replaced(self: Path, target: Path) -> Path:
        calls.append("replace")
        return replace(self, target)

    monkeypatch.setattr(journal.os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    FileJournal(tmp_path / "tasks.json").write(BEGUN)
    assert calls == ["sync file", "replace", "sync folder"]


def test_the_oldest_entries_go(tmp_path: Path) -> None:
    made = FileJournal(tmp_path / "tasks.json")
    for number in range(KEEP + 5):
        made.write(Entry(key=str(number), action="RebootNode", boot_id="b1", at=BEGUN.at))
    again = FileJournal(tmp_path / "tasks.json")
    assert again.find("4") is None
    assert again.find("5") is not None
    assert again.find(str(KEEP + 4)) is not None


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b'[{"key": 1}]'])
def test_a_damaged_journal_is_an_error_that_names_file_and_remedy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tasks.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"tasks\.json cannot be read: .*; move it away to start without it"):
        FileJournal(path)
