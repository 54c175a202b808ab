"""What changes between two catalogues, and the words for what it comes to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from sickbay.api.fault_type import FaultType
from sickbay.api.validate import validate
from sickbay.decide.cataloguediff import Change, diff, entries, overrides
from tests.cli.conftest import command


def fault(name: str = "acme.door", **spec: Any) -> dict[str, Any]:
    full = {
        "class": "Node",
        "severity": "Error",
        "scope": "Node",
        "match": [{"condition": {"type": "DoorOpen", "status": "True"}}],
        "remedy": [{"action": "RebootNode"}],
        "clearsBy": "reboot",
    }
    return {
        "apiVersion": "sickbay.dev/v1alpha1",
        "kind": "FaultType",
        "metadata": {"name": name},
        "spec": {k: v for k, v in {**full, **spec}.items() if v is not None},
    }


def types(*documents: dict[str, Any]) -> dict[str, FaultType]:
    return entries(documents)


def only(changes: list[Change]) -> Change:
    (change,) = changes
    return change


def test_the_same_catalogue_has_no_difference() -> None:
    assert diff(types(fault()), types(fault())) == []


@pytest.mark.parametrize(
    ("spec", "effects", "more"),
    [
        pytest.param({"remedy": [{"action": "PowerCycle"}]}, ["begins with a stronger remedy"], True, id="stronger"),
        pytest.param({"remedy": [{"action": "RestartService"}]}, ["begins with a weaker remedy"], False, id="weaker"),
        pytest.param(
            {"remedy": [{"action": "RebootNode"}, {"action": "ReplaceNode"}]}, ["other remedies"], True, id="longer"
        ),
        pytest.param({"remedy": [{"action": "None"}]}, ["asks for no repair any more"], False, id="only recorded"),
        pytest.param({"severity": "Critical"}, ["ranks higher"], True, id="more severe"),
        pytest.param({"class": "System"}, ["ranks lower"], False, id="another class"),
        pytest.param({"match": [{"condition": {"type": "Gate"}}]}, ["recognised otherwise"], True, id="other evidence"),
        pytest.param({"for": "10m"}, ["recognised otherwise"], True, id="must last"),
        pytest.param({"clearsBy": "condition"}, ["proven gone otherwise"], False, id="other proof"),
        pytest.param({"urgency": "AtJobEnd"}, ["other urgency"], True, id="other urgency"),
        pytest.param({"urgency": "Now"}, [], False, id="urgency Now is what it was"),
        pytest.param({"labels": {"a": "b"}}, [], False, id="labels alone decide nothing by themselves"),
    ],
)
def test_what_a_changed_field_comes_to(spec: dict[str, Any], effects: list[str], more: bool) -> None:
    change = only(diff(types(fault()), types(fault(**spec))))
    assert (change.kind, change.effects, change.acts_more) == ("changed", effects, more)


def test_the_fields_are_shown_before_and_after() -> None:
    change = only(diff(types(fault(validation={"soak": "5m"})), types(fault(validation={"soak": "9m", "level": 2}))))
    assert [(f.path, f.old, f.new) for f in change.fields] == [
        ("validation.level", "", "2"),
        ("validation.soak", "5m", "9m"),
    ]


@pytest.mark.parametrize(
    ("spec", "effects"),
    [
        pytest.param({}, "asks for a repair now", id="repaired"),
        pytest.param({"remedy": []}, "asks for a repair now", id="an empty ladder takes the node out too"),
        pytest.param({"remedy": [{"action": "None"}]}, "", id="only recorded"),
    ],
)
def test_an_added_entry_says_whether_it_asks_for_a_repair(spec: dict[str, Any], effects: str) -> None:
    change = only(diff({}, types(fault(**spec))))
    assert (change.kind, "; ".join(change.effects), change.fields) == ("added", effects, [])


def test_a_removed_entry_is_repaired_no_more() -> None:
    change = only(diff(types(fault()), {}))
    assert (change.kind, change.effects, change.acts_more) == ("removed", ["asks for no repair any more"], False)


def test_overrides_name_what_acts_more_and_the_api_takes_them() -> None:
    new = types(*(fault(f"acme.f{i}") for i in range(200)), fault("acme.noted", remedy=[{"action": "None"}]))
    found = overrides(diff({}, new))
    named = [name for override in found for name in override["faults"]["names"]]
    assert sorted(named) == sorted(name for name in new if name != "acme.noted")
    spec = {"nodeSelector": {"matchLabels": {"pool": "x"}}, "overrides": found}
    pool = {"apiVersion": "sickbay.dev/v1alpha1", "kind": "RepairPool", "metadata": {"name": "x"}, "spec": spec}
    assert validate("RepairPool", pool) == []


def test_what_cannot_be_read_names_its_entry() -> None:
    with pytest.raises(ValueError, match=r"FaultType acme\.door: .*severity"):
        types(fault(severity=3))
    with pytest.raises(ValueError, match=r"no metadata\.name"):
        types({"kind": "FaultType", "metadata": {}})


async def test_a_file_is_merged_over_the_built_in_entries(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    partial = {**fault("gpu.xid.79"), "spec": {"severity": "Error"}}
    file.write_text(yaml.safe_dump_all([partial, fault()]))
    answer = await command("catalogue", "diff", "built-in", str(file), "-o", "json")
    found = {change["fault"]: change for change in json.loads(answer.out)}
    assert found.keys() == {"gpu.xid.79", "acme.door"}
    assert found["gpu.xid.79"]["fields"] == [{"path": "severity", "old": "Critical", "new": "Error"}]
    assert (found["acme.door"]["kind"], found["acme.door"]["actsMore"]) == ("added", True)


async def test_a_saved_catalogue_stands_for_itself(tmp_path: Path) -> None:
    saved = tmp_path / "old.json"
    listed = json.loads((await command("catalogue", "-o", "json")).out)
    saved.write_text(json.dumps([entry for entry in listed if entry["metadata"]["name"] != "gpu.xid.79"]))
    answer = await command("catalogue", "diff", str(saved), "1.0.0")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[1].split() == ["added", "gpu.xid.79", "asks", "for", "a", "repair", "now"]


@pytest.mark.parametrize("arguments", [pytest.param(["show"], id="by its name"), pytest.param([], id="without a word")])
async def test_the_first_word_may_be_left_out(arguments: list[str]) -> None:
    (found,) = json.loads((await command("catalogue", *arguments, "gpu.xid.79")).out)
    assert found["metadata"]["name"] == "gpu.xid.79"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(None, "no version that this program has (1.0.0)", id="an unknown version"),
        pytest.param("kind: Pod", "holds no FaultType", id="nothing of ours"),
        pytest.param("a: [", "f.yaml:1: not YAML", id="not YAML"),
        pytest.param("kind: FaultType\nmetadata: {name: x}\nspec: {class: 3}", "FaultType/x", id="a wrong field"),
        pytest.param(
            "apiVersion: sickbay.dev/v1alpha1\nkind: FaultType\nmetadata: {name: x}\n"
            "spec:\n  match: [{condition: {type: A, status: True}}]",
            'f.yaml:5: FaultType/x: spec.match[0].condition.status: true: wrong type; write "True", in quotes',
            id="a status without quotes",
        ),
    ],
)
async def test_what_is_no_catalogue_is_one_line(tmp_path: Path, text: str | None, says: str) -> None:
    file = tmp_path / "f.yaml"
    if text is not None:
        file.write_text(text)
    answer = await command("catalogue", "diff", "built-in", str(file))
    assert (answer.code, says in answer.err, "Traceback" in answer.err) == (1, True, False), answer.err
