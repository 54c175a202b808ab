"""What goes over the wire for each verb, and what callers get back."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from sickbay.api.core import Node
from sickbay.api.kinds import LEASE, NODE, NODE_REPAIR, POD
from sickbay.api.node_repair import NodeRepair
from sickbay.clock import Clock
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.metrics import KubeMetrics
from tests.kube.scripted import Script, answer, client_for, node, page, refusal


async def test_get_reads_one_object_under_our_user_agent(clock: Clock) -> None:
    script = Script(answer(node("a", 7)))
    found = await client_for(script, clock).get(NODE, "a")
    assert (found.name, found.metadata.resource_version) == ("a", "7")
    request = script.requests[0]
    assert (request.method, request.url.path) == ("GET", "/api/v1/nodes/a")
    assert request.headers["user-agent"] == "sickbay-test"


async def test_raw_kinds_keep_every_field(clock: Clock) -> None:
    odd = node("a") | {"future": {"x": [1]}}
    assert await client_for(Script(answer(odd)), clock).get(NODE.raw, "a") == odd


async def test_a_list_is_read_in_pages_of_one_snapshot(clock: Clock) -> None:
    script = Script(page([node("a")], "100", "next"), page([node("b")], "100", "last"), page([node("c")], "100"))
    listing = await client_for(script, clock).list(NODE, labels="pool=train", fields="metadata.name!=x")
    assert [item.name for item in listing.items] == ["a", "b", "c"]
    assert listing.resource_version == "100"
    first, second = script.query(0), script.query(1)
    assert first == {"labelSelector": "pool=train", "fieldSelector": "metadata.name!=x", "limit": "500"}
    assert second == first | {"continue": "next"}


async def test_an_expired_page_starts_the_list_over_in_one_piece(clock: Clock) -> None:
    script = Script(page([node("a")], "100", "next"), refusal(410, "Expired"), page([node("a"), node("b")], "120"))
    listing = await client_for(script, clock).list(NODE)
    assert [item.name for item in listing.items] == ["a", "b"]
    assert listing.resource_version == "120"
    assert script.query(2) == {}


async def test_a_malformed_item_breaks_no_list_and_is_counted(clock: Clock) -> None:
    script = Script(page([node("a"), node("bad") | {"status": 5}, node("b")]))
    client = client_for(script, clock)
    listing = await client.list(NODE)
    assert [item.name for item in listing.items] == ["a", "b"]
    assert [bad.identity.name for bad in listing.malformed] == ["bad"]
    assert client.metrics.malformed.labels("Node")._value.get() == 1


async def test_the_current_version_costs_one_object_at_most(clock: Clock) -> None:
    script = Script(page([node("a")], "321", "more"))
    assert await client_for(script, clock).current_version(NODE) == "321"
    assert script.query() == {"limit": "1"}


async def test_a_namespace_narrows_a_list(clock: Clock) -> None:
    script = Script(page([]), page([]))
    client = client_for(script, clock)
    await client.list(POD)
    await client.list(POD, "train")
    assert [request.url.path for request in script.requests] == ["/api/v1/pods", "/api/v1/namespaces/train/pods"]


async def test_create_fills_in_what_kind_of_object_it_is(clock: Clock) -> None:
    script = Script(answer(node("a")), answer({"metadata": {"name": "r"}}))
    client = client_for(script, clock)
    await client.create(NODE, {"metadata": {"name": "a"}})
    assert script.body() == {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    made = await client.create(NODE_REPAIR, NodeRepair())
    assert made.metadata.name == "r"
    assert script.body()["apiVersion"] == "sickbay.dev/v1alpha1"
    assert script.body()["kind"] == "NodeRepair"


async def test_create_leaves_the_callers_object_as_it_was(clock: Clock) -> None:
    mine: dict[str, Any] = {"metadata": {"name": "a"}}
    await client_for(Script(answer(node("a"))), clock).create(NODE, mine)
    assert mine == {"metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("method", "content_type"),
    [
        pytest.param("patch_merge", "application/merge-patch+json", id="merge"),
        pytest.param("patch_strategic", "application/strategic-merge-patch+json", id="strategic"),
    ],
)
async def test_merge_patches_go_to_the_subresource_asked_for(clock: Clock, method: str, content_type: str) -> None:
    script = Script(answer(node("a")))
    patched = await getattr(client_for(script, clock), method)(NODE, "a", {"status": {}}, subresource="status")
    assert isinstance(patched, Node)
    assert script.requests[0].url.path == "/api/v1/nodes/a/status"
    assert script.requests[0].headers["content-type"] == content_type


TEST_VERSION = {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}
TEST_UID = {"op": "test", "path": "/metadata/uid", "value": "uid-a"}
CHANGE = {"op": "add", "path": "/metadata/labels/x", "value": "y"}


@pytest.mark.parametrize(
    ("ops", "now", "expected"),
    [
        pytest.param([TEST_VERSION, CHANGE], node("a", 8), errors.Conflict, id="changed since"),
        pytest.param([TEST_VERSION, CHANGE], node("a", 7), errors.Invalid, id="the patch itself is wrong"),
        pytest.param([TEST_UID, CHANGE], node("a", 8), errors.Invalid, id="same object"),
        pytest.param([TEST_UID, CHANGE], node("a", uid="other"), errors.Conflict, id="another object of that name"),
    ],
)
async def test_a_failed_test_in_a_json_patch_is_a_conflict(
    clock: Clock, ops: list[dict[str, Any]], now: dict[str, Any], expected: type[errors.ApiError]
) -> None:
    script = Script(refusal(422, "Invalid"), answer(now))
    with pytest.raises(expected):
        await client_for(script, clock).patch_json(NODE, "a", ops)
    assert script.left == 0


async def test_a_json_patch_refused_with_causes_or_without_tests_is_not_looked_into(clock: Clock) -> None:
    causes = {"details": {"causes": [{"reason": "FieldValueInvalid", "field": "spec.x", "message": "no"}]}}
    script = Script(refusal(422, "Invalid", **causes), refusal(422, "Invalid"))
    client = client_for(script, clock)
    with pytest.raises(errors.Invalid):
        await client.patch_json(NODE, "a", [TEST_VERSION, CHANGE])
    with pytest.raises(errors.Invalid):
        await client.patch_json(NODE, "a", [CHANGE])
    assert len(script.requests) == 2


async def test_a_json_patch_of_a_vanished_object_says_so(clock: Clock) -> None:
    script = Script(refusal(422, "Invalid"), refusal(404, "NotFound"))
    with pytest.raises(errors.NotFound):
        await client_for(script, clock).patch_json(NODE, "a", [TEST_VERSION, CHANGE])


async def test_delete_carries_uid_version_grace_and_propagation(clock: Clock) -> None:
    script = Script(answer({}))
    await client_for(script, clock).delete(POD, "p", "ns", "u", "9", grace=0, propagation="Background")
    assert script.requests[0].method == "DELETE"
    assert script.body() == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "9"},
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
    }


async def test_delete_says_nothing_that_was_not_asked(clock: Clock) -> None:
    script = Script(answer({}))
    await client_for(script, clock).delete(LEASE, "l", "ns")
    assert script.body() == {"apiVersion": "v1", "kind": "DeleteOptions"}


async def test_eviction_names_the_pod_by_uid(clock: Clock) -> None:
    script = Script(answer({}, 201))
    await client_for(script, clock).evict("p", "ns", "u", grace=30)
    assert script.requests[0].url.path == "/api/v1/namespaces/ns/pods/p/eviction"
    assert script.body() == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": "ns"},
        "deleteOptions": {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": "u"},
            "gracePeriodSeconds": 30,
        },
    }


async def test_an_eviction_that_a_budget_forbids_is_not_repeated(clock: Clock) -> None:
    details = {"details": {"causes": [{"reason": "DisruptionBudget", "message": "needs 3"}]}}
    script = Script(refusal(429, "TooManyRequests", **details))
    with pytest.raises(errors.TooManyRequests) as caught:
        await client_for(script, clock).evict("p", "ns", "u")
    assert caught.value.budget
    assert len(script.requests) == 1
    assert clock.monotonic() == 0


async def test_a_throttled_request_waits_as_long_as_asked_and_is_repeated(clock: Clock) -> None:
    script = Script(
        refusal(429, headers={"retry-after": "7"}), refusal(429), refusal(429, headers={"retry-after": "900"})
    )
    script.add(answer(node("a")))
    client = client_for(script, clock)
    assert (await client.get(NODE, "a")).name == "a"
    assert clock.monotonic() == 7 + 1 + 30
    assert client.metrics.throttled._value.get() == 3


async def test_throttling_that_does_not_end_is_told_to_the_caller(clock: Clock) -> None:
    script = Script(*(refusal(429, headers={"retry-after": "2"}) for _ in range(4)))
    with pytest.raises(errors.TooManyRequests) as caught:
        await client_for(script, clock).get(NODE, "a")
    assert caught.value.retry_after == 2
    assert script.left == 0


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(httpx2.ConnectError("refused"), id="refused"),
        pytest.param(httpx2.ReadTimeout("slow"), id="timed out"),
        pytest.param(httpx2.RemoteProtocolError("reset"), id="reset"),
        pytest.param(OSError("no route"), id="no route"),
    ],
)
async def test_no_answer_is_unreachable_and_a_write_is_never_repeated(clock: Clock, failure: Exception) -> None:
    script = Script(failure)
    client = client_for(script, clock)
    with pytest.raises(errors.Unreachable, match="PATCH /api/v1/nodes/a"):
        await client.patch_merge(NODE, "a", {})
    assert len(script.requests) == 1
    assert client.metrics.requests.labels("PATCH", "0").value == 1


async def test_a_server_that_never_answers_is_given_up(clock: Clock) -> None:
    async def hang(request: httpx2.Request) -> httpx2.Response:
        await clock.sleep(10_000)
        raise AssertionError("unreachable")

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(hang), base_url="http://api")
    with pytest.raises(errors.Unreachable, match="GET /api/v1/nodes/a"):
        await Client(http, "sickbay-test", clock).get(NODE, "a")
    assert clock.monotonic() == 75


async def test_a_server_error_is_not_repeated(clock: Clock) -> None:
    script = Script(refusal(503, "ServiceUnavailable"))
    with pytest.raises(errors.ServerError):
        await client_for(script, clock).create(NODE, {"metadata": {"name": "a"}})
    assert len(script.requests) == 1


async def test_a_redirect_is_no_success(clock: Clock) -> None:
    script = Script(httpx2.Response(302, headers={"location": "https://login"}))
    with pytest.raises(errors.ApiError, match="redirects to https://login; name the API server's own address"):
        await client_for(script, clock).delete(NODE, "a")


async def test_credentials_that_cannot_be_had_are_an_api_error(clock: Clock) -> None:
    script = Script(errors.ConfigError("token file /x cannot be read"))
    with pytest.raises(errors.Unauthorized, match="token file /x") as caught:
        await client_for(script, clock).get(NODE, "a")
    assert caught.value.reason == "CredentialsUnavailable"


async def test_requests_are_counted_by_verb_and_code(clock: Clock) -> None:
    client = client_for(Script(answer(node("a")), refusal(404)), clock)
    await client.get(NODE, "a")
    with pytest.raises(errors.NotFound):
        await client.get(NODE, "b")
    assert client.metrics.requests.labels("GET", "200").value == 1
    assert client.metrics.requests.labels("GET", "404").value == 1


def test_metrics_land_on_the_registry_that_is_handed_in() -> None:
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    KubeMetrics(registry).watch_gaps.labels("Node", "expired").inc()
    assert b'sickbay_watch_gaps_total{cause="expired",kind="Node"} 1.0' in generate_latest(registry)
