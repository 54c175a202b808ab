"""DELETE: preconditions, finalizers, propagation, collections, namespaces."""

from __future__ import annotations

import pytest

from tests.conformance.server import NODES, Server


async def test_a_node_is_gone_at_once(server: Server) -> None:
    path = await server.node()
    uid = (await server.get(path)).body["metadata"]["uid"]
    answer = await server.delete(path)
    assert (answer.code, answer.body["kind"], answer.body["status"]) == (200, "Status", "Success")
    assert answer.body["details"] == {"name": path.rpartition("/")[2], "kind": "nodes", "uid": uid}
    assert (await server.get(path)).code == 404
    assert (await server.delete(path)).code == 404


@pytest.mark.parametrize(
    ("preconditions", "text"),
    [
        ({"uid": "another"}, "the UID in the precondition (another) does not match the UID in record"),
        ({"resourceVersion": "1"}, "the ResourceVersion in the precondition (1) does not match"),
    ],
    ids=["uid", "resourceVersion"],
)
async def test_a_precondition_that_does_not_hold_is_a_conflict(
    server: Server, preconditions: dict[str, str], text: str
) -> None:
    path = await server.node()
    answer = await server.delete(path, preconditions=preconditions)
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert text in answer.message
    assert (await server.get(path)).code == 200


async def test_preconditions_that_hold_let_the_delete_through(server: Server) -> None:
    path = await server.node()
    meta = (await server.get(path)).body["metadata"]
    answer = await server.delete(path, preconditions={"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]})
    assert answer.code == 200
    assert (await server.get(path)).code == 404


async def test_a_finalizer_keeps_the_object_until_it_is_taken_away(server: Server) -> None:
    path = await server.node(finalizers=["a.b/c", "a.b/d"])
    answer = await server.delete(path)
    meta = answer.body["metadata"]
    assert (answer.code, answer.body["kind"], meta["deletionGracePeriodSeconds"]) == (200, "Node", 0)
    version = meta["resourceVersion"]
    again = await server.delete(path)
    assert again.body["metadata"]["resourceVersion"] == version
    one = await server.patch("merge", path, {"metadata": {"finalizers": ["a.b/d"]}})
    assert one.body["metadata"]["deletionTimestamp"] == meta["deletionTimestamp"]
    last = await server.patch("json", path, [{"op": "remove", "path": "/metadata/finalizers"}])
    assert (last.code, last.body["kind"]) == (200, "Node")
    assert (await server.get(path)).code == 404


async def test_no_finalizer_is_added_to_what_is_being_deleted(server: Server) -> None:
    path = await server.node(finalizers=["a.b/c"])
    await server.delete(path)
    answer = await server.patch("merge", path, {"metadata": {"finalizers": ["a.b/c", "a.b/new"]}})
    assert answer.code == 422
    assert {(cause[0], cause[1]) for cause in answer.causes} == {("FieldValueForbidden", "metadata.finalizers")}
    assert 'found new finalizers []string{"a.b/new"}' in answer.message
    await server.patch("merge", path, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
async def test_propagation_is_asked_for_by_a_finalizer(server: Server, policy: str, finalizer: str) -> None:
    namespace = await server.namespace()
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await server.made(path, {"metadata": {"name": "a"}})
    answer = await server.delete(f"{path}/a", propagationPolicy=policy)
    assert answer.body["metadata"]["finalizers"] == [finalizer]
    assert answer.body["metadata"]["deletionTimestamp"]
    background = await server.delete(f"{path}/a", propagationPolicy="Background")
    assert background.code == 200
    assert (await server.get(f"{path}/a")).code == 404


async def test_an_unknown_propagation_policy_is_invalid(server: Server) -> None:
    path = await server.node()
    answer = await server.delete(path, propagationPolicy="Sideways")
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert {cause[1] for cause in answer.causes} == {"propagationPolicy"}
    assert (await server.get(path)).code == 200


@pytest.mark.parametrize("as_query", [True, False], ids=["query", "body"])
async def test_a_dry_run_deletes_nothing(server: Server, as_query: bool) -> None:
    path = await server.node()
    answer = await (server.delete(f"{path}?dryRun=All") if as_query else server.delete(path, dryRun=["All"]))
    assert answer.code == 200
    assert (await server.get(path)).code == 200


async def test_a_collection_is_deleted_by_selector(server: Server) -> None:
    namespace = await server.namespace()
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        await server.made(path, {"metadata": {"name": name, "labels": {"l": label}}})
    answer = await server.delete(f"{path}?labelSelector=l%3Dx")
    assert (answer.code, answer.body["kind"], answer.names) == (200, "ConfigMapList", ["a", "b"])
    left = [name for name in (await server.get(path)).names if name != "kube-root-ca.crt"]
    assert left == ["c"]


async def test_a_namespace_terminates_and_takes_no_more_content(server: Server) -> None:
    namespace = await server.namespace()
    answer = await server.delete(f"/api/v1/namespaces/{namespace}")
    assert (answer.code, answer.body["status"]["phase"]) == (200, "Terminating")
    refused = await server.post(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "late"}})
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert {cause[0] for cause in refused.causes} == {"NamespaceTerminating"}


async def test_the_default_namespace_stays(server: Server) -> None:
    answer = await server.delete("/api/v1/namespaces/default")
    assert (answer.code, answer.reason) == (403, "Forbidden")
    assert answer.message == 'namespaces "default" is forbidden: this namespace may not be deleted'


async def test_a_successor_of_the_same_name_is_another_object(server: Server) -> None:
    path = await server.node()
    name = path.rpartition("/")[2]
    uid = (await server.get(path)).body["metadata"]["uid"]
    await server.delete(path)
    successor = await server.made(NODES, {"metadata": {"name": name}})
    assert successor["metadata"]["uid"] != uid
    assert (await server.delete(path, preconditions={"uid": uid})).code == 409
