"""Server-side apply: owners, conflicts, and what goes when its owner no longer names it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.conformance.server import NODES, Answer, Server

GROUP = "apply.example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Obj = dict[str, Any]

SPEC: Obj = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "integer"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "whole": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "keyed": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {
                "type": "object",
                "required": ["k"],
                "properties": {"k": {"type": "string"}, "v": {"type": "string"}, "w": {"type": "string"}},
            },
        },
        "atomic": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "additionalProperties": {"type": "string"},
        },
        "nested": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}},
    },
}
DEFINITION: Obj = {
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": SPEC,
                            "status": {"type": "object", "properties": {"n": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}


class Widget:
    """One object, and several who apply to it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.name = server.unique("w")
        self.path = f"/apis/{GROUP}/v1/widgets/{self.name}"

    def config(self, spec: Obj | None = None, status: Obj | None = None, **metadata: Any) -> Obj:
        body: Obj = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": self.name} | metadata}
        return body | ({"spec": spec} if spec is not None else {}) | ({"status": status} if status else {})

    async def apply(self, manager: str, spec: Obj | None = None, query: str = "", **fields: Any) -> Answer:
        path = f"{self.path}?fieldManager={manager}{query}"
        return await self.server.patch("apply", path, self.config(spec, **fields))

    async def spec(self) -> Obj:
        found: Obj = (await self.server.get(self.path)).body["spec"]
        return found


@pytest.fixture
async def widget(server: Server) -> Widget:
    answer = await server.post(DEFINITIONS, DEFINITION)
    assert answer.code in (201, 409)
    for _ in range(100):
        if (await server.get(f"/apis/{GROUP}/v1/widgets")).code == 200:
            break
        await asyncio.sleep(0.05)  # noqa: TID251 - the real server establishes a definition in the background
    return Widget(server)


def owners(answer: Answer) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in answer.body["metadata"]["managedFields"]}


async def test_the_first_apply_creates_and_owns(widget: Widget) -> None:
    spec = {"a": 1, "labels": {"x": "1"}, "set": ["p"], "keyed": [{"k": "1", "v": "v"}], "whole": ["q"]}
    answer = await widget.apply("one", spec, labels={"l": "1"})
    assert (answer.code, answer.body["spec"], answer.body["metadata"]["generation"]) == (201, spec, 1)
    [entry] = answer.body["metadata"]["managedFields"]
    assert (entry["operation"], entry["apiVersion"], entry["fieldsType"]) == ("Apply", f"{GROUP}/v1", "FieldsV1")
    assert entry["fieldsV1"] == {
        "f:metadata": {"f:labels": {"f:l": {}}},
        "f:spec": {
            "f:a": {},
            "f:labels": {"f:x": {}},
            "f:set": {'v:"p"': {}},
            "f:keyed": {'k:{"k":"1"}': {".": {}, "f:k": {}, "f:v": {}}},
            "f:whole": {},
        },
    }


async def test_applying_the_same_again_writes_nothing(widget: Widget) -> None:
    first = await widget.apply("one", {"a": 1})
    again = await widget.apply("one", {"a": 1})
    assert again.code == 200
    assert again.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]


async def test_what_an_owner_no_longer_names_goes(widget: Widget) -> None:
    await widget.apply(
        "one",
        {
            "a": 1,
            "b": 2,
            "labels": {"x": "1"},
            "set": ["p", "q"],
            "keyed": [{"k": "1", "v": "v"}, {"k": "2", "v": "v", "w": "w"}],
            "atomic": {"z": "1"},
            "nested": {"x": 1},
        },
    )
    spec = {
        "a": 1,
        "labels": {"y": "1"},
        "set": ["q", "r"],
        "keyed": [{"k": "2", "w": "w"}, {"k": "3"}],
        "atomic": {"y": "1"},
        "nested": {"y": 1},
    }
    assert (await widget.apply("one", spec)).body["spec"] == spec


async def test_two_owners_share_an_object_and_each_takes_its_own_away(widget: Widget) -> None:
    await widget.apply("one", {"a": 1, "labels": {"x": "1"}, "keyed": [{"k": "1", "w": "w"}], "set": ["p"]})
    both = await widget.apply("two", {"b": 2, "labels": {"y": "2"}, "keyed": [{"k": "1", "v": "v"}], "set": ["q"]})
    assert both.body["spec"] == {
        "a": 1,
        "b": 2,
        "labels": {"x": "1", "y": "2"},
        "keyed": [{"k": "1", "v": "v", "w": "w"}],
        "set": ["p", "q"],
    }
    left = await widget.apply("two", {"a": 1})
    assert left.body["spec"] == {"a": 1, "labels": {"x": "1"}, "keyed": [{"k": "1", "w": "w"}], "set": ["p"]}
    rest = await widget.apply("one", {})
    assert rest.body["spec"] == {"a": 1}


async def test_another_value_for_somebody_elses_field_is_a_conflict(widget: Widget) -> None:
    await widget.apply("one", {"a": 1, "nested": {"x": 1}})
    answer = await widget.apply("two", {"a": 5, "b": 1})
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert answer.message == 'Apply failed with 1 conflict: conflict with "one": .spec.a'
    assert answer.causes == {("FieldManagerConflict", ".spec.a", 'conflict with "one"')}
    assert await widget.spec() == {"a": 1, "nested": {"x": 1}}


async def test_the_same_value_is_shared(widget: Widget) -> None:
    await widget.apply("one", {"a": 1})
    answer = await widget.apply("two", {"a": 1})
    assert owners(answer) == {"one": {"f:spec": {"f:a": {}}}, "two": {"f:spec": {"f:a": {}}}}


async def test_force_takes_a_field_over(widget: Widget) -> None:
    await widget.apply("one", {"a": 1, "b": 1})
    answer = await widget.apply("two", {"a": 5}, "&force=true")
    assert (answer.code, answer.body["spec"]) == (200, {"a": 5, "b": 1})
    assert owners(answer) == {"one": {"f:spec": {"f:b": {}}}, "two": {"f:spec": {"f:a": {}}}}


async def test_an_update_takes_what_it_changes(widget: Widget) -> None:
    await widget.apply("one", {"a": 1, "b": 1})
    updated = await widget.server.patch("merge", f"{widget.path}?fieldManager=hand", {"spec": {"a": 7}})
    assert owners(updated) == {"one": {"f:spec": {"f:b": {}}}, "hand": {"f:spec": {"f:a": {}}}}
    answer = await widget.apply("one", {"a": 1, "b": 1})
    assert answer.causes == {("FieldManagerConflict", ".spec.a", f'conflict with "hand" using {GROUP}/v1')}
    await widget.server.patch("json", widget.path, [{"op": "remove", "path": "/spec/a"}])
    assert (await widget.apply("one", {"a": 1, "b": 1})).code == 200


async def test_status_is_applied_on_its_own_endpoint(widget: Widget) -> None:
    await widget.apply("one", {"a": 1}, status={"n": 9})
    assert "status" not in (await widget.server.get(widget.path)).body
    path = f"{widget.path}/status?fieldManager=st"
    answer = await widget.server.patch("apply", path, widget.config({"a": 9}, {"n": 1}))
    assert (answer.body["status"], answer.body["spec"]) == ({"n": 1}, {"a": 1})
    entry = next(entry for entry in answer.body["metadata"]["managedFields"] if entry["manager"] == "st")
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:n": {}}})
    absent = widget.path.replace(widget.name, "absent")
    config = widget.config(status={"n": 1}) | {"metadata": {"name": "absent"}}
    assert (await widget.server.patch("apply", f"{absent}/status?fieldManager=st", config)).code == 404


async def test_a_dry_run_applies_nothing(widget: Widget) -> None:
    answer = await widget.apply("one", {"a": 1}, "&dryRun=All")
    assert (answer.code, answer.body["spec"]) == (201, {"a": 1})
    assert (await widget.server.get(widget.path)).code == 404


async def test_yaml_is_what_apply_speaks(widget: Widget) -> None:
    text = f"apiVersion: {GROUP}/v1\nkind: Widget\nmetadata: {{name: {widget.name}}}\nspec: {{a: 3}}\n"
    answer = await widget.server.patch("apply", f"{widget.path}?fieldManager=y", text)
    assert (answer.code, answer.body["spec"]) == (201, {"a": 3})
    broken = await widget.server.patch("apply", f"{widget.path}?fieldManager=y", "{: bad")
    assert (broken.code, broken.message.startswith("error decoding YAML")) == (400, True)


async def test_what_cannot_be_applied_is_refused(widget: Widget) -> None:
    server, path = widget.server, widget.path
    await widget.apply("one", {"a": 1})
    unnamed = await server.patch("apply", path, widget.config({"a": 1}))
    assert (unnamed.code, {cause[1] for cause in unnamed.causes}) == (422, {"fieldManager"})
    unknown = await widget.apply("one", {"nope": 1})
    assert (unknown.code, ".spec.nope: field not declared in schema" in unknown.message) == (500, True)
    other = widget.config({"a": 1}) | {"metadata": {"name": "other"}}
    assert (await server.patch("apply", f"{path}?fieldManager=one", other)).code == 400
    managed = await widget.apply("one", {"a": 1}, managedFields=[{"manager": "x"}])
    assert (managed.code, managed.message) == (400, "metadata.managedFields must be nil")
    stale = await widget.apply("one", {"a": 2}, resourceVersion="1")
    assert (stale.code, stale.reason) == (409, "Conflict")


async def test_applying_to_a_node_that_others_made(server: Server) -> None:
    path = await server.node(labels={"theirs": "1"})
    config = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": path.rpartition("/")[2]}}
    config["metadata"]["labels"] = {"ours": "1"}  # type: ignore[index]
    answer = await server.patch("apply", f"{path}?fieldManager=us", config)
    assert (answer.code, answer.body["metadata"]["labels"]) == (200, {"theirs": "1", "ours": "1"})
    config["metadata"]["labels"] = {"theirs": "2"}  # type: ignore[index]
    refused = await server.patch("apply", f"{path}?fieldManager=us", config)
    assert (refused.code, {cause[1] for cause in refused.causes}) == (409, {".metadata.labels.theirs"})
    config["metadata"]["labels"] = {}  # type: ignore[index]
    left = await server.patch("apply", f"{path}?fieldManager=us", config)
    assert left.body["metadata"]["labels"] == {"theirs": "1"}
    assert NODES in path


async def test_what_kubectl_applied_in_its_old_way_is_kubectls(server: Server) -> None:
    path = f"/api/v1/namespaces/{await server.namespace()}/configmaps"
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    before = {"metadata": {"name": "x", "annotations": annotations}, "data": {"a": "1", "b": "2"}}
    await server.made(f"{path}?fieldManager=kubectl-client-side-apply", before)
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "3"}}
    refused = await server.patch("apply", f"{path}/x?fieldManager=m", config)
    assert {message for _, _, message in refused.causes} == {'conflict with "kubectl-client-side-apply" using v1'}
    assert {field for _, field, _ in refused.causes} == {".data.a"}


async def test_a_null_in_a_configuration_says_nothing(server: Server) -> None:
    path = await server.node(labels={"a": "b"})
    config = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": path.rpartition("/")[2], "labels": None}}
    answer = await server.patch("apply", f"{path}?fieldManager=m&force=true", config)
    assert (answer.code, answer.body["metadata"]["labels"]) == (200, {"a": "b"})
