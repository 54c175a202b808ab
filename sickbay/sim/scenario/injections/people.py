"""Injections by people who answer Sickbay: approvals, holds, the breaker."""

from __future__ import annotations

from sickbay.api import names
from sickbay.sim.hand import HOLDS, NODES, POOLS
from sickbay.sim.scenario.document import Reader, plain
from sickbay.sim.scenario.injections.nodes import ADMIN
from sickbay.sim.scenario.injections.registry import Act, InjectionError, injection
from sickbay.sim.world import World

GATED = ("Quarantine", "Drain", "Repair", "Unquarantine")


def _answer(args: Reader, word: str) -> Act:
    nodes, by, step = args.names("node"), args.text("by", ADMIN), args.choice("step", GATED)

    def act(world: World) -> None:
        for node in nodes:
            label = _approval_label(world, node, step)
            world.person(by).merge(NODES, node, {"metadata": {"labels": {label: word}}})

    return act


def _approval_label(world: World, node: str, step: str) -> str:
    """The label of the open question, whatever its prefix; without one, that of our own prefix."""
    labels = (world.node(node).get("metadata") or {}).get("labels") or {}
    for key, value in labels.items():
        if key.endswith(f"/{step.lower()}-node") and value == "inquiring":
            return str(key)
    return names.approval_label(names.APPROVAL_PREFIXES["sickbay"], step)


@injection("approve")
def approve(args: Reader) -> Act:
    return _answer(args, "approved")


@injection("deny")
def deny(args: Reader) -> Act:
    return _answer(args, "denied")


@injection("hold")
def hold(args: Reader) -> Act:
    name, spec, by = args.text("name"), args.nested("spec"), args.text("by", ADMIN)
    if spec is None:
        raise args.error("spec", "is missing")
    body = {"metadata": {"name": name}, "spec": plain(spec.mapping)}

    def act(world: World) -> None:
        world.person(by).create(HOLDS, body)

    return act


@injection("release")
def release(args: Reader) -> Act:
    name, by = args.text("name"), args.text("by", ADMIN)

    def act(world: World) -> None:
        world.person(by).delete(HOLDS, name)

    return act


@injection("resetBreaker")
def reset_breaker(args: Reader) -> Act:
    pool, by = args.text("pool"), args.text("by", ADMIN)

    def act(world: World) -> None:
        person = world.person(by)
        opened = ((person.get(POOLS, pool).get("status") or {}).get("breaker") or {}).get("openedAt")
        if not opened:
            raise InjectionError(f"the breaker of pool {pool} is not open: there is no openedAt to reset it with")
        person.merge(POOLS, pool, {"metadata": {"annotations": {names.RESET_BREAKER: opened}}})

    return act
