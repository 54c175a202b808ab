"""Which nodes a PersistentVolume can be had on."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sickbay.api.core import Node
from sickbay.execute.volumes import reaches

HERE = msgspec.convert({"metadata": {"name": "n1", "labels": {"zone": "a", "disks": "8"}}}, Node)


def volume(*terms: Any) -> dict[str, Any]:
    return {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}}}


def label(operator: str, *values: str, key: str = "zone") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.case("P118")
@pytest.mark.parametrize(
    ("terms", "reached"),
    [
        ([], True),
        ([label("In", "a", "b")], True),
        ([label("In", "b")], False),
        ([label("NotIn", "b")], True),
        ([label("NotIn", "a")], False),
        ([label("Exists")], True),
        ([label("DoesNotExist")], False),
        ([label("Gt", "7", key="disks")], True),
        ([label("Lt", "7", key="disks")], False),
        ([label("Gt", "7")], False),
        ([label("Newer", "a")], False),
        ([label("In", "b"), label("In", "a")], True),
        ([label("In", "a") | {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}], False),
        ([{}], False),
    ],
)
def test_a_term_that_holds_is_enough_and_all_of_it_must_hold(terms: list[Any], reached: bool) -> None:
    assert reaches(volume(*terms), HERE) == reached


def test_a_volume_without_an_affinity_is_everywhere() -> None:
    assert reaches({"spec": {}}, HERE)
