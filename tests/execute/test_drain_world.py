"""Drains on a simulated cluster: budgets, deadlines, dead nodes, the pods that stay."""

from __future__ import annotations

import pytest

from sickbay.sim.hand import DAEMON_SETS, LEASES, PODS
from sickbay.sim.world import World
from tests.execute.ward import NODE, fault_type, rule, ward

WAITS = {"sickbay.dev/wait-for-completion": "true"}


def daemon_set(world: World) -> None:
    spec = {
        "selector": {"matchLabels": {"app": "plugin"}},
        "template": {
            "metadata": {"labels": {"app": "plugin"}},
            "spec": {"tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": "i"}]},
        },
    }
    world.person("admin").create(DAEMON_SETS, {"metadata": {"name": "plugin"}, "spec": spec}, "default")


@pytest.mark.parametrize(
    ("policy", "phase", "reboots", "cordoned"),
    [("Escalate", "NeedsHuman", 0, True), ("Continue", "Succeeded", 1, False), ("RollBack", "Failed", 0, False)],
)
@pytest.mark.case("R20")
@pytest.mark.case("P105")
async def test_a_drain_that_a_budget_blocks_ends_at_its_deadline_as_the_policy_says(
    policy: str, phase: str, reboots: int, cordoned: bool
) -> None:
    async with ward(rule(Drain={"timeout": "2m", "onTimeout": policy})) as hospital:
        hospital.run_pod("web", labels={"app": "web"})
        hospital.protect("web")
        await hospital.sleep(3)
        hospital.fault()
        began = await hospital.until(lambda: hospital.at("Drain"))
        ended = await hospital.until(lambda: not hospital.at("Drain"))
        assert 118 <= ended - began <= 124
        assert hospital.evicted() == []
        told = hospital.events("DrainBlocked")
        assert len(told) == 1
        assert "default/web" in told[0]
        assert "pdb" in told[0]
        await hospital.until(lambda: hospital.phase() == phase, 600)
        assert hospital.calls("reboot") == reboots
        assert hospital.cordoned() is cordoned
        if not cordoned:
            assert hospital.differences() == []


@pytest.mark.case("R28")
async def test_a_drain_given_up_takes_the_cordon_back_first_and_the_lease_second() -> None:
    def leases(world: World) -> None:
        world.person("admin").create("namespaces", {"metadata": {"name": "medik8s-leases"}})

    async with ward(rule(Drain={"timeout": "1m", "onTimeout": "RollBack"}), prepare=leases) as hospital:
        hospital.run_pod("web", labels={"app": "web"})
        hospital.protect("web")
        await hospital.sleep(3)
        hospital.fault()
        await hospital.until(lambda: hospital.at("Drain"))
        assert [o["spec"]["holderIdentity"] for o in hospital.world.store.list(LEASES, "medik8s-leases")] == ["sickbay"]
        await hospital.until(lambda: hospital.phase() == "Failed")
        writes = [(w.verb, w.object) for w in hospital.world.journal.writes if w.by == "execute"]
        lease = next(i for i, w in enumerate(writes) if w[0] == "delete" and w[1].startswith("Lease/"))
        cordon = max(i for i, w in enumerate(writes) if w == ("patch", f"Node/{NODE}") and i < lease)
        assert cordon < lease
        assert hospital.world.store.list(LEASES, "medik8s-leases") == []
        assert hospital.status()["outcome"] == "GaveUp"
        assert "rolled back" in hospital.status()["message"]


@pytest.mark.case("R21")
async def test_our_drain_clock_starts_with_our_drain_whoever_began_before() -> None:
    async with ward(rule(Drain={"timeout": "2m"})) as hospital:
        hospital.run_pod("web", labels={"app": "web"})
        hospital.protect("web")
        await hospital.sleep(3)
        admin = hospital.world.person("admin")
        admin.merge("nodes", NODE, {"spec": {"unschedulable": True}})
        await hospital.sleep(300)
        hospital.fault()
        began = await hospital.until(lambda: hospital.at("Drain"))
        ended = await hospital.until(lambda: hospital.phase() == "NeedsHuman")
        assert 118 <= ended - began <= 124
        assert len(hospital.events("DrainBlocked")) == 1
        assert "allows no disruption as it is written" in hospital.events("DrainBlocked")[0]


@pytest.mark.case("R23")
async def test_a_pod_under_two_budgets_blocks_and_the_others_leave() -> None:
    async with ward() as hospital:
        hospital.run_pod("web", labels={"app": "web"})
        hospital.run_pod("free")
        hospital.protect("web", "one")
        hospital.protect("web", "two")
        await hospital.sleep(3)
        hospital.fault()
        await hospital.until(lambda: hospital.at("Drain"))
        await hospital.sleep(60)
        assert not hospital.running("free")
        assert hospital.running("web")
        blocked = hospital.step("Drain")["report"]["pods"]
        assert [(p["pod"], p["state"], p["why"], p["pdb"]) for p in blocked] == [
            ("default/web", "Blocked", "Error", "one,two")
        ]
        hospital.world.person("user").delete("poddisruptionbudgets.policy", "two", "default")
        hospital.world.person("user").delete("poddisruptionbudgets.policy", "one", "default")
        await hospital.healed()


async def test_a_budget_that_allows_it_later_lets_the_drain_go_on() -> None:
    async with ward() as hospital:
        hospital.run_pod("web", labels={"app": "web"})
        hospital.protect("web")
        await hospital.sleep(3)
        hospital.fault()
        await hospital.until(lambda: hospital.at("Drain"))
        await hospital.sleep(200)
        assert hospital.running("web")
        hospital.world.person("user").merge(
            "poddisruptionbudgets.policy", "pdb", {"spec": {"minAvailable": 0}}, "default"
        )
        await hospital.until(lambda: not hospital.running("web"), 70)
        await hospital.healed()


@pytest.mark.case("N01")
@pytest.mark.case("R35")
async def test_a_fault_that_clears_while_the_drain_waits_for_a_pod_leads_to_no_eviction_and_no_reboot() -> None:
    async with ward(fault_type(clearsBy="condition")) as hospital:
        hospital.run_pod("patient", labels=WAITS)
        await hospital.sleep(3)
        hospital.fault()
        await hospital.until(lambda: hospital.at("Drain"))
        await hospital.sleep(120)
        assert hospital.step("Drain")["report"]["pods"][0]["state"] == "Waiting"
        hospital.fault(status="False")
        await hospital.until(lambda: hospital.phase() in ("Succeeded", "Cancelled"))
        assert hospital.step("Drain")["state"] == "Cancelled"
        await hospital.sleep(30)
        assert hospital.differences() == []
        pod = hospital.world.store.get(PODS, "patient", "default")
        hospital.world.kubelet.exit_pod(pod, 0)
        await hospital.sleep(300)
        assert hospital.calls("reboot") == 0
        assert hospital.evicted() == []
        assert hospital.lifecycle() == {}


async def test_a_pod_waits_no_longer_than_the_rule_says() -> None:
    wait = [{"selector": {"matchLabels": {"app": "slow"}}, "timeout": "90s"}]
    async with ward(rule(Drain={"options": {"waitFor": wait}})) as hospital:
        hospital.run_pod("slow", labels={"app": "slow"})
        await hospital.sleep(3)
        hospital.fault()
        began = await hospital.until(lambda: hospital.at("Drain"))
        await hospital.until(lambda: not hospital.running("slow"))
        assert 90 <= hospital.now() - began <= 105
        await hospital.healed()


async def test_daemon_set_pods_stay_and_have_to_be_back_before_the_node_returns() -> None:
    async with ward(prepare=daemon_set) as hospital:
        await hospital.sleep(3)
        assert hospital.world.pods_of("default", "", "app=plugin")
        hospital.fault()
        await hospital.healed()
        assert hospital.evicted() == []
        assert hospital.calls("reboot") == 1


@pytest.mark.case("R26")
async def test_a_dead_node_is_emptied_with_a_short_grace_and_its_budgets_count() -> None:
    async with ward(rule(Drain={"timeout": "5m", "onTimeout": "Continue"})) as hospital:
        hospital.run_pod("long", terminationGracePeriodSeconds=3600, tolerations=[{"operator": "Exists"}])
        hospital.run_pod("web", labels={"app": "web"}, tolerations=[{"operator": "Exists"}])
        hospital.protect("web")
        await hospital.sleep(3)
        hospital.world.machine(NODE).set_heartbeat(False)
        await hospital.sleep(60)
        hospital.fault()
        await hospital.until(lambda: hospital.at("Drain"))
        await hospital.sleep(30)
        graces = {a.target: a.grace for a in hospital.world.journal.actions if a.kind == "Evict"}
        assert graces == {"default/long": 1}
        left = [(p["pod"], p["state"]) for p in hospital.step("Drain")["report"]["pods"]]
        assert left == [("default/web", "Blocked")]
        assert hospital.running("web")


@pytest.mark.case("P222")
async def test_pods_that_tolerate_everything_do_not_make_a_drain_endless() -> None:
    def replica_set(world: World) -> None:
        template = {
            "metadata": {"labels": {"app": "stubborn"}},
            "spec": {
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "c", "image": "i"}],
                "nodeSelector": {"kubernetes.io/hostname": NODE},
            },
        }
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "stubborn"}}, "template": template}
        world.person("admin").create("replicasets.apps", {"metadata": {"name": "s"}, "spec": spec}, "default")

    async with ward(prepare=replica_set) as hospital:
        await hospital.sleep(5)
        hospital.fault()
        began = await hospital.until(lambda: hospital.at("Drain"))
        ended = await hospital.until(lambda: hospital.at("Repair"))
        assert ended - began < 60
        assert len(hospital.evicted()) == 1
        await hospital.healed()


@pytest.mark.case("R03")
@pytest.mark.case("P083")
async def test_an_uncordon_in_mid_drain_spares_the_pods_that_are_left() -> None:
    async with ward() as hospital:
        hospital.run_pod("web", labels={"app": "web"})
        hospital.protect("web")
        await hospital.sleep(3)
        hospital.fault()
        await hospital.until(lambda: hospital.at("Drain"))
        await hospital.sleep(30)
        hospital.world.person("admin").merge("nodes", NODE, {"spec": {"unschedulable": None}})
        hospital.world.person("user").delete("poddisruptionbudgets.policy", "pdb", "default")
        await hospital.until(lambda: hospital.phase() == "Cancelled")
        await hospital.sleep(300)
        assert hospital.running("web")
        assert hospital.calls("reboot") == 0
        assert hospital.differences() == []
        assert hospital.lifecycle() == {}
