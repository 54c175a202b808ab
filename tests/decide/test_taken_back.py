"""Each way in which a person takes a node back, with decide and execute at work: nothing of ours is left on it, the
repair is cancelled and remembered, and what the person wants of the node stands."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.api import names
from tests.decide.living import Living, living
from tests.decide.made import procedure, rule

NODES = "nodes"
UNMARK = {"metadata": {"annotations": {names.QUARANTINE: None}}}
UNCORDON = {"spec": {"unschedulable": None}}
UNTAINT: dict[str, Any] = {"spec": {"taints": None}}
CORDON = {"spec": {"unschedulable": True}}
GATED = rule(procedure(Drain={"by": "People"}))


def spoilt(value: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {names.QUARANTINE: value}}}


def at_once(*patches: dict[str, Any]) -> dict[str, Any]:
    """One write that does all of these."""
    found: dict[str, Any] = {}
    for patch in patches:
        for key, value in patch.items():
            found.setdefault(key, {}).update(value)
    return found


async def held(it: Living) -> None:
    it.condition("train-0")
    await it.until(lambda: it.phase("train-0") == "WaitingApproval", 60)
    assert it.marks("train-0")["taints"] == [names.QUARANTINE]


@pytest.mark.case("P082")
@pytest.mark.parametrize(
    ("hands", "left"),
    [
        pytest.param([UNMARK], {}, id="mark"),
        pytest.param([UNCORDON], {}, id="cordon"),
        pytest.param([UNTAINT], {}, id="taint"),
        pytest.param([at_once(UNMARK, UNCORDON)], {}, id="mark-and-cordon"),
        pytest.param([at_once(UNMARK, UNTAINT)], {}, id="mark-and-taint"),
        pytest.param([at_once(UNCORDON, UNTAINT)], {}, id="cordon-and-taint"),
        pytest.param([at_once(UNMARK, UNCORDON, UNTAINT)], {}, id="all"),
        pytest.param([spoilt("{")], {}, id="mark-spoilt"),
        pytest.param([spoilt('{"repair": "nobody", "uid": "x"}')], {}, id="mark-of-a-repair-that-is-not-there"),
        pytest.param([UNCORDON, CORDON], {"cordon": True}, id="uncordoned-and-cordoned-by-hand"),
        pytest.param([at_once(UNMARK, UNCORDON), CORDON], {"cordon": True}, id="unmarked-and-cordoned-by-hand"),
    ],
)
async def test_nothing_of_ours_is_left_and_the_persons_word_stands(hands: list[dict[str, Any]], left: Any) -> None:
    async with living(2, rule=GATED, quarantine={"taint": True}) as it:
        await held(it)
        for patch in hands:
            it.admin.merge(NODES, "train-0", patch)
        await it.until(lambda: it.status("train-0").get("outcome") == "CancelledByPerson", 60)
        await it.sleep(200)
        assert it.marks("train-0") == left
        assert not it.repairs("train-0")[0]["metadata"].get("finalizers")
        assert len(it.repairs("train-0")) == 1, "it is remembered"
        assert it.acts("train-0") == []


@pytest.mark.parametrize("hands", [[UNMARK], [UNTAINT], [UNCORDON, CORDON]], ids=["mark", "taint", "uncordoned"])
async def test_a_cordon_that_stood_there_before_us_stays(hands: list[dict[str, Any]]) -> None:
    async with living(2, rule=GATED, quarantine={"taint": True}) as it:
        it.admin.merge(NODES, "train-0", CORDON)
        await held(it)
        for patch in hands:
            it.admin.merge(NODES, "train-0", patch)
        await it.until(lambda: it.status("train-0").get("outcome") == "CancelledByPerson", 60)
        assert it.marks("train-0") == {"cordon": True}


async def test_a_cordon_set_while_the_node_is_given_back_is_not_lifted() -> None:
    """The uncordon cancels; execute is down, and the next cordon is a person's, without any stamp on it."""
    async with living(2, rule=GATED) as it:
        it.condition("train-0")
        await it.until(lambda: it.phase("train-0") == "WaitingApproval", 60)
        it.world.processes_of("execute", ())[0].crash(restart=60)
        it.admin.merge(NODES, "train-0", UNCORDON)
        await it.until(lambda: it.phase("train-0") == "Cancelling", 60)
        it.admin.merge(NODES, "train-0", at_once(CORDON, {"metadata": {"annotations": {names.CHANGED_BY: None}}}))
        await it.until(lambda: it.phase("train-0") == "Cancelled", 120)
        assert it.marks("train-0") == {"cordon": True}
