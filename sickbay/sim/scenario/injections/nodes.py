"""Injections into Node objects: other people's and other controllers' hands."""

from __future__ import annotations

from sickbay.sim.hand import NODES
from sickbay.sim.scenario.document import Reader
from sickbay.sim.scenario.injections.registry import Act, injection
from sickbay.sim.world import World

ADMIN = "admin"
DETECTOR = "node-problem-detector"


@injection("condition")
def condition(args: Reader) -> Act:
    nodes, by = args.names("node"), args.text("by", DETECTOR)
    written = {
        "type": args.text("type"),
        "status": _status(args),
        "reason": args.text("reason", ""),
        "message": args.text("message", ""),
    }
    written["reason"] = written["reason"] or written["type"]

    def act(world: World) -> None:
        for node in nodes:
            world.set_condition(node, by, written)

    return act


def _status(args: Reader) -> str:
    value = args.need("status")
    if isinstance(value, bool):
        value = str(value)
    if value not in ("True", "False", "Unknown"):
        raise args.error("status", f"must be True, False or Unknown, not {value!r}")
    return str(value)


@injection("deleteNode")
def delete_node(args: Reader) -> Act:
    nodes, by = args.names("node"), args.text("by", ADMIN)

    def act(world: World) -> None:
        for node in nodes:
            world.delete_node(node, by)

    return act


@injection("recreateNode")
def recreate_node(args: Reader) -> Act:
    nodes, provider_id = args.names("node"), args.text("providerID", "")
    keep = args.has("bootID")
    if keep:
        args.choice("bootID", ("keep",))

    def act(world: World) -> None:
        for node in nodes:
            world.recreate_node(node, provider_id, keep_boot=keep)

    return act


@injection("addNodes")
def add_nodes(args: Reader) -> Act:
    pool, count = args.text("pool"), args.integer("nodes", least=1)
    return lambda world: world.add_nodes(pool, count)


def _cordon(args: Reader, unschedulable: bool) -> Act:
    nodes, by = args.names("node"), args.text("by", ADMIN)

    def act(world: World) -> None:
        for node in nodes:
            # kubectl sends exactly this; null removes the field, as an uncordon does.
            world.person(by).merge(NODES, node, {"spec": {"unschedulable": unschedulable or None}})

    return act


@injection("cordon")
def cordon(args: Reader) -> Act:
    return _cordon(args, unschedulable=True)


@injection("uncordon")
def uncordon(args: Reader) -> Act:
    return _cordon(args, unschedulable=False)


def _tainted(args: Reader, word: str) -> tuple[str, ...]:
    """The nodes of a taint: unlike a label, it goes by `node`."""
    if not args.has("node") and "object" in args.mapping:
        name = args.text("object").removeprefix("Node/")
        raise args.error("object", f"unknown key; {word} takes node: {name}")
    return args.names("node")


@injection("taint")
def taint(args: Reader) -> Act:
    nodes, by = _tainted(args, "taint"), args.text("by", ADMIN)
    key, value = args.text("key"), args.text("value", "")
    effect = args.choice("effect", ("NoSchedule", "PreferNoSchedule", "NoExecute"), "NoSchedule")
    added = {"key": key, "effect": effect, **({"value": value} if value else {})}

    def act(world: World) -> None:
        for node in nodes:
            kept = [t for t in world.taints(node) if (t["key"], t["effect"]) != (key, effect)]
            world.person(by).merge(NODES, node, {"spec": {"taints": [*kept, added]}})

    return act


@injection("untaint")
def untaint(args: Reader) -> Act:
    nodes, by, key = _tainted(args, "untaint"), args.text("by", ADMIN), args.text("key")
    value, effect = args.text("value", ""), args.text("effect", "")

    def act(world: World) -> None:
        for node in nodes:
            kept = [
                t
                for t in world.taints(node)
                if t["key"] != key or effect not in ("", t["effect"]) or value not in ("", t.get("value", ""))
            ]
            world.person(by).merge(NODES, node, {"spec": {"taints": kept or None}})

    return act
