"""approve and deny for several nodes and for groups, which ask on one of their nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sickbay.api import names
from tests.cli.conftest import MERGE, Cluster
from tests.cli.test_ops import LABEL, waiting


def label(cluster: Cluster, node: str) -> str:
    return str((cluster.store.get("nodes", node)["metadata"].get("labels") or {}).get(LABEL, ""))


def group_of(cluster: Cluster, asking: str, *others: str) -> None:
    """Repairs of one group: `asking` has the question on its node, the others wait for the answer there."""
    names = [asking, *others]
    group = {"id": "rack-7", "leader": f"{asking}-1", "members": names}
    for name in names:
        node = cluster.node(name)
        if name == asking:
            waiting(cluster, node)
            cluster.store.patch("noderepairs.sickbay.dev", f"{name}-1", {"spec": {"group": group}}, MERGE, "")
        else:
            spec: dict[str, Any] = {"node": {"name": name, "uid": node["metadata"]["uid"]}, "group": group}
            current = {"step": "Drain", "attempt": 1, "waitsFor": "Approval", "since": "2026-01-01T00:00:00Z"}
            cluster.own("NodeRepair", f"{name}-1", spec, {"phase": "WaitingApproval", "current": current})


async def test_several_nodes_are_answered_in_one_command(cluster: Cluster) -> None:
    for name in ("n1", "n2", "n3"):
        waiting(cluster, cluster.node(name))
    answer = await cluster.run("approve", "n1", "n2", "Drain", "--reason", "checkpoint is written")
    assert answer.code == 0, answer.err
    assert [label(cluster, n) for n in ("n1", "n2", "n3")] == ["approved", "approved", "inquiring"]
    assert "n1     n1-1       Drain   1         -" in answer.out
    assert "n1: Drain approved (n1-1, attempt 1; intervention.sickbay.dev/drain-node=approved)" in answer.out


async def test_a_node_that_asks_for_nothing_does_not_keep_the_others_from_their_answer(cluster: Cluster) -> None:
    cluster.node("n1")
    waiting(cluster, cluster.node("n2"))
    answer = await cluster.run("approve", "n1", "ghost", "n2", "Drain")
    assert answer.code == 1
    assert label(cluster, "n2") == "approved"
    assert "n1: Drain waits for no approval; nothing is asked for" in answer.err
    assert '"ghost" not found' in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("words", [["n2"], ["n1"], ["n1", "n2", "n3"], ["--group", "rack-7"]], ids=" ".join)
@pytest.mark.parametrize(("word", "value"), [("approve", "approved"), ("deny", "denied")])
async def test_a_group_is_answered_once_whichever_of_its_nodes_is_named(
    cluster: Cluster, word: str, value: str, words: list[str]
) -> None:
    group_of(cluster, "n1", "n2", "n3")
    answer = await cluster.run(word, *words, "Drain")
    assert answer.code == 0, answer.err
    assert [label(cluster, n) for n in ("n1", "n2", "n3")] == [value, "", ""]
    assert answer.out.count("for all 3 nodes of group rack-7") == 1


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        pytest.param(["Drain"], 2, "name nodes, or --group, -l or --all-waiting", id="nobody"),
        pytest.param(["--group", "rack-9", "Drain"], 1, "there is no open group rack-9; open: rack-7", id="no group"),
        pytest.param(["--group", "rack-7", "Repair"], 1, "only Drain is asked for", id="another step"),
        pytest.param(["n1", "Dance"], 2, "'Dance' is not one of", id="no step"),
    ],
)
async def test_what_cannot_be_answered_is_said(cluster: Cluster, words: list[str], code: int, says: str) -> None:
    group_of(cluster, "n1", "n2")
    answer = await cluster.run("approve", *words)
    assert (answer.code, "Traceback" in answer.err) == (code, False)
    assert says in answer.err
    assert label(cluster, "n1") == "inquiring"


def asking(cluster: Cluster) -> None:
    """Three nodes that ask before Drain, two of them in rack a, and one that asks nothing."""
    for name, rack in (("n1", "a"), ("n2", "a"), ("n3", "b")):
        waiting(cluster, cluster.node(name, labels={"rack": rack}))
    cluster.node("n4", labels={"rack": "a"})


SELECTED = [
    pytest.param(["-l", "rack=a"], {"n1", "n2"}, id="labels"),
    pytest.param(["-l", "rack in (a,b),rack!=a"], {"n3"}, id="a set of labels"),
    pytest.param(["--all-waiting"], {"n1", "n2", "n3"}, id="all"),
    pytest.param(["--all-waiting", "n1"], {"n1", "n2", "n3"}, id="all, and one by name: once"),
]


@pytest.mark.parametrize(("words", "chosen"), SELECTED)
async def test_selected_nodes_are_answered_where_they_ask(cluster: Cluster, words: list[str], chosen: set[str]) -> None:
    asking(cluster)
    answer = await cluster.run("approve", *words, "--step", "Drain", "--yes")
    assert answer.code == 0, answer.err
    assert {n for n in ("n1", "n2", "n3", "n4") if label(cluster, n) == "approved"} == chosen
    listed, _, done = answer.out.partition("Drain of ")
    assert {line.split()[0] for line in listed.splitlines()[2:]} == chosen
    assert done.count("approved (") == len(chosen)


@pytest.mark.parametrize(
    ("how", "code"), [pytest.param(["--dry-run"], 0, id="only looking"), pytest.param([], 2, id="nobody can be asked")]
)
async def test_what_is_selected_is_shown_and_not_answered_unless_somebody_is_sure(
    cluster: Cluster, how: list[str], code: int
) -> None:
    asking(cluster)
    answer = await cluster.run("deny", "--all-waiting", "--step", "Drain", *how)
    assert answer.code == code
    assert answer.out.splitlines()[0] == "To be denied:"
    rows = [[n, f"{n}-1", "Drain", "1", "-"] for n in ("n1", "n2", "n3")]
    listed = [line.split() for line in answer.out.splitlines()[1:]]
    assert listed == [["NODE", "INCIDENT", "STEP", "ATTEMPT", "GROUP"], *rows]
    assert {label(cluster, n) for n in ("n1", "n2", "n3")} == {"inquiring"}
    assert code == 0 or "give --yes" in answer.err


@pytest.mark.parametrize(
    "words", [["-l", "rack=z"], ["-l", "rack=a", "--step", "Repair"], ["--all-waiting"]], ids=" ".join
)
async def test_a_selection_in_which_nothing_waits_is_a_failure(cluster: Cluster, words: list[str]) -> None:
    if words != ["--all-waiting"]:
        asking(cluster)
    step = [] if "--step" in words else ["--step", "Drain"]
    answer = await cluster.run("approve", *words, *step, "--yes")
    assert (answer.code, answer.out) == (1, "")
    assert "waits for approval on none of the nodes meant" in answer.err


async def test_a_part_that_fails_is_listed_and_the_rest_is_answered(cluster: Cluster) -> None:
    asking(cluster)
    answer = await cluster.run("approve", "n1", "n4", "ghost", "n3", "Drain")
    assert answer.code == 1
    assert [label(cluster, n) for n in ("n1", "n3")] == ["approved", "approved"]
    assert [line.partition(":")[0] for line in answer.err.splitlines()] == ["Error", "ghost", "2 answered, 2 problems"]
    assert "n4: Drain waits for no approval; nothing is asked for" in answer.err


STALE = [
    pytest.param({"uid": "another"}, "the repair that asked is over", id="another incident"),
    pytest.param({"nodeUID": "another"}, "an earlier machine of this name", id="another machine"),
]


@pytest.mark.parametrize(("change", "says"), STALE)
async def test_a_question_of_something_else_is_not_answered(
    cluster: Cluster, change: dict[str, Any], says: str
) -> None:
    waiting(cluster, cluster.node("n1"))
    asked = json.loads(cluster.store.get("nodes", "n1")["metadata"]["annotations"][names.INQUIRY]) | change
    cluster.store.patch("nodes", "n1", {"metadata": {"annotations": {names.INQUIRY: json.dumps(asked)}}}, MERGE, "")
    answer = await cluster.run("approve", "n1", "Drain")
    assert answer.code == 1
    assert says in answer.err
    assert label(cluster, "n1") == "inquiring"


@pytest.mark.parametrize(("stands", "says"), [("denied", "Drain is denied already"), ("Approved", "Drain is approved")])
async def test_an_answer_that_stands_is_not_overwritten(cluster: Cluster, stands: str, says: str) -> None:
    waiting(cluster, cluster.node("n1"))
    cluster.store.patch("nodes", "n1", {"metadata": {"labels": {LABEL: stands}}}, MERGE, "")
    answer = await cluster.run("approve", "n1", "Drain")
    assert answer.code == 1
    assert says in answer.err
    assert label(cluster, "n1") == stands


async def test_the_queue_has_a_group_as_one_matter_and_its_command_answers_for_all(cluster: Cluster) -> None:
    group_of(cluster, "n2", "n1", "n3")
    waiting(cluster, cluster.node("n4"))
    rows = {row["node"]: row for row in json.loads((await cluster.run("queue", "-o", "json")).out)}
    assert sorted(rows) == ["n2", "n4"]
    assert (rows["n2"]["members"], rows["n2"]["group"]) == (["n1", "n2", "n3"], "rack-7")
    assert rows["n4"]["members"] == ["n4"]
    assert "n2 +2" in (await cluster.run("queue")).out
