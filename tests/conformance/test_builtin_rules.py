"""What built-in kinds are judged by and filled in with: pods, nodes, config maps, budgets, leases."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.server import Server

IN_NOTHING = {"key": "a", "operator": "In"}
CONTAINER = {"name": "c", "image": "i"}
POD: dict[str, Any] = {"automountServiceAccountToken": False, "containers": [CONTAINER]}


@pytest.fixture
async def space(server: Server) -> str:
    """The path of a fresh namespace."""
    return f"/api/v1/namespaces/{await server.namespace()}"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": [{"image": "i"}]}, "spec.containers[0].name"),
        ({"containers": [{"name": "c"}]}, "spec.containers[0].image"),
        ({"containers": [{"name": "C", "image": "i"}]}, "spec.containers[0].name"),
        ({"containers": [CONTAINER, CONTAINER]}, "spec.containers[1].name"),
        ({"containers": [CONTAINER | {"imagePullPolicy": "Now"}]}, "spec.containers[0].imagePullPolicy"),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
        ({"nodeName": "A_B"}, "spec.nodeName"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "spec.tolerations[0].operator"),
        ({"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}]}, "spec.tolerations[0].effect"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
    ],
)
async def test_a_pod_that_cannot_be_run_is_refused(server: Server, space: str, spec: Any, field: str) -> None:
    answer = await server.post(f"{space}/pods", {"metadata": {"name": "p"}, "spec": POD | spec})
    assert (answer.code, {cause[1] for cause in answer.causes}) == (422, {field}), answer.body


@pytest.mark.parametrize(
    ("resources", "field"),
    [
        ({"requests": {"nvidia.com/gpu": "8"}}, "limits"),
        ({"requests": {"nvidia.com/gpu": "4"}, "limits": {"nvidia.com/gpu": "8"}}, "requests"),
        ({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, "requests"),
    ],
)
async def test_gpus_are_never_overcommitted(server: Server, space: str, resources: Any, field: str) -> None:
    spec = POD | {"containers": [CONTAINER | {"resources": resources}]}
    answer = await server.post(f"{space}/pods", {"metadata": {"name": "p"}, "spec": spec})
    assert (answer.code, {c[1] for c in answer.causes}) == (422, {f"spec.containers[0].resources.{field}"}), answer.body


@pytest.mark.parametrize("spec", [{"priorityClassName": "nowhere-at-all"}, {"priority": 7}])
async def test_a_priority_is_given_by_its_class_alone(server: Server, space: str, spec: Any) -> None:
    answer = await server.post(f"{space}/pods", {"metadata": {"name": "p"}, "spec": POD | spec})
    assert (answer.code, answer.reason) == (403, "Forbidden"), answer.body


async def test_what_is_limited_is_requested(server: Server, space: str) -> None:
    limits = {"nvidia.com/gpu": "8", "memory": "1Gi"}
    container = CONTAINER | {
        "resources": {"limits": limits},
        "ports": [{"containerPort": 80}],
        "livenessProbe": {"httpGet": {"port": 80}},
    }
    spec = POD | {"containers": [container], "volumes": [{"name": "v"}, {"name": "w", "configMap": {"name": "x"}}]}
    made = (await server.made(f"{space}/pods", {"metadata": {"name": "p"}, "spec": spec}))["spec"]
    first = made["containers"][0]
    assert first["resources"]["requests"] == limits
    assert first["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    assert (first["livenessProbe"]["periodSeconds"], first["livenessProbe"]["httpGet"]["path"]) == (10, "/")
    assert made["volumes"] == [
        {"name": "v", "emptyDir": {}},
        {"name": "w", "configMap": {"name": "x", "defaultMode": 420}},
    ]


async def test_a_gated_pod_says_so_and_gets_no_new_gate(server: Server, space: str) -> None:
    spec = POD | {"schedulingGates": [{"name": "a/b"}]}
    made = await server.made(f"{space}/pods", {"metadata": {"name": "p"}, "spec": spec})
    assert [(c["type"], c["status"], c["reason"]) for c in made["status"]["conditions"]] == [
        ("PodScheduled", "False", "SchedulingGated")
    ]
    more = {"spec": {"schedulingGates": [{"name": "a/b"}, {"name": "c/d"}]}}
    answer = await server.patch("merge", f"{space}/pods/p", more)
    assert {cause[1] for cause in answer.causes} == {"spec.schedulingGates[1].name"}


async def test_an_update_of_a_pod_is_filled_in_before_it_is_judged(server: Server, space: str) -> None:
    await server.made(f"{space}/pods", {"metadata": {"name": "p"}, "spec": POD})
    image = await server.patch("merge", f"{space}/pods/p", {"spec": {"containers": [{"name": "c", "image": "j"}]}})
    assert (image.code, image.body["spec"]["containers"][0]["image"]) == (200, "j")
    tolerated = await server.patch("merge", f"{space}/pods/p", {"spec": {"tolerations": [{"operator": "Exists"}]}})
    assert tolerated.code in (200, 422)
    fewer = await server.patch("merge", f"{space}/pods/p", {"spec": {"containers": []}})
    assert "spec.containers" in {cause[1] for cause in fewer.causes}


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"capacity": {"nvidia.com/gpu": "1.5"}}, "status.capacity.nvidia.com/gpu"),
        ({"allocatable": {"cpu": "-1"}}, "status.allocatable.cpu"),
    ],
)
async def test_a_node_has_whole_gpus_and_no_less_than_nothing(server: Server, status: Any, field: str) -> None:
    path = await server.node()
    answer = await server.patch("merge", f"{path}/status", {"status": status})
    assert (answer.code, field in {cause[1] for cause in answer.causes}) == (422, True)


async def test_what_a_node_has_can_be_used_unless_it_says_otherwise(server: Server) -> None:
    path = await server.node(status={"capacity": {"nvidia.com/gpu": "8"}}, spec={"podCIDR": "10.0.0.0/24"})
    body = (await server.get(path)).body
    assert body["status"]["allocatable"] == {"nvidia.com/gpu": "8"}
    assert body["spec"]["podCIDRs"] == ["10.0.0.0/24"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"data": {"a b": "1"}}, "data[a b]"),
        ({"data": {"..": "1"}}, "data[..]"),
        ({"data": {"a": "1"}, "binaryData": {"a": "eA=="}}, "data[a]"),
    ],
)
async def test_a_key_of_a_config_map_can_be_a_file(server: Server, space: str, body: Any, field: str) -> None:
    answer = await server.post(f"{space}/configmaps", {"metadata": {"name": "x"}} | body)
    assert (answer.code, {cause[1] for cause in answer.causes}) == (422, {field})


@pytest.mark.parametrize("plural", ["configmaps", "secrets"])
async def test_what_is_immutable_stays_as_it_is(server: Server, space: str, plural: str) -> None:
    await server.made(f"{space}/{plural}", {"metadata": {"name": "x"}, "data": {"a": "eA=="}, "immutable": True})
    for change, code in (
        ({"data": {"a": "eQ=="}}, 422),
        ({"immutable": False}, 422),
        ({"immutable": None}, 422),
        ({"metadata": {"labels": {"a": "b"}}}, 200),
    ):
        assert (await server.patch("merge", f"{space}/{plural}/x", change)).code == code


async def test_a_null_among_texts_is_an_empty_one(server: Server, space: str) -> None:
    made = await server.made(f"{space}/configmaps", {"metadata": {"name": "x"}, "data": {"a": None}})
    assert made["data"] == {"a": ""}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"minAvailable": "x"}, "spec.minAvailable"),
        ({"maxUnavailable": "101%"}, "spec.maxUnavailable"),
        ({"minAvailable": -1}, "spec.minAvailable"),
        ({"unhealthyPodEvictionPolicy": "Never"}, "spec.unhealthyPodEvictionPolicy"),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "spec.selector.matchExpressions[0].values",
        ),
        ({"selector": {"matchLabels": {"a b": "c"}}}, "spec.selector.matchLabels"),
    ],
)
async def test_a_budget_that_says_nothing_clear_is_refused(server: Server, space: str, spec: Any, field: str) -> None:
    path = f"/apis/policy/v1/namespaces/{space.rpartition('/')[2]}/poddisruptionbudgets"
    answer = await server.post(path, {"metadata": {"name": "b"}, "spec": spec})
    assert (answer.code, {cause[1] for cause in answer.causes}) == (422, {field})


async def test_a_lease_lasts_and_may_be_made_by_an_update(server: Server, space: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{space.rpartition('/')[2]}/leases"
    for part, value in (("leaseDurationSeconds", 0), ("leaseTransitions", -1)):
        answer = await server.post(path, {"metadata": {"name": "l"}, "spec": {part: value}})
        assert (answer.code, {cause[1] for cause in answer.causes}) == (422, {f"spec.{part}"})
    assert (await server.put(f"{path}/l", {"metadata": {"name": "l", "resourceVersion": "5"}})).code == 201
    assert (await server.put(f"{path}/m", {"metadata": {"name": "m", "uid": "5"}})).code == 409


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"metadata": {}}, 400),
        ({"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": "x"}}, 400),
        ({"metadata": {"name": "p"}, "deleteOptions": {"dryRun": ["Some"]}}, 422),
        ({"metadata": {"name": "p"}, "kind": "Pod", "apiVersion": "v1"}, 400),
        ({"metadata": {"name": "p", "namespace": "elsewhere"}}, 400),
        ({"metadata": {"name": "p"}, "apiVersion": "policy/v1beta1", "kind": "Eviction"}, 201),
    ],
)
async def test_an_eviction_is_read_before_it_is_done(server: Server, space: str, body: Any, code: int) -> None:
    await server.made(f"{space}/pods", {"metadata": {"name": "p"}, "spec": POD | {"nodeName": "n"}})
    assert (await server.post(f"{space}/pods/p/eviction", body)).code == code
    assert ("deletionTimestamp" in (await server.get(f"{space}/pods/p")).body["metadata"]) == (code == 201)


REVIEWS = "/apis/authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("plural", "spec", "code"),
    [
        ("selfsubjectaccessreviews", {}, 422),
        ("selfsubjectaccessreviews", "x", 400),
        ("selfsubjectaccessreviews", {"resourceAttributes": {}, "nonResourceAttributes": {}}, 422),
        ("subjectaccessreviews", {"resourceAttributes": {"verb": "get", "resource": "nodes"}}, 422),
        ("selfsubjectrulesreviews", {"namespace": 5}, 400),
    ],
)
async def test_a_question_that_asks_nothing_is_refused(server: Server, plural: str, spec: Any, code: int) -> None:
    assert (await server.post(f"{REVIEWS}/{plural}", {"spec": spec})).code == code
