"""The CRDs on a real API server, which is right wherever it and our own judgement differ."""

import time

import msgspec
import pytest

from sickbay.api.crds import manifests, schemas
from sickbay.api.kinds import OWN
from sickbay.api.repair_pool import RepairPool
from sickbay.api.structural import default, validate
from tests.api import widgets
from tests.api.judge import admitted, judged_bad
from tests.api.objects import BAD, GOOD, MINIMAL, manifest

pytestmark = pytest.mark.controlplane

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BY_KIND = {kind.kind: kind for kind in OWN}
MERGE = {"Content-Type": "application/merge-patch+json"}
POLLS = 200


@pytest.fixture(scope="module")
def server(control_plane):
    """The API server with our CRDs in it, each Established."""
    admin = control_plane.admin()
    for crd in manifests():
        answer = admin.post(CRDS, json=crd)
        assert answer.status_code in (201, 409), answer.json()["message"]
    for crd in manifests():
        until(lambda name=crd["metadata"]["name"]: "Established" in conditions(admin, name))
    for kind in OWN:
        until(lambda path=kind.path(): admin.get(path).status_code == 200)
    return admin


def until(seen):
    """Wait for the server to come round, with a bound."""
    for _ in range(POLLS):
        if seen():
            return
        time.sleep(0.05)  # noqa: TID251 - the server's clock is real
    pytest.fail("the API server did not come round")


def conditions(admin, name):
    status = admin.get(f"{CRDS}/{name}").json().get("status", {})
    return {c["type"]: c["message"] for c in status.get("conditions", ()) if c["status"] == "True"}


def collection(kind):
    return BY_KIND[kind].path("default" if BY_KIND[kind].namespaced else "")


def object_path(kind, name, subresource=""):
    return BY_KIND[kind].path("default", name, subresource)


def create(server, kind, manifest):
    return server.post(collection(kind), json=manifest, params={"fieldValidation": "Strict"})


def patch(server, kind, name, body, subresource=""):
    return server.patch(object_path(kind, name, subresource), json=body, headers=MERGE)


@pytest.mark.parametrize("crd", manifests(), ids=lambda crd: crd["spec"]["names"]["kind"])
def test_the_server_accepts_the_definition_without_reservation(server, crd):
    found = conditions(server, crd["metadata"]["name"])
    assert {"NamesAccepted", "Established"} <= set(found)
    assert "NonStructuralSchema" not in found
    assert "Terminating" not in found


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good.id)
def test_the_server_accepts_a_good_object(server, good):
    name = f"good-{good.id}"
    answer = create(server, good.kind, good.manifest(name))
    assert answer.status_code == 201, answer.json()["message"]
    for subresource, body in good.then:
        answer = patch(server, good.kind, name, body, subresource)
        assert answer.status_code == 200, answer.json()["message"]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.id)
def test_the_server_refuses_a_bad_object_with_the_causes_we_find(server, bad):
    name = f"bad-{bad.id}"
    answer = create(server, bad.kind, bad.manifest(name))
    if bad.then is not None:
        assert answer.status_code == 201, answer.json()["message"]
        if bad.status is not None:
            assert patch(server, bad.kind, name, bad.status, "status").status_code == 200
        answer = patch(server, bad.kind, name, bad.then, bad.subresource)
    assert answer.status_code == 422, answer.text
    causes = [(c["field"], c["reason"], c["message"]) for c in answer.json()["details"]["causes"]]
    assert any(field == bad.path and bad.text in message for field, _, message in causes), causes
    assert sorted((v.path, v.reason, v.message) for v in judged_bad(bad, name)) == sorted(causes)


def test_a_task_can_be_watched_by_its_node(server):
    for node in ("train-7", "train-8"):
        spec = {
            "node": {"name": node, "uid": "u", "bootID": "b"},
            "action": "RebootNode",
            "key": f"{node}/Repair/1",
            "expires": "2026-11-29T12:00:00Z",
        }
        made = {
            "apiVersion": "sickbay.dev/v1alpha1",
            "kind": "NodeTask",
            "metadata": {"name": f"of-{node}"},
            "spec": spec,
        }
        assert create(server, "NodeTask", made).status_code == 201
    found = server.get(collection("NodeTask"), params={"fieldSelector": "spec.node.name=train-7"}).json()
    assert [task["metadata"]["name"] for task in found["items"]] == ["of-train-7"]


def test_kubectl_explains_a_field_in_our_words(server, control_plane):
    told = control_plane.kubectl("explain", "repairpools.spec.breaker.threshold")
    assert told.returncode == 0, told.stderr
    assert "Opens when more nodes than this are faulty" in " ".join(told.stdout.split())


@pytest.mark.parametrize(
    ("short", "columns"),
    [
        ("rp", ["NAME", "MODE", "RULE", "NODES", "FAULTY", "UNAVAILABLE", "BREAKER", "AGE"]),
        ("nr", ["NAME", "NODE", "FAULT", "PHASE", "STEP", "WAITSFOR", "OUTCOME", "AGE"]),
        ("nt", ["NAME", "NODE", "ACTION", "PHASE", "AGE"]),
        ("hold", ["NAME", "LEVEL", "ALL", "UNTIL", "OWNER", "AGE"]),
    ],
)
def test_kubectl_lists_a_kind_by_its_short_name_with_our_columns(server, control_plane, short, columns):
    kind = {"rp": "RepairPool", "nr": "NodeRepair", "nt": "NodeTask", "hold": "Hold"}[short]
    create(server, kind, manifest(kind, "listed", MINIMAL[kind]))
    listed = control_plane.kubectl("get", short)
    assert listed.returncode == 0, listed.stderr
    assert listed.stdout.splitlines()[0].split() == columns


def test_kubectl_shows_when_a_hold_ends_that_is_in_force(server, control_plane):
    """A column of type date shows how long ago something was, and nothing else."""
    made = manifest("Hold", "ends", {**MINIMAL["Hold"], "until": "2100-01-01T00:00:00Z"})
    assert create(server, "Hold", made).status_code == 201
    listed = control_plane.kubectl("get", "hold", "ends")
    assert "2100-01-01T00:00:00Z" in listed.stdout, listed.stdout + listed.stderr


def test_the_server_fills_in_the_defaults_our_structs_have(server):
    made = {"apiVersion": "sickbay.dev/v1alpha1", "kind": "RepairPool", "metadata": {"name": "defaults"}}
    made["spec"] = {"nodeSelector": {"matchLabels": {"a": "b"}}}
    answer = create(server, "RepairPool", made).json()
    assert answer["spec"] == default(schemas()["RepairPool"], made)["spec"]
    ours = msgspec.convert(answer, RepairPool)
    assert ours.spec == msgspec.convert(made, RepairPool).spec


WIDGETS = "/apis/test.sickbay.dev/v1/widgets"


@pytest.fixture(scope="module")
def widget_server(control_plane):
    """The API server with the made-up kind in it."""
    admin = control_plane.admin()
    answer = admin.post(CRDS, json=widgets.CRD)
    assert answer.status_code in (201, 409), answer.json()["message"]
    until(lambda: admin.get(WIDGETS).status_code == 200)
    return admin


@pytest.mark.parametrize("case", widgets.CASES, ids=lambda case: case.id)
def test_the_server_makes_of_any_structural_schema_what_we_make_of_it(widget_server, case):
    name = case.name or case.id
    made, old = widgets.widget(name, case.spec), None
    if case.old is None:
        answer = widget_server.post(WIDGETS, json=made)
    else:
        first = widget_server.post(WIDGETS, json=widgets.widget(name, case.old))
        assert first.status_code == 201, first.text
        old = admitted(widgets.SCHEMA, widgets.widget(name, case.old))
        made["metadata"]["resourceVersion"] = first.json()["metadata"]["resourceVersion"]
        answer = widget_server.put(f"{WIDGETS}/{name}", json=made)
    if case.stored is not None:
        assert answer.status_code in (200, 201), answer.json()["message"]
        assert answer.json()["spec"] == {**widgets.ALWAYS, **case.stored}
        return
    assert answer.status_code == 422, answer.text
    if not case.worded:
        return
    causes = [(c["field"], c["reason"], c["message"]) for c in answer.json()["details"]["causes"]]
    ours = validate(widgets.SCHEMA, admitted(widgets.SCHEMA, made), old)
    assert sorted((v.path, v.reason, v.message) for v in ours) == sorted(causes)
