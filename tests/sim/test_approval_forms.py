"""Approvals by labels of one's own, in a whole world: a user's key and words, ACK's old form, where deletion says yes.

Forms are configured in the controller (`--approval-forms`), so a scenario file cannot bring them.
"""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.api.repair_plan import ApprovalForm
from sickbay.sim.components import Settings
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.hand import NODES
from sickbay.sim.world import World
from tests.support.simworld import running_world

OWN = ApprovalForm(key="acme.example/{step}", inquiring="asked", approved=["go", "yes"], denied=["stop"])
LEGACY = ApprovalForm(
    key="alibabacloud.com/node-needrepair", inquiring="Inquiring", approved=["Approved"], denied=[],
    deletion_approves=True,
)  # fmt: skip
STRICT = ApprovalForm(key="alibabacloud.com/node-needrepair", inquiring="Inquiring", approved=["Approved"], denied=[])
FORMS = {"acme": OWN, "legacy-ack": LEGACY, "strict": STRICT}
LEGACY_KEY = LEGACY.key
USUAL = "intervention.sickbay.dev/drain-node"


def objects(prefix: str, groups: list[str]) -> list[dict[str, Any]]:
    gate = {"by": "People", "timeout": "4h", "groups": groups}
    steps = [{"step": "Quarantine"}, {"step": "Drain", "approval": gate}, {"step": "Repair"}, {"step": "Unquarantine"}]
    rule = {"approvalPrefix": prefix, "rules": [{"name": "all", "procedure": steps}]}
    pool = {
        "nodeSelector": {"matchLabels": {"pool": "train"}}, "mode": "Act", "rule": "r", "provider": {"name": "fake"},
    }  # fmt: skip
    head = {"apiVersion": "sickbay.dev/v1alpha1"}
    return [
        {**head, "kind": "RepairRule", "metadata": {"name": "r"}, "spec": rule},
        {**head, "kind": "RepairPool", "metadata": {"name": "train"}, "spec": pool},
    ]


def labels(world: World) -> dict[str, str]:
    found: dict[str, str] = world.node("train-0")["metadata"]["labels"]
    return found


def drained(world: World) -> bool:
    (record,) = world.records_of("noderepairs.sickbay.dev", "train-0")
    return bool(record["status"]["steps"].get("Drain", {}).get("started"))


async def after(
    prefix: str, writes: dict[str, str | None], groups: list[str] | None = None
) -> tuple[bool, dict[str, str], str]:
    """Whether the node was drained when somebody had written these labels; its labels and the repair's outcome."""
    settings = Settings(options={"decide": {"approval_forms": FORMS}})

    def prepare(world: World) -> None:
        for manifest in objects(prefix, groups or []):
            world.apply(manifest, "team")

    async with running_world(PoolSpec("train", nodes=2, boot_seconds=60), prepare=prepare, settings=settings) as world:
        world.start_components(("decide", "execute"))
        await world.clock.sleep(10)
        bad = {"type": "NvidiaXID79Error", "status": "True", "reason": "Xid79", "message": "gone"}
        world.set_condition("train-0", "detector", bad)
        await world.clock.sleep(60)
        form = FORMS[prefix]
        assert labels(world)[form.key_of("Drain")] == form.inquiring
        assert not drained(world)
        if writes:
            world.person("platform").merge(NODES, "train-0", {"metadata": {"labels": writes}})
        await world.clock.sleep(60)
        (record,) = world.records_of("noderepairs.sickbay.dev", "train-0")
        return drained(world), labels(world), record["status"].get("outcome", "")


@pytest.mark.parametrize(
    ("prefix", "writes", "goes_on"),
    [
        pytest.param("acme", {"acme.example/drain": "go"}, True, id="a word of one's own"),
        pytest.param("acme", {"acme.example/drain": "YES"}, True, id="another one, in any case"),
        pytest.param("acme", {"acme.example/drain": "approved"}, False, id="the usual word is none of the form"),
        pytest.param("acme", {USUAL: "approved"}, False, id="the usual key is none of the form"),
        pytest.param("acme", {"acme.example/repair": "go"}, False, id="another step"),
        pytest.param("acme", {"acme.example/drain": None}, False, id="a deletion says nothing here"),
        pytest.param("legacy-ack", {LEGACY_KEY: "Approved"}, True, id="the old form's word"),
        pytest.param("legacy-ack", {LEGACY_KEY: None}, True, id="the old form's deletion"),
        pytest.param("legacy-ack", {USUAL: None, "acme.example/drain": None}, False, id="deletions of other keys"),
        pytest.param("strict", {LEGACY_KEY: None}, False, id="the same key where deletion is not switched on"),
        pytest.param("legacy-ack", {}, False, id="silence"),
    ],
)  # fmt: skip
async def test_only_the_answer_of_the_form_opens_the_gate(
    prefix: str, writes: dict[str, str | None], goes_on: bool
) -> None:
    went_on, *_ = await after(prefix, writes)
    assert went_on is goes_on


async def test_a_deletion_says_nothing_where_only_some_may_answer() -> None:
    went_on, left, _ = await after("legacy-ack", {LEGACY_KEY: None}, groups=["oncall"])
    assert not went_on
    assert left[LEGACY_KEY] == "Inquiring", "it is asked again"


async def test_a_no_of_ones_own_rolls_back_and_leaves_no_label() -> None:
    went_on, left, outcome = await after("acme", {"acme.example/drain": "Stop"})
    assert (went_on, outcome) == (False, "Denied")
    assert not any(key.startswith("acme.example/") for key in left)
