"""What a repair is going to do is decide's to write: a plan that others may change would go around its gates."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.deploy.world import MERGE, Call, read, send
from tests.support.controlplane import ControlPlane
from tests.support.eventually import eventually
from tests.support.install import DEPLOY, apply_file

pytestmark = pytest.mark.controlplane

REPAIRS = "/apis/sickbay.dev/v1alpha1/noderepairs"
ONE = f"{REPAIRS}/node-1-0badc0de-1"
GATE = {"by": "People", "timeout": "24h", "groups": ["gpu-oncall"]}
GATED = [{"step": "Quarantine", "approval": GATE}, {"step": "Drain"}, {"step": "Repair", "action": "RebootNode"}]
FREE = [{"step": "Quarantine"}, {"step": "Drain"}, {"step": "Repair", "action": "RebootNode"}]
SAYS = "written by Sickbay's controller"

REFUSED = {
    "dropping a gate": Call("admin", ONE, {"spec": {"plan": {"steps": FREE}}}, content=MERGE, says=SAYS),
    "another plan": Call("admin", ONE, {"spec": {"plan": {"generation": 2}}}, content=MERGE, says=SAYS),
    "an annotation along with a plan": Call(
        "admin",
        ONE,
        {"metadata": {"annotations": {"example.com/a": "b"}}, "spec": {"plan": {"steps": FREE}}},
        content=MERGE,
        says=SAYS,
    ),
    "saying that it was approved": Call(
        "admin",
        f"{ONE}/status",
        {"status": {"steps": {"Quarantine": {"state": "Waiting", "approvedAttempt": 1}}}},
        content=MERGE,
        says=SAYS,
    ),
    "saying that it was validated": Call(
        "admin", f"{ONE}/status", {"status": {"steps": {"Validate": {"state": "Done"}}}}, content=MERGE, says=SAYS
    ),
}
ALLOWED = {
    "a person's word": Call("admin", ONE, {"metadata": {"annotations": {"sickbay.dev/resolve": "{}"}}}, content=MERGE),
    "a label": Call("admin", ONE, {"metadata": {"labels": {"ticket": "4711"}}}, content=MERGE),
    "the controller's plan": Call("controller", ONE, {"spec": {"plan": {"generation": 2}}}, content=MERGE),
    "the controller's status": Call("controller", f"{ONE}/status", {"status": {"phase": "Running"}}, content=MERGE),
    "a cancel": Call("admin", ONE, {}, verb="DELETE"),
}


async def prepare(plane: ControlPlane) -> None:
    apply_file(plane, DEPLOY / "crds" / "sickbay.dev_noderepairs.yaml")
    plane.kubectl("wait", "--for=condition=Established", "crd/noderepairs.sickbay.dev", "--timeout=30s")
    admin = plane.admin()
    await eventually(lambda: admin.get(REPAIRS).status_code == 200, 30, "NodeRepairs are served")
    admin.request("DELETE", ONE)
    spec: dict[str, Any] = {"origin": "Fault", "node": {"name": "node-1", "uid": "u"}, "plan": {"steps": GATED}}
    answer = admin.post(REPAIRS, json={
        "apiVersion": "sickbay.dev/v1alpha1", "kind": "NodeRepair",
        "metadata": {"name": "node-1-0badc0de-1"}, "spec": spec,
    })  # fmt: skip
    assert answer.status_code == 201, answer.text


@pytest.fixture
async def repair_under_policy(guarded: ControlPlane) -> AsyncIterator[ControlPlane]:
    await prepare(guarded)
    yield guarded
    guarded.admin().request("DELETE", ONE)


@pytest.fixture
async def repair_without(unguarded: ControlPlane) -> AsyncIterator[ControlPlane]:
    await prepare(unguarded)
    yield unguarded
    unguarded.admin().request("DELETE", ONE)


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in REFUSED.items()])
async def test_the_policy_refuses_it_and_the_repair_stays_as_it_is(
    repair_under_policy: ControlPlane, call: Call
) -> None:
    before = read(repair_under_policy, ONE)
    answer = await send(repair_under_policy, call)
    assert answer.status_code == 422, answer.text
    assert "ValidatingAdmissionPolicy 'sickbay-repairs'" in answer.json()["message"]
    assert call.says in answer.json()["message"]
    assert read(repair_under_policy, ONE) == before


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in REFUSED.items()])
async def test_without_the_policy_the_role_alone_lets_it_through(repair_without: ControlPlane, call: Call) -> None:
    assert (await send(repair_without, call)).status_code == 200


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in ALLOWED.items()])
async def test_people_annotate_and_cancel_and_the_controller_writes(
    repair_under_policy: ControlPlane, call: Call
) -> None:
    answer = await send(repair_under_policy, call)
    assert answer.status_code == 200, answer.text
