"""The product's own writers, under their own identities, on a server with kinds, roles and policies in force."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.kinds import LEASE, NODE, NODE_TASK
from sickbay.clock import Randomness, SystemClock, rfc3339
from sickbay.kube import errors, nodes
from sickbay.kube.client import Client
from sickbay.kube.events import WARNING, EventRecorder, reference
from sickbay.kube.keeper import LeaseKeeper
from sickbay.kube.lease import Elector
from sickbay.kube.nodelease import Hold, NodeLease
from tests.support.controlplane import ControlPlane
from tests.support.install import DEPLOY, apply_file

pytestmark = pytest.mark.controlplane

CLOCK = SystemClock()


@asynccontextmanager
async def speaking(control_plane: ControlPlane, token: str, user_agent: str) -> AsyncIterator[Client]:
    client = Client(control_plane.http_client_for_token(token), user_agent, CLOCK)
    try:
        yield client
    finally:
        await client.aclose()


def new_node(control_plane: ControlPlane, name: str) -> None:
    answer = control_plane.admin().post("/api/v1/nodes", json={"metadata": {"name": name}})
    assert answer.status_code == 201, answer.text


async def test_an_agent_reports_findings_and_clears_them(sickbay_control_plane: ControlPlane) -> None:
    name = "product-findings"
    new_node(sickbay_control_plane, name)
    async with speaking(sickbay_control_plane, sickbay_control_plane.agent_token(name), "sickbay-agent") as agent:
        seen: Node = await agent.get(NODE, name)
        for status in ("True", "False"):
            fault = nodes.condition(seen, "NvidiaXID79Error", status, "79", "fell off", rfc3339(CLOCK.now()))
            assert fault is not None
            seen = await nodes.set_conditions(agent, name, [fault], uid=seen.uid)
            written = seen.condition("NvidiaXID79Error")
            assert written is not None
            assert written.status == status
        devices = await agent.patch_merge(
            NODE, name, {"metadata": {"annotations": {names.DEVICES: "[]"}}}, subresource="status"
        )
    assert devices.annotations[names.DEVICES] == "[]"


async def test_an_agent_keeps_its_lease_and_no_other(sickbay_control_plane: ControlPlane) -> None:
    name = "product-lease"
    new_node(sickbay_control_plane, name)
    async with speaking(sickbay_control_plane, sickbay_control_plane.agent_token(name), "sickbay-agent") as agent:
        node = await agent.get(NODE, name)
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.uid}
        for lease in (name, "product-other"):
            keeper = LeaseKeeper(
                agent,
                CLOCK,
                Randomness(1),
                name=lease,
                namespace=names.AGENT_LEASES,
                identity=name,
                owner=owner,
            )
            if lease == name:
                await keeper.renew()
                await keeper.renew()
                assert (await agent.get(LEASE, name, names.AGENT_LEASES)).spec.holder_identity == name
            else:
                with pytest.raises(errors.ApiError, match="only the Lease product-lease"):
                    await keeper.renew()


async def test_an_agent_tells_events_about_its_node(sickbay_control_plane: ControlPlane) -> None:
    name = "product-events"
    new_node(sickbay_control_plane, name)
    async with speaking(sickbay_control_plane, sickbay_control_plane.agent_token(name), "sickbay-agent") as agent:
        recorder = EventRecorder(agent, CLOCK, Randomness(2), component="sickbay-agent", instance=name)
        recorder.event(reference(NODE, await agent.get(NODE, name)), WARNING, "NvidiaXID79Error", "fell off the bus")
        await recorder.flush()
    query = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}"
    (event,) = sickbay_control_plane.admin().get(query).json()["items"]
    assert event["message"] == "fell off the bus"


async def test_the_controller_tells_events_and_leads(sickbay_control_plane: ControlPlane) -> None:
    name = "product-leader"
    new_node(sickbay_control_plane, name)
    token = sickbay_control_plane.controller_token()
    async with speaking(sickbay_control_plane, token, "sickbay-decide") as controller:
        recorder = EventRecorder(controller, CLOCK, Randomness(3), component="sickbay-decide")
        recorder.event(reference(NODE, await controller.get(NODE, name)), WARNING, "QuarantineDone", "cordoned")
        await recorder.flush()
        elector = Elector(
            controller, CLOCK, Randomness(4), name="product", namespace="sickbay-system", identity="controller-0"
        )
        assert (await elector.acquire()).valid()
    query = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}"
    assert len(sickbay_control_plane.admin().get(query).json()["items"]) == 1


async def test_quarantine_and_question_then_a_persons_answer(sickbay_control_plane: ControlPlane) -> None:
    """The controller's conditional patches, and what it reads after a person has answered by kubectl."""
    name, label = "product-gate", names.approval_label(names.APPROVAL_PREFIXES["sickbay"], "Drain")
    new_node(sickbay_control_plane, name)
    sickbay_control_plane.kubectl(
        "create", "clusterrolebinding", "product-approver", "--clusterrole=sickbay-approver", "--user=alice"
    )
    token = sickbay_control_plane.controller_token()
    async with speaking(sickbay_control_plane, token, "sickbay-execute") as controller:
        node = await controller.get(NODE, name)
        mark = {names.QUARANTINE: "{}", names.INQUIRY: '{"uid":"u1","step":"Drain","groups":["gpu-oncall"]}'}
        ops = nodes.annotation_ops(node, mark) + nodes.label_ops(node, {label: "inquiring"})
        node = await nodes.patch_node(controller, node, ops + nodes.unschedulable_ops(node, True))
        with pytest.raises(errors.ApiError, match="approvals are for people"):
            await nodes.patch_node(controller, node, nodes.label_ops(node, {label: "approved"}))
        answered = sickbay_control_plane.kubectl(
            "label", "node", name, f"{label}=approved", "--overwrite", user="alice"
        )
        assert answered.returncode == 0, answered.stderr
        node = await controller.get(NODE, name)
        assert node.labels[label] == "approved"
        assert json.loads(node.annotations[names.CHANGED_BY]) == {"user": "alice", "what": label}
        gone = dict.fromkeys([*mark, names.CHANGED_BY])
        ops = nodes.annotation_ops(node, gone) + nodes.label_ops(node, {label: None})
        node = await nodes.patch_node(controller, node, ops + nodes.unschedulable_ops(node, False))
    assert (node.annotations, node.unschedulable) == ({}, False)
    assert label not in node.labels


async def test_a_task_goes_from_the_controller_to_the_agent_and_back(sickbay_control_plane: ControlPlane) -> None:
    name = "product-task"
    new_node(sickbay_control_plane, name)
    token = sickbay_control_plane.controller_token()
    async with speaking(sickbay_control_plane, token, "sickbay-execute") as controller:
        node = await controller.get(NODE, name)
        body = {
            "metadata": {"name": f"{node.uid}-repair-1"},
            "spec": {
                "node": {"name": name, "uid": node.uid, "bootID": "boot-1"},
                "action": "RebootNode",
                "key": f"{node.uid}/Repair/1",
                "expires": "2036-01-01T00:00:00Z",
            },
        }
        made = await controller.create(NODE_TASK, body)
        done = {"status": {"phase": "Accepted", "bootID": "boot-1"}}
        thief, own = (sickbay_control_plane.agent_token(each) for each in ("product-task-thief", name))
        async with speaking(sickbay_control_plane, thief, "sickbay-agent") as agent:
            with pytest.raises(errors.ApiError, match="may not report on a task of another node"):
                await agent.patch_merge(NODE_TASK, made.metadata.name, done, subresource="status")
        async with speaking(sickbay_control_plane, own, "sickbay-agent") as agent:
            await agent.patch_merge(NODE_TASK, made.metadata.name, done, subresource="status")
        assert (await controller.get(NODE_TASK, made.metadata.name)).status.phase == "Accepted"
        await controller.delete(NODE_TASK, made.metadata.name)


async def test_the_lease_shared_with_medik8s_is_unused_then_forbidden_then_held(
    sickbay_control_plane: ControlPlane,
) -> None:
    """No namespace: nobody uses the convention. A namespace without our role: an error that names it."""
    name = "product-medik8s"
    new_node(sickbay_control_plane, name)
    admin = sickbay_control_plane.admin()
    async with speaking(
        sickbay_control_plane, sickbay_control_plane.controller_token(), "sickbay-execute"
    ) as controller:
        leases, node = NodeLease(controller, CLOCK), await controller.get(NODE, name)
        assert (await leases.take(node)).hold is Hold.UNUSED
        await leases.release(name)
        admin.post("/api/v1/namespaces", json={"metadata": {"name": names.MEDIK8S_LEASES}})
        for act in (leases.take(node), leases.release(name)):
            with pytest.raises(errors.Forbidden, match='in the namespace "medik8s-leases"'):
                await act
        apply_file(sickbay_control_plane, DEPLOY / "rbac-medik8s.yaml")
        await granted(leases, node)
        held = f"/apis/coordination.k8s.io/v1/namespaces/{names.MEDIK8S_LEASES}/leases/node-{name}"
        assert admin.get(held).json()["spec"]["holderIdentity"] == names.MEDIK8S_HOLDER
        await leases.release(name)
        assert admin.get(held).status_code == 404


async def granted(leases: NodeLease, node: Node) -> None:
    """Take the Lease once the new role is in force, some milliseconds after it was written."""
    for _ in range(100):
        try:
            assert (await leases.take(node)).hold is Hold.HELD
        except errors.Forbidden:
            continue
        return
    raise AssertionError("the role for the medik8s Leases is not in force")
