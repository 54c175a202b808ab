"""POST: what the server sets, generates and refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.server import NODES, Server


async def test_the_server_sets_identity_and_version(server: Server) -> None:
    name = server.unique("node")
    given = {"name": name, "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7}
    made = await server.made(NODES, {"metadata": given})
    meta = made["metadata"]
    assert (made["kind"], made["apiVersion"]) == ("Node", "v1")
    assert meta["uid"] != "mine"
    assert not meta["creationTimestamp"].startswith("2001")
    assert int(meta["resourceVersion"]) > 0
    assert meta.get("generation", 7) == 7


async def test_a_second_object_of_the_name_is_refused(server: Server) -> None:
    path = await server.node()
    name = path.rpartition("/")[2]
    answer = await server.post(NODES, {"metadata": {"name": name}})
    assert (answer.code, answer.reason) == (409, "AlreadyExists")
    assert answer.message == f'nodes "{name}" already exists'
    assert answer.body["details"] == {"name": name, "kind": "nodes"}


async def test_a_second_object_is_told_that_the_first_is_on_its_way_out(server: Server) -> None:
    path = f"/api/v1/namespaces/{await server.namespace()}/configmaps"
    await server.made(path, {"metadata": {"name": "x", "finalizers": ["a/b"]}})
    await server.delete(f"{path}/x")
    answer = await server.post(path, {"metadata": {"name": "x"}})
    assert (answer.code, answer.message) == (409, 'object is being deleted: configmaps "x" already exists')


async def test_generate_name_adds_five_letters(server: Server) -> None:
    namespace = await server.namespace()
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    first = await server.made(path, {"metadata": {"generateName": "job-"}})
    second = await server.made(path, {"metadata": {"generateName": "job-"}})
    name = first["metadata"]["name"]
    assert name.startswith("job-")
    assert len(name) == len("job-") + 5
    assert first["metadata"]["generateName"] == "job-"
    assert second["metadata"]["name"] != name


@pytest.mark.parametrize(
    ("metadata", "code", "field"),
    [
        pytest.param({"name": "Upper_Case"}, 422, "metadata.name", id="name with capitals"),
        pytest.param({"name": "a" * 254}, 422, "metadata.name", id="name too long"),
        pytest.param({}, 422, "metadata.name", id="no name"),
        pytest.param({"name": "x", "labels": {"a b": "c"}}, 422, "metadata.labels", id="label key with a blank"),
        pytest.param({"name": "x", "labels": {"a": "-b"}}, 422, "metadata.labels", id="label value with a dash first"),
        pytest.param({"name": "x", "labels": {"a": "b" * 64}}, 422, "metadata.labels", id="label value too long"),
        pytest.param({"name": "x", "labels": {"a": 5}}, 400, "", id="label value no string"),
        pytest.param({"name": "x", "annotations": {"/b": "c"}}, 422, "metadata.annotations", id="annotation key"),
        pytest.param(
            {"name": "x", "finalizers": ["bare"]}, 422, "metadata.finalizers[0]", id="finalizer without domain"
        ),
        pytest.param(
            {"name": "x", "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "y"}]},
            422,
            "metadata.ownerReferences.uid",
            id="owner without uid",
        ),
    ],
)
async def test_bad_metadata_is_refused(server: Server, metadata: dict[str, Any], code: int, field: str) -> None:
    answer = await server.post(NODES, {"metadata": metadata})
    assert answer.code == code, answer.body
    assert {cause[1] for cause in answer.causes} == ({field} if field else set())


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("{bad", id="no JSON"),
        pytest.param("[1]", id="no object"),
        pytest.param({"kind": "Pod", "metadata": {"name": "x"}}, id="another kind"),
        pytest.param({"kind": "Node", "apiVersion": "v2", "metadata": {"name": "x"}}, id="another version"),
    ],
)
async def test_a_body_that_is_no_node_is_a_bad_request(server: Server, body: Any) -> None:
    answer = await server.post(NODES, body)
    assert (answer.code, answer.reason) == (400, "BadRequest")


async def test_a_body_of_another_media_type_is_refused(server: Server) -> None:
    answer = await server.call("POST", NODES, "x", "text/plain")
    assert (answer.code, answer.reason) == (415, "UnsupportedMediaType")


async def test_a_version_on_create_is_an_error(server: Server) -> None:
    answer = await server.post(NODES, {"metadata": {"name": server.unique("node"), "resourceVersion": "5"}})
    assert answer.code == 500
    assert answer.message == "resourceVersion should not be set on objects to be created"


async def test_an_unknown_namespace_is_not_found(server: Server) -> None:
    answer = await server.post("/api/v1/namespaces/nowhere-at-all/configmaps", {"metadata": {"name": "a"}})
    assert (answer.code, answer.message) == (404, 'namespaces "nowhere-at-all" not found')


async def test_a_namespace_that_contradicts_the_path_is_refused(server: Server) -> None:
    namespace = await server.namespace()
    body = {"metadata": {"name": "a", "namespace": "other"}}
    answer = await server.post(f"/api/v1/namespaces/{namespace}/configmaps", body)
    assert answer.code == 400
    assert "does not match the namespace sent on the request" in answer.message


async def test_a_dry_run_answers_and_keeps_nothing(server: Server) -> None:
    name = server.unique("node")
    answer = await server.post(f"{NODES}?dryRun=All", {"metadata": {"name": name}})
    assert (answer.code, answer.body["metadata"]["name"]) == (201, name)
    assert answer.body["metadata"]["uid"]
    assert (await server.get(f"{NODES}/{name}")).code == 404
    refused = await server.post(f"{NODES}?dryRun=Some", {"metadata": {"name": name}})
    assert (refused.code, {cause[1] for cause in refused.causes}) == (422, {"dryRun"})


async def test_posting_to_an_object_is_not_allowed(server: Server) -> None:
    path = await server.node()
    answer = await server.post(path, {})
    assert (answer.code, answer.reason) == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    ("path", "is_status"),
    [
        pytest.param("/api/v1/nonsense", True, id="resource of a served group"),
        pytest.param("/api/v1/namespaces/default/nodes", True, id="cluster resource in a namespace"),
        pytest.param("/apis/no.such.group/v1/things", False, id="group"),
        pytest.param("/apis/apps/v7/deployments", True, id="version of a served group"),
    ],
)
async def test_what_is_not_served_is_not_found(server: Server, path: str, is_status: bool) -> None:
    answer = await server.get(path)
    assert answer.code == 404
    assert (answer.body.get("kind") == "Status") == is_status


async def test_a_job_gets_its_selector_and_its_pods_matching_labels(server: Server) -> None:
    namespace = await server.namespace()
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    made = await server.made(f"/apis/batch/v1/namespaces/{namespace}/jobs", {"metadata": {"name": "j"}, "spec": spec})
    uid = made["metadata"]["uid"]
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "job-name": "j",
    }
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert made["spec"]["template"]["metadata"]["labels"] == labels
    assert made["metadata"]["labels"] == labels
    counts = {key: made["spec"][key] for key in ("parallelism", "completions", "backoffLimit")}
    assert counts == {"parallelism": 1, "completions": 1, "backoffLimit": 6}
    assert made["metadata"]["generation"] == 1


async def test_a_pod_gets_the_defaults_of_core_and_admission(server: Server) -> None:
    namespace = await server.namespace()
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "X"}}
    body["spec"]["automountServiceAccountToken"] = False  # type: ignore[index]
    made = await server.made(f"/api/v1/namespaces/{namespace}/pods", body)
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    tolerations = [(entry["key"], entry["tolerationSeconds"]) for entry in made["spec"].pop("tolerations")]
    assert tolerations == [("node.kubernetes.io/not-ready", 300), ("node.kubernetes.io/unreachable", 300)]
    assert made["spec"] == {
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "c",
                "image": "i",
                "imagePullPolicy": "Always",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
    }


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        pytest.param({"unschedulable": True, "colour": "red"}, {"unschedulable": True}, id="unknown field"),
        pytest.param({"unschedulable": None, "podCIDR": "10.0.0.0/24"}, {"podCIDR": "10.0.0.0/24"}, id="null"),
        pytest.param({"unSchedulable": True}, {}, id="wrong case"),
    ],
)
async def test_what_a_built_in_kind_does_not_know_is_dropped(
    server: Server, spec: dict[str, Any], kept: dict[str, Any]
) -> None:
    path = await server.node(spec=spec, status={"phase": "Running", "mood": "fine"})
    body = (await server.get(path)).body
    spec = {key: value for key, value in body["spec"].items() if key not in ("taints", "podCIDRs")}
    assert spec == kept
    assert "mood" not in body["status"]
    patched = await server.patch("merge", path, {"spec": {"colour": "blue"}, "top": 1})
    assert (patched.code, patched.body["metadata"]["resourceVersion"]) == (200, body["metadata"]["resourceVersion"])


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"unschedulable": "yes"}, "unschedulable", id="text for a boolean"),
        pytest.param({"podCIDR": 5}, "podCIDR", id="number for a text"),
        pytest.param({"taints": {"key": "a"}}, "taints", id="object for a list"),
        pytest.param({"taints": ["a"]}, "taints", id="text for an object"),
    ],
)
async def test_a_value_of_the_wrong_type_is_a_bad_request(server: Server, spec: dict[str, Any], field: str) -> None:
    created = await server.post(NODES, {"metadata": {"name": server.unique("node")}, "spec": spec})
    assert (created.code, created.reason) == (400, "BadRequest")
    assert field in created.message
    path = await server.node()
    replaced = await server.put(path, {"metadata": {"name": path.rpartition("/")[2]}, "spec": spec})
    assert (replaced.code, replaced.reason) == (400, "BadRequest")


async def test_a_patch_that_makes_a_value_of_the_wrong_type_is_invalid(server: Server) -> None:
    path = await server.node()
    for kind, body in (
        ("merge", {"spec": {"unschedulable": "yes"}}),
        ("strategic", {"spec": {"unschedulable": "yes"}}),
        ("json", [{"op": "add", "path": "/spec/unschedulable", "value": "yes"}]),
        ("merge", {"metadata": {"labels": {"a": 5}}}),
    ):
        answer = await server.patch(kind, path, body)
        assert (answer.code, answer.reason, {cause[:2] for cause in answer.causes}) == (
            422,
            "Invalid",
            {("FieldValueInvalid", "patch")},
        )


async def test_strict_field_validation_is_for_built_in_kinds_too(server: Server) -> None:
    name = server.unique("node")
    body = {
        "metadata": {"name": name},
        "spec": {"colour": "red", "taints": [{"key": "a", "effect": "NoSchedule", "x": 1}]},
    }
    answer = await server.post(f"{NODES}?fieldValidation=Strict", body)
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert 'unknown field "spec.colour"' in answer.message
    assert 'unknown field "spec.taints[0].x"' in answer.message
    warned = await server.post(f"{NODES}?fieldValidation=Warn", body)
    assert warned.code == 201
    assert '299 - "unknown field \\"spec.colour\\""' in warned.headers.get_list("warning", split_commas=True)


async def test_a_new_node_takes_no_pods_yet(server: Server) -> None:
    theirs = {"key": "a", "effect": "NoExecute"}
    body = (await server.get(await server.node(spec={"taints": [theirs]}))).body
    assert body["spec"]["taints"] == [theirs, {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
