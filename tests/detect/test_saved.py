"""What the agent remembers survives a crash at any moment, and damage is a fresh start."""

from __future__ import annotations

from pathlib import Path

import pytest

from sickbay.detect.devicemap import Device
from sickbay.detect.ledger import Mark
from sickbay.detect.saved import FileStore, Saved

FULL = Saved(
    boot_id="b",
    settled="b",
    positions={"kernel log": "17", "/var/log/kern.log": "5:1000"},
    devices=[Device(pci="0000:3b:00.0", uuid="GPU-1", index=0, serial="S", links=18)],
    marks=[Mark(item="gpu.xid.79", device="0000:3b:00", pci="0000:3b:00.0", since="2027-03-01T08:00:00Z", boot="b")],
    written=["gpu.xid.79"],
    node_uid="u",
    gpus=8,
    resets=["GPU-1"],
)


def test_all_of_it_is_read_again(tmp_path: Path) -> None:
    FileStore(tmp_path / "new" / "agent.json").save(FULL)
    assert FileStore(tmp_path / "new" / "agent.json").load() == FULL


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    assert FileStore(tmp_path / "agent.json").load() == Saved()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"positions": 7}', b"\xff\x00"])
def test_a_damaged_file_is_a_fresh_start(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "agent.json"
    path.write_bytes(content)
    assert FileStore(path).load() == Saved()


def test_a_crash_in_the_middle_of_a_write_leaves_the_old_state(tmp_path: Path) -> None:
    path = tmp_path / "agent.json"
    FileStore(path).save(FULL)
    path.with_suffix(".new").write_bytes(b'{"boot_id": "c", ')
    assert FileStore(path).load() == FULL
    FileStore(path).save(Saved(boot_id="c"))
    assert FileStore(path).load().boot_id == "c"


def test_a_newer_version_may_know_more(tmp_path: Path) -> None:
    path = tmp_path / "agent.json"
    path.write_bytes(b'{"boot_id": "b", "invented_later": {"x": 1}}')
    assert FileStore(path).load().boot_id == "b"
