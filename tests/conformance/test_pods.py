"""Pods: binding, graceful deletion, and eviction under budgets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sickbay.clock import parse_time
from tests.conformance.server import Answer, Server

VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


class Pods:
    """Pods of one fresh namespace."""

    def __init__(self, server: Server, namespace: str) -> None:
        self.server = server
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}/pods"
        self.budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"

    async def make(self, name: str, node: str = "n1", status: dict[str, Any] | None = None, **meta: Any) -> str:
        spec = {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i"}]}
        if node:
            spec["nodeName"] = node
        metadata = {"name": name, "labels": {"app": "x"}} | meta
        await self.server.made(self.path, {"metadata": metadata, "spec": spec})
        if status:
            answer = await self.server.patch("strategic", f"{self.path}/{name}/status", {"status": status})
            assert answer.code == 200, answer.body
        return f"{self.path}/{name}"

    async def budget(self, name: str, allowed: int, healthy: int = 1, desired: int = 1, **spec: Any) -> str:
        path = f"{self.budgets}/{name}"
        body = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}} | spec
        await self.server.made(self.budgets, {"metadata": {"name": name}, "spec": body})
        status = {"observedGeneration": 1, "disruptionsAllowed": allowed, "expectedPods": healthy}
        status |= {"currentHealthy": healthy, "desiredHealthy": desired}
        answer = await self.server.patch("merge", f"{path}/status", {"status": status})
        assert answer.code == 200, answer.body
        return path

    async def evict(self, name: str, query: str = "", **options: Any) -> Answer:
        body: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction"}
        body["metadata"] = {"name": name, "namespace": self.namespace}
        if options:
            body["deleteOptions"] = options
        return await self.server.post(f"{self.path}/{name}/eviction{query}", body)

    async def status(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.server.get(path)).body["status"]
        return found


@pytest.fixture
async def pods(server: Server) -> Pods:
    return Pods(server, await server.namespace())


async def test_a_pod_is_bound_once(server: Server, pods: Pods) -> None:
    path = await pods.make("p", node="")
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n9"}}
    first = await server.post(f"{path}/binding", binding)
    assert (first.code, first.body["status"]) == (201, "Success")
    found = (await server.get(path)).body
    assert found["spec"]["nodeName"] == "n9"
    assert [(entry["type"], entry["status"]) for entry in found["status"]["conditions"]] == [("PodScheduled", "True")]
    second = await server.post(f"{path}/binding", binding)
    assert (second.code, second.reason) == (409, "Conflict")
    assert 'pod p is already assigned to node "n9"' in second.message


async def test_a_running_pod_is_told_first_and_gone_when_its_kubelet_says_so(server: Server, pods: Pods) -> None:
    path = await pods.make("p", status=RUNNING)
    created = (await server.get(path)).body["metadata"]
    told = await server.delete(path)
    meta = told.body["metadata"]
    assert (told.code, told.body["kind"], meta["deletionGracePeriodSeconds"]) == (200, "Pod", 30)
    left = parse_time(meta["deletionTimestamp"]) - parse_time(created["creationTimestamp"])
    assert timedelta(seconds=29) < left < timedelta(seconds=40)
    assert meta["generation"] == created["generation"] + 1
    wrong = await server.delete(path, gracePeriodSeconds=0, preconditions={"uid": "another"})
    assert wrong.code == 409
    done = await server.delete(path, gracePeriodSeconds=0, preconditions={"uid": meta["uid"]})
    assert (done.code, done.body["kind"]) == (200, "Pod")
    assert (await server.get(path)).code == 404


async def test_grace_can_be_shortened_but_not_lengthened(server: Server, pods: Pods) -> None:
    path = await pods.make("p", status=RUNNING)
    graces = [
        (await server.delete(path, gracePeriodSeconds=seconds)).body["metadata"]["deletionGracePeriodSeconds"]
        for seconds in (20, 5, 15)
    ]
    assert graces == [20, 5, 5]


@pytest.mark.parametrize(
    ("node", "status"),
    [
        pytest.param("", None, id="not bound"),
        pytest.param("n1", {"phase": "Succeeded"}, id="succeeded"),
        pytest.param("n1", {"phase": "Failed"}, id="failed"),
    ],
)
async def test_a_pod_that_runs_nowhere_is_gone_at_once(
    server: Server, pods: Pods, node: str, status: dict[str, Any] | None
) -> None:
    path = await pods.make("p", node=node, status=status)
    answer = await server.delete(path)
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await server.get(path)).code == 404


async def test_a_finalizer_outlives_the_kubelet(server: Server, pods: Pods) -> None:
    path = await pods.make("p", status=RUNNING, finalizers=["a.b/c"])
    await server.delete(path)
    held = await server.delete(path, gracePeriodSeconds=0)
    assert (held.body["metadata"]["deletionGracePeriodSeconds"], held.body["metadata"]["finalizers"]) == (0, ["a.b/c"])
    await server.patch("merge", path, {"metadata": {"finalizers": None}})
    assert (await server.get(path)).code == 404


async def test_eviction_without_a_budget_deletes_and_says_why(server: Server, pods: Pods) -> None:
    path = await pods.make("p", status=RUNNING)
    answer = await pods.evict("p", gracePeriodSeconds=7)
    assert (answer.code, answer.body["status"]) == (201, "Success")
    found = (await server.get(path)).body
    assert found["metadata"]["deletionGracePeriodSeconds"] == 7
    reasons = {entry["type"]: entry.get("reason") for entry in found["status"]["conditions"]}
    assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"


async def test_a_used_up_budget_refuses_and_names_itself(server: Server, pods: Pods) -> None:
    path = await pods.make("p", status=RUNNING)
    await pods.budget("b", allowed=0, healthy=1, desired=1)
    answer = await pods.evict("p")
    assert (answer.code, answer.reason, answer.message) == (429, "TooManyRequests", VIOLATES)
    assert answer.causes == {
        ("DisruptionBudget", "", "The disruption budget b needs 1 healthy pods and has 1 currently")
    }
    assert "deletionTimestamp" not in (await server.get(path)).body["metadata"]


async def test_a_budget_the_controller_has_not_seen_refuses_for_a_while(server: Server, pods: Pods) -> None:
    await pods.make("p", status=RUNNING)
    body = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    await server.made(pods.budgets, {"metadata": {"name": "b"}, "spec": body})
    answer = await pods.evict("p")
    assert (answer.code, answer.headers["retry-after"]) == (429, "10")
    assert answer.body["details"]["retryAfterSeconds"] == 10
    assert answer.causes == {
        ("DisruptionBudget", "", "The disruption budget b is still being processed by the server.")
    }


async def test_an_allowed_eviction_takes_one_from_the_budget(server: Server, pods: Pods) -> None:
    await pods.make("p", status=RUNNING)
    budget = await pods.budget("b", allowed=1, healthy=2)
    assert (await pods.evict("p", "?dryRun=All")).code == 201
    assert (await pods.status(budget))["disruptionsAllowed"] == 1
    assert (await pods.evict("p")).code == 201
    status = await pods.status(budget)
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["p"]
    [condition] = status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed",
        "False",
        "InsufficientPods",
    )


async def test_two_budgets_over_one_pod_are_an_error(server: Server, pods: Pods) -> None:
    await pods.make("p", status=RUNNING)
    await pods.budget("a", allowed=1)
    await pods.budget("b", allowed=1)
    answer = await pods.evict("p")
    assert answer.code == 500
    assert answer.message == (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(None, id="pending"),
        pytest.param({"phase": "Succeeded"}, id="succeeded"),
        pytest.param({"phase": "Failed"}, id="failed"),
    ],
)
async def test_pods_that_count_for_nothing_leave_the_budget_alone(
    server: Server, pods: Pods, status: dict[str, Any] | None
) -> None:
    await pods.make("p", status=status)
    budget = await pods.budget("b", allowed=0)
    assert (await pods.evict("p")).code == 201
    assert (await pods.status(budget))["disruptionsAllowed"] == 0


async def test_a_pod_on_its_way_out_is_evicted_again_freely(server: Server, pods: Pods) -> None:
    path = await pods.make("p", status=RUNNING)
    await pods.budget("b", allowed=0)
    await server.delete(path)
    assert (await pods.evict("p")).code == 201


@pytest.mark.parametrize(
    ("healthy", "policy", "code"),
    [
        pytest.param(1, None, 201, id="budget met without it"),
        pytest.param(0, None, 429, id="budget not met"),
        pytest.param(0, "AlwaysAllow", 201, id="always allowed"),
        pytest.param(1, "IfHealthyBudget", 201, id="if healthy, met"),
    ],
)
async def test_a_pod_that_is_not_ready(pods: Pods, healthy: int, policy: str | None, code: int) -> None:
    await pods.make("p", status={"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]})
    spec = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    await pods.budget("b", allowed=0, healthy=healthy, desired=1, **spec)
    assert (await pods.evict("p")).code == code


async def test_an_eviction_with_another_uid_evicts_nobody(server: Server, pods: Pods) -> None:
    path = await pods.make("p", status=RUNNING)
    answer = await pods.evict("p", preconditions={"uid": "another"})
    assert (answer.code, answer.reason) == (409, "Conflict")
    assert "deletionTimestamp" not in (await server.get(path)).body["metadata"]


async def test_a_budget_that_selects_nothing_by_a_null_selector(pods: Pods) -> None:
    await pods.make("p", status=RUNNING)
    await pods.budget("b", allowed=0, selector=None)
    assert (await pods.evict("p")).code == 201


async def test_a_budget_with_an_empty_selector_selects_all(pods: Pods) -> None:
    await pods.make("p", status=RUNNING)
    await pods.budget("b", allowed=0, selector={})
    assert (await pods.evict("p")).code == 429


async def test_evicting_nobody_is_not_found_and_another_name_a_bad_request(server: Server, pods: Pods) -> None:
    assert (await pods.evict("nobody")).code == 404
    path = await pods.make("p")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "q"}}
    answer = await server.post(f"{path}/eviction", body)
    assert (answer.code, answer.message) == (400, "name in URL does not match name in Eviction object")
