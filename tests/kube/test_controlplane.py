"""The same promises on a real kube-apiserver: deletions found after lost history, conditional writes, one leader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from sickbay.api.core import NodeCondition, Taint
from sickbay.api.kinds import EVENT, LEASE, NAMESPACE, NODE, PDB, POD, SERVICE_ACCOUNT
from sickbay.clock import Randomness, SystemClock, rfc3339
from sickbay.kube import config, errors, nodes
from sickbay.kube.client import Client
from sickbay.kube.events import NORMAL, EventRecorder, reference
from sickbay.kube.informer import Informer
from sickbay.kube.leadership import Leadership
from sickbay.kube.lease import Elector, LeaseTimes
from sickbay.kube.nodelease import Hold, NodeLease
from tests.support.controlplane import API_SERVER, ControlPlane
from tests.support.eventually import eventually

pytestmark = pytest.mark.controlplane

CLOCK = SystemClock()


class Wire(httpx2.AsyncBaseTransport):
    """A connection that can be cut, also in the middle of a stream."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner
        self.cut = asyncio.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.cut.is_set():
            raise httpx2.ConnectError("cut")
        response = await self._inner.handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Stream(response.stream, self.cut)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, cut: asyncio.Event) -> None:
        self._inner = inner
        self._cut = cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        cutting = asyncio.ensure_future(self._cut.wait())
        pieces = aiter(self._inner)
        try:
            while True:
                piece = asyncio.ensure_future(anext(pieces, None))
                await asyncio.wait({cutting, piece}, return_when=asyncio.FIRST_COMPLETED)
                if not piece.done():
                    piece.cancel()
                    raise httpx2.ReadError("cut")
                if (found := piece.result()) is None:
                    return
                yield found
        finally:
            cutting.cancel()

    async def aclose(self) -> None:
        await self._inner.aclose()


def connected(control_plane: ControlPlane) -> tuple[Client, Wire]:
    client = config.connect(str(control_plane.kubeconfig("admin")), "", "sickbay-test", CLOCK)
    wire = Wire(client.http._transport)
    client.http._transport = wire
    return client, wire


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    made, _ = connected(control_plane)
    yield made
    await made.aclose()


@asynccontextmanager
async def task(work: Any) -> AsyncIterator[asyncio.Task[Any]]:
    running = asyncio.create_task(work)
    try:
        yield running
    finally:
        running.cancel()
        await asyncio.wait([running])


@asynccontextmanager
async def node_named(client: Client, name: str, **more: Any) -> AsyncIterator[Any]:
    body = {"metadata": {"name": name, **more.pop("meta", {})}, **more}
    yield await client.create(NODE, body)
    try:
        await client.delete(NODE, name)
    except errors.NotFound:
        return


async def compact(control_plane: ControlPlane) -> None:
    """Have etcd forget every version before the present one."""
    etcd = f"http://127.0.0.1:{control_plane._ports[0]}/v3/kv"
    async with httpx2.AsyncClient(trust_env=False) as http:
        answer = (await http.post(f"{etcd}/range", json={"key": "AA=="})).json()
        revision = answer["header"]["revision"]
        (await http.post(f"{etcd}/compaction", json={"revision": revision, "physical": True})).raise_for_status()


# -- the connection


async def test_a_kubeconfig_of_the_server_connects_over_tls(client: Client) -> None:
    assert (await client.get(NAMESPACE, "default")).metadata.name == "default"


async def test_a_token_the_server_does_not_know_is_refused(control_plane: ControlPlane) -> None:
    path = control_plane.kubeconfig_for_token("stranger", "no-such-token")
    stranger = config.connect(str(path), "", "sickbay-test", CLOCK)
    with pytest.raises(errors.Unauthorized):
        await stranger.get(NAMESPACE, "default")
    await stranger.aclose()


async def test_a_role_that_is_missing_is_named(control_plane: ControlPlane) -> None:
    nobody = config.connect(str(control_plane.kubeconfig("nobody")), "", "sickbay-test", CLOCK)
    with pytest.raises(errors.Forbidden, match='User "nobody" cannot list resource "nodes"'):
        await nobody.list(NODE)
    await nobody.aclose()


async def test_a_list_in_small_pages_is_one_snapshot(client: Client) -> None:
    names = [f"kube-page-{n}" for n in range(5)]
    for name in names:
        await client.create(NODE, {"metadata": {"name": name, "labels": {"test": "page"}}})
    listing = await client.list(NODE, labels="test=page", limit=2)
    assert [n.name for n in listing.items] == names
    assert int(listing.resource_version) >= int(await client.current_version(NODE)) - 5
    for name in names:
        await client.delete(NODE, name)


# -- informers


async def test_deletions_are_found_after_the_history_was_compacted_and_the_server_restarted(
    control_plane: ControlPlane, client: Client
) -> None:
    remote, wire = connected(control_plane)
    informer = Informer(remote, NODE, CLOCK, Randomness(1), labels="test=gap")
    deleted: list[str] = []
    informer.on_change(lambda old, new: deleted.append(old.name) if old is not None and new is None else None)
    for name in ("gap-a", "gap-b"):
        await client.create(NODE, {"metadata": {"name": name, "labels": {"test": "gap"}}})
    async with task(informer.run()):
        await eventually(lambda: len(informer.all()) == 2, 20)
        wire.cut.set()
        await client.delete(NODE, "gap-b")
        await client.patch_merge(NODE, "gap-a", {"metadata": {"annotations": {"x": "y"}}})
        await compact(control_plane)
        await asyncio.to_thread(control_plane.restart_apiserver)
        await eventually(lambda: client.get(NODE, "gap-a"), 30)
        assert len(informer.all()) == 2
        wire.cut.clear()
        await eventually(lambda: [n.name for n in informer.all()] == ["gap-a"], 60)
        assert deleted == ["gap-b"]
        assert informer.all()[0].annotations == {"x": "y"}
    assert informer._metrics.watch_gaps.labels("Node", "expired")._value.get() >= 1
    await client.delete(NODE, "gap-a")
    await remote.aclose()


async def test_a_killed_server_costs_an_informer_nothing(control_plane: ControlPlane, client: Client) -> None:
    informer = Informer(client, NODE, CLOCK, Randomness(1), labels="test=kill")
    await client.create(NODE, {"metadata": {"name": "kill-a", "labels": {"test": "kill"}}})
    async with task(informer.run()):
        await eventually(lambda: len(informer.all()) == 1, 20)
        await asyncio.to_thread(control_plane.kill_process, API_SERVER)
        await eventually(lambda: informer.last_error is not None, 20)
        assert len(informer.all()) == 1
        await asyncio.to_thread(control_plane.start_process, API_SERVER)
        await eventually(lambda: client.create(NODE, {"metadata": {"name": "kill-b", "labels": {"test": "kill"}}}), 30)
        await eventually(lambda: len(informer.all()) == 2, 60)
    for name in ("kill-a", "kill-b"):
        await client.delete(NODE, name)


async def test_our_own_write_is_seen_before_and_after_the_watch_tells_it(client: Client) -> None:
    informer = Informer(client, NODE, CLOCK, Randomness(1), labels="test=own")
    told: list[str] = []
    informer.on_change(lambda old, new: told.append(new.metadata.resource_version) if new is not None else None)
    async with node_named(client, "own-a", meta={"labels": {"test": "own"}}) as node, task(informer.run()):
        await eventually(lambda: len(informer.all()) == 1, 20)
        written = await nodes.patch_node(client, node, nodes.unschedulable_ops(node, True))
        informer.observe_write(written)
        assert informer.all()[0].unschedulable
        after = await client.patch_merge(NODE, "own-a", {"metadata": {"annotations": {"x": "y"}}})
        await eventually(lambda: told[-1] == after.metadata.resource_version, 20)
        assert told.count(written.metadata.resource_version) == 1
        assert informer.all()[0].unschedulable


# -- writes


async def test_a_stale_patch_is_a_conflict_and_changes_nothing(client: Client) -> None:
    async with node_named(client, "stale-a") as node:
        await client.patch_merge(NODE, "stale-a", {"metadata": {"labels": {"theirs": "1"}}})
        with pytest.raises(errors.Conflict):
            await nodes.patch_node(client, node, nodes.unschedulable_ops(node, True))
        assert not (await client.get(NODE, "stale-a")).unschedulable


async def test_a_patch_and_conditions_for_a_node_made_anew_are_conflicts(client: Client) -> None:
    async with node_named(client, "anew-a") as node:
        await client.delete(NODE, "anew-a", uid=node.uid)
        await client.create(NODE, {"metadata": {"name": "anew-a"}})
        with pytest.raises(errors.Conflict):
            await nodes.patch_node(client, node, nodes.unschedulable_ops(node, True))
        condition = NodeCondition(type="X", status="True", last_transition_time=rfc3339(CLOCK.now()))
        with pytest.raises(errors.Conflict):
            await nodes.set_conditions(client, "anew-a", [condition], uid=node.uid)
        with pytest.raises(errors.Conflict):
            await client.delete(NODE, "anew-a", uid=node.uid)
        assert (await client.get(NODE, "anew-a")).condition("X") is None


async def test_what_we_put_on_a_bare_node_comes_off_without_a_trace(client: Client) -> None:
    theirs = [{"key": "theirs", "value": "v", "effect": "NoSchedule"}]
    async with node_named(client, "trace-a", spec={"taints": theirs, "podCIDR": "10.1.0.0/24"}) as node:
        before = await client.get(NODE.raw, "trace-a")
        ours = Taint(key="sickbay.dev/quarantine", value="GPU", effect="NoSchedule")
        ops = nodes.annotation_ops(node, {"sickbay.dev/quarantine": "{}"})
        ops += nodes.label_ops(node, {"intervention.sickbay.dev/drain-node": "inquiring"})
        ops += nodes.unschedulable_ops(node, True) + nodes.taint_ops(node, add=[ours])
        marked = await nodes.patch_node(client, node, ops)
        assert {t.key for t in marked.taints} >= {"theirs", "sickbay.dev/quarantine"}
        assert marked.unschedulable
        back = nodes.annotation_ops(marked, {"sickbay.dev/quarantine": None})
        back += nodes.label_ops(marked, {"intervention.sickbay.dev/drain-node": None})
        back += nodes.unschedulable_ops(marked, False)
        back += nodes.taint_ops(marked, remove=[("sickbay.dev/quarantine", "NoSchedule")])
        await nodes.patch_node(client, marked, back)
        after = await client.get(NODE.raw, "trace-a")
        for found in (before, after):
            for volatile in ("resourceVersion", "managedFields", "generation"):
                found["metadata"].pop(volatile, None)
        assert after == before


async def test_conditions_merge_by_type_and_go_one_by_one(client: Client) -> None:
    now = rfc3339(CLOCK.now())
    async with node_named(client, "cond-a") as node:
        for type_ in ("Ready", "NvidiaXID79Error"):
            condition = NodeCondition(type=type_, status="True", reason="R", message="m", last_transition_time=now)
            await nodes.set_conditions(client, "cond-a", [condition], uid=node.uid)
        cleared = NodeCondition(type="NvidiaXID79Error", status="False", last_transition_time=now)
        written = await nodes.set_conditions(client, "cond-a", [cleared])
        assert {(c.type, c.status, c.reason) for c in written.conditions} == {
            ("Ready", "True", "R"),
            ("NvidiaXID79Error", "False", ""),
        }
        written = await nodes.set_conditions(client, "cond-a", [], remove=["NvidiaXID79Error", "Never"])
        assert [c.type for c in written.conditions] == ["Ready"]


async def test_evicting_and_deleting_a_pod_of_another_uid_is_a_conflict(client: Client) -> None:
    body = {
        "metadata": {"name": "kube-evict"},
        "spec": {"nodeName": "none", "containers": [{"name": "c", "image": "i"}]},
    }
    space = "kube-evict"
    await client.create(NAMESPACE, {"metadata": {"name": space}})
    await client.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, space)
    pod = await client.create(POD, body, space)
    with pytest.raises(errors.Conflict):
        await client.evict("kube-evict", space, "another-uid")
    with pytest.raises(errors.Conflict):
        await client.delete(POD, "kube-evict", space, uid="another-uid")
    await client.evict("kube-evict", space, pod.metadata.uid, grace=0)
    with pytest.raises(errors.NotFound):
        await client.get(POD, "kube-evict", space)


async def test_an_eviction_that_a_budget_forbids_is_told_from_throttling(client: Client) -> None:
    space = "kube-budget"
    await client.create(NAMESPACE, {"metadata": {"name": space}})
    await client.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, space)
    spec = {"nodeName": "none", "containers": [{"name": "c", "image": "i"}]}
    pod = await client.create(POD, {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": spec}, space)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await client.patch_strategic(POD, "p", {"status": ready}, space, "status")
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
    await client.create(PDB, budget, space)
    status = {"status": {"observedGeneration": 1, "disruptionsAllowed": 0, "desiredHealthy": 1, "currentHealthy": 1}}
    await client.patch_merge(PDB, "b", status, space, "status")
    with pytest.raises(errors.TooManyRequests) as caught:
        await client.evict("p", space, pod.metadata.uid)
    assert caught.value.budget
    assert "disruption budget b" in caught.value.causes[0].message
    await client.delete(POD, "p", space, grace=0)


# -- leases and Events


async def test_the_lease_passes_from_a_leader_that_is_cut_off(control_plane: ControlPlane) -> None:
    """Shortened times; each judges by its own monotonic clock."""
    candidates = []
    for number in range(2):
        remote, wire = connected(control_plane)
        elector = Elector(
            remote,
            CLOCK,
            Randomness(number),
            name="kube-elect",
            namespace="default",
            identity=f"c{number}",
            times=LeaseTimes(3, 2, 0.4),
        )
        candidates.append((elector, remote, wire))
    (one, remote_one, wire), (two, remote_two, _) = candidates

    async def lead(leadership: Leadership) -> None:
        await asyncio.Event().wait()

    async with task(one.run(lead)), task(two.run(lead)):
        await eventually(lambda: one.is_leader() or two.is_leader(), 10)
        first, second = (one, two) if one.is_leader() else (two, one)
        wire = wire if first is one else candidates[1][2]
        term = first.leadership.term if first.leadership else 0
        assert term == 1
        wire.cut.set()
        await eventually(lambda: not first.is_leader(), 10)
        assert not second.is_leader()
        await eventually(second.is_leader, 10)
        assert second.leadership is not None
        assert second.leadership.term == 2
        wire.cut.clear()
        await eventually(lambda: first.holder == second.identity, 10)
        assert not first.is_leader()
    lease = await remote_two.get(LEASE, "kube-elect", "default")
    assert not lease.spec.holder_identity, "given back"
    await remote_two.delete(LEASE, "kube-elect", "default")
    for remote in (remote_one, remote_two):
        await remote.aclose()


async def test_the_node_lease_is_unused_without_its_namespace_and_held_with_it(client: Client) -> None:
    namespace = "kube-medik8s"
    leases = NodeLease(client, CLOCK, namespace)
    async with node_named(client, "lease-a") as node:
        assert (await leases.take(node)).hold is Hold.UNUSED
        await client.create(NAMESPACE, {"metadata": {"name": namespace}})
        assert (await leases.take(node)).hold is Hold.HELD
        assert (await NodeLease(client, CLOCK, namespace, holder="other").take(node)).holder == "sickbay"
        await leases.release("lease-a")
        assert (await client.list(LEASE, namespace)).items == []
        await client.delete(NAMESPACE, namespace)


async def test_an_event_on_a_node_is_read_through_both_apis_with_its_count(
    control_plane: ControlPlane, client: Client
) -> None:
    recorder = EventRecorder(client, CLOCK, Randomness(CLOCK.now().microsecond), component="sickbay-execute")
    async with node_named(client, "event-a") as node:
        about = reference(NODE, node)
        recorder.event(about, NORMAL, "QuarantineDone", "cordoned")
        recorder.event(about, NORMAL, "QuarantineDone", "cordoned")
        await recorder.flush()
        selector = f"involvedObject.uid={node.uid}"
        (event,) = (await client.list(EVENT, "default", fields=selector)).items
        assert (event.reason, event.count, event.involved_object.name) == ("QuarantineDone", 2, "event-a")
        other = control_plane.admin().get(f"/apis/events.k8s.io/v1/namespaces/default/events/{event.metadata.name}")
        assert other.json()["note"] == "cordoned"
        assert other.json()["deprecatedCount"] == 2
        assert "QuarantineDone" in control_plane.kubectl("describe", "node", "event-a").stdout
