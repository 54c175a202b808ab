"""Every line of the case table, judged by itself, means what the table says."""

from __future__ import annotations

from pathlib import Path

import pytest

from sickbay.detect.decode import decode_lines

TABLE = Path(__file__).parents[1] / "cases" / "kernel-log-lines.tsv"


def _rows() -> list[object]:
    rows = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]
    return [pytest.param(*row[:5], id=row[0], marks=pytest.mark.case(row[0])) for row in rows]


@pytest.mark.parametrize(("case", "line", "source", "fault", "verdict"), _rows())
def test_a_line_by_itself_means_what_the_table_says(
    case: str, line: str, source: str, fault: str, verdict: str
) -> None:
    [found] = decode_lines([line], each=True)
    assert (found.fault or "none", found.verdict, found.line) == (fault, verdict, 1)
