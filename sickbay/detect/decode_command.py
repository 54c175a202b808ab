"""`sickbay decode`: kernel lines in, one JSON object per diagnosis out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

import click
import msgspec

from sickbay.detect.decode import Stats, decode_lines
from sickbay.detect.group import Diagnosis
from sickbay.detect.judge import Trust
from sickbay.detect.record import MAX_LINE

_CHUNK = 4 * MAX_LINE
"""Bytes read of one line; the rest of a longer line is skipped, never kept."""


@click.command(name="decode")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path())
@click.option("--each", is_flag=True, help="Judge every line by itself and print one object per line.")
@click.option(
    "--trust",
    type=click.Choice([trust.value for trust in Trust]),
    default=Trust.OFFLINE.value,
    show_default=True,
    help="Whose lines count: offline accepts text that names no origin, live only the kernel's and PID 1's own.",
)
@click.option("-v", "--verbose", is_flag=True, help="Say on standard error how many lines were read and skipped.")
def decode(files: tuple[str, ...], each: bool, trust: str, verbose: bool) -> None:
    """Say what kernel lines mean: fault, device, verdict and line number, one JSON object per diagnosis.

    Reads FILEs or standard input (also as `-`), in any form that kernel messages travel in: /dev/kmsg records, dmesg,
    syslog, the journal as text or JSON, Talos. Lines of one device within 10 seconds are one diagnosis. The two
    characters \\n inside a line are a line break.

    Example: dmesg | sickbay decode
    """
    stats = Stats()
    try:
        for diagnosis in decode_lines(_lines(files), each=each, trust=Trust(trust), stats=stats):
            sys.stdout.write(render(diagnosis, each) + "\n")
            if not each:
                sys.stdout.flush()
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads us has enough. Python would complain once more when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if verbose:
        click.echo(f"{stats.lines} lines, {stats.faults} with a fault, {stats.malformed} malformed", err=True)


def render(diagnosis: Diagnosis, each: bool) -> str:
    """One JSON object. A grouped one also says how many lines it stands for and which faults came with it."""
    said: dict[str, object] = {
        "fault": diagnosis.fault,
        "device": diagnosis.device,
        "verdict": diagnosis.verdict,
        "line": diagnosis.line,
    }
    if not each:
        said["count"] = diagnosis.count
        if diagnosis.also:
            said["also"] = list(diagnosis.also)
    return msgspec.json.encode(said).decode()


def _lines(files: tuple[str, ...]) -> Iterator[str]:
    for name in files or ("-",):
        if name == "-":
            yield from read_lines(sys.stdin.buffer)
            continue
        try:
            with open(name, "rb") as stream:
                yield from read_lines(stream)
        except OSError as error:
            raise click.ClickException(
                f"cannot read {name}: {error.strerror}; give a readable file, or - for standard input"
            ) from None


def read_lines(stream: BinaryIO) -> Iterator[str]:
    """Lines of a stream as text. Bytes that are no UTF-8 are replaced; of a giant line only the beginning is kept.

    UTF-16, which some consoles save, is ASCII with NULs between; the last of them is left behind the last line's end.
    """
    while chunk := stream.readline(_CHUNK):
        line = chunk
        while not chunk.endswith(b"\n") and len(chunk) == _CHUNK:
            chunk = stream.readline(_CHUNK)
            if not chunk:
                break
        if line.strip(b"\x00"):
            yield line.decode("utf-8", "replace").rstrip("\r\n")
