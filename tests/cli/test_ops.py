"""The commands that look and steer, as processes against an API server over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sickbay.api import names
from tests.cli.conftest import MERGE, OWN, Cluster

XID = {"type": "NvidiaXID79Error", "status": "True", "reason": "79", "message": "GPU has fallen off the bus"}
LABEL = "intervention.sickbay.dev/drain-node"


def rule(cluster: Cluster) -> None:
    severe = {"name": "severe", "faults": {"severities": ["Info"]}, "procedure": [{"step": "Quarantine"}]}
    rest = {"name": "rest", "procedure": [{"step": s} for s in ("Quarantine", "Drain", "Repair", "Unquarantine")]}
    cluster.own("RepairRule", "default", {"rules": [severe, rest]})
    selector = {"matchLabels": {"pool": "train"}}
    cluster.own("RepairPool", "train", {"nodeSelector": selector, "mode": "Act", "rule": "default"})


def waiting(cluster: Cluster, node: dict[str, Any]) -> dict[str, Any]:
    """A repair that asks whether it may drain."""
    name, uid = node["metadata"]["name"], node["metadata"]["uid"]
    steps: list[dict[str, Any]] = [{"step": "Quarantine"}, {"step": "Drain", "approval": {}}]
    steps.append({"step": "Repair", "action": "RebootNode"})
    plan = {"generation": 1, "approvalPrefix": "intervention.sickbay.dev", "steps": steps}
    spec: dict[str, Any] = {"node": {"name": name, "uid": uid}, "pool": {"name": "train"}, "plan": plan}
    spec["faults"] = [{"type": "gpu.xid.79"}]
    current = {"step": "Drain", "attempt": 1, "waitsFor": "Approval", "since": "2026-01-01T00:00:00Z",
               "deadline": "2026-01-02T00:00:00Z", "onDeadline": "Escalate"}  # fmt: skip
    states = {"Quarantine": {"state": "Done", "finished": "2026-01-01T00:00:00Z"}, "Drain": {"state": "Waiting"}}
    status = {"phase": "WaitingApproval", "message": "Drain waits for approval", "current": current, "steps": states}
    made = cluster.own("NodeRepair", f"{name}-1", spec, status)
    inquiry = {
        "repair": made["metadata"]["name"],
        "uid": made["metadata"]["uid"],
        "step": "Drain",
        "attempt": 1,
        "nodeUID": uid,
    }
    patch = {"metadata": {"labels": {LABEL: "inquiring"}, "annotations": {names.INQUIRY: json.dumps(inquiry)}}}
    cluster.store.patch("nodes", name, patch, "application/merge-patch+json", "")
    return made


async def test_explain_says_which_entry_matches_and_why_the_others_do_not(cluster: Cluster) -> None:
    rule(cluster)
    cluster.node("n1", conditions=[XID])
    told = (await cluster.run("explain", "n1")).out
    assert "gpu.xid.79 (GPU, Critical): GPU has fallen off the bus" in told
    assert "severe: no: severity Critical is not among Info" in told
    assert "rest: matches gpu.xid.79: Quarantine, Drain, Repair, Unquarantine" in told


async def test_explain_says_what_a_repair_waits_for_until_when_and_how_to_move_it_on(cluster: Cluster) -> None:
    rule(cluster)
    waiting(cluster, cluster.node("n1", conditions=[XID]))
    told = (await cluster.run("explain", "n1")).out
    assert "n1: under repair: WaitingApproval" in told
    assert "Waits for: Approval   since 2026-01-01T00:00:00Z   until 2026-01-02T00:00:00Z" in told
    assert "Then: people are asked" in told
    assert "To move it on: sickbay approve n1 Drain" in told


async def test_explain_of_a_healthy_node_says_so(cluster: Cluster) -> None:
    cluster.node("n1")
    answer = await cluster.run("explain", "n1", "-o", "json")
    assert json.loads(answer.out)["summary"] == "nothing is wrong with it that Sickbay knows of; in service"


@pytest.mark.parametrize(
    ("status", "reason", "says"),
    [
        pytest.param("Unknown", "NodeStatusUnknown", "its kubelet is silent", id="silent"),
        pytest.param("False", "KubeletNotReady", "its kubelet says that it is not ready", id="not ready"),
    ],
)
@pytest.mark.parametrize("cordoned", [False, True], ids=["in service", "cordoned"])
async def test_explain_of_a_node_that_is_not_ready_says_since_when_and_that_nobody_acts_on_it(
    cluster: Cluster, status: str, reason: str, says: str, cordoned: bool
) -> None:
    cluster.node("n1", **({"unschedulable": True} if cordoned else {}))
    ready = {"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    cluster.store.patch("nodes", "n1", {"status": {"conditions": [ready]}}, MERGE, "", subresource="status")
    told = (await cluster.run("explain", "n1")).out
    assert f"n1: {says} since 2026-01-01T00:00:00Z: Ready is {status} ({reason})" in told
    assert "No fault type that acts matches that, so nothing is done" in told
    assert ("; cordoned, and not by Sickbay" in told) is cordoned
    assert "nothing is wrong" not in told and "in service" not in told


async def test_explain_does_not_call_a_node_well_whose_kubelet_never_spoke(cluster: Cluster) -> None:
    cluster.store.create("nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    assert "n1: its kubelet has not said yet whether it is ready" in (await cluster.run("explain", "n1")).out


@pytest.mark.parametrize(("word", "value"), [("approve", "approved"), ("deny", "denied")])
async def test_an_answer_is_the_label_a_person_would_write(cluster: Cluster, word: str, value: str) -> None:
    waiting(cluster, cluster.node("n1"))
    answer = await cluster.run(word, "n1", "drain", "--reason", "checkpoint is written")
    assert answer.code == 0, answer.err
    assert cluster.store.get("nodes", "n1")["metadata"]["labels"][LABEL] == value
    (event,) = [e for e in cluster.store.list("events") if e["involvedObject"]["name"] == "n1"]
    assert "checkpoint is written" in event["message"]


async def test_a_step_that_is_not_asked_for_cannot_be_approved(cluster: Cluster) -> None:
    waiting(cluster, cluster.node("n1"))
    answer = await cluster.run("approve", "n1", "Repair")
    assert answer.code == 1
    assert "Repair waits for no approval; only Drain is asked for" in answer.err
    assert cluster.store.get("nodes", "n1")["metadata"]["labels"][LABEL] == "inquiring"


async def test_the_queue_lists_what_needs_a_person_with_what_it_costs(cluster: Cluster) -> None:
    waiting(cluster, cluster.node("n1"))
    (row,) = json.loads((await cluster.run("queue", "-o", "json")).out)
    assert (row["node"], row["needs"], row["command"]) == ("n1", "Approval (Drain)", "sickbay approve n1 Drain")
    assert row["idleGPUHours"] > 8


async def test_an_empty_queue_says_so(cluster: Cluster) -> None:
    assert (await cluster.run("queue")).out == "nothing needs a person\n"


async def test_stop_holds_the_whole_cluster_until_it_is_released(cluster: Cluster) -> None:
    answer = await cluster.run("stop", "--level", "EveryAct", "--reason", "odd")
    assert answer.code == 0, answer.err
    hold = cluster.store.get("holds.sickbay.dev", "stop")
    assert (hold["spec"]["scope"]["all"], hold["spec"]["level"]) == (True, "EveryAct")
    assert (await cluster.run("release", "stop")).code == 0
    assert cluster.store.find("holds.sickbay.dev", "stop") is None


async def test_a_hold_does_not_take_the_place_of_one_of_its_name_and_says_what_to_do(cluster: Cluster) -> None:
    await cluster.run("hold", "driver", "--pool", "train", "--reason", "first")
    answer = await cluster.run("hold", "driver", "--pool", "infer", "--reason", "second")
    assert (answer.code, answer.out) == (1, "")
    assert "there is a hold 'driver' already" in answer.err and "sickbay release driver" in answer.err
    assert cluster.store.get("holds.sickbay.dev", "driver")["spec"]["reason"] == "first"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param({}, "driver (NewRepairs) until it is released: roll-out", id="no end, nobody to ask"),
        pytest.param(
            {"until": "2126-01-01T00:00:00Z", "owner": "platform"},
            "driver (NewRepairs) until 2126-01-01T00:00:00Z, owner platform: roll-out",
            id="an end and an owner",
        ),
        pytest.param({"reason": ""}, "driver (NewRepairs) until it is released: no reason given", id="no reason"),
    ],
)
async def test_explain_says_until_when_a_hold_binds_and_whom_to_ask(
    cluster: Cluster, more: dict[str, Any], says: str
) -> None:
    cluster.node("n1")
    spec = {"scope": {"nodes": ["n1"]}, "level": "NewRepairs", "reason": "roll-out", **more}
    body = {"apiVersion": OWN, "kind": "Hold", "metadata": {"name": "driver"}, "spec": spec}
    cluster.store.create("holds.sickbay.dev", body)
    assert f"Holds:\n  {says}\n" in (await cluster.run("explain", "n1")).out


@pytest.mark.parametrize("form", ["text", "json"])
async def test_history_of_a_name_that_no_node_has_is_no_empty_history(cluster: Cluster, form: str) -> None:
    cluster.node("n1")
    answer = await cluster.run("history", "ghost", "-o", form)
    assert (answer.code, answer.out) == (1, "")
    assert "no node is named 'ghost'" in answer.err
    assert (await cluster.run("history", "n1")).out == "no repair of n1 on record\n"


async def test_history_shows_the_repairs_of_a_node_that_is_gone(cluster: Cluster) -> None:
    waiting(cluster, cluster.node("n1"))
    cluster.store.delete("nodes", "n1")
    assert "n1-1" in (await cluster.run("history", "n1")).out


async def test_a_hold_has_an_end_where_one_is_given(cluster: Cluster) -> None:
    answer = await cluster.run("hold", "driver", "--pool", "train", "--for", "2h", "--reason", "roll-out")
    assert answer.code == 0, answer.err
    spec = cluster.store.get("holds.sickbay.dev", "driver")["spec"]
    assert spec["scope"]["pools"] == ["train"]
    assert spec["until"]


async def test_a_repair_by_hand_names_the_node_and_the_act(cluster: Cluster) -> None:
    node = cluster.node("n1")
    answer = await cluster.run("repair", "n1", "--remedy", "RebootNode", "--reason", "hangs")
    assert answer.code == 0, answer.err
    (made,) = cluster.store.list("noderepairs.sickbay.dev")
    assert made["spec"]["origin"] == "Manual"
    assert made["spec"]["node"] == {"name": "n1", "uid": node["metadata"]["uid"]}
    assert made["spec"]["plan"]["steps"] == [{"step": "Repair", "action": "RebootNode"}]


async def test_a_node_under_repair_gets_no_second_one(cluster: Cluster) -> None:
    waiting(cluster, cluster.node("n1"))
    answer = await cluster.run("repair", "n1", "--remedy", "RebootNode", "--reason", "hangs")
    assert answer.code == 1
    assert "n1 is under repair already" in answer.err


async def test_a_resolution_is_a_word_on_the_record(cluster: Cluster) -> None:
    waiting(cluster, cluster.node("n1"))
    answer = await cluster.run("resolve", "n1", "--outcome", "Repaired", "--reason", "card replaced")
    assert answer.code == 0, answer.err
    word = json.loads(cluster.store.get("noderepairs.sickbay.dev", "n1-1")["metadata"]["annotations"][names.RESOLVE])
    assert (word["outcome"], word["reason"]) == ("Repaired", "card replaced")


@pytest.mark.case("P074")
async def test_a_return_without_a_validation_needs_a_reason_is_signed_and_shows_the_past(cluster: Cluster) -> None:
    node = cluster.node("n1")
    spec = waiting(cluster, node)["spec"]
    ended = {"phase": "Succeeded", "outcome": "Repaired", "endedAt": "2020-01-01T00:00:00Z"}
    cluster.own("NodeRepair", "n1-0", spec, ended)
    refused = await cluster.run("resolve", "n1", "--outcome", "CancelledByPerson")
    assert refused.code == 2
    assert "without a validation" in refused.err
    assert names.RESOLVE not in cluster.store.get("noderepairs.sickbay.dev", "n1-1")["metadata"].get("annotations", {})
    answer = await cluster.run("resolve", "n1", "--outcome", "CancelledByPerson", "--reason", "needed tonight")
    assert answer.code == 0, answer.err
    assert "earlier incidents of n1: 1" in answer.err
    assert "gpu.xid.79 Repaired" in answer.err
    word = json.loads(cluster.store.get("noderepairs.sickbay.dev", "n1-1")["metadata"]["annotations"][names.RESOLVE])
    assert word["reason"] == "needed tonight"
    assert word["by"]


@pytest.mark.case("P032")
async def test_a_condition_is_cleared_by_a_word_that_names_who_why_and_which(cluster: Cluster) -> None:
    since = "2027-03-01T08:00:00Z"
    cluster.node(
        "n1", conditions=[{"type": "AcmeFan", "status": "True", "reason": "Fan3", "lastTransitionTime": since}]
    )
    answer = await cluster.run("clear", "n1", "AcmeFan", "--reason", "fan replaced")
    assert answer.code == 0, answer.err
    word = json.loads(cluster.store.get("nodes", "n1")["metadata"]["annotations"][names.CLEAR])["AcmeFan"]
    assert (word["reason"], word["since"]) == ("fan replaced", since)
    assert word["by"]


async def test_status_and_history_show_what_is_there(cluster: Cluster) -> None:
    rule(cluster)
    waiting(cluster, cluster.node("n1"))
    (pool,) = json.loads((await cluster.run("status", "-o", "json")).out)
    assert (pool["pool"], pool["open"], pool["breaker"]) == ("train", 1, "Closed")
    assert "n1-1" in (await cluster.run("history", "n1")).out
    assert (await cluster.run("status", "nope")).err == "Error: there is no RepairPool 'nope'; known: train\n"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        pytest.param(["explain", "ghost"], 1, 'nodes "ghost" not found', id="no such node"),
        pytest.param(["release", "ghost"], 1, '"ghost" not found', id="no such hold"),
        pytest.param(["hold", "x", "--reason", "y"], 2, "name what is held", id="an empty hold"),
        pytest.param(["hold", "x", "--node", "n", "--for", "soon", "--reason", "y"], 2, "not a duration", id="a time"),
        pytest.param(["repair", "n1", "--remedy", "Pray", "--reason", "y"], 2, "'Pray' is not one of", id="a remedy"),
        pytest.param(["resolve", "n1", "--outcome", "Repaired"], 1, "no repair of n1 on record", id="no record"),
        pytest.param(["clear", "ghost", "X", "--reason", "y"], 1, 'nodes "ghost" not found', id="no node to clear"),
        pytest.param(["clear", "n1", "X"], 2, "Missing option '--reason'", id="no reason"),
        pytest.param(["nonsense"], 2, "No such command", id="no such command"),
    ],
)
async def test_what_is_wrong_is_said_in_one_line(cluster: Cluster, arguments: list[str], code: int, says: str) -> None:
    answer = await cluster.run(*arguments)
    assert answer.code == code
    assert says in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(["--pool", "tain"], "there is no RepairPool 'tain'; known: train", id="pool"),
        pytest.param(["--node", "n9"], "there is no node 'n9'", id="node"),
        pytest.param(["--node", "n1", "--fault", "gpu.79"], "there is no fault type 'gpu.79'", id="fault"),
        pytest.param(["--pool", "train", "--node", "n1", "--fault", "gpu.xid.79"], "", id="all known"),
    ],
)
async def test_a_hold_of_what_nobody_knows_is_made_and_said(cluster: Cluster, words: list[str], says: str) -> None:
    rule(cluster)
    cluster.node("n1")
    answer = await cluster.run("hold", "h", *words, "--reason", "why")
    assert (answer.code, bool(answer.err)) == (0, bool(says))
    assert says in answer.err
    assert cluster.store.find("holds.sickbay.dev", "h") is not None
