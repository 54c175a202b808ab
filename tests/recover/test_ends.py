"""How one rank ended: exit codes and signals in one form, and who meant it to end."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from sickbay.api.core import Pod
from sickbay.recover.ends import SIGABRT, SIGKILL, SIGTERM, end_of, normalise

NOW = datetime(2027, 3, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((0, 0), (0, 0)),
        ((1, 0), (1, 0)),
        ((134, 0), (0, SIGABRT)),
        ((137, 0), (0, SIGKILL)),
        ((143, 0), (0, SIGTERM)),
        ((-6, 0), (0, SIGABRT)),
        ((-9, 0), (0, SIGKILL)),
        ((0, 15), (0, SIGTERM)),
        ((137, 9), (0, SIGKILL)),
        ((192, 0), (0, 64)),
        ((201, 0), (201, 0)),
        ((128, 0), (128, 0)),
    ],
    ids=lambda pair: f"{pair[0]}:{pair[1]}",
)
def test_a_signal_is_a_signal_however_it_is_written(given, expected):
    assert normalise(*given) == expected


def pod(phase="Failed", terminated=None, conditions=(), reason="", containers=None):
    statuses = containers if containers is not None else [{"name": "main", "state": {"terminated": terminated or {}}}]
    status = {"phase": phase, "conditions": list(conditions), "containerStatuses": statuses, "reason": reason}
    meta = {"name": "llm-1-x", "namespace": "default", "uid": "u-1"}
    return msgspec.convert({"metadata": meta, "spec": {"nodeName": "n1"}, "status": status}, Pod)


def end(**facts):
    return end_of(pod(**facts), "1", 1, 0, NOW)


def disruption(reason):
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "lastTransitionTime": "2027-03-01T07:59:00Z",
    }


@pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded", ""])
def test_a_pod_that_has_not_failed_has_no_end(phase):
    assert end(phase=phase, terminated={"exitCode": 1}) is None


def test_an_exit_carries_code_moment_node_and_log():
    found = end(terminated={"exitCode": 1, "finishedAt": "2027-03-01T07:58:00Z", "message": "boom"})
    assert (found.how, found.code, found.signal, found.node, found.log) == ("Exited", 1, 0, "n1", "boom")
    assert found.at == datetime(2027, 3, 1, 7, 58, tzinfo=UTC)


@pytest.mark.parametrize(
    ("facts", "how"),
    [
        ({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, "OutOfMemory"),
        ({"terminated": {"exitCode": 137, "reason": "Error"}}, "Exited"),
        ({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}, "NodeLost"),
        ({"terminated": {"exitCode": 143}, "conditions": [disruption("PreemptionByScheduler")]}, "Disrupted"),
        ({"containers": [], "reason": "UnexpectedAdmissionError"}, "Refused"),
        ({"containers": [], "reason": "OutOfnvidia.com/gpu"}, "Refused"),
        ({"containers": [], "reason": "Evicted"}, "Disrupted"),
    ],
    ids=["oom", "killed", "machine-down", "preempted", "admission", "no-gpu", "evicted"],
)
def test_what_ended_it_is_told_apart(facts, how):
    assert end(**facts).how == how


@pytest.mark.case("P145")
def test_a_graceful_shutdown_of_the_node_is_somebodys_decision():
    found = end(containers=[], reason="Terminated")
    assert found.how == "Disrupted"
    assert found.terminated


def test_a_kill_alone_is_no_lack_of_memory():
    assert "out of memory" not in end(terminated={"exitCode": 137}).words()


def test_the_container_that_failed_first_counts_not_the_sidecar_that_was_stopped():
    first = {"exitCode": 3, "finishedAt": "2027-03-01T07:58:00Z"}
    later = {"exitCode": 143, "finishedAt": "2027-03-01T07:58:30Z"}
    containers = [
        {"name": "sidecar", "state": {"terminated": later}},
        {"name": "main", "state": {"terminated": first}},
    ]
    assert end(containers=containers).code == 3


@pytest.mark.parametrize("text", ["", "yesterday"])
def test_a_moment_that_cannot_be_read_is_now(text):
    assert end(terminated={"exitCode": 1, "finishedAt": text}).at == NOW
