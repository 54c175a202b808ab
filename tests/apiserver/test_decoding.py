"""Decoding of built-in kinds: what is dropped, what is refused, what is shared."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.apiserver.errors import Undecodable
from sickbay.apiserver.openapi.decoding import Type, decoded, kind_type, unknown_paths

WHAT = 'Pod in version "v1"'


def go_type(kind: str, group: str = "") -> Type:
    found = kind_type(group, "v1", kind)
    assert found is not None
    return found


POD = go_type("Pod")


def test_what_is_well_is_not_copied() -> None:
    spec = {
        "containers": [{"name": "c", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}],
        "nodeSelector": {"a": "b"},
    }
    obj = {"metadata": {"name": "p"}, "spec": spec}
    result = decoded(POD, WHAT, obj)
    assert result == obj
    assert result["spec"] is spec


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({"nodeName": "n", "colour": "red"}, {"nodeName": "n"}),
        ({"nodeName": None}, {}),
        ({"containers": [{"name": "c", "colour": 1}]}, {"containers": [{"name": "c"}]}),
        ({"containers": [{"name": "c", "env": None}]}, {"containers": [{"name": "c"}]}),
        ({"affinity": {"nodeAffinity": {"x": 1}}}, {"affinity": {"nodeAffinity": {}}}),
        ({"nodeSelector": {"any": "key"}}, {"nodeSelector": {"any": "key"}}),
    ],
)
def test_unknown_fields_and_nulls_are_dropped(spec: dict[str, Any], kept: dict[str, Any]) -> None:
    before = repr(spec)
    assert decoded(POD, WHAT, {"spec": spec})["spec"] == kept
    assert repr(spec) == before


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"nodeName": 5}, "spec.nodeName: a text is needed, not 5"),
        ({"hostNetwork": "yes"}, "spec.hostNetwork: true or false is needed, not 'yes'"),
        ({"priority": True}, "spec.priority: a whole number is needed, not True"),
        ({"priority": 1.5}, "spec.priority: a whole number is needed, not 1.5"),
        ({"containers": {"name": "c"}}, "spec.containers: a list is needed, not {'name': 'c'}"),
        ({"containers": [{"name": "c"}, "d"]}, "spec.containers[1]: an object is needed, not 'd'"),
        ({"containers": [{"env": [{"name": 1}]}]}, "spec.containers[0].env[0].name: a text is needed, not 1"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector.a: a text is needed, not 1"),
        ({"nodeSelector": []}, "spec.nodeSelector: a map is needed, not []"),
        (
            {"containers": [{"resources": {"limits": {"cpu": []}}}]},
            "limits.cpu: a quantity such as 8, 500m or 64Gi is needed, not []",
        ),
        ("text", "spec: an object is needed, not 'text'"),
    ],
)
def test_values_of_the_wrong_type_are_refused_with_their_place(spec: Any, text: str) -> None:
    with pytest.raises(Undecodable) as refused:
        decoded(POD, WHAT, {"spec": spec})
    assert refused.value.message.startswith('Pod in version "v1" cannot be handled as a Pod: spec')
    assert refused.value.message.endswith(text)


def test_whole_floats_and_quantities_fit() -> None:
    spec = {"priority": 5.0, "containers": [{"resources": {"limits": {"cpu": 0.5, "memory": "1Gi"}}}]}
    assert decoded(POD, WHAT, {"spec": spec})["spec"] == spec


def test_what_is_shared_with_the_stored_version_is_not_looked_at() -> None:
    stored = {"spec": {"nodeName": 5, "containers": [{"name": 1}]}}
    changed = {"spec": {**stored["spec"], "schedulerName": "s"}}
    assert decoded(POD, WHAT, changed, stored) == changed


def test_open_places_take_anything() -> None:
    revision = go_type("ControllerRevision", "apps")
    obj = {"data": {"any": ["thing", {"x": None}]}, "revision": 1}
    assert decoded(revision, "ControllerRevision", obj) == obj


def test_unknown_fields_are_named_by_path() -> None:
    spec = {"colour": 1, "containers": [{"name": "c"}, {"x": 1, "env": [{"y": 1}]}], "nodeSelector": {"free": "1"}}
    assert list(unknown_paths(POD, {"spec": spec, "top": 1})) == [
        "spec.colour",
        "spec.containers[1].x",
        "spec.containers[1].env[0].y",
        "top",
    ]


def test_a_kind_that_was_not_recorded_has_no_type() -> None:
    assert kind_type("example.com", "v1", "Thing") is None
