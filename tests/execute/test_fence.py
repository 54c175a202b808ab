"""The out-of-service taint: whose it is, when it goes, and what goes with it. The way is scenarios/dead-node.yaml."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from sickbay.api import names
from sickbay.api.core import Node, Pod
from sickbay.api.meta import ObjectMeta
from sickbay.api.node_repair import NodeRepair
from sickbay.clock import parse_time, rfc3339
from sickbay.execute.fence import lift_ops, outlived, taken_by_force

NOW = parse_time("2027-03-01T08:00:00Z")
OURS, FOREIGN = NodeRepair(metadata=ObjectMeta(name="r", uid="u")), NodeRepair(metadata=ObjectMeta(name="s", uid="v"))


def node(
    mark: str | None = '{"repair": "r", "uid": "u", "until": "2027-03-01T09:00:00Z"}', ready: str = "Unknown"
) -> Node:
    body: dict[str, Any] = {
        "metadata": {"name": "n", "annotations": {names.OUT_OF_SERVICE_MARK: mark} if mark is not None else {}},
        "spec": {
            "taints": [{"key": "a", "effect": "NoSchedule"}, {"key": names.OUT_OF_SERVICE, "effect": "NoExecute"}]
        },
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }
    return msgspec.convert(body, Node)


@pytest.mark.case("R33")
@pytest.mark.parametrize(
    ("subject", "after", "expected"),
    [
        pytest.param(node(), timedelta(), False, id="the machine is off"),
        pytest.param(node(), timedelta(hours=1), True, id="its time is over"),
        pytest.param(node(ready="True"), timedelta(), True, id="the node is back"),
        pytest.param(node(mark=None, ready="True"), timedelta(hours=9), False, id="set by somebody else"),
        pytest.param(node(mark="no json", ready="True"), timedelta(hours=9), False, id="nobody can say whose it is"),
        pytest.param(node(mark='{"repair": "r", "uid": "u"}'), timedelta(), True, id="without an end"),
    ],
)
def test_the_taint_outlives_neither_the_outage_nor_its_time(subject: Node, after: timedelta, expected: bool) -> None:
    assert outlived(subject, parse_time(rfc3339(NOW + after))) is expected


def test_only_the_taint_that_is_ours_is_taken_away() -> None:
    assert [op["path"] for op in lift_ops(node(), OURS)] == [
        "/metadata/annotations/sickbay.dev~1out-of-service",
        "/spec/taints/1",
    ]
    assert lift_ops(node(), FOREIGN) == []
    assert lift_ops(node(mark=None)) == []


def test_a_pod_that_tolerates_the_taint_is_left_to_the_drain() -> None:
    plain = msgspec.convert({"metadata": {"name": "p"}, "spec": {}}, Pod)
    stubborn = msgspec.convert({"metadata": {"name": "p"}, "spec": {"tolerations": [{"operator": "Exists"}]}}, Pod)
    assert taken_by_force(plain, node())
    assert not taken_by_force(stubborn, node())
