"""The manifests agree with the words in the code and with each other."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sickbay.api import names
from tests.support.controlplane import ControlPlane
from tests.support.install import DEPLOY, POLICIES, install

DOCUMENTS = [document for name in POLICIES for document in yaml.safe_load_all((DEPLOY / name).read_text())]
POLICY_KINDS = ("ValidatingAdmissionPolicy", "MutatingAdmissionPolicy")
ALL_POLICIES = [document for document in DOCUMENTS if document["kind"] in POLICY_KINDS]
ACCOUNTS = {
    f"system:serviceaccount:{document['metadata']['namespace']}:{document['metadata']['name']}"
    for document in yaml.safe_load_all((DEPLOY / "rbac.yaml").read_text())
    if document["kind"] == "ServiceAccount"
}


def expressions(part: Any) -> list[str]:
    """All CEL texts of a manifest."""
    if isinstance(part, dict):
        own = [value for key, value in part.items() if key in ("expression", "messageExpression")]
        return own + [text for value in part.values() for text in expressions(value)]
    return [text for value in part for text in expressions(value)] if isinstance(part, list) else []


def named(policies: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(policy, id=policy["metadata"]["name"]) for policy in policies]


@pytest.mark.parametrize("policy", named(ALL_POLICIES))
def test_every_policy_is_bound(policy: dict[str, Any]) -> None:
    bindings = [each["spec"] for each in DOCUMENTS if each["kind"] == f"{policy['kind']}Binding"]
    (bound,) = [spec for spec in bindings if spec["policyName"] == policy["metadata"]["name"]]
    assert bound.get("validationActions", ["Deny"]) == ["Deny"]


@pytest.mark.parametrize("policy", named([each for each in ALL_POLICIES if "'intervention." in str(each)]))
def test_every_list_of_approval_prefixes_is_the_same(policy: dict[str, Any]) -> None:
    lists = [found for text in expressions(policy) for found in re.findall(r"\['intervention\.[^\]]*\]", text)]
    assert lists
    for found in lists:
        assert ast.literal_eval(found) == [f"{prefix}/" for prefix in names.APPROVAL_PREFIXES.values()]


@pytest.mark.parametrize("policy", named(ALL_POLICIES))
def test_policies_speak_of_the_service_accounts_there_are(policy: dict[str, Any]) -> None:
    spoken = {found for text in expressions(policy) for found in re.findall(r"system:serviceaccount:[\w:-]+", text)}
    assert spoken <= ACCOUNTS


@pytest.mark.parametrize("policy", named(ALL_POLICIES))
def test_keys_are_those_of_the_code(policy: dict[str, Any]) -> None:
    known = {names.QUARANTINE, names.INQUIRY, names.DEVICES, names.CHANGED_BY, names.ISOLATE, f"{names.GROUP}/"}
    known |= {names.CHECKPOINT_REQUEST}
    spoken = {found for text in expressions(policy) for found in re.findall(r"['\"](sickbay\.dev/[\w-]*)", text)}
    assert spoken <= known


def test_an_agent_is_kept_off_every_lifecycle_condition() -> None:
    (policy,) = [each for each in ALL_POLICIES if each["metadata"]["name"] == "sickbay-agent-nodes"]
    text = " ".join(expressions(policy))
    assert all(f"'{name}'" in text for name in names.LIFECYCLE_CONDITIONS)


@pytest.mark.parametrize(
    "policy", named([each for each in ALL_POLICIES if "nodes" in str(each["spec"]["matchConstraints"])])
)
def test_whatever_judges_nodes_sees_the_status_endpoint_too(policy: dict[str, Any]) -> None:
    for rule in policy["spec"]["matchConstraints"]["resourceRules"]:
        if "nodes" in rule["resources"]:
            assert rule["resources"] == ["nodes", "nodes/status"]
            assert rule["operations"] == ["UPDATE"]
            assert policy["spec"]["matchConditions"]


def test_the_stamp_never_blocks_a_write() -> None:
    (stamp,) = [each for each in ALL_POLICIES if each["kind"] == "MutatingAdmissionPolicy"]
    assert stamp["spec"]["failurePolicy"] == "Ignore"


@pytest.mark.controlplane
def test_the_server_finds_no_fault_with_their_types(control_plane_binaries: Path, tmp_path: Path) -> None:
    """The controller manager checks each expression against the schemas of all it matches."""
    with ControlPlane(control_plane_binaries, tmp_path, controllers=True) as control_plane:
        install(control_plane)
        for policy in ALL_POLICIES:
            if policy["kind"] != "ValidatingAdmissionPolicy":
                continue
            name = f"validatingadmissionpolicy/{policy['metadata']['name']}"
            control_plane.kubectl("wait", "--for=jsonpath={.status.observedGeneration}=1", name, "--timeout=60s")
            status = json.loads(control_plane.kubectl("get", name, "-o", "json").stdout)["status"]
            assert status == {"observedGeneration": 1, "typeChecking": {}}
