"""Lines are read once and in order: over rotation, a restart, an overrun ring, and lines without an end."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.clock import Clock
from sickbay.detect import kmsg
from sickbay.detect.kmsg import KmsgSource
from sickbay.detect.record import MAX_LINE
from sickbay.detect.source import BATCH, Batch, LineSplitter, SourceError
from sickbay.detect.tail import FileSource, StdinSource

# --- pieces of bytes


@given(st.lists(st.text(st.characters(blacklist_characters="\n", blacklist_categories=["Cs"]), max_size=20)), st.data())
def test_lines_do_not_depend_on_where_the_pieces_end(lines: list[str], data: st.DataObject) -> None:
    raw = "".join(f"{line}\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    splitter = LineSplitter()
    found = [
        line for low, high in zip([0, *cuts], [*cuts, len(raw)], strict=True) for line in splitter.feed(raw[low:high])
    ]
    assert found == lines


@pytest.mark.parametrize("pieces", [1, 7])
def test_a_line_without_end_is_cut_and_what_follows_is_whole(pieces: int) -> None:
    splitter, found = LineSplitter(), list[str]()
    giant = b"x" * (MAX_LINE * 20)
    step = len(giant) // pieces
    for low in range(0, len(giant), step):
        found += splitter.feed(giant[low : low + step])
    found += splitter.feed(b"tail\nnext\n")
    assert [line[:4] for line in found] == ["xxxx", "next"]
    assert max(map(len, found)) <= MAX_LINE


def test_invalid_bytes_are_replaced() -> None:
    assert LineSplitter().feed(b"a\xff\x00b\n") == ["a�\x00b"]


# --- the kernel's ring, played by a socket that keeps the bounds of records


class Ring:
    """Hands `KmsgSource` a descriptor; `None` among the records is an overrun."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._theirs.setblocking(False)
        self.overrun = 0
        read = os.read

        def reading(fd: int, size: int) -> bytes:
            if fd == self._fd and self.overrun:
                self.overrun -= 1
                raise OSError(errno.EPIPE, "overrun")
            return read(fd, size)

        self._fd = -1
        monkeypatch.setattr(kmsg.os, "read", reading)
        monkeypatch.setattr(kmsg.os, "open", self._open)

    def _open(self, path: str, flags: int) -> int:
        self._fd = os.dup(self._theirs.fileno())
        return self._fd

    def print(self, *numbers: int, text: str = "hello") -> None:
        for number in numbers:
            self._ours.send(f"6,{number},{number}000,-;{text} {number}\n".encode())

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Ring:
    made = Ring(monkeypatch)
    yield made  # type: ignore[misc]
    made.close()


def numbers(batch: Batch) -> list[int]:
    return [int(line.split(",")[1]) for line in batch.lines]


async def opened(position: str = "") -> KmsgSource:
    source = KmsgSource()
    await source.open(position)
    return source


async def test_the_ring_is_read_from_its_first_record(real_loop: None, ring: Ring) -> None:
    ring.print(4, 5, 6)
    source = await opened()
    batch = await source.read()
    assert (numbers(batch), batch.position, batch.end, batch.lost) == ([4, 5, 6], "6", True, 0)
    source.close()


@pytest.mark.case("N35")
async def test_after_a_restart_reading_goes_on_where_it_was(real_loop: None, ring: Ring) -> None:
    ring.print(4, 5, 6, 7)
    source = await opened("5")
    batch = await source.read()
    assert (numbers(batch), batch.lost) == ([6, 7], 0)
    source.close()


async def test_an_empty_ring_is_at_its_end_once_and_then_waited_for(real_loop: None, ring: Ring) -> None:
    source = await opened()
    first = await source.read()
    assert (list(first.lines), first.end, first.position) == ([], True, "")
    waiting = asyncio.create_task(source.read())
    await asyncio.sleep(0)  # noqa: TID251
    assert not waiting.done()
    ring.print(1)
    assert numbers(await waiting) == [1]
    source.close()


@pytest.mark.parametrize(
    ("position", "printed", "overrun", "lost"),
    [
        pytest.param("5", [9, 10], 0, 3, id="numbers are missing since the restart"),
        pytest.param("", [9, 10], 0, 0, id="an old ring that was never read"),
        pytest.param("8", [9, 10], 1, 1, id="the kernel says so"),
        pytest.param("8", [9, 12], 0, 2, id="numbers are missing in between"),
    ],
)
async def test_lost_records_are_counted(
    real_loop: None, ring: Ring, position: str, printed: list[int], overrun: int, lost: int
) -> None:
    ring.print(*printed)
    source = await opened(position)
    ring.overrun = overrun
    assert (await source.read()).lost == lost
    source.close()


async def test_a_ring_that_breaks_is_no_silence(real_loop: None, ring: Ring) -> None:
    source = await opened()
    ring.print(1)
    await source.read()
    ring.close()
    with pytest.raises(SourceError, match="it has ended"):
        await source.read()
        await source.read()
    source.close()


async def test_a_log_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="kmsg: No such file"):
        await KmsgSource(str(tmp_path / "kmsg")).open("")


# --- files


Follow = Callable[..., FileSource]


@pytest.fixture
def follow(tmp_path: Path, clock: Clock) -> Iterator[Follow]:
    made: list[FileSource] = []

    def make(from_start: bool = False) -> FileSource:
        made.append(FileSource(tmp_path / "log", clock, from_start))
        return made[-1]

    yield make
    for source in made:
        source.close()


async def lines_of(source: FileSource) -> list[str]:
    """Lines up to the end of the backlog."""
    found: list[str] = []
    while True:
        batch = await source.read()
        found += batch.lines
        if batch.end:
            return found


async def test_a_file_is_followed_from_its_end(tmp_path: Path, clock: Clock, follow: Follow) -> None:
    path = tmp_path / "log"
    path.write_text("old\n")
    source = follow()
    await source.open("")
    assert await lines_of(source) == []
    with path.open("a") as file:
        file.write("half")
    waiting = asyncio.create_task(source.read())
    await clock.sleep(5)
    assert not waiting.done()
    with path.open("a") as file:
        file.write(" and half\nnext\n")
    assert list((await waiting).lines) == ["half and half", "next"]


async def test_a_position_survives_a_restart_in_the_middle_of_a_line(tmp_path: Path, follow: Follow) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\nthr")
    first = follow(from_start=True)
    await first.open("")
    batch = await first.read()
    assert list(batch.lines) == ["one", "two"]
    first.close()
    with path.open("a") as file:
        file.write("ee\n")
    second = follow()
    await second.open(batch.position)
    assert await lines_of(second) == ["three"]


async def test_rotation_loses_nothing(tmp_path: Path, follow: Follow) -> None:
    path = tmp_path / "log"
    path.write_text("")
    source = follow()
    await source.open("")
    assert await lines_of(source) == []
    with path.open("a") as file:
        file.write("last of the old\n")
    path.rename(tmp_path / "log.1")
    path.write_text("first of the new\n")
    assert list((await source.read()).lines) == ["last of the old"]
    assert list((await source.read()).lines) == ["first of the new"]


async def test_a_file_that_was_rotated_while_nobody_read_begins_anew(tmp_path: Path, follow: Follow) -> None:
    path = tmp_path / "log"
    path.write_text("new\n")
    source = follow()
    await source.open("1:4096")
    assert await lines_of(source) == ["new"]


async def test_a_truncated_file_begins_anew(tmp_path: Path, follow: Follow) -> None:
    path = tmp_path / "log"
    path.write_text("a long first line\n")
    source = follow()
    await source.open("")
    assert await lines_of(source) == []
    path.write_text("short\n")
    assert list((await source.read()).lines) == ["short"]


async def test_a_file_larger_than_one_piece_is_read_whole(tmp_path: Path, follow: Follow) -> None:
    path = tmp_path / "log"
    count = 20 * BATCH
    path.write_text("".join(f"line {number} {'.' * 40}\n" for number in range(count)))
    source = follow(from_start=True)
    await source.open("")
    found = await lines_of(source)
    assert len(found) == count
    assert found[-1].startswith(f"line {count - 1} ")


async def test_a_missing_file_is_named(follow: Follow) -> None:
    with pytest.raises(SourceError, match="log: No such file"):
        await follow().open("")


async def test_standard_input_ends(real_loop: None) -> None:
    reading, writing = os.pipe()
    source = StdinSource(os.fdopen(reading, "rb"))
    await source.open("")
    assert (await source.read()).end
    os.write(writing, b"one\ntwo\n")
    assert list((await source.read()).lines) == ["one", "two"]
    os.close(writing)
    with pytest.raises(SourceError, match="standard input has ended"):
        await source.read()
