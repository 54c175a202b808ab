"""Strategic merge patch: lists with a key merge by it, and the order of what stays is kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.server import Server

Obj = dict[str, Any]
A, B, C = ({"type": name, "status": "True"} for name in "ABC")


def conditions(body: Obj) -> list[tuple[str, str]]:
    return [(entry["type"], entry["status"]) for entry in body["status"].get("conditions", [])]


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param(
            {"conditions": [{"type": "B", "status": "False"}]},
            [("A", "True"), ("B", "False"), ("C", "True")],
            id="change one",
        ),
        pytest.param(
            {"conditions": [{"type": "D", "status": "True"}]},
            [("D", "True"), ("A", "True"), ("B", "True"), ("C", "True")],
            id="a new one comes first",
        ),
        pytest.param(
            {"conditions": [{"type": "C", "status": "False"}, {"type": "A", "status": "False"}]},
            [("B", "True"), ("C", "False"), ("A", "False")],
            id="order of the patch",
        ),
        pytest.param(
            {"conditions": [{"type": "B", "$patch": "delete"}]}, [("A", "True"), ("C", "True")], id="delete one"
        ),
        pytest.param(
            {"conditions": [{"type": "D", "$patch": "delete"}]},
            [("A", "True"), ("B", "True"), ("C", "True")],
            id="delete what is absent",
        ),
        pytest.param(
            {"conditions": [{"$patch": "replace"}, {"type": "D", "status": "True"}]}, [("D", "True")], id="replace all"
        ),
        pytest.param(
            {
                "$setElementOrder/conditions": [{"type": "C"}, {"type": "B"}, {"type": "A"}],
                "conditions": [{"type": "B", "status": "False"}],
            },
            [("C", "True"), ("B", "False"), ("A", "True")],
            id="ask for an order",
        ),
        pytest.param({"conditions": None}, [], id="delete the list"),
        pytest.param({"conditions": []}, [("A", "True"), ("B", "True"), ("C", "True")], id="empty list"),
        pytest.param({"$patch": "replace", "conditions": [A]}, [("A", "True")], id="replace the object"),
    ],
)
async def test_conditions_merge_by_type(server: Server, patch: Obj, expected: list[tuple[str, str]]) -> None:
    path = await server.node(status={"conditions": [A, B, C]})
    answer = await server.patch("strategic", f"{path}/status", {"status": patch})
    assert answer.code == 200, answer.body
    assert conditions(answer.body) == expected


async def test_fields_of_a_condition_merge(server: Server) -> None:
    path = await server.node(status={"conditions": [A | {"reason": "Before", "message": "long ago"}]})
    body = {"status": {"conditions": [{"type": "A", "status": "False", "reason": "Now", "message": None}]}}
    answer = await server.patch("strategic", f"{path}/status", body)
    [condition] = answer.body["status"]["conditions"]
    assert (condition["status"], condition["reason"], condition.get("message", "")) == ("False", "Now", "")


async def test_an_item_without_its_key_is_an_error(server: Server) -> None:
    path = await server.node(status={"conditions": [A]})
    answer = await server.patch("strategic", f"{path}/status", {"status": {"conditions": [{"status": "True"}]}})
    assert answer.code == 500
    assert "does not contain declared merge key: type" in answer.message


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"finalizers": ["a.b/e"]}, ["a.b/e", "a.b/c", "a.b/d"], id="add"),
        pytest.param({"finalizers": ["a.b/d"]}, ["a.b/c", "a.b/d"], id="add what is there"),
        pytest.param({"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}, ["a.b/d"], id="delete"),
        pytest.param({"finalizers": None}, None, id="clear"),
    ],
)
async def test_finalizers_are_a_set(server: Server, patch: Obj, expected: list[str] | None) -> None:
    path = await server.node(finalizers=["a.b/c", "a.b/d"])
    answer = await server.patch("strategic", path, {"metadata": patch})
    assert answer.code == 200, answer.body
    assert answer.body["metadata"].get("finalizers") == expected


async def test_owners_merge_by_uid(server: Server) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "u1"}
    path = await server.node(ownerReferences=[owner])
    patch = [{"uid": "u1", "name": "renamed"}, owner | {"uid": "u2"}]
    answer = await server.patch("strategic", path, {"metadata": {"ownerReferences": patch}})
    assert [(entry["uid"], entry["name"]) for entry in answer.body["metadata"]["ownerReferences"]] == [
        ("u1", "renamed"),
        ("u2", "x"),
    ]


async def test_containers_merge_by_name_and_tolerations_do_not_merge(server: Server) -> None:
    namespace = await server.namespace()
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "tolerations": [{"key": "old", "operator": "Exists"}],
            "containers": [
                {"name": "main", "image": "i", "env": [{"name": "A", "value": "1"}]},
                {"name": "side", "image": "s"},
            ],
        },
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets"
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await server.made(path, {"metadata": {"name": "d"}, "spec": spec})
    change = {
        "tolerations": [{"key": "new", "operator": "Exists"}],
        "containers": [{"name": "main", "env": [{"name": "B", "value": "2"}]}],
    }
    answer = await server.patch("strategic", f"{path}/d", {"spec": {"template": {"spec": change}}})
    found = answer.body["spec"]["template"]["spec"]
    assert [container["name"] for container in found["containers"]] == ["main", "side"]
    assert found["containers"][0]["image"] == "i"
    assert {entry["name"]: entry["value"] for entry in found["containers"][0]["env"]} == {"A": "1", "B": "2"}
    assert [entry["key"] for entry in found["tolerations"]] == ["new"]


async def test_retain_keys_drops_the_rest(server: Server) -> None:
    namespace = await server.namespace()
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await server.made(path, {"metadata": {"name": "d"}, "spec": spec})
    change = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    answer = await server.patch("strategic", f"{path}/d", {"spec": change})
    assert answer.body["spec"]["strategy"] == {"type": "Recreate"}
