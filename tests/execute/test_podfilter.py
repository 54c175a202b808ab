"""What a drain does with each pod."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from sickbay.api.core import Node, Pod
from sickbay.api.repair_rule import DrainOptions
from sickbay.clock import parse_time, rfc3339
from sickbay.execute.accelerators import counts, is_accelerator
from sickbay.execute.podfilter import Drain, Fate, judge, unreachable

START = parse_time("2027-03-01T08:00:00Z")
TOLERATES_ALL = [{"operator": "Exists"}]


def pod(*, spec: Any = None, phase: str = "Running", owner: str = "ReplicaSet", **meta: Any) -> Pod:
    made = {"name": "p", "namespace": "train", "uid": "u", "creationTimestamp": rfc3339(START - timedelta(hours=1))}
    owners = [{"kind": owner, "name": "o", "controller": True}]
    body = {"metadata": {**made, "ownerReferences": owners, **meta}, "spec": spec or {}, "status": {"phase": phase}}
    return msgspec.convert(body, Pod)


def drain(after: float = 60, dead: bool = False, **options: Any) -> Drain:
    now = START + timedelta(seconds=after)
    return Drain(msgspec.convert(options, DrainOptions), START, now, dead)


def fenced() -> Drain:
    return replace(drain(dead=True), fenced=True)


def gpus(resource: str, amount: Any = "1", where: str = "limits") -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {where: {resource: amount}}}]}


DELETING = {"deletionTimestamp": rfc3339(START)}
LONG_AGO = {"deletionTimestamp": rfc3339(START - timedelta(hours=2))}
YOUNG = {"creationTimestamp": rfc3339(START + timedelta(seconds=30))}
MIRROR = {"annotations": {"kubernetes.io/config.mirror": "x"}}
WAITING = {"labels": {"sickbay.dev/wait-for-completion": "true"}}
MINE = {"labels": {"app": "mine"}}
SELECT = {"selector": {"matchLabels": {"app": "mine"}}}
CRITICAL = {"priorityClassName": "system-cluster-critical"}


@pytest.mark.parametrize(
    ("subject", "terms", "fate"),
    [
        (pod(), drain(), Fate.GOES),
        (pod(owner="DaemonSet"), drain(), Fate.LEFT),
        (pod(**MIRROR), drain(), Fate.LEFT),
        (pod(phase="Succeeded"), drain(), Fate.LEFT),
        (pod(phase="Failed"), drain(), Fate.LEFT),
        (pod(phase="Failed", **DELETING, finalizers=["example.com/keep"]), drain(), Fate.ENDING),
        (pod(phase="Failed", **DELETING, finalizers=["batch.kubernetes.io/job-tracking"]), drain(), Fate.LEFT),
        (pod(phase="Failed", **LONG_AGO, finalizers=["example.com/keep"]), drain(), Fate.LEFT),
        (pod(phase="Failed", **DELETING, finalizers=["example.com/keep"]), drain(dead=True), Fate.LEFT),
        (pod(phase="Failed", finalizers=["example.com/keep"]), drain(), Fate.LEFT),
        (pod(phase="Pending"), drain(), Fate.GOES),
        (pod(phase="Unknown"), drain(), Fate.GOES),
        (pod(**DELETING), drain(), Fate.ENDING),
        (pod(**DELETING), drain(dead=True), Fate.LEFT),
        (pod(**DELETING), fenced(), Fate.ENDING),
        (pod(spec=CRITICAL), drain(), Fate.PROTECTED),
        (pod(spec={"priorityClassName": "system-node-critical"}, **DELETING), drain(), Fate.PROTECTED),
        (pod(**WAITING), drain(), Fate.WAITS),
        (pod(labels={"sickbay.dev/wait-for-completion": "false"}), drain(), Fate.GOES),
        (pod(**WAITING, **DELETING), drain(), Fate.ENDING),
        (pod(**MINE), drain(waitFor=[{**SELECT, "timeout": "2m"}], after=119), Fate.WAITS),
        (pod(**MINE), drain(waitFor=[{**SELECT, "timeout": "2m"}], after=120), Fate.GOES),
        (pod(**MINE), drain(waitFor=[SELECT], after=10**6), Fate.WAITS),
        (pod(), drain(waitFor=[SELECT]), Fate.GOES),
        (pod(), drain(waitFor=[{"selector": {}}]), Fate.GOES),
        (pod(**MINE), drain(protect=[SELECT]), Fate.PROTECTED),
        (pod(), drain(protect=[SELECT]), Fate.GOES),
        (pod(), drain(protect=[{}]), Fate.GOES),
        (pod(), drain(protect=[{"namespaces": ["train"]}]), Fate.PROTECTED),
        (pod(**MINE), drain(protect=[{**SELECT, "namespaces": ["other"]}]), Fate.GOES),
        (pod(spec={"priorityClassName": "gold"}), drain(protect=[{"priorityClasses": ["gold"]}]), Fate.PROTECTED),
        (pod(spec={"tolerations": TOLERATES_ALL}), drain(), Fate.GOES),
        (pod(spec={"tolerations": TOLERATES_ALL}, **YOUNG), drain(), Fate.LEFT),
        (pod(spec={"tolerations": TOLERATES_ALL}, creationTimestamp=rfc3339(START)), drain(), Fate.LEFT),
        (pod(**YOUNG), drain(), Fate.GOES),
        (pod(), drain(scope="GPUPods"), Fate.LEFT),
        (pod(**DELETING), drain(scope="GPUPods"), Fate.LEFT),
        (pod(spec=gpus("nvidia.com/gpu")), drain(scope="GPUPods"), Fate.GOES),
        (pod(spec=gpus("nvidia.com/gpu"), **DELETING), drain(scope="GPUPods"), Fate.ENDING),
        (pod(spec=gpus("nvidia.com/gpu", "0")), drain(scope="GPUPods"), Fate.LEFT),
        (pod(spec={"resourceClaims": [{"name": "gpu"}]}), drain(scope="GPUPods"), Fate.GOES),
        (pod(spec={"resourceClaims": None}), drain(scope="GPUPods"), Fate.LEFT),
    ],
)  # fmt: skip
def test_the_fate_of_a_pod(subject: Pod, terms: Drain, fate: Fate) -> None:
    assert judge(subject, terms).fate is fate


@pytest.mark.case("N11")
def test_a_card_is_not_free_while_a_pod_that_holds_it_is_terminating_or_not_ready() -> None:
    terms = drain(scope="GPUPods")
    holders = [pod(spec=gpus("nvidia.com/gpu"), **more) for more in ({}, DELETING, {"name": "not-ready"})]
    assert all(judge(each, terms).fate in (Fate.GOES, Fate.ENDING) for each in holders)


@pytest.mark.parametrize(
    ("asked", "bounds", "dead", "seconds"),
    [
        (None, {}, False, 30),
        (0, {}, False, 1),
        (600, {}, False, 600),
        (3600, {}, False, 600),
        (3600, {"max": "2h"}, False, 3600),
        (5, {"min": "20s"}, False, 20),
        (50, {"min": "1m", "max": "30s"}, False, 60),
        (3600, {}, True, 1),
        (None, {"min": "1m"}, True, 1),
    ],
)
@pytest.mark.case("R26")
def test_the_grace_a_pod_gets(asked: int | None, bounds: dict[str, str], dead: bool, seconds: int) -> None:
    spec = {} if asked is None else {"terminationGracePeriodSeconds": asked}
    assert judge(pod(spec=spec), drain(dead=dead, grace=bounds)).grace == seconds


@pytest.mark.parametrize(
    ("left", "bounds", "seconds"),
    [(30, {}, 30), (3600, {}, 600), (1.9, {}, 1), (0, {}, 1), (-60, {}, 1), (10, {"min": "1m"}, 10)],
)
@pytest.mark.case("P042")
def test_no_grace_is_longer_than_the_time_until_the_provider_takes_the_machine(
    left: float, bounds: dict[str, str], seconds: int
) -> None:
    terms = drain(grace=bounds)
    terms = replace(terms, before=terms.now + timedelta(seconds=left))
    assert judge(pod(spec={"terminationGracePeriodSeconds": 600}), terms).grace == seconds


def test_a_pod_that_waits_says_until_when() -> None:
    limited = judge(pod(**MINE), drain(waitFor=[{**SELECT, "timeout": "2m"}]))
    assert limited.until == START + timedelta(minutes=2)
    assert judge(pod(**WAITING), drain()).until is None


def test_the_lowest_priority_of_the_rules_that_match_counts() -> None:
    order = [{**SELECT, "priority": 5}, {"selector": {"matchLabels": {"tier": "x"}}, "priority": -3}]
    assert judge(pod(), drain(order=order)).priority == 0
    assert judge(pod(**MINE), drain(order=order)).priority == 5
    assert judge(pod(labels={"app": "mine", "tier": "x"}), drain(order=order)).priority == -3
    assert judge(pod(**MINE, **DELETING), drain(order=order)).priority == 5


@pytest.mark.parametrize(
    ("status", "lost"), [("True", False), ("False", False), ("Unknown", True), (None, True)], ids=str
)
def test_a_node_is_unreachable_when_the_control_plane_has_lost_its_kubelet(status: str | None, lost: bool) -> None:
    conditions = [] if status is None else [{"type": "Ready", "status": status}]
    assert unreachable(msgspec.convert({"status": {"conditions": conditions}}, Node)) is lost


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/mig-1g.5gb", True),
        ("amd.com/gpu", True),
        ("gpu.intel.com/i915", True),
        ("habana.ai/gaudi", True),
        ("huawei.com/Ascend910", True),
        ("aws.amazon.com/neuroncore", True),
        ("google.com/tpu", True),
        ("aliyun.com/gpu-mem", True),
        ("cpu", False),
        ("gpu", False),
        ("example.com/input", False),
        ("rdma/hca_shared", False),
        ("hugepages-2Mi", False),
    ],
)
def test_which_resources_are_accelerators(resource: str, expected: bool) -> None:
    assert is_accelerator(resource) is expected


def test_accelerators_are_counted_and_the_record_has_room_for_them() -> None:
    capacity = {"cpu": "8", "nvidia.com/gpu": 8} | {f"nvidia.com/mig-{n}g": "1" for n in range(30)}
    found = counts(msgspec.convert({"status": {"capacity": capacity}}, Node))
    assert found["nvidia.com/gpu"] == "8"
    assert "cpu" not in found
    assert len(found) == 12


def given(*devices: str, asked: str = "2") -> Pod:
    """A pod with GPUs, as its kubelet reports them."""
    resources = [{"resourceID": device, "health": "Healthy"} for device in devices]
    raw = msgspec.to_builtins(pod(spec=gpus("nvidia.com/gpu", asked)))
    entry = {"name": "nvidia.com/gpu", "resources": resources}
    raw["status"]["containerStatuses"] = [{"name": "c", "allocatedResourcesStatus": [entry]}]
    return msgspec.convert(raw, Pod)


@pytest.mark.case("P072")
@pytest.mark.parametrize(
    ("the_pod", "sick", "fate"),
    [
        (given("GPU-1", "GPU-2"), {"GPU-2"}, Fate.GOES),
        (given("GPU-1", "GPU-2"), {"GPU-3"}, Fate.LEFT),
        (given("GPU-1", "GPU-2"), set(), Fate.GOES),
        (given("GPU-1", asked="2"), {"GPU-3"}, Fate.GOES),
        (given("0", "1"), {"GPU-3"}, Fate.GOES),
        (given("GPU-3::2", asked="1"), {"GPU-3"}, Fate.GOES),
        (pod(spec=gpus("nvidia.com/gpu")), {"GPU-3"}, Fate.GOES),
    ],
    ids=["has it", "has others", "nobody knows which is sick", "shows fewer than it asks for", "shows indexes",
         "has a share of it", "shows nothing"],
)  # fmt: skip
def test_of_gpu_pods_those_that_surely_have_other_cards_stay(the_pod: Pod, sick: set[str], fate: Fate) -> None:
    assert judge(the_pod, replace(drain(scope="GPUPods"), devices=frozenset(sick))).fate is fate
    assert judge(the_pod, replace(drain(), devices=frozenset(sick))).fate is Fate.GOES
