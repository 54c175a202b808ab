"""Merge patch: objects merge, null deletes, lists are replaced whole."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.server import NODES, Server

TAINT = {"key": "t", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("patch", "labels"),
    [
        pytest.param({"labels": {"c": "3"}}, {"a": "1", "b": "2", "c": "3"}, id="add"),
        pytest.param({"labels": {"a": "9"}}, {"a": "9", "b": "2"}, id="change"),
        pytest.param({"labels": {"a": None}}, {"b": "2"}, id="delete one"),
        pytest.param({"labels": {"a": None, "b": None}}, None, id="delete all"),
        pytest.param({"labels": None}, None, id="delete the map"),
        pytest.param({"labels": {"absent": None}}, {"a": "1", "b": "2"}, id="delete what is absent"),
    ],
)
async def test_maps_merge(server: Server, patch: dict[str, Any], labels: dict[str, str] | None) -> None:
    path = await server.node(labels={"a": "1", "b": "2"})
    answer = await server.patch("merge", path, {"metadata": patch})
    assert answer.code == 200
    assert answer.body["metadata"].get("labels") == labels


@pytest.mark.parametrize("kind", ["merge", "strategic"])
async def test_taints_are_replaced_whole(server: Server, kind: str) -> None:
    """One atomic list: whoever patches it without reading it removes the taints of others."""
    path = await server.node()
    await server.patch("merge", path, {"spec": {"taints": [TAINT | {"key": "theirs"}]}})
    answer = await server.patch(kind, path, {"spec": {"taints": [TAINT]}})
    assert answer.body["spec"]["taints"] == [TAINT]
    assert "taints" not in (await server.patch(kind, path, {"spec": {"taints": None}})).body["spec"]


async def test_conditions_are_replaced_whole(server: Server) -> None:
    path = await server.node(status={"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]})
    body = {"status": {"conditions": [{"type": "C", "status": "False"}]}}
    answer = await server.patch("merge", f"{path}/status", body)
    assert [entry["type"] for entry in answer.body["status"]["conditions"]] == ["C"]


@pytest.mark.parametrize("kind", ["merge", "strategic"])
async def test_a_version_in_the_patch_is_a_condition(server: Server, kind: str) -> None:
    path = await server.node()
    version = (await server.get(path)).body["metadata"]["resourceVersion"]
    body = {"metadata": {"resourceVersion": version, "labels": {"a": "b"}}}
    assert (await server.patch(kind, path, body)).code == 200
    answer = await server.patch(kind, path, {"metadata": {"resourceVersion": version, "labels": {"a": "c"}}})
    assert (answer.code, answer.reason) == (409, "Conflict")


@pytest.mark.parametrize("body", ["[1]", "{bad"], ids=["list", "broken"])
@pytest.mark.parametrize("kind", ["merge", "strategic"])
async def test_what_is_no_object_is_a_bad_request(server: Server, kind: str, body: str) -> None:
    path = await server.node()
    answer = await server.patch(kind, path, body)
    assert (answer.code, answer.reason) == (400, "BadRequest")


async def test_a_dry_run_patch_answers_and_keeps_nothing(server: Server) -> None:
    path = await server.node()
    answer = await server.patch("merge", f"{path}?dryRun=All", {"metadata": {"labels": {"a": "b"}}})
    assert answer.body["metadata"]["labels"] == {"a": "b"}
    assert "labels" not in (await server.get(path)).body["metadata"]


async def test_a_patch_of_nothing_is_not_found(server: Server) -> None:
    answer = await server.patch("merge", f"{NODES}/nobody-here", {})
    assert (answer.code, answer.reason) == (404, "NotFound")


async def test_finalizers_are_replaced_whole(server: Server) -> None:
    path = await server.node(finalizers=["a.b/c", "a.b/d"])
    answer = await server.patch("merge", path, {"metadata": {"finalizers": ["a.b/e"]}})
    assert answer.body["metadata"]["finalizers"] == ["a.b/e"]
    cleared = await server.patch("merge", path, {"metadata": {"finalizers": None}})
    assert "finalizers" not in cleared.body["metadata"]
