"""The built-in catalogue: complete, valid, and of one mind with the decoder."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

import pytest
import yaml

from sickbay.api import names, validate
from sickbay.api.duration import parse_duration
from sickbay.api.words import Severity
from sickbay.decide import catalogue
from sickbay.detect import items, tables
from sickbay.detect.decode import decode_lines
from sickbay.detect.finding import DUPLICATE, FOLLOW_CAUSE, RANK, RESTART_APP
from sickbay.detect.judge import judge
from sickbay.detect.record import parse
from tests.detect import test_host_lines, test_xid_lines
from tests.detect.test_case_lines import TABLE


def _documents() -> list[dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = []
    for file in sorted(resources.files("sickbay.catalogue").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".yaml"):
            found += [document for document in yaml.load_all(file.read_text(), Loader=loader) if document]
    return found


DOCUMENTS = _documents()
TYPES = {document["metadata"]["name"]: document for document in DOCUMENTS if document.get("kind") == "FaultType"}


def test_the_version_is_said_once() -> None:
    assert [document["version"] for document in DOCUMENTS if "kind" not in document] == ["1.0.0"]


def test_every_entry_is_there_once() -> None:
    assert len(TYPES) == len(DOCUMENTS) - 1


def test_the_api_takes_every_entry_without_a_complaint() -> None:
    problems = {name: found for name, document in TYPES.items() if (found := validate.validate("FaultType", document))}
    assert problems == {}


def test_decide_can_use_every_entry() -> None:
    built = catalogue.build()
    assert built.version == "1.0.0"
    assert dict(built.problems) == {}
    assert set(built.types) == set(TYPES)


@pytest.mark.parametrize("name", sorted(TYPES))
def test_an_entry_is_complete_and_names_its_source(name: str) -> None:
    document = TYPES[name]
    notes, spec = document["metadata"]["annotations"], document["spec"]
    assert notes["sickbay.dev/source"]
    assert notes["sickbay.dev/meaning"]
    assert notes["sickbay.dev/verdict"] in RANK
    for key in ("class", "severity", "scope", "match", "urgency", "remedy", "clearsBy"):
        assert spec[key] is not None, key


@pytest.mark.parametrize("name", sorted(set(TYPES) - {"job.suspect"}))
def test_an_entry_is_matched_by_the_condition_of_its_name_or_says_by_what_else(name: str) -> None:
    matches = TYPES[name]["spec"]["match"]
    assert matches
    own = [m for m in matches if m.get("condition", {}).get("type") == names.condition_type(name)]
    foreign = [m for m in matches if m not in own]
    assert own or foreign
    assert all(m["condition"]["status"] == "True" for m in own)


def test_no_two_entries_are_carried_by_the_same_condition_of_ours() -> None:
    assert len(items.by_condition()) == len(items.items())


REMEDY = {
    "restart-app": ["RestartApplication"],
    "drain+reset-gpu": ["ResetGPU"],
    "isolate+drain+reset-gpu": ["ResetGPU"],
    "drain-at-job-end+reset-gpu": ["ResetGPU"],
    "isolate+drain+reset-fabric": ["ResetFabric", "ContactSupport"],
    "drain-at-job-end+reboot": ["RebootNode", "RestartDevicePlugin"],
    "drain+reboot": ["RebootNode", "PowerCycle"],
    "isolate+drain+reboot": ["RebootNode"],
    "isolate-node+drain+reboot": ["RebootNode"],
    "drain+hw-repair": ["RepairHardware"],
    "isolate+hw-repair": ["RepairHardware"],
    "isolate-node+hw-repair": ["RepairHardware"],
    "isolate-node+drain+hw-repair": ["RepairHardware"],
    "isolate-node": ["RestartService"],
    "observe": ["None"],
    "observe+plan-hw-repair": ["None"],
    "ignore": ["None"],
}
"""What the words of the case tables mean as the first rung (DESIGN section 3)."""


@pytest.mark.parametrize("name", sorted(TYPES))
def test_the_ladder_begins_with_the_remedy_that_the_verdict_names(name: str) -> None:
    verdict = TYPES[name]["metadata"]["annotations"]["sickbay.dev/verdict"]
    ladder = TYPES[name]["spec"]["remedy"]
    if verdict in REMEDY:
        assert ladder[0]["action"] in REMEDY[verdict]


@pytest.mark.parametrize("name", sorted(TYPES))
def test_who_can_wait_for_the_jobs_end_does_and_within_a_ceiling(name: str) -> None:
    spec = TYPES[name]["spec"]
    verdict = TYPES[name]["metadata"]["annotations"]["sickbay.dev/verdict"]
    if "at-job-end" in verdict:
        assert spec["urgency"] == "AtJobEnd"
    if spec["urgency"] == "AtJobEnd" and spec["severity"] in (Severity.ERROR, Severity.CRITICAL):
        assert parse_duration(spec["ceiling"]).total_seconds() > 0


def _texts() -> list[str]:
    lines = [line.split("\t")[1] for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]
    lines += [row[0] for rows in test_host_lines.GROUPS.values() for row in rows]
    lines += [f"NVRM: Xid (PCI:0000:3b:00): {code}, x" for code in tables.xids()]
    lines += [f"NVRM: Xid (PCI:0000:3b:00): {text}" for text, *_ in test_xid_lines.BRANCHES]
    lines += [f"NVRM: Xid (PCI:0000:3b:00): 154, changed from 0x0 (None) to 0x{n} (x)" for n in range(8)]
    lines += [f"NVRM: Xid (PCI:0000:3b:00): {code}, {text}" for code, text, *_ in test_xid_lines.ISSUE_CODES]
    for code in tables.sxids():
        lines += [
            f"nvidia-nvswitch0: SXid (PCI:0000:07:00.0): {code}, {word}x" for word in ("", "Fatal, Link 1 ", "Fatal, ")
        ]
    return lines


@pytest.mark.case("N40")
def test_everything_the_decoder_can_find_has_one_entry_and_one_severity() -> None:
    missing = set()
    for text in _texts():
        finding = judge(parse(text))
        missing |= {name for name in (finding.fault, finding.entry) if name and name not in TYPES}
    assert missing == {"gpu.xid.154"} - set(TYPES)


@pytest.mark.case("N40")
def test_a_finding_that_asks_for_something_belongs_to_an_entry_that_does_too() -> None:
    """So that the condition it becomes is acted upon, and nothing is acted upon that was only to be observed."""
    wrong = []
    for text in _texts():
        finding = judge(parse(text))
        acts = RANK[finding.verdict] > RANK[RESTART_APP]
        if acts and items.item(finding.entry).severity not in (Severity.ERROR, Severity.CRITICAL):
            wrong.append((finding.entry, finding.verdict))
    assert wrong == []


@pytest.mark.case("N40")
def test_a_nonfatal_code_is_nonfatal_for_every_source() -> None:
    line = "NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x0)"
    [found] = decode_lines([line], each=True)
    assert (found.fault, found.verdict) == ("gpu.xid.145", "ignore")


def test_the_decoder_never_gives_a_fault_the_verdict_of_another() -> None:
    """Where a line's verdict is not the entry's own, the text must have chosen a milder one, or the word a branch."""
    for text in _texts():
        finding = judge(parse(text))
        entry = items.items().get(finding.entry)
        if entry is None or finding.verdict in (DUPLICATE, FOLLOW_CAUSE):
            continue
        same = finding.verdict == entry.verdict
        by_line = re.match(
            r"gpu\.xid\.(74|154|157|14[4-9]|150|71)|nvswitch\.|fs\.|pcie\.link|cpu\.|service\.|oom|disk", finding.entry
        )
        assert same or by_line, (text, finding.verdict, entry.verdict)


def test_what_stands_in_for_a_device_is_scoped_to_it() -> None:
    for name, document in TYPES.items():
        if document["spec"].get("isolateDevice"):
            assert document["spec"]["class"] == "GPU", name
