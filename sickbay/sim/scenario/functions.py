"""The functions of scenario expressions: what they see of a world.

Each notes what it looked at (`reads`), so that an expression need only be judged again when something it looked at has
changed: a run has thousands of writes and dozens of expressions.

An object that is absent is an empty map: `has(...)`, `.?` and `orValue` work on it, anything else is an error. What an
object of ours leaves out reads as the API says (complete.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from cel_expr_python import cel

from sickbay.api import names
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.sim.hand import EVENTS, HOLDS, NODES, PODS, POOLS, RECOVERIES, REPAIRS, TASKS, condition_of
from sickbay.sim.history import marks_of
from sickbay.sim.scenario.complete import complete
from sickbay.sim.world import World

_T = cel.Type
_MAPS = _T.List(_T.DYN)

PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


class View:
    """The world as expressions see it. `version(read)` grows whenever what `read` names changes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._versions: dict[str, int] = {}
        self.reads: set[str] = set()
        self.absent: dict[str, None] = {}
        """What was asked for and is not there, as people are told."""
        world.store.after_write(self._note)

    def _note(self, write: Write) -> None:
        if write.old is write.new:
            return
        for what in (write.resource, f"{write.resource}/{write.name}"):
            self._versions[what] = self._versions.get(what, 0) + 1

    def forget(self) -> None:
        """The run is over: the library keeps functions, and with them this view, for ever; the world must not stay."""
        del self._world

    def version(self, read: str) -> float:
        if read == "now":
            return self._world.loop.time()
        journal: list[Any] | None = getattr(self._world.journal, read, None)
        return len(journal) if journal is not None else self._versions.get(read, 0)

    def declarations(self) -> list[Any]:
        """The functions, for a CEL environment."""
        table: list[tuple[str, Any, list[Any], Callable[..., Any]]] = [
            ("node", _T.DYN, [_T.STRING], self.node),
            ("nodeAt", _T.DYN, [_T.STRING, _T.DURATION], self.node_at),
            ("nodes", _MAPS, [], self.nodes),
            ("same", _T.BOOL, [_T.DYN, _T.DURATION], self.same),
            ("repair", _T.DYN, [_T.DYN], self.repair),
            ("repairs", _MAPS, [_T.DYN], self.repairs),
            ("repairs", _MAPS, [], self.all_repairs),
            ("pool", _T.DYN, [_T.STRING], lambda name: self._object(POOLS, name, what="pool")),
            ("hold", _T.DYN, [_T.STRING], lambda name: self._object(HOLDS, name, what="hold")),
            ("job", _T.DYN, [_T.STRING, _T.STRING, _T.STRING], self.object),
            ("object", _T.DYN, [_T.STRING, _T.STRING, _T.STRING], self.object),
            ("recovery", _T.DYN, [_T.STRING, _T.STRING], self.recovery),
            ("pods", _MAPS, [_T.STRING, _T.STRING], self.pods),
            ("tasks", _MAPS, [_T.DYN], self.tasks),
            ("events", _MAPS, [_T.DYN], self.events),
            ("actions", _MAPS, [_T.DYN], self.actions),
            ("calls", _MAPS, [_T.DYN], self.calls),
            ("writes", _MAPS, [_T.STRING], self.writes),
            ("messages", _MAPS, [], self.messages),
            ("tainted", _T.BOOL, [_T.DYN, _T.STRING], self.tainted),
            ("cordoned", _T.BOOL, [_T.DYN], self.cordoned),
            ("healthy", _T.BOOL, [_T.DYN], self.healthy),
            ("metric", _T.DOUBLE, [_T.STRING, _T.DYN], self.metric),
        ]
        overloads: dict[str, list[Any]] = {}
        for name, result, parameters, function in table:
            overload = cel.Overload(
                f"sim_{name}_{len(parameters)}", return_type=result, parameters=parameters, impl=function
            )
            overloads.setdefault(name, []).append(overload)
        return [cel.FunctionDecl(name, each) for name, each in overloads.items()]

    # --- objects

    def _object(self, resource: str, name: str, namespace: str = "", what: str = "") -> Obj:
        self.reads.add(f"{resource}/{name}")
        found = self._world.store.find(resource, name, namespace)
        return (
            complete(found) if found else self._none(f"there is no {what} {'/'.join(filter(None, (namespace, name)))}")
        )

    def _none(self, told: str) -> Obj:
        """An object that is absent: a map in which nothing is."""
        self.absent[told] = None
        return {}

    def node(self, name: str) -> Obj:
        return self._object(NODES, name, what="node")

    def node_at(self, name: str, at: timedelta) -> Obj:
        self.reads |= {f"{NODES}/{name}", "now"}
        found = self._world.history.node_before_us(name, at.total_seconds())
        return complete(found) if found else self._none(f"there was no node {name} at {moment(at.total_seconds())}")

    def nodes(self) -> list[Obj]:
        return list(map(complete, self._all(NODES)))

    def _all(self, resource: str) -> list[Obj]:
        self.reads.add(resource)
        return self._world.store.list(resource)

    def repair(self, node: Any) -> Obj:
        found, name = self.repairs(node), _name(node)
        if found:
            return found[-1]
        known = self._world.store.find(NODES, name)
        return self._none(f"there is no repair of node {name}" + ("" if known else ", and no such node"))

    def repairs(self, node: Any) -> list[Obj]:
        self.reads.add(REPAIRS)
        return list(map(complete, self._world.records_of(REPAIRS, _name(node))))

    def all_repairs(self) -> list[Obj]:
        created = self._world.history.created
        found = sorted(self._all(REPAIRS), key=lambda repair: created.get(repair["metadata"]["uid"], 0.0))
        return list(map(complete, found))

    def tasks(self, node: Any) -> list[Obj]:
        self.reads.add(TASKS)
        return list(map(complete, self._world.records_of(TASKS, _name(node))))

    def object(self, kind: str, namespace: str, name: str) -> Obj:
        target = "/".join(part for part in (kind, namespace, name) if part)
        resource, space, name = self._world.resolve(target)
        return self._object(resource, name, space, what=kind)

    def recovery(self, namespace: str, job: str) -> Obj:
        self.reads.add(RECOVERIES)
        for found in self._world.store.list(RECOVERIES, namespace):
            if ((found.get("spec") or {}).get("job") or {}).get("name") == job:
                return complete(found)
        return self._none(f"there is no recovery of job {namespace}/{job}")

    def pods(self, namespace: str, selector: str) -> list[Obj]:
        self.reads.add(PODS)
        return list(map(complete, self._world.store.list(PODS, namespace, labels=selector)))

    # --- what happened

    def events(self, about: Any) -> list[Obj]:
        self.reads.add(EVENTS)
        name, created = _name(about), self._world.history.created
        found = [
            event for event in self._world.store.list(EVENTS) if (event.get("involvedObject") or {}).get("name") == name
        ]
        found.sort(key=lambda event: created.get(event["metadata"]["uid"], 0.0))
        return [
            {
                "reason": event.get("reason", ""),
                "type": event.get("type", ""),
                "message": event.get("message") or event.get("note") or "",
                "at": moment(created.get(event["metadata"]["uid"], 0.0)),
            }
            for event in found
        ]

    def actions(self, node: Any) -> list[Obj]:
        self.reads.add("actions")
        name = _name(node)
        return [
            {
                "kind": action.kind,
                "node": action.node,
                "nodeUID": action.node_uid,
                "target": action.target,
                "grace": action.grace,
                "at": moment(action.at),
                "key": action.key,
            }
            for action in self._world.journal.actions
            if action.node == name
        ]

    def calls(self, node: Any) -> list[Obj]:
        self.reads.add("calls")
        name = _name(node)
        return [
            {"call": call.call, "answer": call.answer, "at": moment(call.at), "key": call.key}
            for call in self._world.journal.calls
            if call.node == name
        ]

    def writes(self, target: str) -> list[Obj]:
        self.reads |= {"writes", REPAIRS, TASKS}
        if "@" in target:
            target = "/".join((target.partition("@")[0], self._world.resolve(target)[2]))
        return [
            {"verb": write.verb, "by": write.by, "at": moment(write.at)}
            for write in self._world.journal.writes
            if write.object == target
        ]

    def messages(self) -> list[Obj]:
        self.reads.add("messages")
        return [{**asdict(message), "at": moment(message.at)} for message in self._world.journal.messages]

    def metric(self, name: str, labels: dict[str, str]) -> float:
        self.reads.add("now")
        return self._world.staff.metric(name, labels)

    # --- judgements

    def _present(self, node: Any) -> Obj:
        """Raises LookupError where there is no such Node: nothing can be said of it."""
        name = _name(node)
        found = self.node(name)
        if not found:
            raise LookupError(f"there is no node {name}")
        return found

    def same(self, node: Any, at: timedelta) -> bool:
        now, before = self._present(node), self.node_at(_name(node), at)
        if not before:
            raise LookupError(f"there was no node {_name(node)} at {moment(at.total_seconds())}")
        changed = marks_of(before).differences(marks_of(now))
        # What the agent still finds is no trace of a repair: it goes with the fault.
        found = f"annotation {names.DEVICES}: " if not self._sound(now) else None
        return not [change for change in changed if found is None or not change.startswith(found)]

    def tainted(self, node: Any, key: str) -> bool:
        return any(taint["key"] == key for taint in (self._present(node).get("spec") or {}).get("taints") or ())

    def cordoned(self, node: Any) -> bool:
        return bool((self._present(node).get("spec") or {}).get("unschedulable"))

    def healthy(self, node: Any) -> bool:
        """Ready, and no condition that speaks of a fault."""
        found = self._present(node)
        if condition_of(found, "Ready").get("status") != "True":
            return False
        return self._sound(found)

    def _sound(self, node: Obj) -> bool:
        return not any(map(_is_fault, (node.get("status") or {}).get("conditions") or ()))


def _is_fault(condition: Obj) -> bool:
    """Most types say what is wrong when True; those that end in Ready say what is well."""
    type_, status = condition.get("type", ""), condition.get("status")
    if type_ in names.LIFECYCLE_CONDITIONS:
        return False
    return bool(status == "False" if type_.endswith("Ready") else status == "True")


def _name(thing: Any) -> str:
    """A name, or the name of an object that was handed over whole."""
    if isinstance(thing, dict):
        return str((thing.get("metadata") or {}).get("name", ""))
    return str(thing)


def moment(seconds: float) -> str:
    """Seconds since the start as a duration text: 600s, 12.5s."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"
