"""What must hold of limits and breakers at every step of every run.

* a step that takes room begins with its slot, in its own pool and in each envelope; so does a cordon
* slots never exceed a cap when one is added; no more repairs and validations run than the caps say
* no slot but one for Validate is added while the breaker is open
* a breaker closes by a cooldown, by a trial that succeeded, or by a person's word that names the moment it opened

Who judges a cap may be some moments behind what others do to nodes: a node that somebody has cordoned within the last
`slack` seconds need not have been seen. What we did ourselves counts at once.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from sickbay.api import names, quantity
from sickbay.api.actions import ACTIONS
from sickbay.api.duration import parse_duration
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import BreakerState, SlotKind, Step, StepState
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.selectors import selector_matches
from sickbay.apiserver.writes import Write
from sickbay.clock import parse_time
from sickbay.sim.hand import NODES, POOLS, REPAIRS, condition_of, labels_of
from sickbay.sim.world import World

CAPS: dict[str, tuple[str, int | str, int]] = {
    SlotKind.UNAVAILABLE: ("maxUnavailable", "5%", 1),
    SlotKind.REPAIR: ("maxParallelRepairs", 1, 1),
    SlotKind.VALIDATE: ("maxParallelValidations", "10%", 4),
}
"""Setting, default and least number of each kind of slot (api.md, RepairPool)."""


class LimitInvariants:
    """Told of writes by `invariants`; `breach` is told what breaks a rule."""

    def __init__(self, world: World, breach: Callable[[str], None], slack: float) -> None:
        self._world, self._breach, self._slack = world, breach, slack
        self._out_since: dict[str, float] = {}
        """Since when each node, by UID, offers nothing to anybody for a reason that is not ours."""
        self._skew = 0.0
        """How wrong a clock of ours has been so far, in seconds."""
        self._gone: list[tuple[float, Obj]] = []

    # --- nodes

    def node_written(self, write: Write) -> None:
        now = self._world.loop.time()
        if write.new is None:
            if write.old is not None:
                self._gone.append((now, write.old))
            return
        uid = write.new["metadata"]["uid"]
        if not _out(write.new):
            self._out_since.pop(uid, None)
        else:
            self._out_since.setdefault(uid, now)

    def quarantined(self, node: Obj, repair: NodeRepair | None) -> None:
        """We have just closed a node: every pool that binds it must have agreed."""
        if repair is None or self._was_out(node):
            return
        if repair.status.restored is not None and repair.status.step(Step.QUARANTINE).state == StepState.DONE:
            return  # what known automation had taken away is put back: the node was ours
        for pool in self._binding(node, repair):
            if not _holds(pool, repair, SlotKind.UNAVAILABLE):
                self._breach(
                    f"node {node['metadata']['name']} was closed without a slot in pool {pool['metadata']['name']}"
                )

    def _was_out(self, node: Obj) -> bool:
        """Out of service before we came, and so perhaps no loss."""
        if not _offers(node):
            return True
        before = self._world.history.node_at(node["metadata"]["name"], self._world.loop.time() - self._slack - 1e-6)
        same = before is not None and before["metadata"]["uid"] == node["metadata"]["uid"]
        recent = self._out_since.get(node["metadata"]["uid"])
        return (same and before is not None and _out(before)) or (recent is not None and not _marked(node))

    def _binding(self, node: Obj, repair: NodeRepair) -> list[Obj]:
        """The repair's own pool and the envelopes."""
        return [
            pool
            for pool in self._world.store.list(POOLS)
            if (pool["metadata"]["name"] == repair.spec.pool.name or not pool["spec"].get("rule"))
            and selector_matches(pool["spec"].get("nodeSelector"), labels_of(node))
        ]

    # --- steps

    def step_began(self, repair: NodeRepair, step: str) -> None:
        kind = _kind_of(repair, step)
        node = self._world.store.find(NODES, repair.spec.node.name)
        if not kind or node is None or node["metadata"]["uid"] != repair.spec.node.uid:
            return
        for pool in self._binding(node, repair):
            name = pool["metadata"]["name"]
            if not _holds(pool, repair, kind):
                self._breach(f"{repair.metadata.name}: {step} began without a {kind} slot in pool {name}")
        if kind != SlotKind.UNAVAILABLE:
            self._parallel(repair, kind)

    def _parallel(self, repair: NodeRepair, kind: str) -> None:
        """No more run at once than the pool bears, whatever its slots say."""
        pool = self._world.store.find(POOLS, repair.spec.pool.name)
        if pool is None:
            return
        repairs = [msgspec.convert(obj, NodeRepair) for obj in self._world.store.list(REPAIRS)]
        same = [r for r in repairs if r.spec.pool.name == repair.spec.pool.name and not r.ended]
        # A group takes one slot, whatever the number of its members.
        running = len({r.spec.group.id or r.metadata.uid for r in same if _runs(r, kind)})
        limit = self._limit(pool, kind)
        if running > limit:
            word = "repairs" if kind == SlotKind.REPAIR else "validations"
            name = repair.spec.pool.name
            self._breach(f"pool {name}: {running} {word} in parallel, {CAPS[kind][0]} is {limit}")

    # --- pools

    def pool_written(self, old: Obj, new: Obj) -> None:
        self._skew = max([self._skew, *(abs(process.skew) for process in self._world.staff.controllers())])
        before, after = old.get("status") or {}, new.get("status") or {}
        known = {(slot.get("repair"), slot.get("kind")) for slot in before.get("slots") or ()}
        added = [s for s in after.get("slots") or () if (s.get("repair"), s.get("kind")) not in known]
        for slot in added:
            self._added(new, before, after, slot)
        if before.get("breaker") != after.get("breaker"):
            self._breaker(new, before.get("breaker") or {}, after.get("breaker") or {})

    def _added(self, pool: Obj, before: Obj, after: Obj, slot: Obj) -> None:
        kind, name = slot.get("kind", ""), pool["metadata"]["name"]
        if kind not in CAPS:
            return
        open_ = all((s.get("breaker") or {}).get("state") == BreakerState.OPEN for s in (before, after))
        if kind != SlotKind.VALIDATE and open_:
            self._breach(f"pool {name}: {slot.get('repair')} started while the breaker is open")
        slots = [s for s in after.get("slots") or () if s.get("kind") == kind]
        limit = self._limit(pool, kind)
        if kind != SlotKind.UNAVAILABLE:
            if len(slots) > limit:
                self._breach(f"pool {name}: {len(slots)} {kind} slots are given, {CAPS[kind][0]} is {limit}")
            return
        node = self._world.store.find(NODES, slot.get("node", ""))
        if node is None or self._out_since.get(node["metadata"]["uid"]) is not None:
            return
        out = {s.get("node") for s in slots} | {m["metadata"]["name"] for m in self._members(pool) if self._counts(m)}
        if len(out) > limit:
            self._breach(f"pool {name}: {len(out)} nodes out of service, maxUnavailable is {limit}")

    def _counts(self, node: Obj) -> bool:
        """Out of service, and known to be."""
        if _marked(node) and (node.get("spec") or {}).get("unschedulable"):
            return True
        since = self._out_since.get(node["metadata"]["uid"])
        return since is not None and self._world.loop.time() - since >= self._slack

    def _limit(self, pool: Obj, kind: str) -> int:
        setting, usual, least = CAPS[kind]
        value: int | str = (pool.get("spec") or {}).get(setting, usual)
        selector, now = pool["spec"].get("nodeSelector"), self._world.loop.time()
        self._gone = [(at, node) for at, node in self._gone if now - at <= self._slack]
        lately = sum(1 for _, node in self._gone if selector_matches(selector, labels_of(node)))
        return quantity.resolve(value, len(self._members(pool)) + lately, at_least=least)

    def _members(self, pool: Obj) -> list[Obj]:
        selector = (pool.get("spec") or {}).get("nodeSelector")
        return [node for node in self._world.store.list(NODES) if selector_matches(selector, labels_of(node))]

    def _breaker(self, pool: Obj, old: Obj, new: Obj) -> None:
        state, name = (old.get("state", BreakerState.CLOSED), new.get("state", BreakerState.CLOSED)), pool["metadata"]
        if state[0] != BreakerState.OPEN or state[1] == BreakerState.OPEN:
            return
        wanted = (name.get("annotations") or {}).get(names.RESET_BREAKER)
        if state[1] == BreakerState.CLOSED and wanted == old.get("openedAt"):
            return
        spec = pool["spec"].get("breaker") or {}
        if spec.get("reset") == "Manual":
            self._breach(f"pool {name['name']}: the breaker left Open by itself, though reset is Manual")
            return
        cooldown = parse_duration(spec.get("cooldown", "15m")).total_seconds()
        rested = (self._world.clock.now() - parse_time(old["openedAt"])).total_seconds()
        # Whole seconds in the record, and perhaps one controller whose clock was behind and another's that is ahead.
        if rested < cooldown - 1 - 2 * self._skew:
            self._breach(f"pool {name['name']}: the breaker left Open after {rested:g}s, its cooldown is {cooldown:g}s")


def _kind_of(repair: NodeRepair, step: str) -> str:
    """The slot that a step takes when it begins."""
    if step == Step.REPAIR:
        action = ACTIONS.get(repair.status.current.action)
        takes = action is not None and (action.disruptive or action.name.startswith("Restart"))
        return SlotKind.REPAIR if takes and action is not None and not action.parks else ""
    kinds = {Step.QUARANTINE: SlotKind.UNAVAILABLE, Step.DRAIN: SlotKind.REPAIR, Step.VALIDATE: SlotKind.VALIDATE}
    return kinds.get(Step(step), "")


def _runs(repair: NodeRepair, kind: str) -> bool:
    """A step that takes such a slot is running."""
    steps = (Step.VALIDATE,) if kind == SlotKind.VALIDATE else (Step.DRAIN, Step.REPAIR)
    running = [step for step in steps if repair.status.step(step).state == StepState.RUNNING]
    return any(_kind_of(repair, step) == kind for step in running)


def _holds(pool: Obj, repair: NodeRepair, kind: str) -> bool:
    """The repair, or its group, holds such a slot; before Quarantine it is one for this node."""
    slots = (pool.get("status") or {}).get("slots") or ()
    mine = [s for s in slots if s.get("repair") in (repair.metadata.name, repair.spec.group.id) and s["kind"] == kind]
    return any(kind != SlotKind.UNAVAILABLE or slot.get("node") == repair.spec.node.name for slot in mine)


def _marked(node: Obj) -> bool:
    return names.QUARANTINE in (node["metadata"].get("annotations") or {})


def _out(node: Obj) -> bool:
    """Out of service for a reason that is not ours."""
    return not _offers(node) or (bool((node.get("spec") or {}).get("unschedulable")) and not _marked(node))


def _offers(node: Obj) -> bool:
    """Whether the node offered capacity: Ready, with a GPU to allocate where it has any."""
    if condition_of(node, "Ready").get("status") != "True":
        return False
    status = node.get("status") or {}
    total = quantity.parse((status.get("capacity") or {}).get("nvidia.com/gpu", 0))
    return not total or bool(quantity.parse((status.get("allocatable") or {}).get("nvidia.com/gpu", 0)))
