"""Drain, pass by pass: who goes, who blocks, what is told, and how much it costs."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.execute.drain import EVICTIONS_PER_PASS
from sickbay.execute.pace import Pace
from tests.execute.kit import REPAIRS, Bench


def add(bench: Bench, name: str, grace: int = 30, labels: Any = None, **spec: Any) -> None:
    meta = {"name": name, "labels": labels or {}, "finalizers": spec.pop("finalizers", [])}
    containers = [{"name": "c", "image": "i"}]
    body = {"nodeName": "n1", "terminationGracePeriodSeconds": grace, "containers": containers, **spec}
    bench.store.create("pods", {"metadata": meta, "spec": body}, "train")
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    bench.store.patch("pods", name, {"status": status}, "application/merge-patch+json", "train", subresource="status")


def protect(bench: Bench, app: str, name: str = "pdb", allowed: int = 0, **spec: Any) -> None:
    selector = {"matchLabels": {"app": app}}
    body = {"metadata": {"name": name}, "spec": {"selector": selector, **(spec or {"minAvailable": 1})}}
    made = bench.store.create("poddisruptionbudgets.policy", body, "train")
    status = {"disruptionsAllowed": allowed, "expectedPods": 1, "observedGeneration": made["metadata"]["generation"]}
    bench.store.patch("poddisruptionbudgets.policy", name, {"status": status}, "application/merge-patch+json",
                      "train", subresource="status")  # fmt: skip


def leaving(bench: Bench) -> set[str]:
    pods = bench.store.list("pods", "train")
    return {p["metadata"]["name"] for p in pods if p["metadata"].get("deletionTimestamp")}


def stopped(bench: Bench, *names: str) -> None:
    """The kubelet has stopped and removed them."""
    for name in names or sorted(leaving(bench)):
        bench.store.delete("pods", name, "train", grace=0)


def pods(bench: Bench) -> dict[str, tuple[str, str, str]]:
    return {p["pod"]: (p.get("state", ""), p.get("why", ""), p.get("pdb", "")) for p in bench.report.get("pods", [])}


def opened(**options: Any) -> Bench:
    bench = Bench()
    bench.open("Drain", Drain={"options": options} if options else {})
    return bench


async def test_a_drain_is_done_only_when_a_fresh_list_shows_nothing_left() -> None:
    bench = opened()
    add(bench, "a", grace=3600)
    shift = bench.shift()
    await shift.look()
    pod = bench.store.get("pods", "a", "train")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 600
    for _ in range(5):
        await shift.look()
        assert bench.report["state"] == "InProgress"
        assert pods(bench) == {"train/a": ("Terminating", "", "")}
    stopped(bench)
    await shift.look()
    assert bench.report["state"] == "Done"
    conditions = {c["type"]: c["status"] for c in bench.node()["status"]["conditions"]}
    assert (conditions["DrainInProgress"], conditions["Drained"]) == ("False", "True")


async def test_an_eviction_carries_the_pods_uid() -> None:
    """A pod that was replaced under its name since the list is another pod."""
    bench = opened()
    add(bench, "a")

    def replaced(request: Any) -> None:
        if request.url.path.endswith("/eviction"):
            bench.wire.before = lambda request: None
            stopped(bench, "a")
            add(bench, "a")

    bench.wire.before = replaced
    shift = bench.shift()
    await shift.look()
    assert leaving(bench) == set()
    await bench.clock.sleep(5)
    await shift.look()
    assert leaving(bench) == {"a"}


async def test_what_is_protected_stays_is_named_and_does_not_keep_the_drain_from_ending() -> None:
    bench = opened(protect=[{"selector": {"matchLabels": {"app": "db"}}}])
    add(bench, "db-0", labels={"app": "db"})
    add(bench, "dns", priorityClassName="system-cluster-critical")
    await bench.shift().look()
    assert bench.report["state"] == "Done"
    assert leaving(bench) == set()
    assert "train/db-0" in bench.report["message"]


async def test_groups_leave_one_after_the_other_when_the_one_before_is_gone() -> None:
    order = [{"selector": {"matchLabels": {"app": "late"}}, "priority": 10},
             {"selector": {"matchLabels": {"app": "first"}}, "priority": -1}]  # fmt: skip
    bench = opened(order=order)
    for name, app in (("l", "late"), ("m", "none"), ("f", "first")):
        add(bench, name, labels={"app": app})
    shift = bench.shift()
    for expected in ("f", "m", "l"):
        for _ in range(3):
            await shift.look()
            await bench.clock.sleep(5)
            assert leaving(bench) == {expected}
        stopped(bench)
    await shift.look()
    assert bench.report["state"] == "Done"


@pytest.mark.case("N01")
async def test_a_pod_that_waits_is_not_evicted_and_keeps_the_drain_waiting() -> None:
    bench = opened()
    add(bench, "w", labels={"sickbay.dev/wait-for-completion": "true"})
    shift = bench.shift()
    for _ in range(20):
        await bench.clock.sleep(await shift.look() or 0)
    assert leaving(bench) == set()
    assert pods(bench) == {"train/w": ("Waiting", "Wait", "")}
    bench.store.patch("pods", "w", {"status": {"phase": "Succeeded"}}, "application/merge-patch+json", "train",
                      subresource="status")  # fmt: skip
    await shift.look()
    assert bench.report["state"] == "Done"


async def test_a_drain_that_pauses_for_a_clear_proof_evicts_nobody() -> None:
    bench = opened()
    bench.merge({"status": {"current": {"waitsFor": "ClearProof"}}}, REPAIRS, "r1", "status")
    add(bench, "a")
    shift = bench.shift()
    await shift.look()
    assert leaving(bench) == set()
    bench.merge({"status": {"current": {"waitsFor": "Pods"}}}, REPAIRS, "r1", "status")
    await shift.look()
    assert leaving(bench) == {"a"}


@pytest.mark.parametrize(
    ("spec", "why"), [({"minAvailable": 1}, "Never"), ({"maxUnavailable": 1}, "Busy")], ids=["never", "busy"]
)
@pytest.mark.case("R20")
@pytest.mark.case("R21")
async def test_a_blocked_pod_is_named_with_its_budget_once_as_an_event(spec: dict[str, Any], why: str) -> None:
    bench = opened()
    add(bench, "a", labels={"app": "web"})
    protect(bench, "web", **spec)
    shift = bench.shift()
    for _ in range(30):
        await bench.clock.sleep(await shift.look() or 0)
    assert pods(bench) == {"train/a": ("Blocked", why, "pdb")}
    assert "train/a" in bench.report["message"]
    events = [message for reason, message in await shift.events() if reason == "DrainBlocked"]
    assert len(events) == 1
    assert "train/a" in events[0]
    assert "pdb" in events[0]
    successor = bench.shift()
    for _ in range(3):
        await bench.clock.sleep(await successor.look() or 0)
    assert len([1 for reason, _ in await successor.events() if reason == "DrainBlocked"]) == 1


@pytest.mark.case("P102")
@pytest.mark.parametrize(
    ("ready", "policy", "told"),
    [("False", "IfHealthyBudget", True), ("True", "IfHealthyBudget", False), ("False", "AlwaysAllow", None)],
    ids=["unready", "ready", "its owner lets it go"],
)
async def test_of_an_unready_pod_people_hear_what_would_let_it_go(ready: str, policy: str, told: bool | None) -> None:
    bench = opened()
    add(bench, "a", labels={"app": "web"})
    status = {"status": {"conditions": [{"type": "Ready", "status": ready}]}}
    bench.store.patch("pods", "a", status, "application/merge-patch+json", "train", subresource="status")
    protect(bench, "web", minAvailable=2, unhealthyPodEvictionPolicy=policy)
    shift = bench.shift()
    await shift.look()
    events = [message for reason, message in await shift.events() if reason == "DrainBlocked"]
    assert leaving(bench) == ({"a"} if told is None else set())
    assert ["unhealthyPodEvictionPolicy" in message for message in events] == ([] if told is None else [told])


@pytest.mark.case("R23")
async def test_two_budgets_on_one_pod_block_it_and_the_others_go_on() -> None:
    bench = opened()
    add(bench, "a", labels={"app": "web"})
    add(bench, "b")
    protect(bench, "web", name="one")
    protect(bench, "web", name="two")
    shift = bench.shift()
    await shift.look()
    assert leaving(bench) == {"b"}
    assert pods(bench)["train/a"] == ("Blocked", "Error", "one,two")
    assert "more than one PodDisruptionBudget" in bench.report["message"]
    assert bench.report["state"] == "InProgress"
    events = [message for reason, message in await shift.events() if reason == "DrainBlocked"]
    assert len(events) == 1
    assert "one, two" in events[0]


@pytest.mark.case("R23")
async def test_many_blocked_pods_do_not_hammer_the_server() -> None:
    bench = opened()
    bench.pace = Pace(bench.clock, per_minute=40)
    for n in range(60):
        add(bench, f"a{n}", labels={"app": "web"})
    protect(bench, "web")
    shift = bench.shift()
    while bench.clock.monotonic() < 300:
        await bench.clock.sleep(await shift.look() or 0)
    evictions = sum(1 for each in bench.wire.asked if each == "POST pods/eviction")
    assert 60 <= evictions <= 40 + 5 * 40
    budgets = sum(1 for each in bench.wire.asked if each == "LIST poddisruptionbudgets")
    assert budgets <= 300 / 5


async def test_many_pods_leave_in_batches() -> None:
    bench = opened()
    for n in range(EVICTIONS_PER_PASS + 5):
        add(bench, f"a{n}")
    shift = bench.shift()
    await shift.look()
    assert len(leaving(bench)) == EVICTIONS_PER_PASS
    await bench.clock.sleep(5)
    await shift.look()
    assert len(leaving(bench)) == EVICTIONS_PER_PASS + 5


@pytest.mark.case("R26")
async def test_on_an_unreachable_node_grace_is_short_and_the_terminating_are_ignored_but_budgets_count() -> None:
    bench = opened()
    add(bench, "long", grace=3600, labels={"app": "x"}, finalizers=["example.com/keep"])
    add(bench, "ending", labels={"app": "y"}, finalizers=["example.com/keep"])
    add(bench, "web", labels={"app": "web"})
    protect(bench, "web")
    bench.store.delete("pods", "ending", "train")
    bench.ready("Unknown")
    shift = bench.shift()
    await shift.look()
    assert bench.store.get("pods", "long", "train")["metadata"]["deletionGracePeriodSeconds"] == 1
    await bench.clock.sleep(5)
    await shift.look()
    assert pods(bench) == {"train/web": ("Blocked", "Never", "pdb")}
    assert bench.report["state"] == "InProgress"


async def test_a_server_that_throttles_is_waited_for_and_no_budget_is_blamed() -> None:
    bench = opened()
    add(bench, "a")
    bench.wire.refuse = lambda request: 429 if request.url.path.endswith("/eviction") else 0
    shift = bench.shift()
    await shift.look()
    assert pods(bench) == {"train/a": ("Evicting", "", "")}
    assert await shift.events() == []
    bench.wire.refuse = lambda request: 0
    await bench.clock.sleep(5)
    await shift.look()
    assert leaving(bench) == {"a"}


async def test_a_pod_that_cannot_be_read_keeps_the_drain_open() -> None:
    bench = opened()
    add(bench, "a")
    odd = bench.store.get("pods", "a", "train")
    bench.store.put(bench.store.type("pods"), {**odd, "spec": {**odd["spec"], "tolerations": "all"}})
    await bench.shift().look()
    assert bench.report["state"] == "InProgress"
    assert "pod a cannot be read" in bench.report["message"]


async def test_a_leader_that_loses_its_lease_between_two_evictions_stops_there() -> None:
    bench = opened()
    for name in ("a", "b", "c"):
        add(bench, name)
    shift = bench.shift()
    seen = []

    def count(request: Any) -> None:
        if request.url.path.endswith("/eviction"):
            seen.append(request.url.path)
            if len(seen) == 2:
                shift.term.end()

    bench.wire.before = count
    with pytest.raises(Exception, match="is over"):
        await shift.look()
    assert len(leaving(bench)) == 2


async def test_a_cancel_in_the_middle_of_a_slow_pass_spares_the_rest() -> None:
    bench = opened()
    for n in range(5):
        add(bench, f"a{n}")
    shift = bench.shift()

    async def slow(request: Any) -> Any:
        if request.url.path.endswith("/eviction"):
            await bench.clock.sleep(2)
            if len(leaving(bench)) == 1:
                bench.ask("Unquarantine", attempt=2, phase="Cancelling", done=["Quarantine"])
        return await pass_on(request)

    pass_on = bench.wire.inner.handle_async_request
    bench.wire.inner.handle_async_request = slow  # type: ignore[method-assign]
    assert await shift.look() is None
    assert len(leaving(bench)) == 2


@pytest.mark.parametrize("what", ["waiting", "terminating", "blocked"])
async def test_a_quiet_drain_asks_the_server_about_once_in_ten_seconds(what: str) -> None:
    bench = opened()
    add(
        bench, "a", grace=3600, labels={"app": "web", "sickbay.dev/wait-for-completion": str(what == "waiting").lower()}
    )
    if what == "blocked":
        protect(bench, "web")
    shift = bench.shift()
    for _ in range(15):
        await bench.clock.sleep(await shift.look() or 0)
    bench.wire.asked.clear()
    began = bench.clock.monotonic()
    while bench.clock.monotonic() < began + 600:
        await bench.clock.sleep(await shift.look() or 0)
    lists = sum(1 for each in bench.wire.asked if each == "LIST pods")
    assert lists <= 61
    rest = len(bench.wire.asked) - lists
    assert rest <= (90 if what == "blocked" else 3), "the node's Lease is looked after every ten minutes"


# --- pods that can run nowhere else


def disk(bench: Bench, claim: str, *nodes: str) -> None:
    """A bound claim; its volume can be had on these nodes, on any where none is named."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": list(nodes)}]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if nodes else {}
    source = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": "/x"}}
    bench.store.create("persistentvolumes", {"metadata": {"name": f"pv-{claim}"}, "spec": source | affinity})
    asked = {"volumeName": f"pv-{claim}", "accessModes": ["ReadWriteOnce"], "resources": {}}
    bench.store.create("persistentvolumeclaims", {"metadata": {"name": claim}, "spec": asked}, "train")


def with_claim(bench: Bench, name: str, claim: str) -> None:
    add(bench, name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])


def second_node(bench: Bench) -> None:
    for name in ("n1", "n2"):
        label = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}
        if name == "n1":
            bench.merge(label)
        else:
            bench.store.create("nodes", label)


@pytest.mark.case("P118")
@pytest.mark.parametrize(
    ("node_volumes", "leaves", "state"),
    [("Hold", {"web"}, "InProgress"), ("Leave", {"web"}, "Done"), ("Evict", {"mongo", "web"}, "Done"),
     (None, {"mongo", "web"}, "Done")],
)  # fmt: skip
async def test_a_pod_that_can_run_nowhere_else_is_treated_as_the_rule_says(
    node_volumes: str | None, leaves: set[str], state: str
) -> None:
    bench = opened(**({"nodeVolumes": node_volumes} if node_volumes else {}))
    second_node(bench)
    disk(bench, "here", "n1")
    disk(bench, "anywhere")
    with_claim(bench, "mongo", "here")
    with_claim(bench, "web", "anywhere")
    shift = bench.shift()
    await shift.look()
    assert leaving(bench) == leaves
    stopped(bench)
    for _ in range(3):
        await bench.clock.sleep(await shift.look() or 0)
    assert bench.report["state"] == state
    told = [message for reason, message in await shift.events() if reason == "DrainBlocked"]
    if node_volumes == "Hold":
        assert pods(bench) == {"train/mongo": ("Blocked", "Protected", "")}
        assert told == ["train/mongo can run nowhere else: its volume pv-here (claim here) is on this node alone"]
    else:
        assert told == []
    if node_volumes == "Leave":
        assert "protected and left: train/mongo" in bench.report["message"]


@pytest.mark.case("P118")
@pytest.mark.parametrize("where", [("n1", "n2"), ()], ids=["another node reaches it", "any node does"])
async def test_a_volume_that_another_node_can_take_binds_nobody(where: tuple[str, ...]) -> None:
    bench = opened(nodeVolumes="Hold")
    second_node(bench)
    disk(bench, "zone", *where)
    with_claim(bench, "mongo", "zone")
    await bench.shift().look()
    assert leaving(bench) == {"mongo"}


@pytest.mark.case("P118")
async def test_on_a_node_that_nobody_reaches_no_volume_holds_a_pod() -> None:
    bench = opened(nodeVolumes="Hold")
    second_node(bench)
    disk(bench, "here", "n1")
    with_claim(bench, "mongo", "here")
    bench.ready("Unknown")
    await bench.shift().look()
    assert leaving(bench) == {"mongo"}
