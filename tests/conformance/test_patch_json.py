"""JSON patch: the safe write for metadata and spec, with a test on the version."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.server import Server

T1, T2, T3 = ({"key": f"t{n}", "effect": "NoSchedule"} for n in (1, 2, 3))


@pytest.fixture
async def node(server: Server) -> str:
    name = server.unique("node")
    await server.made("/api/v1/nodes", {"metadata": {"name": name, "annotations": {"a/b": "1"}}})
    # The real server taints a new node; these tests want a list they know.
    await server.patch("merge", f"/api/v1/nodes/{name}", {"spec": {"taints": [T1, T2]}})
    return f"/api/v1/nodes/{name}"


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        pytest.param([{"op": "add", "path": "/spec/taints/-", "value": T3}], [T1, T2, T3], id="append"),
        pytest.param([{"op": "add", "path": "/spec/taints/0", "value": T3}], [T3, T1, T2], id="insert"),
        pytest.param([{"op": "remove", "path": "/spec/taints/0"}], [T2], id="remove"),
        pytest.param([{"op": "replace", "path": "/spec/taints/1", "value": T3}], [T1, T3], id="replace"),
        pytest.param([{"op": "replace", "path": "/spec/taints", "value": [T3]}], [T3], id="replace whole"),
        pytest.param([{"op": "move", "from": "/spec/taints/0", "path": "/spec/taints/1"}], [T2, T1], id="move"),
        pytest.param(
            [
                {"op": "copy", "from": "/spec/taints/0", "path": "/spec/taints/-"},
                {"op": "replace", "path": "/spec/taints/2/key", "value": "t3"},
            ],
            [T1, T2, T3],
            id="copy",
        ),
        pytest.param([{"op": "test", "path": "/spec/taints/0", "value": T1}], [T1, T2], id="test an object"),
    ],
)
async def test_operations_on_a_list(
    server: Server, node: str, operations: list[dict[str, Any]], expected: list[Any]
) -> None:
    answer = await server.patch("json", node, operations)
    assert answer.code == 200, answer.body
    assert answer.body["spec"]["taints"] == expected


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "test", "path": "/metadata/resourceVersion", "value": "1"}, id="test of another value"),
        pytest.param({"op": "test", "path": "/metadata/nothing", "value": "1"}, id="test of an absent key"),
        pytest.param({"op": "test", "path": "/metadata/nothing/below", "value": "1"}, id="test below an absent key"),
        pytest.param({"op": "remove", "path": "/metadata/nothing"}, id="remove of an absent key"),
        pytest.param({"op": "remove", "path": "/spec/taints/7"}, id="remove beyond the end"),
        pytest.param({"op": "add", "path": "/spec/taints/7", "value": T3}, id="add beyond the end"),
        pytest.param({"op": "add", "path": "/metadata/nothing/below", "value": 1}, id="add below an absent key"),
        pytest.param(
            {"op": "replace", "path": "/metadata/nothing/below", "value": 1}, id="replace below an absent key"
        ),
        pytest.param({"op": "move", "from": "/metadata/nothing", "path": "/metadata/x"}, id="move of an absent key"),
        pytest.param({"op": "juggle", "path": "/metadata/labels"}, id="no operation"),
    ],
)
async def test_a_patch_that_does_not_apply_changes_nothing(
    server: Server, node: str, operation: dict[str, Any]
) -> None:
    before = (await server.get(node)).body
    first = {"op": "add", "path": "/metadata/labels", "value": {"half": "done"}}
    answer = await server.patch("json", node, [first, operation])
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert answer.message == "the server rejected our request due to an error in our request"
    assert answer.body["details"] == {}
    assert (await server.get(node)).body == before


async def test_a_test_of_an_absent_key_against_null_passes(server: Server, node: str) -> None:
    operations = [
        {"op": "test", "path": "/metadata/labels", "value": None},
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
    ]
    assert (await server.patch("json", node, operations)).body["metadata"]["labels"] == {"a": "b"}


async def test_replace_adds_a_key_its_object_lacks(server: Server, node: str) -> None:
    answer = await server.patch("json", node, [{"op": "replace", "path": "/spec/unschedulable", "value": True}])
    assert (answer.code, answer.body["spec"]["unschedulable"]) == (200, True)


async def test_the_version_tested_is_the_version_written(server: Server, node: str) -> None:
    version = (await server.get(node)).body["metadata"]["resourceVersion"]
    cordon = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": "/spec/unschedulable", "value": True},
        {"op": "add", "path": "/metadata/annotations/sickbay.dev~1quarantine", "value": "{}"},
    ]
    answer = await server.patch("json", node, cordon)
    assert answer.body["metadata"]["annotations"] == {"a/b": "1", "sickbay.dev/quarantine": "{}"}
    assert answer.body["spec"]["unschedulable"] is True
    assert (await server.patch("json", node, cordon)).code == 422


async def test_another_version_in_the_patched_object_is_a_conflict(server: Server, node: str) -> None:
    operations = [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}]
    answer = await server.patch("json", node, operations)
    assert (answer.code, answer.reason) == (409, "Conflict")


@pytest.mark.parametrize("body", [{"op": "add"}, "{bad", '"text"'], ids=["object", "broken", "text"])
async def test_what_is_no_json_patch_is_a_bad_request(server: Server, node: str, body: Any) -> None:
    answer = await server.patch("json", node, body)
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert answer.message.startswith("error decoding patch: ")


async def test_a_patch_of_another_media_type_is_refused(server: Server, node: str) -> None:
    answer = await server.call("PATCH", node, "{}", "text/plain")
    assert (answer.code, answer.reason) == (415, "UnsupportedMediaType")


async def test_a_patch_of_nothing_is_not_found(server: Server) -> None:
    assert (await server.patch("json", "/api/v1/nodes/nobody", [])).code == 404


async def test_a_name_cannot_be_patched(server: Server, node: str) -> None:
    answer = await server.patch("json", node, [{"op": "replace", "path": "/metadata/name", "value": "other"}])
    assert answer.code == 400
