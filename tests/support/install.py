"""Put Sickbay's manifests onto a control plane, and know when they hold.

Admission policies take effect about a second after they are written, all together: the server looks at its caches once
a second and compiles what it finds. Each cache is in order, so when a policy and binding written last are in force, all
earlier ones are. Such a sentinel, of each sort, is written, tried until it bites, and removed.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sickbay.api import crds
from tests.support.controlplane import ControlPlane

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
ROLES = ("rbac.yaml",)
POLICIES = ("admission.yaml", "admission-stamp.yaml")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SENTINEL = "sickbay-test-sentinel"
POLL_SECONDS, POLLS = 0.1, 300


def apply_file(control_plane: ControlPlane, path: Path) -> None:
    """Apply a manifest file as an administrator would. Raises RuntimeError with what kubectl said."""
    _kubectl(control_plane, "apply", "--server-side", "-f", str(path))


def apply_objects(control_plane: ControlPlane, *objects: dict[str, Any]) -> None:
    """Apply manifests given as objects."""
    _kubectl(control_plane, "apply", "--server-side", "-f", "-", stdin=_as_list(objects))


def apply_crds(control_plane: ControlPlane, *crds: dict[str, Any]) -> None:
    """Apply CRDs and wait until their kinds are served."""
    apply_objects(control_plane, *crds)
    wait_until_served(control_plane)


def wait_until_served(control_plane: ControlPlane) -> None:
    """Return once the kinds of all CRDs are served. Raises RuntimeError, naming those that are not.

    `kubectl wait` does not do: it gives up on a definition that has no conditions at all yet.
    """
    pause, waiting = threading.Event(), [""]
    for _ in range(POLLS):
        found = control_plane.admin().get(DEFINITIONS).json()["items"]
        waiting = [crd["metadata"]["name"] for crd in found if not _is_served(crd)]
        if not waiting:
            return
        pause.wait(POLL_SECONDS)
    raise RuntimeError(f"not served after {POLLS * POLL_SECONDS:.0f} s: {', '.join(waiting)}")


def _is_served(crd: dict[str, Any]) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def install_crds(control_plane: ControlPlane) -> None:
    """The nine kinds of Sickbay, from the text that `sickbay crds` prints."""
    text = io.StringIO()
    crds.write_yaml(text)
    _kubectl(control_plane, "apply", "--server-side", "-f", "-", stdin=text.getvalue())
    wait_until_served(control_plane)


def install_roles(control_plane: ControlPlane) -> None:
    """Namespaces, service accounts and roles, without any policy."""
    for name in ROLES:
        apply_file(control_plane, DEPLOY / name)


def install_policies(control_plane: ControlPlane) -> None:
    """All admission policies; returns once they are in force."""
    for name in POLICIES:
        apply_file(control_plane, DEPLOY / name)
    wait_for_policies(control_plane)


def install(control_plane: ControlPlane) -> None:
    """Everything a cluster with Sickbay has but its processes: kinds, roles, policies in force."""
    install_crds(control_plane)
    install_roles(control_plane)
    install_policies(control_plane)


def wait_for_policies(control_plane: ControlPlane) -> None:
    """Return once every policy and binding written so far is in force. Raises RuntimeError when that takes long."""
    apply_objects(control_plane, *_sentinels())
    try:
        pause = threading.Event()
        for _ in range(POLLS):
            if _bites(control_plane):
                return
            pause.wait(POLL_SECONDS)
        raise RuntimeError(f"admission policies are not in force after {POLLS * POLL_SECONDS:.0f} s")
    finally:
        _kubectl(control_plane, "delete", "-f", "-", stdin=_as_list(_sentinels()))


def _bites(control_plane: ControlPlane) -> bool:
    """Whether both sentinels act on a ConfigMap that nobody ever makes: one refuses it, one labels it."""
    answers = [
        control_plane.admin().post(
            "/api/v1/namespaces/default/configmaps?dryRun=All",
            json={"metadata": {"name": SENTINEL, "labels": {SENTINEL: sort}}},
        )
        for sort in ("refuse", "label")
    ]
    refused = answers[0].status_code == 422 and SENTINEL in answers[0].text
    return refused and answers[1].json().get("metadata", {}).get("labels", {}).get(SENTINEL) == "labelled"


def _sentinels() -> list[dict[str, Any]]:
    api_version = "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    constraints = {
        "resourceRules": [rule],
        "objectSelector": {"matchExpressions": [{"key": SENTINEL, "operator": "Exists"}]},
    }
    stamp = {
        "patchType": "JSONPatch",
        "jsonPatch": {
            "expression": f"[JSONPatch{{op: 'replace', path: '/metadata/labels/{SENTINEL}', value: 'labelled'}}]"
        },
    }
    names = {"metadata": {"name": SENTINEL}}
    return [
        {
            "apiVersion": api_version,
            "kind": "ValidatingAdmissionPolicy",
            **names,
            "spec": {
                "matchConstraints": constraints,
                "validations": [
                    {"expression": f"object.metadata.labels['{SENTINEL}'] != 'refuse'", "message": SENTINEL}
                ],
            },
        },
        {
            "apiVersion": api_version,
            "kind": "MutatingAdmissionPolicy",
            **names,
            "spec": {
                "reinvocationPolicy": "Never",
                "matchConstraints": constraints,
                "matchConditions": [
                    {"name": "label", "expression": f"object.metadata.labels['{SENTINEL}'] == 'label'"}
                ],
                "mutations": [stamp],
            },
        },
        {
            "apiVersion": api_version,
            "kind": "ValidatingAdmissionPolicyBinding",
            **names,
            "spec": {"policyName": SENTINEL, "validationActions": ["Deny"]},
        },
        {
            "apiVersion": api_version,
            "kind": "MutatingAdmissionPolicyBinding",
            **names,
            "spec": {"policyName": SENTINEL},
        },
    ]


def _as_list(objects: Sequence[dict[str, Any]]) -> str:
    """JSON, which kubectl reads as it is meant: to its YAML a plain `n` is a boolean."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def _kubectl(control_plane: ControlPlane, *arguments: str, stdin: str = "") -> None:
    result = control_plane.kubectl(*arguments, stdin=stdin)
    if result.returncode:
        raise RuntimeError(f"kubectl {' '.join(arguments)}: {result.stderr}")
