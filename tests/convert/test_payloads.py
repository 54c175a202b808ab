"""What the decoders of clouds' payloads read, and that nothing they are given breaks them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.convert import identity, payload
from sickbay.convert.clouds import alibaba_ecs, alibaba_lingjun, aws, azure, gcp, oci
from sickbay.convert.notice import Notice, Undecodable, moment
from tests.convert.made import node


def body(value: Any) -> bytes:
    return json.dumps(value).encode()


TIMES = [
    ("2019-04-09T12:18:26Z", "2019-04-09T12:18:26Z"),
    ("20190409T121826.922+0800", "2019-04-09T04:18:26Z"),
    ("2026-01-05T10:00:00+08:00", "2026-01-05T02:00:00Z"),
    ("2026-01-05 10:00:00", "2026-01-05T02:00:00Z"),
    ("21 Jan 2019 09:00:43 GMT", "2019-01-21T09:00:43Z"),
    ("Mon, 19 Sep 2016 18:29:47 GMT", "2016-09-19T18:29:47Z"),
    (1554783506000, "2019-04-09T04:18:26Z"),
    ("1554783506000", "2019-04-09T04:18:26Z"),
    *[(nothing, None) for nothing in ("", None, "soon", True, [], "9" * 40, float("nan"))],
]


@pytest.mark.parametrize(("given_", "read"), TIMES, ids=[str(row[0])[:40] for row in TIMES])
def test_times_in_every_form_and_none_where_there_is_none(given_: Any, read: str | None) -> None:
    """aws-node-termination-handler#315: an event without an end time was a parse error."""
    assert moment(given_) == read


def test_ecs_lists_open_events_with_their_reasons() -> None:
    item = {
        "EventId": "e-1", "InstanceId": "i-bp1", "EventType": {"Code": 1, "Name": "SystemMaintenance.Reboot"},
        "EventCycleStatus": {"Code": 24, "Name": "Scheduled"}, "NotBefore": "2027-03-02T08:00:00Z",
        "EventPublishTime": "2027-03-01T08:00:00Z",
    }  # fmt: skip
    answer = {"RequestId": "r", "InstanceSystemEventSet": {"InstanceSystemEventType": [item]}}
    assert alibaba_ecs.listed(body(answer)) == [
        Notice(
            source="alibaba-ecs", id="e-1", type="SystemMaintenance.Reboot", phase="Scheduled", resource="i-bp1",
            not_before="2027-03-02T08:00:00Z", published="2027-03-01T08:00:00Z",
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"RequestId": "r"},
        {"RequestId": "r", "InstanceSystemEventSet": {}},
        {"InstanceSystemEventSet": {"InstanceSystemEventType": []}},
    ],
)
def test_an_odd_200_is_no_empty_list(answer: Any) -> None:
    with pytest.raises(Undecodable):
        alibaba_ecs.listed(body(answer))


def test_of_a_pushed_message_only_the_content_counts() -> None:
    """The vendor's sample: id and name are the same in both messages (cloud-events 4.8)."""
    envelope = {"id": "2256A988", "name": "Instance:SystemMaintenance.Reboot:Scheduled", "product": "ECS"}
    states = []
    for status in ("Scheduled", "Avoided"):
        content = {"eventId": "e-t4n", "instanceId": "i-bp", "eventType": "SystemMaintenance.Reboot"}
        (found,) = alibaba_ecs.pushed(body({**envelope, "content": {**content, "eventStatus": status}}))
        states.append((found.id, found.phase))
    assert states == [("e-t4n", "Scheduled"), ("e-t4n", "Avoided")]
    assert alibaba_ecs.pushed(body({**envelope, "content": {"state": "Deleted"}})) == []


def test_a_lingjun_node_is_in_one_chain_or_at_the_end_of_all() -> None:
    nodes = [
        {"NodeId": "e01-a", "OperatingState": "ClusterNodeRepairPendingApproval"},
        {"NodeId": "e01-b", "OperatingState": "ClusterNodeRecovering"},
        {"NodeId": "e01-c", "OperatingState": "Using"},
    ]
    found = alibaba_lingjun.nodes(body({"RequestId": "r", "Nodes": nodes}))
    assert [(n.id, n.phase) for n in found if n.resource == "e01-a"] == [
        ("e01-a/RepairMachine", "ClusterNodeRepairPendingApproval")
    ]
    assert [n for n in found if n.resource == "e01-b"] == []
    assert {n.type for n in found if n.resource == "e01-c"} == set(alibaba_lingjun.CHAINS)
    report = {"ReportId": "i-123", "NodeId": "e01-a", "Status": "FaultConfirmed", "CreateTime": "2026-08-01 10:00:00"}
    (made,) = alibaba_lingjun.reports(body({"RequestId": "r", "Reports": [report]}))
    assert (made.phase, made.published) == ("FaultConfirmed", "2026-08-01T02:00:00Z")


def test_ended_events_of_ec2_are_known_by_their_description() -> None:
    events = [
        {"InstanceEventId": "ie-1", "Code": "system-reboot", "Description": "[Completed] scheduled reboot"},
        {"InstanceEventId": "ie-2", "Code": "system-reboot", "Description": "[Canceled] scheduled reboot"},
        {"InstanceEventId": "ie-3", "Code": "instance-stop", "Description": "[x] stop", "NotBefore": ""},
    ]
    found = aws.instance_status({"InstanceStatuses": [{"InstanceId": "i-0abc", "Events": events}]})
    assert [(n.id, n.phase) for n in found] == [("ie-1", "completed"), ("ie-2", "canceled"), ("ie-3", "active")]


@pytest.mark.parametrize(("status", "said"), [(404, []), (401, None), (500, None), (503, None), (403, None)])
def test_only_404_of_the_metadata_service_means_none(status: int, said: Any) -> None:
    """aws-node-termination-handler#146, #229."""
    assert aws.metadata(status, b"<html>", "i-0abc") == said


def test_the_metadata_services_own_time_format() -> None:
    events = [{"EventId": "e", "Code": "system-reboot", "State": "active", "NotBefore": "21 Jan 2019 09:00:43 GMT"}]
    (found,) = aws.metadata(200, body(events), "i-0abc", "n-1") or ()
    assert (found.node, found.not_before) == ("n-1", "2019-01-21T09:00:43Z")
    with pytest.raises(Undecodable):
        aws.metadata(200, b"<html>proxy</html>", "i-0abc")


def test_a_health_event_ends_for_each_entity_on_its_own() -> None:
    """cloud-custodian#911: only the first affected entity was read."""
    states = ["RESOLVED", "IMPAIRED", "UNIMPAIRED", "PENDING"]
    entities = [{"entityValue": f"i-{k}", "status": s} for k, s in enumerate(states * 60)]
    detail = {"eventArn": "arn:1", "eventTypeCode": "AWS_EC2_X", "statusCode": "closed", "affectedEntities": entities}
    found = aws.health(body({"source": "aws.health", "detail": detail}))
    assert len({n.id for n in found}) == 240
    assert [n.phase for n in found[:4]] == ["resolved", "failed", "resolved", "open"]


@pytest.mark.case("P042")
def test_azure_events_of_other_machines_are_left_out_and_each_machine_is_an_event() -> None:
    """AKS#3528 (Preempt); every machine of a set sees the events of all."""
    event = {
        "EventId": "A3", "EventType": "Preempt", "EventStatus": "Scheduled", "Resources": ["vm-08", "VM-09", "vm-10"],
        "NotBefore": "Mon, 01 Mar 2027 08:00:30 GMT",
    }  # fmt: skip
    document = {"DocumentIncarnation": 4, "Events": [event]}
    found = azure.scheduled_events(body(document), [("vm-08", "n-8"), ("vm-09", "n-9")])
    assert [(n.id, n.node, n.not_before) for n in found] == [
        ("A3/vm-08", "n-8", "2027-03-01T08:00:30Z"),
        ("A3/VM-09", "n-9", "2027-03-01T08:00:30Z"),
    ]
    assert len(azure.scheduled_events(body(document))) == 3


@pytest.mark.case("P040")
def test_an_azure_freeze_that_has_started_has_no_time() -> None:
    event = {"EventId": "A1", "EventType": "Freeze", "EventStatus": "Started", "Resources": ["vm"], "NotBefore": ""}
    (found,) = azure.scheduled_events(body({"Events": [event]}))
    assert (found.phase, found.not_before) == ("Started", None)
    with pytest.raises(Undecodable):
        azure.scheduled_events(b"{}")


def test_gcp_has_no_ids_so_the_numeric_instance_is_one() -> None:
    maintenance = {
        "type": "UNSCHEDULED", "maintenanceStatus": "PENDING", "canReschedule": True,
        "maintenanceReasons": ["PLANNED_UPDATE", "FAILURE_GPU_XID"], "windowStartTime": "2027-03-08T08:00:00Z",
    }  # fmt: skip
    instance = {"id": "4242", "name": "gpu-1", "resourceStatus": {"upcomingMaintenance": maintenance}}
    (found,) = gcp.upcoming(instance)
    assert (found.id, found.type, found.phase) == ("4242", "FAILURE_GPU_XID", "PENDING canReschedule")
    moved = {**maintenance, "windowStartTime": "2027-03-01T08:00:00Z"}
    assert gcp.upcoming({"id": "4242", "resourceStatus": {"upcomingMaintenance": moved}})[0].key == found.key
    assert gcp.upcoming({"id": 4242, "resourceStatus": {}}) == []
    with pytest.raises(Undecodable):
        gcp.upcoming({"id": "gpu-1"})


@pytest.mark.parametrize(
    ("status", "text", "said"),
    [
        (200, b"NONE", 0),
        (200, b"FALSE", 0),
        (200, b'{"error": "no notifications have been received yet"}', 0),
        (200, b'{"can_reschedule": "true", "maintenance_status": "PENDING", "type": "SCHEDULED"}', 1),
        (503, b"NONE", None),
        (404, b"", None),
    ],
)
def test_gcps_metadata_server_decides_with_200_only(status: int, text: bytes, said: int | None) -> None:
    """k8s-node-termination-handler#4: FALSE beside NONE."""
    found = gcp.metadata(status, text, "4242", "n-1")
    assert (None if found is None else len(found)) == said


def test_oci_lists_maintenance_events() -> None:
    item = {"id": "ocid1.e", "instanceId": "ocid1.instance.oc1..x", "lifecycleState": "SCHEDULED",
            "instanceAction": "REBOOT_MIGRATION", "timeWindowStart": "2027-03-02T00:00:00+00:00"}  # fmt: skip
    (found,) = oci.maintenance_events(body({"items": [item]}))
    assert (found.type, found.phase, found.not_before) == ("REBOOT_MIGRATION", "SCHEDULED", "2027-03-02T00:00:00Z")


PROVIDER_IDS = [
    ("alibaba-ecs", "i-bp1abc", "cn-hangzhou.i-bp1abc"),
    ("alibaba-ecs", "i-bp1abc", "alicloud://cn-hangzhou.i-bp1abc"),
    ("aws", "i-0abc", "aws:///us-west-2a/i-0abc"),
    ("oci", "ocid1.instance.oc1..x", "ocid1.instance.oc1..x"),
    ("oci", "ocid1.instance.oc1..x", "oci://ocid1.instance.oc1..x"),
    ("azure", "V_7", "azure:///subscriptions/S/resourceGroups/RG/providers/Microsoft.Compute/virtualMachineScaleSets/V/virtualMachines/7"),
    ("azure", "vm-07", "azure:///subscriptions/S/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/VM-07"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "resource", "provider"), PROVIDER_IDS, ids=[row[2][-30:] for row in PROVIDER_IDS])
def test_a_machine_is_found_by_its_provider_id(source: str, resource: str, provider: str) -> None:
    by_key, by_name = identity.index([node(provider=provider), node("n-2", "u-2", provider="aws:///z/i-0other")])
    wanted = Notice(source=source, id="e", type="t", phase="p", resource=resource)
    found = identity.find(wanted, by_key, by_name)
    assert found is not None and found.name == "n-1"
    assert identity.find(Notice(source=source, id="e", type="t", phase="p", resource="other"), by_key, by_name) is None


def test_gcp_machines_are_found_by_number_only_and_two_of_one_name_are_nobody() -> None:
    """kubernetes/cloud-provider-gcp#589: a name comes again; google/cloud-forensics-utils#439: and in two zones."""
    numbered = node(provider="gce://p/z/gpu-1", annotations={"container.googleapis.com/instance_id": "4242"})
    by_key, by_name = identity.index([numbered])
    assert (
        identity.find(Notice(source="gcp", id="e", type="t", phase="p", resource="4242"), by_key, by_name) is numbered
    )
    assert identity.find(Notice(source="gcp", id="e", type="t", phase="p", resource="gpu-1"), by_key, by_name) is None
    twins = identity.index([node("a", "u-a", provider="aws:///z/i-1"), node("b", "u-b", provider="aws:///y/i-1")])
    assert identity.find(Notice(source="aws", id="e", type="t", phase="p", resource="i-1"), *twins) is None


DECODERS: dict[str, Callable[[bytes], Any]] = {
    "ecs": alibaba_ecs.listed,
    "ecs pushed": alibaba_ecs.pushed,
    "lingjun nodes": alibaba_lingjun.nodes,
    "lingjun reports": alibaba_lingjun.reports,
    "aws": lambda data: aws.instance_status(payload.decode(data)),
    "aws metadata": lambda data: aws.metadata(200, data, "i"),
    "aws health": aws.health,
    "azure": azure.scheduled_events,
    "gcp": lambda data: gcp.upcoming(payload.decode(data)),
    "gcp metadata": lambda data: gcp.metadata(200, data, "4242"),
    "oci": oci.maintenance_events,
}
KEYS = st.sampled_from(
    ["RequestId", "Nodes", "NodeId", "OperatingState", "InstanceSystemEventSet", "InstanceSystemEventType", "EventId",
     "EventType", "EventCycleStatus", "Name", "NotBefore", "content", "eventId", "name", "InstanceStatuses", "Events",
     "InstanceId", "InstanceEventId", "Description", "detail", "eventArn", "affectedEntities", "entityValue", "status",
     "Resources", "id", "resourceStatus", "upcomingMaintenance", "maintenanceReasons", "items", "Reports", "ReportId",
     "canReschedule", "windowStartTime", "error", "x"]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6))


@pytest.mark.parametrize("decoder", DECODERS)
@given(data=st.one_of(JSON.map(body), st.binary(max_size=40)))
def test_no_payload_breaks_a_decoder(decoder: str, data: bytes) -> None:
    try:
        found = DECODERS[decoder](data)
    except Undecodable as error:
        assert str(error)
        return
    for each in found or ():
        assert each.id and len(each.id) <= 512 and len(each.type) <= 512 and len(each.phase) <= 512


def test_a_body_that_is_too_large_is_not_read() -> None:
    with pytest.raises(Undecodable, match="more than"):
        payload.decode(b" " * (payload.BODY_MAX + 1))
    with pytest.raises(Undecodable, match="entries"):
        azure.scheduled_events(body({"Events": [{}] * (payload.ENTRIES_MAX + 1)}))
