"""Which faults a node has now: the catalogue over the node's conditions and expressions."""

from __future__ import annotations

import pytest

from sickbay.decide.catalogue import build
from sickbay.decide.faults import Active, active_faults, displaced
from sickbay.recover.signs import Signs
from tests.decide.made import at, catalogue, fault_type, node


def found(the_node, *types) -> dict[str, Active]:
    return {active.name: active for active in active_faults(the_node, catalogue(*types))}


@pytest.mark.parametrize(
    ("status", "active"),
    [
        pytest.param("True", True, id="bad"),
        pytest.param("False", False, id="good"),
        pytest.param("Unknown", False, id="unknown-is-no-fault"),
        pytest.param("true", False, id="another-spelling-is-another-value"),
    ],
)
def test_a_fault_is_active_while_its_condition_has_the_bad_status(status, active):
    assert ("test.reboot" in found(node(faults={"test.reboot": (status, 0)}))) is active


@pytest.mark.parametrize(
    ("pattern", "reason", "active"),
    [
        pytest.param("^XID(48|79)$", "XID79", True, id="matches"),
        pytest.param("^XID(48|79)$", "XID13", False, id="does-not-match"),
        pytest.param("XID", "an XID inside", True, id="unanchored-finds-it-inside"),
        pytest.param("^.*$", "", True, id="any-reason"),
        pytest.param("", "whatever", True, id="empty-means-any"),
    ],
)
def test_the_reason_is_matched_as_a_regular_expression(pattern, reason, active):
    match = [{"condition": {"type": "TestReason", "status": "True", "reason": pattern}}]
    the_node = node(faults={"test.reason": ("True", 0, reason)})
    assert ("test.reason" in found(the_node, fault_type("test.reason", match=match))) is active


@pytest.mark.parametrize(("reason", "one", "other"), [("XID79", True, False), ("Known", False, True)])
def test_reasons_that_are_another_fault_are_left_to_it(reason, one, other):
    match = {"type": "TestReason", "status": "True"}
    types = [
        fault_type("test.reason", match=[{"condition": match | {"notReason": "^Known$"}}]),
        fault_type("test.known", match=[{"condition": match | {"reason": "^Known$"}}]),
    ]
    the_node = node(faults={"test.reason": ("True", 0, reason)})
    assert ("test.reason" in found(the_node, *types), "test.known" in found(the_node, *types)) == (one, other)
    signs = {sign.fault for sign in Signs(types).of(the_node)}
    assert ("test.reason" in signs, "test.known" in signs) == (one, other), "the job loop reads them alike"


def test_a_bad_status_other_than_true_can_be_asked_for():
    match = [{"condition": {"type": "Ready", "status": "Unknown"}}, {"condition": {"type": "Ready", "status": "False"}}]
    lost = fault_type("test.lost", match=match)
    assert "test.lost" in found(node(ready="Unknown"), lost)
    assert "test.lost" in found(node(ready=False), lost)
    assert "test.lost" not in found(node(ready=True), lost)


def test_an_expression_matches_and_one_that_fails_matches_nothing():
    good = fault_type("test.labelled", match=[{"cel": "node.metadata.labels[?'x'].orValue('') == 'bad'"}])
    failing = fault_type("test.failing", match=[{"cel": "node.metadata.labels['absent'] == 'bad'"}])
    names = found(node(labels={"x": "bad"}), good, failing)
    assert "test.labelled" in names
    assert "test.failing" not in names
    assert "test.labelled" not in found(node(), good, failing)


def test_what_was_read_and_since_when_is_told():
    the_node = node(faults={"test.reboot": ("True", 90, "XID79", "fell off the bus")})
    active = found(the_node)["test.reboot"]
    assert (active.source, active.since) == ("condition/TestReboot", at(90))
    assert (active.reason, active.message) == ("XID79", "fell off the bus")
    assert active.identity == "condition/TestReboot@2027-03-01T08:01:30Z"


@pytest.mark.parametrize("order", [("NpdSays", "TestTwice"), ("TestTwice", "NpdSays")])
def test_of_two_conditions_that_show_one_fault_the_older_one_names_it_in_whatever_order_they_stand(order):
    since = {"TestTwice": "2027-03-01T08:00:30Z", "NpdSays": "2027-03-01T08:00:10Z"}
    conditions = [{"type": t, "status": "True", "lastTransitionTime": since[t]} for t in order]
    match = [{"condition": {"type": t, "status": "True"}} for t in since]
    active = found(node(conditions=conditions), fault_type("test.twice", match=match))["test.twice"]
    assert active.identity == "condition/NpdSays@2027-03-01T08:00:10Z"


def test_the_devices_of_a_fault_are_those_that_the_agent_names_for_it():
    devices = (
        '[{"uuid":"GPU-1","pci":"0000:3b:00","faults":["test.reboot"]},'
        '{"uuid":"","pci":"0000:5d:00","faults":["test.reboot","test.reset"]},'
        '{"uuid":"GPU-3","faults":["test.reset"]}]'
    )
    both = node(faults=["test.reboot", "test.service"], annotations={"sickbay.dev/devices": devices})
    assert found(both)["test.reboot"].devices == ("GPU-1", "0000:5d:00")
    assert found(both)["test.service"].devices == ()


def test_a_garbled_device_list_leaves_a_fault_of_the_node():
    the_node = node(faults=["test.reboot"], annotations={"sickbay.dev/devices": "[{"})
    assert found(the_node)["test.reboot"].devices == ()


def test_a_time_that_cannot_be_read_is_no_time():
    conditions = [{"type": "TestReboot", "status": "True", "lastTransitionTime": "yesterday"}]
    active = found(node(conditions=conditions))["test.reboot"]
    assert active.since is None
    assert active.identity == "condition/TestReboot"


def test_a_type_that_reads_the_agents_condition_has_the_devices_of_the_agents_fault():
    devices = '[{"uuid": "GPU-1", "pci": "0000:3b:00", "faults": ["gpu.xid.95"]}]'
    own = fault_type("site.card", match=[{"condition": {"type": "NvidiaXID95Error", "status": "True"}}])
    the_node = node(faults=["gpu.xid.95"], annotations={"sickbay.dev/devices": devices})
    assert found(the_node, own)["site.card"].devices == ("GPU-1",)


@pytest.mark.parametrize(
    ("match", "own", "gives_way"),
    [
        pytest.param({"type": "KernelDeadlock"}, ["site.x"], True, id="the-same-condition"),
        pytest.param({"type": "KernelDeadlock"}, [], False, id="one-that-is-set-aside-takes-nobodys-place"),
        pytest.param({"type": "KernelDeadlock", "reason": "^Other$"}, ["site.x"], False, id="where-it-does-not-match"),
        pytest.param({"type": "TestReboot"}, ["site.x"], False, id="another-condition"),
    ],
)
def test_a_built_in_entry_gives_way_to_peoples_own_type_for_the_same_condition(match, own, gives_way):
    types = build([fault_type("site.x", match=[{"condition": {"status": "True", **match}}])])
    assert types.own == {"site.x"}
    active = active_faults(node(faults=["kernel.deadlock", "test.reboot"]), types)
    assert ("kernel.deadlock" in displaced(active, own)) is gives_way
