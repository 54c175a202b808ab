"""Validate: every check by name, a soak that starts anew on a relapse and survives a restart, a ceiling."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.clock import rfc3339
from tests.execute.kit import REPAIRS, Bench

CLEARED = [{"type": "test.fault", "clearedAt": "2027-03-01T07:00:00Z"}]
SOAK = {"args": {"soak": "2m"}}


def opened(timeout: float = 1800, **more: Any) -> Bench:
    bench = Bench()
    bench.open("Validate", timeout=timeout, **{"faults": CLEARED, "current": SOAK, **more})
    return bench


def daemon(bench: Bench, ready: str, phase: str = "Running") -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "plugin", "uid": "d", "controller": True}
    meta = {"name": "plugin-x", "ownerReferences": [owner]}
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    if bench.store.find("pods", "plugin-x", "train") is None:
        bench.store.create("pods", {"metadata": meta, "spec": spec}, "train")
    bench.store.patch("pods", "plugin-x", {"status": status}, "application/merge-patch+json", "train",
                      subresource="status")  # fmt: skip


def uncleared(bench: Bench, cleared: str | None) -> None:
    bench.merge({"spec": {"faults": [{"type": "test.fault", "clearedAt": cleared}]}}, REPAIRS, "r1")


def blind(bench: Bench, status: str) -> None:
    bench.status(conditions=[{"type": "DetectionBlind", "status": status}])


def offered(bench: Bench, number: str) -> None:
    bench.status(allocatable={"nvidia.com/gpu": number})


CHECKS = {
    "not Ready": (lambda b: b.ready("False"), lambda b: b.ready("True")),
    "the node is not Ready": (lambda b: b.ready("Unknown"), lambda b: b.ready("True")),
    "not proven gone: test.fault": (
        lambda b: uncleared(b, None),
        lambda b: uncleared(b, rfc3339(b.clock.now())),
    ),
    "7 of 8 nvidia.com/gpu are offered": (lambda b: offered(b, "7"), lambda b: offered(b, "8")),
    "detection is blind": (lambda b: blind(b, "Unknown"), lambda b: blind(b, "False")),
    "DaemonSet pods not ready: train/plugin-x": (lambda b: daemon(b, "False"), lambda b: daemon(b, "True")),
}


@pytest.mark.parametrize("text", CHECKS)
async def test_each_check_is_named_and_restarts_the_soak(text: str) -> None:
    breaks, heals = CHECKS[text]
    bench = opened()
    shift = bench.shift()
    await shift.look()
    assert "all checks pass" in bench.report["message"]
    await bench.clock.sleep(110)
    breaks(bench)
    await shift.look()
    assert text in bench.report["message"]
    heals(bench)
    healed = bench.clock.monotonic()
    assert (await shift.to_end())["state"] == "Done"
    assert 120 <= bench.clock.monotonic() - healed <= 132


async def test_a_node_that_is_well_passes_after_its_soak_and_not_before() -> None:
    bench = opened()
    assert (await bench.shift().to_end())["state"] == "Done"
    assert 120 <= bench.clock.monotonic() <= 122
    assert bench.report["proof"]["bootID"] == "boot-1"


async def test_a_relapse_between_two_writes_is_not_lost() -> None:
    """Well, bad and well again within seconds: the soak begins at the last recovery."""
    bench = opened()
    shift = bench.shift()
    await shift.look()
    await bench.clock.sleep(100)
    for status in ("False", "True"):
        bench.ready(status)
        await shift.look()
        await bench.clock.sleep(1)
    again = bench.clock.monotonic()
    await shift.to_end()
    assert bench.clock.monotonic() - again >= 118


async def test_a_fault_that_came_and_went_between_two_looks_restarts_the_soak() -> None:
    bench = opened()
    shift = bench.shift()
    await shift.look()
    await bench.clock.sleep(100)
    uncleared(bench, rfc3339(bench.clock.now()))
    await shift.to_end()
    assert bench.clock.monotonic() >= 220


async def test_the_soak_survives_a_restart_of_the_controller() -> None:
    bench = opened()
    await bench.shift().look()
    await bench.clock.sleep(100)
    await bench.shift().to_end()
    assert 120 <= bench.clock.monotonic() <= 125


async def test_a_node_that_is_not_well_at_the_ceiling_has_failed_and_the_checks_are_named() -> None:
    bench = opened(timeout=300)
    bench.ready("False")
    offered(bench, "0")
    report = await bench.shift().to_end()
    assert report["state"] == "Failed"
    assert "not Ready" in report["message"]
    assert "0 of 8" in report["message"]
    assert 300 <= bench.clock.monotonic() <= 312


async def test_the_old_boot_does_not_pass_after_a_proven_reboot() -> None:
    attempt = {"n": 1, "action": "RebootNode", "state": "Done", "proof": {"bootBefore": "boot-1", "bootID": "boot-2"}}
    bench = opened(states={"Repair": {"attempts": [attempt]}})
    shift = bench.shift()
    await shift.look()
    assert "the boot from before the repair" in bench.report["message"]
    bench.boots("boot-3")  # a later one than was proven is fine
    assert (await shift.to_end())["state"] == "Done"


async def test_none_of_none_is_not_all_of_them() -> None:
    """A kubelet that has just started offers 0 of 0 devices until the device plug-in has registered."""
    proof = {"nvidia.com/gpu": "8", "at": "x"}
    report = {"attempt": 1, "planGeneration": 1, "state": "Done", "proof": proof}
    bench = opened(states={"Quarantine": {"report": report}})
    bench.status(capacity={"nvidia.com/gpu": "0"}, allocatable={"nvidia.com/gpu": "0"})
    shift = bench.shift()
    await shift.look()
    assert "0 of 8 nvidia.com/gpu are offered" in bench.report["message"]
    bench.status(capacity={"nvidia.com/gpu": "8"}, allocatable={"nvidia.com/gpu": "8"})
    assert (await shift.to_end())["state"] == "Done"


async def test_a_finished_pod_of_a_daemon_set_is_not_waited_for() -> None:
    bench = opened()
    daemon(bench, "False", phase="Failed")
    assert (await bench.shift().to_end())["state"] == "Done"


REBOOTED = {"Repair": {"attempts": [{"n": 1, "action": "RebootNode", "state": "Done", "proof": {"bootBefore": "b0"}}]}}
REFUSED = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}


def dead(bench: Bench, name: str, owner: str, status: Any) -> None:
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "u", "controller": True}] if owner else []
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    bench.store.create("pods", {"metadata": {"name": name, "ownerReferences": owners}, "spec": spec}, "train")
    bench.store.patch("pods", name, {"status": status}, "application/merge-patch+json", "train", subresource="status")


@pytest.mark.case("P135")
async def test_pods_that_a_boot_left_dead_are_removed_once_when_the_devices_are_back() -> None:
    bench = opened(states=REBOOTED)
    offered(bench, "0")
    dead(bench, "api-1", "ReplicaSet", REFUSED)
    dead(bench, "job-1", "Job", REFUSED)
    dead(bench, "bare", "", REFUSED)
    dead(bench, "other", "ReplicaSet", {"phase": "Failed", "reason": "Evicted"})
    dead(bench, "lives", "ReplicaSet", {"phase": "Running"})
    shift = bench.shift()
    await shift.look()
    assert len(bench.store.list("pods", "train")) == 5, "a new one would be refused as well"
    offered(bench, "8")
    await shift.look()
    left = {pod["metadata"]["name"] for pod in bench.store.list("pods", "train") if not dying(pod)}
    assert left == {"job-1", "bare", "other", "lives"}
    assert [message for reason, message in await shift.events() if reason == "DeadPodsRemoved"] == [
        "removed pods that were refused before the device plug-in was back: train/api-1"
    ]
    dead(bench, "api-2", "ReplicaSet", REFUSED)
    assert (await shift.to_end())["state"] == "Done"
    assert not dying(bench.store.get("pods", "api-2", "train")), "once: what is refused now has another reason"


@pytest.mark.case("P135")
async def test_without_a_boot_of_ours_dead_pods_are_not_ours_to_remove() -> None:
    bench = opened()
    dead(bench, "api-1", "ReplicaSet", REFUSED)
    assert (await bench.shift().to_end())["state"] == "Done"
    assert not dying(bench.store.get("pods", "api-1", "train"))


def dying(pod: Any) -> bool:
    return "deletionTimestamp" in pod["metadata"]


async def test_a_quiet_validation_asks_the_server_once_in_ten_seconds() -> None:
    bench = opened(current={"args": {"soak": "1h"}}, timeout=7200)
    shift = bench.shift()
    await shift.look()
    bench.wire.asked.clear()
    for _ in range(60):
        await bench.clock.sleep(await shift.look() or 0)
    assert len(bench.wire.asked) <= bench.clock.monotonic() / 10
