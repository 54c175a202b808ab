"""Names derived from node names: legal for every legal node name, and different for different nodes."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sickbay.api import objectnames as on

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
UID = "0b1c2d3e-aaaa-4bbb-8ccc-dddddddddddd"
LONG = "training-ip-10-20-30-40.eu-west-3.compute.internal-0a1b2c3d-pool0001"


@st.composite
def node_names(draw):
    """Any RFC 1123 subdomain: dots and dashes wherever they are allowed, and most often near the cuts."""
    size = draw(st.sampled_from([1, 2, 39, 40, 41, 42, 54, 55, 63, 64, 200, 253]) | st.integers(1, 253))
    letters = draw(st.text("ab0.-", min_size=size, max_size=size))
    name = re.sub(r"[.-]*\.[.-]*", ".", letters).strip(".-")
    return name or "a"


def legal_name(name, limit=253):
    return len(name) <= limit and SUBDOMAIN.fullmatch(name) is not None


def test_the_strategy_makes_legal_names():
    assert legal_name(LONG)

    @settings(deadline=None, max_examples=200)
    @given(node_names())
    def check(name):
        assert legal_name(name)

    check()


@pytest.mark.case("N11")
@settings(deadline=None)
@given(node_names(), st.uuids(), st.integers(0, 99_999))
def test_a_repair_of_any_legal_node_has_a_legal_name_that_fits_a_label(node, uid, n):
    name = on.repair_name(node, str(uid), n)
    assert legal_name(name)
    assert ".-" not in name and "-." not in name
    assert LABEL_VALUE.fullmatch(name) and len(name) <= 63


@pytest.mark.case("N11")
@settings(deadline=None)
@given(node_names())
def test_what_is_kept_of_a_node_name_is_its_beginning_without_dots_and_dashes_at_the_end(node):
    head = on.repair_name(node, UID, 1).removesuffix("-0b1c2d3e-1")
    assert node.startswith(head)
    assert len(head) <= 40
    assert head[-1] not in ".-"


@pytest.mark.case("N11")
@settings(deadline=None)
@given(st.uuids(), st.sampled_from(["Quarantine", "Drain", "Repair", "Validate", "Unquarantine"]), st.integers(0, 9999))
def test_a_task_has_a_legal_name_that_fits_a_label(uid, step, attempt):
    name = on.task_name(str(uid), step, attempt)
    assert legal_name(name, 63)


@pytest.mark.case("N11")
@settings(deadline=None)
@given(node_names())
def test_leases_and_label_values_of_any_legal_node_are_legal(node):
    assert legal_name(on.medik8s_lease_name(node))
    assert LABEL_VALUE.fullmatch(on.label_value(node)) and len(on.label_value(node)) <= 63
    label = on.dns_label(node)
    assert LABEL.fullmatch(label) and len(label) <= 63


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_becomes_a_legal_label_value_and_a_legal_dns_label(text):
    assert LABEL_VALUE.fullmatch(on.label_value(text) or "a") and len(on.label_value(text)) <= 63
    assert LABEL.fullmatch(on.dns_label(text)) or text == ""
    assert len(on.dns_label(text)) <= 63


@pytest.mark.case("N11")
@settings(deadline=None)
@given(node_names(), node_names())
def test_different_nodes_have_different_leases_and_label_values(one, other):
    if one == other:
        return
    for make in (on.medik8s_lease_name, on.label_value, on.dns_label):
        assert make(one) != make(other)


@pytest.mark.case("N11")
def test_nodes_that_differ_only_beyond_the_cut_have_repairs_of_different_names():
    first = on.repair_name(LONG + "a", "11111111-0000-4000-8000-000000000000", 1)
    second = on.repair_name(LONG + "b", "22222222-0000-4000-8000-000000000000", 1)
    assert first != second


GOLDEN = [
    (on.repair_name("train-0", UID, 1), "train-0-0b1c2d3e-1"),
    (on.repair_name(LONG, UID, 12), "training-ip-10-20-30-40.eu-west-3.comput-0b1c2d3e-12"),
    (on.repair_name("a" * 39 + ".b", UID, 1), "a" * 39 + "-0b1c2d3e-1"),
    (on.repair_name("a" * 38 + "-xb", UID, 1), "a" * 38 + "-x-0b1c2d3e-1"),
    (on.repair_name("n", "UID-OF-MINE", 3), "n-dc204069-3"),
    (on.task_name(UID, "Unquarantine", 3), f"{UID}-unquarantine-3"),
    (on.task_name("rack-7", "Repair", 2), "rack-7-repair-2"),
    (on.act_key(UID, "Repair", 2), f"{UID}/Repair/2"),
    (on.job_recovery_name("PyTorchJob", "llm"), "pytorchjob-llm"),
    (on.medik8s_lease_name("train-0"), "node-train-0"),
    (on.label_value("train-0"), "train-0"),
    (on.dns_label("rack-7"), "rack-7"),
]


@pytest.mark.parametrize(("name", "golden"), GOLDEN, ids=[g[1][:40] for g in GOLDEN])
def test_a_name_is_what_the_contract_says(name, golden):
    assert name == golden


def test_a_uid_that_is_no_uuid_still_gives_eight_hex_digits():
    assert re.fullmatch(r"n-[0-9a-f]{8}-1", on.repair_name("n", "not hex", 1))
    assert on.repair_name("n", "not hex", 1) != on.repair_name("n", "not hey", 1)


def test_two_writers_of_the_same_number_collide():
    assert on.repair_name("n", UID, 4) == on.repair_name("n", UID, 4)
