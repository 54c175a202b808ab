"""approve and deny for several nodes and for groups, which ask on one of their nodes."""

from __future__ import annotations

from typing import Any

import pytest

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
            cluster.own("NodeRepair", f"{name}-1", spec, {"phase": "WaitingApproval"})


async def test_several_nodes_are_answered_in_one_command(cluster: Cluster) -> None:
    for name in ("n1", "n2", "n3"):
        waiting(cluster, cluster.node(name))
    answer = await cluster.run("approve", "n1", "n2", "Drain", "--reason", "checkpoint is written")
    assert answer.code == 0, answer.err
    assert [label(cluster, n) for n in ("n1", "n2", "n3")] == ["approved", "approved", "inquiring"]
    assert len(answer.out.splitlines()) == 2


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
        pytest.param(["Drain"], 2, "name the nodes, or a group", id="nobody"),
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
