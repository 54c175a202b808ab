"""What stands in a body: values of the wrong type, unknown and doubled fields, the options of a DELETE."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.server import NODES, PATCH_TYPES, Answer, Server

PLAIN = {"metadata": {"name": "x", "labels": {"a": "b"}}, "data": {"a": "1"}}


@pytest.fixture
async def maps(server: Server) -> str:
    """The config maps of a fresh namespace; one of them is there, `x`."""
    path = f"/api/v1/namespaces/{await server.namespace()}/configmaps"
    await server.made(path, PLAIN)
    return path


WRONG = [
    pytest.param({"name": {}}, id="name"),
    pytest.param({"name": "y", "uid": 5}, id="uid"),
    pytest.param({"name": "y", "generation": "x"}, id="generation"),
    pytest.param({"name": "y", "creationTimestamp": "yesterday"}, id="creation time"),
    pytest.param({"name": "y", "deletionTimestamp": 5}, id="deletion time"),
    pytest.param({"name": "y", "finalizers": [5]}, id="finalizer"),
    pytest.param({"name": "y", "ownerReferences": [5]}, id="owner"),
    pytest.param({"name": "y", "ownerReferences": [{"controller": "yes"}]}, id="controlling owner"),
    pytest.param({"name": "y", "managedFields": "x"}, id="managed fields"),
    pytest.param("x", id="metadata"),
    pytest.param([], id="metadata as a list"),
]


@pytest.mark.parametrize("metadata", WRONG)
async def test_metadata_of_the_wrong_type_is_a_bad_request_or_an_invalid_patch(
    server: Server, maps: str, metadata: Any
) -> None:
    body = {"metadata": metadata}
    for answer in (await server.post(maps, body), await server.put(f"{maps}/x", body)):
        assert (answer.code, answer.reason) == (400, "BadRequest"), answer.body
    patched = await server.patch("merge", f"{maps}/x", body)
    assert (patched.code, {field for _, field, _ in patched.causes}) == (422, {"patch"}), patched.body


@pytest.mark.parametrize(
    ("field", "value", "good"),
    [
        pytest.param("lastHeartbeatTime", "bad", False, id="no time"),
        pytest.param("lastHeartbeatTime", "2026-13-01T00:00:00Z", False, id="no month"),
        pytest.param("lastHeartbeatTime", "2026-01-01T00:00:00Z", True, id="a time"),
        pytest.param("lastHeartbeatTime", "2026-01-01T00:00:00.5+02:00", True, id="a time elsewhere"),
    ],
)
async def test_a_time_that_is_none_is_refused(server: Server, field: str, value: str, good: bool) -> None:
    path = await server.node()
    condition = {"type": "Ready", "status": "True", field: value}
    for kind in ("merge", "strategic"):
        answer = await server.patch(kind, f"{path}/status", {"status": {"conditions": [condition]}})
        assert answer.code == (200 if good else 422), answer.body


@pytest.mark.parametrize(
    ("amount", "good"), [("x", False), ("1Gb", False), ("", False), (["1"], False), ("64Gi", True), ("2", True)]
)
async def test_a_quantity_that_is_none_is_refused(server: Server, amount: Any, good: bool) -> None:
    path = await server.node()
    answer = await server.patch("merge", f"{path}/status", {"status": {"capacity": {"memory": amount}}})
    assert answer.code == (200 if good else 422), answer.body


async def test_a_lease_is_renewed_in_microseconds_or_not_at_all(server: Server) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{await server.namespace()}/leases"
    for moment, code in (("2026-01-01T00:00:00Z", 400), ("2026-01-01T00:00:00.000001Z", 201)):
        answer = await server.post(path, {"metadata": {"name": "a"}, "spec": {"renewTime": moment}})
        assert answer.code == code, answer.body


async def test_an_update_without_a_name_is_a_bad_request(server: Server, maps: str) -> None:
    for body in ({}, {"metadata": None}, {"metadata": {"labels": {"a": "b"}}}):
        answer = await server.put(f"{maps}/x", body)
        assert answer.code == 400
        assert answer.message == "the name of the object (x based on URL) was undeterminable: name must be provided"
    removed = await server.patch("json", f"{maps}/x", [{"op": "remove", "path": "/metadata/name"}])
    assert removed.code == 400


async def test_an_object_stays_in_the_namespace_of_its_path(server: Server, maps: str) -> None:
    moved = {"metadata": {"name": "x", "namespace": "elsewhere"}}
    for answer in (await server.put(f"{maps}/x", moved), await server.patch("merge", f"{maps}/x", moved)):
        assert answer.code == 400
        assert answer.message == "the namespace of the provided object does not match the namespace sent on the request"


async def test_a_null_body_is_an_empty_object(server: Server, maps: str) -> None:
    assert (await server.post(maps, "null")).code == 422
    for kind, code in (("merge", 400), ("strategic", 200), ("json", 200)):
        assert (await server.patch(kind, f"{maps}/x", "null")).code == code
    assert (await server.call("DELETE", f"{maps}/x", "null")).code == 200


async def test_version_zero_is_no_version(server: Server, maps: str) -> None:
    made = await server.post(maps, {"metadata": {"name": "y", "resourceVersion": "0"}})
    assert made.code == 201
    assert (await server.patch("merge", f"{maps}/y", {"metadata": {"resourceVersion": "0"}})).code == 200
    assert (await server.put(f"{maps}/y", {"metadata": {"name": "y", "resourceVersion": "0"}})).code == 200


DIRECTIVE = {"$deleteFromPrimitiveList/finalizers": ["a/b"]}


def warned(answer: Answer) -> list[str]:
    return sorted(answer.headers.get_list("warning"))


async def test_unknown_fields_bring_a_warning_unless_they_are_to_be_ignored(server: Server, maps: str) -> None:
    body = {"metadata": {"name": "y", "colour": 1}, "colour": 2}
    said = ['299 - "unknown field \\"colour\\""', '299 - "unknown field \\"metadata.colour\\""']
    assert warned(await server.post(f"{maps}?dryRun=All", body)) == said
    assert warned(await server.post(f"{maps}?dryRun=All&fieldValidation=Warn", body)) == said
    assert warned(await server.post(f"{maps}?dryRun=All&fieldValidation=Ignore", body)) == []
    patched = await server.patch("strategic", f"{maps}/x", {"colour": 1, "metadata": DIRECTIVE})
    assert (patched.code, warned(patched)) == (200, ['299 - "unknown field \\"colour\\""'])


async def test_a_field_that_stands_twice_brings_a_warning_and_where_strict_a_refusal(server: Server, maps: str) -> None:
    body = '{"metadata":{"name":"y"},"data":{"a":"1","a":"2"}}'
    lax = await server.post(f"{maps}?dryRun=All", body)
    assert (lax.code, lax.body["data"], warned(lax)) == (201, {"a": "2"}, ['299 - "duplicate field \\"data.a\\""'])
    strict = await server.post(f"{maps}?fieldValidation=Strict", body)
    assert strict.code == 400
    assert strict.message.endswith('strict decoding error: duplicate field "data.a"')
    patch = await server.call("PATCH", f"{maps}/x?fieldValidation=Strict", body, PATCH_TYPES["merge"])
    assert (patch.code, {field for _, field, _ in patch.causes}) == (422, {"patch"})


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"gracePeriodSeconds": "x"}, 400),
        ({"gracePeriodSeconds": 1.5}, 400),
        ({"preconditions": "x"}, 400),
        ({"dryRun": "All"}, 400),
        ({"dryRun": ["Some"]}, 422),
        ({"propagationPolicy": "Sideways"}, 422),
        ({"propagationPolicy": "Background", "orphanDependents": True}, 422),
        ({"kind": "Pod", "apiVersion": "v1"}, 400),
        ({"kind": "DeleteOptions", "apiVersion": "apps/v1"}, 200),
        ({"colour": 1}, 200),
        (" ", 400),
    ],
)
async def test_delete_options_are_read_before_anything_goes(server: Server, maps: str, options: Any, code: int) -> None:
    answer = await server.call("DELETE", f"{maps}/x", options)
    assert answer.code == code, answer.body
    assert (await server.get(f"{maps}/x")).code == (404 if code == 200 else 200)


async def test_delete_options_of_the_query_are_read_too(server: Server, maps: str) -> None:
    for query in ("dryRun=", "dryRun=Some", "gracePeriodSeconds=x", "propagationPolicy=Sideways"):
        assert (await server.delete(f"{maps}/x?{query}")).code in (400, 422)
    orphaned = await server.delete(f"{maps}/x?orphanDependents=true")
    assert orphaned.body["metadata"]["finalizers"] == ["orphan"]


async def test_a_deletion_of_many_can_be_done_in_pages(server: Server, maps: str) -> None:
    await server.made(maps, {"metadata": {"name": "y"}})
    answer = await server.delete(f"{maps}?limit=1")
    assert (answer.names, bool(answer.body["metadata"]["continue"])) == (["x"], True)
    assert (await server.get(maps)).names == ["y"]


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "application/json"])
async def test_a_patch_of_no_patch_type_is_refused(server: Server, maps: str, media: str) -> None:
    answer = await server.call("PATCH", f"{maps}/x", "{}", media)
    assert (answer.code, answer.message) == (415, "415: Unsupported Media Type")


async def test_nothing_is_written_for_a_client_that_could_not_read_the_answer(server: Server, maps: str) -> None:
    headers = {"accept": "text/plain"}
    for answer in (
        await server.call("POST", maps, {"metadata": {"name": "y"}}, **headers),
        await server.call("PATCH", f"{maps}/x", {"data": {"a": "2"}}, PATCH_TYPES["merge"], **headers),
        await server.call("DELETE", f"{maps}/x", **headers),
    ):
        assert (answer.code, answer.reason) == (406, "NotAcceptable")
    assert (await server.get(f"{maps}/y")).code == 404
    assert (await server.get(f"{maps}/x")).body["data"] == {"a": "1"}


async def test_an_owner_stands_once_and_must_be_one(server: Server, maps: str) -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
    once = await server.post(f"{maps}?dryRun=All", {"metadata": {"name": "y", "ownerReferences": [owner, owner]}})
    assert once.body["metadata"]["ownerReferences"] == [owner]
    both = [owner | {"controller": True}, owner | {"uid": "v", "controller": True}]
    for owners in ([owner | {"kind": "Event"}], [owner | {"apiVersion": "a/b/c"}], both):
        assert (await server.post(maps, {"metadata": {"name": "y", "ownerReferences": owners}})).code == 422


@pytest.mark.parametrize(
    ("path", "name", "code"),
    [
        ("/api/v1/namespaces", "a.b", 422),
        ("/api/v1/namespaces", "a" * 64, 422),
        (NODES, "a.b", 201),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "system:A", 201),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "a/b", 422),
    ],
)
async def test_what_a_name_may_be_depends_on_the_kind(server: Server, path: str, name: str, code: int) -> None:
    answer = await server.post(f"{path}?dryRun=All", {"metadata": {"name": name}})
    assert answer.code == code, answer.body


async def test_what_a_name_is_generated_from_must_be_one_itself(server: Server, maps: str) -> None:
    for base in ("A_", "a" * 254):
        answer = await server.post(maps, {"metadata": {"generateName": base}})
        assert answer.code == 422
        assert "metadata.generateName" in {field for _, field, _ in answer.causes}


@pytest.mark.parametrize(
    ("operation", "code"),
    [({}, 422), ({"op": "add"}, 422), ({"op": 5, "path": "/data/c"}, 400), ({"op": "add", "path": 5}, 400)],
)
async def test_operations_that_are_none(server: Server, maps: str, operation: Any, code: int) -> None:
    assert (await server.patch("json", f"{maps}/x", [operation])).code == code


@pytest.mark.parametrize("word", ["kind", "apiVersion"])
async def test_a_patch_does_not_change_what_kind_an_object_is(server: Server, maps: str, word: str) -> None:
    merged = await server.patch("merge", f"{maps}/x", {word: "Other"})
    assert (merged.code, {field for _, field, _ in merged.causes}) == (422, {"patch"})
    strategic = await server.patch("strategic", f"{maps}/x", {word: "Other"})
    assert (strategic.code, strategic.body["kind"], strategic.body["apiVersion"]) == (200, "ConfigMap", "v1")


async def test_a_body_that_is_none_is_told_before_an_object_that_is_not_there(server: Server, maps: str) -> None:
    absent = await server.put(f"{maps}/y", {"metadata": {"name": "y"}, "data": {"a": 5}})
    assert (absent.code, absent.reason) == (400, "BadRequest")
    stale = {"metadata": {"name": "x", "resourceVersion": "1"}, "data": {"a": 5}}
    assert (await server.put(f"{maps}/x", stale)).code == 400


@pytest.mark.parametrize(("part", "code"), [("nowhere", 404), ("status", 404)])
async def test_what_is_not_served_below_an_object_cannot_be_deleted(
    server: Server, maps: str, part: str, code: int
) -> None:
    assert (await server.delete(f"{maps}/x/{part}")).code == code


async def test_options_in_the_body_are_all_there_are(server: Server, maps: str) -> None:
    assert (await server.call("DELETE", f"{maps}/x?dryRun=All", {"dryRun": ["All"]})).code == 200
    assert (await server.get(f"{maps}/x")).code == 200
    assert (await server.delete(f"{maps}/x?dryRun=All")).code == 200
    assert (await server.get(f"{maps}/x")).code == 200
    assert (await server.call("DELETE", f"{maps}/x?dryRun=All", {})).code == 200
    assert (await server.get(f"{maps}/x")).code == 404
