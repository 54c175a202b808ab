"""What befalls the nodes of a world, and what people do to them: the part of a timeline that is not Sickbay's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sickbay.sim.chaos.dice import Dice, seconds
from sickbay.sim.chaos.worlds import Drawn, condition_of

Entry = dict[str, Any]

ANSWERS = ("transient", "permanent", "acceptThenTimeout", "timeout", "liesDone")
CALLS = ("reboot", "powerCycle", "observe", "resetGPU", "restartService", "replace", "repairHardware")
XIDS = (79, 48, 94, 119, 31, 13, 95)
PEOPLE = ("admin", "alice", "nvidia-driver-manager", "kured")
LEVELS = ("NewRepairs", "NextStep", "EveryAct")


def draw(dice: Dice, world: Drawn, storm: float) -> list[Entry]:
    """Entries within the first `storm` seconds: a few faults, and whatever else there is."""
    entries: list[Entry] = []
    for _ in range(dice.between(1, 5)):
        entries += _fault(dice, world, dice.moment(5, storm * 0.7))
    kinds: list[tuple[int, Callable[[Dice, Drawn, float], list[Entry]]]] = [
        (5, _fault), (3, _hand), (2, _mark), (3, _machine), (2, _hold), (1, _registration), (2, _provider),
        (1, _breaker), (1, _policy), (2, _record), (1, _pods), (1, _gpu),
    ]  # fmt: skip
    for _ in range(dice.between(2, 10)):
        entries += dice.weighted(kinds)(dice, world, dice.moment(5, storm))
    return entries


def at(moment: float, do: str, **arguments: Any) -> Entry:
    return {"at": seconds(moment), "do": do, **arguments}


def _fault(dice: Dice, world: Drawn, when: float) -> list[Entry]:
    if "agent" in world.components and dice.chance(0.5):
        return [_kernel(dice, world, when)]
    fault, type_ = dice.one(world.types), ""
    type_ = condition_of(fault)
    nodes = [dice.one(world.nodes)] if dice.chance(0.85) else dice.some(world.nodes, 1)
    entries = [at(when, "condition", node=nodes, type=type_, status="True", reason="Chaos", message="drawn")]
    if dice.chance(0.35):
        later = when + dice.moment(2, 240)
        entries.append(at(later, "condition", node=nodes, type=type_, status="False", reason="Chaos"))
        if dice.chance(0.3):
            entries.append(at(later + dice.moment(1, 90), "condition", node=nodes, type=type_, status="True"))
    elif dice.chance(0.1):
        entries.append(at(when + 30, "condition", node=nodes, type=type_, status="Unknown"))
    return entries


def _kernel(dice: Dice, world: Drawn, when: float) -> Entry:
    line = f"NVRM: Xid (PCI:0000:1b:00): {dice.one(XIDS)}, pid=1, name=python3, drawn"
    return at(when, "kmsg", node=dice.one(world.nodes), line=line)


def _hand(dice: Dice, world: Drawn, when: float) -> list[Entry]:
    """A person, or something that looks like one, cordons or uncordons."""
    node, by = dice.one(world.nodes), dice.one(PEOPLE)
    first = dice.one(["cordon", "uncordon"])
    entries = [at(when, first, node=node, by=by)]
    if first == "cordon" and dice.chance(0.6):
        entries.append(at(when + dice.moment(1, 200), "uncordon", node=node, by=by))
    return entries


def _mark(dice: Dice, world: Drawn, when: float) -> list[Entry]:
    node, later = dice.one(world.nodes), when + dice.moment(5, 150)
    match dice.weighted([(1, 0), (1, 1), (1, 2), (1, 3), (3, 4), (1, 5)]):
        case 0:
            key = dice.one(["team", "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"])
            return [
                at(when, "taint", node=node, key=key, effect="NoSchedule", by="autoscaler"),
                at(later, "untaint", node=node, key=key, by="autoscaler"),
            ]
        case 1:
            opted, target = "remediation.medik8s.io/exclude-from-remediation", f"Node/{node}"
            return [
                at(when, "label", object=target, set={opted: dice.one(["true", "false"])}),
                at(later, "label", object=target, set={opted: None}),
            ]
        case 2:
            return [at(when, "label", object=f"Node/{node}", set={"team": dice.one(["x", "y"])})]
        case 3:
            key = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
            return [at(when, "annotate", object=f"Node/{node}", set={key: dice.one(["true", "false", None])})]
        case 4:
            step = dice.one(["quarantine", "drain", "repair", "unquarantine"])
            word = dice.one(["approved", "denied", "inquiring", "Approved"])
            return [at(when, "label", object=f"Node/{node}", set={f"intervention.sickbay.dev/{step}-node": word})]
        case _:
            return [at(when, "annotate", object=f"Node/{node}", set={"sickbay.dev/quarantine": None})]


def _machine(dice: Dice, world: Drawn, when: float) -> list[Entry]:
    node, later = dice.one(world.nodes), when + dice.moment(10, 120)
    match dice.between(0, 4):
        case 0:
            return [at(when, "power", node=node, state="off"), at(later, "power", node=node, state="on")]
        case 1:
            return [at(when, "reboot", node=node)]
        case 2:
            return [at(when, "heartbeat", node=node, state="stop"), at(later, "heartbeat", node=node, state="resume")]
        case 3:
            name = dice.one(["kubelet", "containerd"])
            return [
                at(when, "service", node=node, name=name, state=dice.one(["inactive", "hung"])),
                at(later, "service", node=node, name=name, state="active"),
            ]
        case _:
            return [
                at(when, "allocatable", node=node, resource="nvidia.com/gpu", value="0"),
                at(later, "allocatable", node=node, resource="nvidia.com/gpu", value="2"),
            ]


def _gpu(dice: Dice, world: Drawn, when: float) -> list[Entry]:
    if world.fleet[0]["gpus"] == 0:
        return []
    state: Entry = dice.one([{"rowRemapPending": True}, {"lost": True}, {"recoveryAction": "GpuReset"}])
    return [at(when, "nvml", node=f"{world.pools[0]}-0", gpu=0, set=state)]


def _hold(dice: Dice, world: Drawn, when: float) -> list[Entry]:
    name = f"hold-{int(when * 10)}"
    scope: Entry = dice.one([{"all": True}, {"pools": [dice.one(world.pools)]}, {"nodes": dice.some(world.nodes, 1)}])
    spec = {"scope": scope, "level": dice.one(LEVELS), "reason": "drawn", "owner": "chaos"}
    release = at(when + dice.moment(5, 200), "release", name=name)
    return [at(when, "hold", name=name, spec=spec), release]


def _registration(dice: Dice, world: Drawn, when: float) -> list[Entry]:
    node = dice.one(world.nodes)
    match dice.between(0, 3):
        case 0:
            return [at(when, "deleteNode", node=node)]
        case 1:
            return [at(when, "recreateNode", node=node)]
        case 2:
            return [at(when, "recreateNode", node=node, bootID="keep")]
        case _:
            return [at(when, "addNodes", pool=dice.one(world.pools), nodes=1)]


def _provider(dice: Dice, world: Drawn, when: float) -> list[Entry]:
    script = [
        {"call": dice.one(CALLS), "answer": dice.one(ANSWERS), "times": dice.between(1, 3)}
        for _ in range(dice.between(1, 3))
    ]
    whom = {"pool": dice.one(world.pools)} if dice.chance(0.5) else {"node": dice.one(world.nodes)}
    return [at(when, "provider", **whom, script=script)]


def _breaker(dice: Dice, world: Drawn, when: float) -> list[Entry]:
    """A reset, or an old one that is applied again."""
    pool = dice.one(world.pools)
    if dice.chance(0.5):
        return [at(when, "resetBreaker", pool=pool)]
    old = {"sickbay.dev/reset-breaker": "2027-01-01T00:00:00Z"}
    return [at(when, "annotate", object=f"RepairPool/{pool}", set=old)]


def _policy(dice: Dice, world: Drawn, when: float) -> list[Entry]:
    """Somebody edits the pool while repairs are under way."""
    spec: Entry = dice.one([{"maxUnavailable": 1}, {"mode": "Observe"}, {"mode": "Act"}, {"maxParallelValidations": 1}])
    return [at(when, "patch", object=f"RepairPool/{dice.one(world.pools)}", patch={"spec": spec})]


def _record(dice: Dice, world: Drawn, when: float) -> list[Entry]:
    """Somebody deletes a record, resolves a node by hand, or opens a repair."""
    node = dice.one(world.nodes)
    if dice.chance(0.5):
        return [at(when, "delete", object=f"NodeRepair@{node}")]
    plan = {"steps": [{"step": "Repair", "action": dice.one(["RebootNode", "RestartService"])}]}
    manifest = {
        "apiVersion": "sickbay.dev/v1alpha1",
        "kind": "NodeRepair",
        "metadata": {"name": f"by-hand-{int(when * 10)}"},
        "spec": {"origin": "Manual", "node": {"name": node}, "plan": plan},
    }
    return [at(when, "apply", manifest=manifest)]


def _pods(dice: Dice, world: Drawn, when: float) -> list[Entry]:
    if "recover" not in world.components:
        return []
    log = dice.one(["", "NCCL error: unhandled system error", "CUDA error: uncorrectable ECC error encountered"])
    return [at(when, "podExit", selector="job=train", code=dice.one([1, 137, 139]), log=log)]
