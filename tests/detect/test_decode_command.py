"""`sickbay decode`: input, output and errors."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sickbay.detect.decode_command import decode, read_lines

XID = "NVRM: Xid (PCI:0000:3b:00 GPU-I:01 GPU-CI:02): 94, pid=9, Contained"


def run(*args: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(decode, list(args), input=stdin)


def objects(result: Result) -> list[dict[str, object]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_standard_input_gives_one_object_per_diagnosis() -> None:
    result = run(stdin=f"noise\n[1.0] {XID}\n[2.0] {XID}\n")
    assert result.exit_code == 0
    assert objects(result) == [
        {
            "fault": "gpu.xid.94",
            "device": "0000:3b:00 GPU-I:01 GPU-CI:02",
            "verdict": "restart-app",
            "line": 2,
            "count": 2,
        }
    ]


def test_each_gives_one_object_per_line_and_null_where_there_is_no_fault() -> None:
    result = run("--each", "-", stdin=f"noise\n{XID}\n")
    assert objects(result) == [
        {"fault": None, "device": None, "verdict": "ignore", "line": 1},
        {"fault": "gpu.xid.94", "device": "0000:3b:00 GPU-I:01 GPU-CI:02", "verdict": "restart-app", "line": 2},
    ]


def test_files_are_read_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("noise\n" * 3)
    (tmp_path / "b").write_text(f"{XID}\n")
    result = run(str(tmp_path / "a"), str(tmp_path / "b"))
    assert [found["line"] for found in objects(result)] == [4]


def test_verbose_counts_lines_on_standard_error() -> None:
    result = run("-v", stdin=f"noise\n{XID}\nNVRM: Xid (PCI:0000:65:00): invalid\n")
    assert result.stderr == "3 lines, 1 with a fault, 1 malformed\n"


def test_live_trust_takes_only_the_kernels_own_records() -> None:
    assert objects(run("--trust", "live", stdin=f"{XID}\n")) == []
    assert len(objects(run("--trust", "live", stdin=f"4,1,1000,-;{XID}\n"))) == 1


def test_bytes_that_are_no_text_do_no_harm() -> None:
    result = run(
        "--each", stdin=b"\xff\xfe\x00\x01\n\xffNVRM: Xid (PCI:0000:3b:00): 79, x\r\n" + b"y" * 300_000 + b"\nz"
    )
    assert [found["fault"] for found in objects(result)] == [None, "gpu.xid.79", None, None]


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    result = run(str(tmp_path / name))
    assert result.exit_code == 1
    assert str(tmp_path / name) in result.stderr
    assert "give a readable file" in result.stderr
    assert "Traceback" not in result.output


def test_of_a_giant_line_only_the_beginning_is_kept() -> None:
    lines = list(read_lines(io.BytesIO(b"a" * 1_000_000 + b"\nb\n")))
    assert [len(line) for line in lines] == [32_768, 1]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-8-sig", "latin-1"])
def test_a_log_saved_in_another_encoding_is_read_all_the_same(encoding: str) -> None:
    result = run("--each", stdin=f"caf\u00e9\r\n{XID}\r\n".encode(encoding))
    assert [found["fault"] for found in objects(result)] == [None, "gpu.xid.94"]


def test_a_last_line_without_an_end_counts() -> None:
    assert list(read_lines(io.BytesIO(b"a\nb"))) == ["a", "b"]
