"""The code tables of the catalogue, read once from the package.

They are data with a source per row (`sickbay/catalogue/*.tsv`); this module only types them. Tab-separated, one header
line, no quoting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class XidRow:
    """One NVIDIA XID."""

    code: int
    meaning: str
    class_: str
    verdict: str
    """Default verdict; "by-text" when only the message tells."""
    advice: str
    source: str


@dataclass(frozen=True, slots=True)
class SxidRow:
    """One NVSwitch SXid. `class_` is what the code means when the line prints no word (`sxid.py`)."""

    code: int
    name: str
    text: str
    class_: str
    source: str


@dataclass(frozen=True, slots=True)
class NvlinkRule:
    """One decode rule of the NVLink 5 codes 144 to 150.

    The sub-code stands in IntrInfo[9:0] before driver R575 (`layout1`) and in IntrInfo[6:0] from it on (`layout2`);
    IntrInfo[25:20] holds the reason of a link event, and 0 otherwise.
    """

    xid: int
    unit: str
    layout1: int
    layout2: int
    reason: int
    status: int
    outcome: str
    hint: str


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = resources.files("sickbay.catalogue").joinpath(name).read_text(encoding="utf-8")
    lines = text.splitlines()
    head = lines[0].split("\t")
    for line in lines[1:]:
        values = line.split("\t")
        yield dict(zip(head, values + [""] * (len(head) - len(values)), strict=True))


@cache
def xids() -> dict[int, XidRow]:
    return {
        int(row["code"]): XidRow(
            int(row["code"]), row["meaning"], row["class"], row["verdict"], row["advice"], row["source"]
        )
        for row in _rows("xid.tsv")
    }


@cache
def sxids() -> dict[int, SxidRow]:
    return {
        int(row["code"]): SxidRow(int(row["code"]), row["name"], row["text"], row["class"], row["source"])
        for row in _rows("sxid.tsv")
    }


@cache
def nvlink_rules() -> dict[tuple[int, int, int], list[NvlinkRule]]:
    """By XID, reason and status."""
    found: dict[tuple[int, int, int], list[NvlinkRule]] = {}
    for row in _rows("nvlink5.tsv"):
        rule = NvlinkRule(
            int(row["xid"]),
            row["unit"],
            int(row["layout1"], 16),
            int(row["layout2"], 16),
            int(row["reason"]),
            int(row["status"], 16),
            row["outcome"],
            row["hint"],
        )
        found.setdefault((rule.xid, rule.reason, rule.status), []).append(rule)
    return found
