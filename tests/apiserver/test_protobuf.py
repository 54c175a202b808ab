"""Protobuf bodies: what Go clients send, put together here field by field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sickbay.apiserver.errors import StatusError
from sickbay.apiserver.protobuf import MAGIC, decode, is_protobuf
from sickbay.apiserver.protomessages import MESSAGES

ACCEPTED = ("application/json",)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    parts = []
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, content: bytes | str) -> bytes:
    raw = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def body(api_version: str, kind: str, message: bytes) -> bytes:
    type_meta = block(1, api_version) + block(2, kind)
    return MAGIC + block(1, type_meta) + block(2, message) + block(3, "") + block(4, "")


def meta(name: str) -> bytes:
    """As Go writes it: empty texts, a zero generation and a zero time included."""
    empty = block(2, "") + block(3, "") + block(4, "") + block(5, "") + block(6, "") + number(7, 0) + block(8, b"")
    return block(1, block(1, name) + empty)


@pytest.mark.parametrize(
    ("api_version", "kind", "message", "expected"),
    [
        pytest.param("v1", "Namespace", meta("n"), {"metadata": {"name": "n"}}, id="namespace"),
        pytest.param(
            "v1",
            "ConfigMap",
            meta("c") + block(2, block(1, "k") + block(2, "v")) + block(2, block(1, "l") + block(2, "w")),
            {"metadata": {"name": "c"}, "data": {"k": "v", "l": "w"}},
            id="config map",
        ),
        pytest.param(
            "v1",
            "Secret",
            meta("s") + block(2, block(1, "k") + block(2, b"\xff\x00")) + block(3, "Opaque"),
            {"metadata": {"name": "s"}, "data": {"k": "/wA="}, "type": "Opaque"},
            id="secret",
        ),
        pytest.param(
            "policy/v1",
            "PodDisruptionBudget",
            meta("b") + block(2, block(1, number(1, 1) + number(2, 0) + block(3, "50%")) + block(3, number(2, 2))),
            {"metadata": {"name": "b"}, "spec": {"minAvailable": "50%", "maxUnavailable": 2}},
            id="budget",
        ),
        pytest.param(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            meta("p") + number(2, -5) + number(3, 0),
            {"metadata": {"name": "p"}, "value": -5},
            id="negative number",
        ),
        pytest.param(
            "policy/v1",
            "Eviction",
            meta("p") + block(2, number(1, 0) + block(2, block(1, "uid-1")) + number(3, 0)),
            {
                "metadata": {"name": "p"},
                "deleteOptions": {
                    "gracePeriodSeconds": 0,
                    "preconditions": {"uid": "uid-1"},
                    "orphanDependents": False,
                },
            },
            id="eviction",
        ),
        pytest.param(
            "coordination.k8s.io/v1",
            "Lease",
            meta("l") + block(2, block(1, "me") + block(4, number(1, 1767225600) + number(2, 5000000))),
            {
                "metadata": {"name": "l"},
                "spec": {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.005000Z"},
            },
            id="lease",
        ),
    ],
)
def test_messages(api_version: str, kind: str, message: bytes, expected: dict[str, Any]) -> None:
    found = decode(body(api_version, kind, message), ACCEPTED)
    assert found == expected | {"apiVersion": api_version, "kind": kind}


def test_delete_options_may_come_without_a_kind() -> None:
    raw = MAGIC + block(2, number(1, 7) + block(4, "Foreground") + block(5, "All"))
    assert decode(raw, ACCEPTED) == {"gracePeriodSeconds": 7, "propagationPolicy": "Foreground", "dryRun": ["All"]}


@pytest.mark.parametrize(("api_version", "kind"), [("v1", "Pod"), ("events.k8s.io/v1", "Event"), ("x/v1", "Thing")])
def test_messages_that_are_not_known_are_refused_with_what_is_understood(api_version: str, kind: str) -> None:
    with pytest.raises(StatusError) as refused:
        decode(body(api_version, kind, b""), ACCEPTED)
    assert refused.value.code == 415
    assert "application/json" in refused.value.message


@pytest.mark.parametrize(
    "broken",
    [
        MAGIC + b"\x12\xff",
        MAGIC + b"\x80",
        MAGIC + b"\xff" * 12,
        MAGIC + b"\x13",
        MAGIC + block(1, block(2, b"\xff\xfe")),
        body("v1", "Namespace", b"\x0a\x7f\x01"),
    ],
)
def test_bodies_that_are_broken_are_bad_requests(broken: bytes) -> None:
    with pytest.raises(StatusError) as refused:
        decode(broken, ACCEPTED)
    assert refused.value.code == 400


@settings(deadline=None)
@given(st.binary(max_size=60), st.sampled_from(sorted(MESSAGES)))
def test_no_body_breaks_the_server(raw: bytes, kind: str) -> None:
    for content in (MAGIC + raw, body("v1", kind, raw)):
        assert is_protobuf(content)
        try:
            decode(content, ACCEPTED)
        except StatusError as error:
            assert error.code in (400, 415)


def test_every_message_a_field_names_is_described() -> None:
    plain = {"str", "int", "bool", "bytes", "time", "micro", "intstr"}
    named = {field.type.strip("[]{}") for fields in MESSAGES.values() for field in fields.values()}
    assert named - plain <= MESSAGES.keys()
