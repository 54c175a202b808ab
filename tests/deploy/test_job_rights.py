"""What the job loop may do to pods and jobs: rbac-jobs.yaml, with the policy that narrows it, and per namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sickbay.api import names
from tests.deploy.world import MERGE, STRATEGIC, Call, read, send
from tests.support.controlplane import ControlPlane
from tests.support.install import DEPLOY, apply_file, apply_objects

pytestmark = pytest.mark.controlplane

PODS = "/api/v1/namespaces/train/pods"
RANK = f"{PODS}/rank-0"
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
ROLE = "sickbay-controller-jobs"
CONTROLLER = {"kind": "ServiceAccount", "name": "sickbay-controller", "namespace": "sickbay-system"}


def patch(body: dict[str, Any], says: str = "") -> Call:
    return Call("controller", RANK, body, content=STRATEGIC, says=says)


def annotated(**values: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {key.replace("__", "/").replace("_", "-"): v for key, v in values.items()}}}


REQUEST = {"metadata": {"annotations": {names.CHECKPOINT_REQUEST: "a/Drain/1"}}}
REFUSED = {
    "another annotation": patch(annotated(example__note="x"), "no annotation of a pod but"),
    "removing another's annotation": patch(annotated(team=None), "no annotation of a pod but"),
    "answering for the job": patch(
        {"metadata": {"annotations": {names.CHECKPOINT_DONE: "a/Drain/1"}}}, "no annotation of a pod but"
    ),
    "a label": patch({"metadata": {"labels": {"a": "b"}}}, "may not change labels"),
    "a finalizer": patch({"metadata": {"finalizers": ["example.com/stay"]}}, "may not change labels, finalizers"),
    "another image": patch(
        {"spec": {"containers": [{"name": "main", "image": "example.com/other:1"}]}}, "may not change spec"
    ),
    "an image along with the request": patch(
        {**REQUEST, "spec": {"containers": [{"name": "main", "image": "example.com/other:1"}]}}, "may not change spec"
    ),
    "a deadline": patch({"spec": {"activeDeadlineSeconds": 5}}, "may not change spec"),
}


def prepare(plane: ControlPlane) -> None:
    """A pod, and the rights. No controller fills the namespace here."""
    apply_file(plane, DEPLOY / "rbac-jobs.yaml")
    admin = plane.admin()
    for path, body in (
        ("/api/v1/namespaces", {"metadata": {"name": "train"}}),
        ("/api/v1/namespaces/train/serviceaccounts", {"metadata": {"name": "default"}}),
    ):
        assert admin.post(path, json=body).status_code in (201, 409)
    admin.patch(RANK, content='{"metadata": {"finalizers": null}}', headers={"Content-Type": MERGE})
    admin.request("DELETE", RANK, json={"gracePeriodSeconds": 0})
    pod = {
        "metadata": {"name": "rank-0", "annotations": {"team": "a"}},
        "spec": {"containers": [{"name": "main", "image": "example.com/train:1"}]},
    }
    answer = admin.post(PODS, json=pod)
    assert answer.status_code == 201, answer.text


def clean(plane: ControlPlane) -> None:
    plane.kubectl("delete", "-f", str(DEPLOY / "rbac-jobs.yaml"))


@pytest.fixture
def guarded_pods(guarded: ControlPlane) -> Iterator[ControlPlane]:
    prepare(guarded)
    yield guarded
    clean(guarded)


@pytest.fixture
def unguarded_pods(unguarded: ControlPlane) -> Iterator[ControlPlane]:
    prepare(unguarded)
    yield unguarded
    clean(unguarded)


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in REFUSED.items()])
async def test_the_policy_refuses_it_and_the_pod_stays_as_it_is(guarded_pods: ControlPlane, call: Call) -> None:
    before = read(guarded_pods, RANK)
    answer = await send(guarded_pods, call)
    assert answer.status_code == 422, answer.text
    assert "ValidatingAdmissionPolicy 'sickbay-controller-pods'" in answer.json()["message"]
    assert call.says in answer.json()["message"]
    assert read(guarded_pods, RANK) == before


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in REFUSED.items()])
async def test_without_the_policy_the_role_alone_lets_it_through(unguarded_pods: ControlPlane, call: Call) -> None:
    assert (await send(unguarded_pods, call)).status_code == 200


async def test_the_request_for_a_checkpoint_passes_and_can_be_taken_back(guarded_pods: ControlPlane) -> None:
    assert (await send(guarded_pods, patch(REQUEST))).status_code == 200
    assert read(guarded_pods, RANK)["metadata"]["annotations"][names.CHECKPOINT_REQUEST] == "a/Drain/1"
    taken_back = patch({"metadata": {"annotations": {names.CHECKPOINT_REQUEST: None}}})
    assert (await send(guarded_pods, taken_back)).status_code == 200


async def test_everybody_else_changes_pods_as_before(guarded_pods: ControlPlane) -> None:
    answer = await send(guarded_pods, Call("admin", RANK, {"metadata": {"labels": {"a": "b"}}}, content=MERGE))
    assert answer.status_code == 200, answer.text


async def test_bound_in_one_namespace_it_may_act_on_jobs_there_and_nowhere_else(guarded: ControlPlane) -> None:
    """What the head of rbac-jobs.yaml offers in place of its ClusterRoleBinding."""
    prepare(guarded)
    guarded.kubectl("delete", "clusterrolebinding", ROLE)
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": ROLE, "namespace": "train"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE},
        "subjects": [CONTROLLER],
    }
    apply_objects(guarded, binding)
    try:
        codes = {}
        for namespace in ("train", "default"):
            call = Call("controller", f"{JOBS.format(namespace)}/absent", {"spec": {"suspend": True}}, content=MERGE)
            codes[namespace] = (await send(guarded, call)).status_code
        assert codes == {"train": 404, "default": 403}, "404 is past the authoriser"
    finally:
        guarded.kubectl("delete", "rolebinding", ROLE, "-n", "train")
        clean(guarded)
