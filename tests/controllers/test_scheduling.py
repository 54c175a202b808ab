"""The scheduler: where pods go, why some wait, and who makes room for whom."""

from __future__ import annotations

import pytest

from tests.controllers.cluster import condition
from tests.controllers.made import affinity, anti_affinity, pod

LOADED = {
    "cordoned": {"spec": {"unschedulable": True}},
    "tainted": {"spec": {"taints": [{"key": "x", "effect": "NoSchedule"}]}},
}
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


async def priority(cluster, value, **more):
    name = cluster.server.unique("priority")
    await cluster.server.made(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value, **more})
    return name


async def test_a_pod_waits_for_the_resources_it_asks_for(cluster):
    (node,) = await cluster.nodes(1)
    await cluster.make("pods", pod(cluster, "first", gpus=8))
    await cluster.until(cluster.running, {"first": node})
    await cluster.make("pods", pod(cluster, "second", gpus=1))
    assert "1 Insufficient nvidia.com/gpu" in await cluster.until(lambda: cluster.why_not("second"))
    await cluster.stays(cluster.running, {"first": node})
    await cluster.delete("pods", "first")
    await cluster.until(cluster.running, {"second": node})


@pytest.mark.parametrize("what", LOADED)
async def test_a_node_that_is_no_place_for_new_pods_keeps_those_it_has(cluster, what):
    closed, _open = await cluster.nodes(2)
    await cluster.make("pods", pod(cluster, "old", nodeSelector={"kubernetes.io/hostname": closed}))
    await cluster.until(cluster.running, {"old": closed})
    await cluster.patch_node(closed, LOADED[what])
    await cluster.make("pods", *(pod(cluster, f"new-{k}") for k in range(3)))
    await cluster.until(cluster.running, {"old": closed, **{f"new-{k}": _open for k in range(3)}})


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param({"nodeSelector": {"a": "b"}}, "node(s) didn't match Pod's node affinity/selector", id="selector"),
        pytest.param({"gpus": 9}, "Insufficient nvidia.com/gpu", id="too much"),
    ],
)
async def test_no_preemption_helps_where_the_node_itself_is_wrong(cluster, spec, reason):
    await cluster.nodes(2)
    await cluster.make("pods", pod(cluster, "p", **spec))
    text = await cluster.until(lambda: cluster.why_not("p"))
    assert text.startswith(f"0/2 nodes are available: 2 {reason}.")
    assert text.endswith("preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.")


async def test_the_scheduler_counts_the_reasons_over_the_nodes(cluster):
    full, cordoned, tainted = await cluster.nodes(3)
    await cluster.make("pods", pod(cluster, "big", gpus=8, nodeSelector={"kubernetes.io/hostname": full}))
    await cluster.until(cluster.running, {"big": full})
    await cluster.patch_node(cordoned, LOADED["cordoned"])
    await cluster.patch_node(tainted, LOADED["tainted"])
    await cluster.until(lambda: cluster.taints(cordoned), {("unschedulable", "NoSchedule")})
    await cluster.make("pods", pod(cluster, "p", gpus=1))
    text = await cluster.until(lambda: cluster.why_not("p"))
    assert text.startswith(
        "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s),"
        " 1 node(s) were unschedulable."
    )
    assert text.endswith(
        "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod,"
        " 2 Preemption is not helpful for scheduling."
    )


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        pytest.param({"key": "x", "operator": "Exists"}, True, id="key"),
        pytest.param({"operator": "Exists"}, True, id="everything"),
        pytest.param({"key": "x", "value": "1"}, True, id="value"),
        pytest.param({"key": "x", "value": "2"}, False, id="another value"),
        pytest.param({"key": "x", "operator": "Exists", "effect": "NoExecute"}, False, id="another effect"),
    ],
)
async def test_what_a_pod_tolerates_decides(cluster, toleration, fits):
    (node,) = await cluster.nodes(1, taints=({"key": "x", "value": "1", "effect": "NoSchedule"},))
    await cluster.make("pods", pod(cluster, "p", tolerations=[toleration]))
    if fits:
        await cluster.until(cluster.running, {"p": node})
    else:
        assert "1 node(s) had untolerated taint(s)" in await cluster.until(lambda: cluster.why_not("p"))


@pytest.mark.parametrize(
    ("operator", "values", "fits"),
    [
        pytest.param("In", ["h100", "h200"], True, id="in"),
        pytest.param("NotIn", ["h100"], False, id="not in"),
        pytest.param("Exists", None, True, id="exists"),
        pytest.param("DoesNotExist", None, False, id="does not exist"),
        pytest.param("Gt", ["4"], False, id="gt of what is no number"),
    ],
)
async def test_node_affinity(cluster, operator, values, fits):
    (node,) = await cluster.nodes(1, labels={"gpu": "h100"})
    wanted = {"key": "gpu", "operator": operator, **({"values": values} if values else {})}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}
    await cluster.make("pods", pod(cluster, "p", affinity={"nodeAffinity": terms}))
    if fits:
        await cluster.until(cluster.running, {"p": node})
    else:
        assert "didn't match Pod's node affinity/selector" in await cluster.until(lambda: cluster.why_not("p"))


@pytest.mark.parametrize("how", ["PreferNoSchedule", "preferred affinity"])
async def test_a_preference_yields_where_there_is_no_other_place(cluster, how):
    if how == "PreferNoSchedule":
        (better,) = await cluster.nodes(1)
        (worse,) = await cluster.nodes(1, taints=({"key": "x", "effect": "PreferNoSchedule"},))
        spec = {}
    else:
        (worse,) = await cluster.nodes(1)
        (better,) = await cluster.nodes(1, labels={"better": "yes"})
        liked = {"matchExpressions": [{"key": "better", "operator": "Exists"}]}
        preferred = [{"weight": 100, "preference": liked}]
        spec = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}
    await cluster.make("pods", pod(cluster, "first", gpus=8, **spec))
    await cluster.until(cluster.running, {"first": better})
    await cluster.make("pods", pod(cluster, "second", gpus=8, **spec))
    await cluster.until(cluster.running, {"first": better, "second": worse})


# --- company


async def test_pods_that_shun_each_other_share_no_node(cluster):
    nodes = await cluster.nodes(2)
    await cluster.make(
        "pods", *(pod(cluster, f"p-{k}", labels={"app": "a"}, affinity=anti_affinity("a")) for k in range(2))
    )
    placed = await cluster.until(lambda: _count(cluster, 2))
    assert sorted(placed.values()) == sorted(nodes)
    await cluster.make("pods", pod(cluster, "p-2", labels={"app": "a"}, affinity=anti_affinity("a")))
    assert "2 node(s) didn't match pod anti-affinity rules" in await cluster.until(lambda: cluster.why_not("p-2"))


async def test_a_pod_goes_nowhere_where_those_that_are_there_shun_it(cluster):
    (node,) = await cluster.nodes(1)
    await cluster.make("pods", pod(cluster, "shy", affinity=anti_affinity("a")))
    await cluster.until(cluster.running, {"shy": node})
    await cluster.make("pods", pod(cluster, "p", labels={"app": "a"}))
    reason = "1 node(s) didn't satisfy existing pods anti-affinity rules"
    assert reason in await cluster.until(lambda: cluster.why_not("p"))
    await cluster.delete("pods", "shy")
    await cluster.until(cluster.running, {"p": node})


async def test_exclusive_racks(cluster):
    (near,) = await cluster.nodes(1, labels={"rack": "r1"})
    far = await cluster.nodes(2, labels={"rack": "r2"})
    await cluster.make("pods", pod(cluster, "lone", gpus=8, labels={"app": "x"}, nodeSelector={"rack": "r1"}))
    await cluster.until(cluster.running, {"lone": near})
    alone = {**affinity("team", "rack"), **anti_affinity("x", "rack")}
    await cluster.make(
        "pods", *(pod(cluster, f"t-{k}", gpus=8, labels={"app": "team"}, affinity=alone) for k in range(2))
    )
    placed = await cluster.until(lambda: _count(cluster, 3))
    assert sorted([placed["t-0"], placed["t-1"]]) == sorted(far)


async def test_a_pod_that_wants_company_waits_for_it(cluster):
    await cluster.nodes(1, labels={"rack": "r1"})
    (other,) = await cluster.nodes(1, labels={"rack": "r2"})
    await cluster.make("pods", pod(cluster, "p", affinity=affinity("leader", "rack")))
    assert "2 node(s) didn't match pod affinity rules" in await cluster.until(lambda: cluster.why_not("p"))
    await cluster.make("pods", pod(cluster, "leader", labels={"app": "leader"}, nodeSelector={"rack": "r2"}))
    await cluster.until(cluster.running, {"p": other, "leader": other})


async def test_pods_spread_over_racks(cluster):
    await cluster.nodes(1, labels={"rack": "r1"})
    await cluster.nodes(1, labels={"rack": "r2"})
    spread = {
        "maxSkew": 1,
        "topologyKey": "rack",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    for k in range(4):
        await cluster.make("pods", pod(cluster, f"p-{k}", labels={"app": "a"}, topologySpreadConstraints=[spread]))
    placed = await cluster.until(lambda: _count(cluster, 4))
    assert sorted(list(placed.values()).count(node) for node in set(placed.values())) == [2, 2]
    full = sorted(set(placed.values()))[0]
    await cluster.patch_node(full, LOADED["cordoned"])
    await cluster.make("pods", pod(cluster, "p-4", labels={"app": "a"}, topologySpreadConstraints=[spread]))
    await cluster.until(lambda: _count(cluster, 5))
    await cluster.make("pods", pod(cluster, "p-5", labels={"app": "a"}, topologySpreadConstraints=[spread]))
    text = await cluster.until(lambda: cluster.why_not("p-5"))
    assert "1 node(s) didn't match pod topology spread constraints" in text


async def _count(cluster, number):
    running = await cluster.running()
    return running if len(running) == number else None


# --- priority


async def test_a_pod_of_higher_priority_takes_the_place_of_the_least_important(cluster):
    low, middle, high = [await priority(cluster, value) for value in (10, 20, 1000)]
    first, second = await cluster.nodes(2)
    for name, node, cls in (("low", first, low), ("middle", second, middle)):
        place = {"kubernetes.io/hostname": node}
        await cluster.make(
            "pods", pod(cluster, name, gpus=8, nodeSelector=place, priorityClassName=cls, stop_takes="2s")
        )
    await cluster.until(cluster.running, {"low": first, "middle": second})
    await cluster.make("pods", pod(cluster, "high", gpus=8, priorityClassName=high))

    async def victim():
        return condition(await cluster.get("pods", "low"), "DisruptionTarget").get("reason")

    await cluster.until(victim, "PreemptionByScheduler")

    async def nominated():
        return (await cluster.status("pods", "high")).get("nominatedNodeName")

    await cluster.until(nominated, first)
    await cluster.until(cluster.running, {"high": first, "middle": second})


async def test_preemption_spares_pods_whose_budget_is_used_up(cluster):
    high = await priority(cluster, 1000)
    first, second = await cluster.nodes(2)
    for name, node in (("kept", first), ("other", second)):
        place = {"kubernetes.io/hostname": node}
        await cluster.make("pods", pod(cluster, name, gpus=8, labels={"app": name}, nodeSelector=place))
    await cluster.until(cluster.running, {"kept": first, "other": second})
    selector = {"matchLabels": {"app": "kept"}}
    await cluster.make("budgets", {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}})

    async def counted():
        return (await cluster.status("budgets", "b")).get("currentHealthy") == 1

    await cluster.until(counted)
    await cluster.make("pods", pod(cluster, "high", gpus=8, priorityClassName=high))
    await cluster.until(cluster.running, {"kept": first, "high": second})


@pytest.mark.parametrize(
    ("value", "more", "said"),
    [
        pytest.param(10, {}, "1 No preemption victims found for incoming pod", id="equal"),
        pytest.param(1000, {"preemptionPolicy": "Never"}, "not eligible due to preemptionPolicy=Never.", id="never"),
    ],
)
async def test_who_may_not_preempt_waits(cluster, value, more, said):
    first, second = await priority(cluster, 10), await priority(cluster, value, **more)
    (node,) = await cluster.nodes(1)
    await cluster.make("pods", pod(cluster, "old", gpus=8, priorityClassName=first))
    await cluster.until(cluster.running, {"old": node})
    await cluster.make("pods", pod(cluster, "new", gpus=8, priorityClassName=second))
    assert said in await cluster.until(lambda: cluster.why_not("new"))
    await cluster.stays(cluster.running, {"old": node})


async def test_only_as_many_pods_go_as_must(cluster):
    high = await priority(cluster, 1000)
    (node,) = await cluster.nodes(1)
    await cluster.make("pods", pod(cluster, "small", gpus=2), pod(cluster, "large", gpus=6))
    await cluster.until(cluster.running, {"small": node, "large": node})
    await cluster.make("pods", pod(cluster, "high", gpus=6, priorityClassName=high))
    await cluster.until(cluster.running, {"small": node, "high": node})


async def test_a_gated_pod_is_not_placed_until_its_gate_is_gone(cluster):
    (node,) = await cluster.nodes(1)
    await cluster.make("pods", pod(cluster, "p", schedulingGates=[{"name": "example.com/quota"}]))
    await cluster.stays(cluster.places, {})
    await cluster.patch("pods", "p", {"spec": {"schedulingGates": None}})
    await cluster.until(cluster.running, {"p": node})
