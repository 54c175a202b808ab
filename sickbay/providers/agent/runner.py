"""Carries out the NodeTasks of one node.

    Pending -> Accepted -> Running -> Done | Failed
           \\-> Refused | Expired

A task is refused unless it names this node's UID and the running boot, is on the allow-list and has not expired. The
object is read afresh just before the act, and the journal is on disk before it. A task that was begun is never begun
again: after a reboot that it asked for the next agent finds it in the journal and reports the new boot as proof; what
was interrupted otherwise is reported as failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta

import msgspec
import structlog

from sickbay.api import kinds
from sickbay.api.node_task import NodeTask, NodeTaskStatus
from sickbay.api.patches import merge_diff
from sickbay.api.words import DIAGNOSE, TaskPhase
from sickbay.clock import Clock, Randomness, parse_time, rfc3339
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer
from sickbay.kube.workqueue import WorkQueue
from sickbay.providers.agent.host import Host, HostError, Proof
from sickbay.providers.agent.journal import Entry, Journal

log = structlog.get_logger(__name__)

ALLOWED = ("RebootNode", "RestartService", "RestartDevicePlugin", "ResetGPU", DIAGNOSE)
"""Acts an agent carries out unless it is configured to do fewer."""
OPEN = (TaskPhase.PENDING, TaskPhase.ACCEPTED, TaskPhase.RUNNING)
EXCLUSIVE = 2
"""From this level on diagnostics load the GPUs: workloads would suffer, and spoil the result."""
REBOOT_PATIENCE = timedelta(minutes=5)
"""After which a reboot that was asked for and has not come is reported as failed."""
LOOK = 10.0


class Refusal(Exception):
    """The task is not carried out; the text says why."""

    def __init__(self, phase: TaskPhase, message: str) -> None:
        super().__init__(message)
        self.phase = phase


class TaskRunner:
    """See the module. `node_uid` gives the UID of this agent's Node, "" while it is not known; `done` is told of each
    task that has ended well."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        randomness: Randomness,
        node: str,
        node_uid: Callable[[], str],
        host: Host,
        journal: Journal,
        allowed: Collection[str] = ALLOWED,
        done: Callable[[NodeTask], None] = lambda _: None,
    ) -> None:
        self._client, self._clock, self._done = client, clock, done
        self._node, self._node_uid = node, node_uid
        self._host, self._journal, self._allowed = host, journal, allowed
        self._tasks: Informer[NodeTask] = Informer(
            client, kinds.NODE_TASK, clock, randomness, fields=f"spec.node.name={node}"
        )
        self._queue: WorkQueue[str] = WorkQueue(clock, randomness, name="tasks", metrics=client.metrics)
        self._came: dict[str, float] = {}
        """When each task came while we were watching, by UID and the clock that nobody sets."""
        self._tasks.on_change(self._changed)

    async def run(self) -> None:
        """Carry out tasks until cancelled, one at a time. First comes what an earlier agent was interrupted in."""
        try:
            await self._host.resume()
        except HostError as error:
            log.warning("not started again", error=str(error))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tasks.run())
            group.create_task(self._queue.run(self._look, workers=1))

    def _changed(self, old: NodeTask | None, new: NodeTask | None) -> None:
        if new is None:
            if old is not None:
                self._came.pop(old.metadata.uid, None)
            return
        if old is None and self._tasks.synced.is_set():
            self._came.setdefault(new.metadata.uid, self._clock.monotonic())
        self._queue.add(new.metadata.name)

    def _expired(self, task: NodeTask) -> bool:
        """Too late to begin.

        Of a task that came while we were watching the time it has is measured from then, so that a wrong clock of this
        host neither shortens nor lengthens it. Of one that was there before us nobody knows how long it has been
        waiting, but the clock.
        """
        expires = parse_time(task.spec.expires) if task.spec.expires else None
        if expires is None:
            return True
        came, made = self._came.get(task.metadata.uid), task.metadata.creation_timestamp
        if came is None or made is None:
            return expires <= self._clock.now()
        return self._clock.monotonic() - came >= (expires - parse_time(made)).total_seconds()

    async def _look(self, name: str) -> float | None:
        known = self._tasks.get(name)
        if known is None or known.status.phase not in OPEN or known.spec.node.name != self._node:
            return None
        if not self._node_uid():
            return LOOK  # our own Node has not been read yet; nothing can be told apart
        try:
            task = await self._client.get(kinds.NODE_TASK, name)
        except errors.NotFound:
            return None
        if task.metadata.uid != known.metadata.uid or task.status.phase not in OPEN:
            return None
        entry = self._journal.find(task.spec.key)
        if entry is not None:
            return await self._finish(task, entry)
        return await self._begin(task)

    async def _begin(self, task: NodeTask) -> float | None:
        try:
            self._check(task)
            blocked = await self._blocked(task)
        except Refusal as refusal:
            await self._write(task, refusal.phase, str(refusal))
            return None
        if blocked:
            await self._write(task, TaskPhase.ACCEPTED, blocked)
            return LOOK
        # The conditional write is the last look: a task that was changed or deleted meanwhile is not carried out.
        task = await self._write(task, TaskPhase.RUNNING, f"{task.spec.action} is carried out")
        entry = self._entry(task)
        self._journal.write(entry)
        return await self._act(task, entry)

    def _check(self, task: NodeTask) -> None:
        spec = task.spec
        if spec.node.uid != self._node_uid():
            raise Refusal(TaskPhase.REFUSED, f"made for a node of UID {spec.node.uid}, this is {self._node_uid()}")
        if spec.node.boot_id != self._host.boot_id():
            raise Refusal(TaskPhase.REFUSED, f"made for boot {spec.node.boot_id}, this is {self._host.boot_id()}")
        if spec.action not in self._allowed:
            raise Refusal(TaskPhase.REFUSED, f"{spec.action} is not on this agent's list: {', '.join(self._allowed)}")
        if task.metadata.deletion_timestamp is not None:
            raise Refusal(TaskPhase.REFUSED, "the task is being deleted")
        if self._expired(task):
            raise Refusal(TaskPhase.EXPIRED, f"expired at {spec.expires}, before it was begun")

    async def _blocked(self, task: NodeTask) -> str:
        """A GPU is reset, or put under load, only when nobody has it open; until then the task waits, and names who."""
        if task.spec.action == DIAGNOSE:
            return await self._in_use() if _level(task) >= EXCLUSIVE or _checks(task) else ""
        if task.spec.action != "ResetGPU":
            return ""
        for device in _devices(task):
            try:
                holders = await self._host.holders(device)
            except HostError as error:
                raise Refusal(TaskPhase.FAILED, f"cannot see who uses {device}: {error}") from None
            if holders:
                return f"{device} is still in use by {', '.join(holders[:5])}"
        return ""

    async def _in_use(self) -> str:
        try:
            users = await self._host.gpu_users()
        except HostError as error:
            raise Refusal(TaskPhase.FAILED, f"cannot see who uses the GPUs: {error}") from None
        return f"GPUs are still in use by {', '.join(users[:5])}" if users else ""

    def _entry(self, task: NodeTask) -> Entry:
        return Entry(
            key=task.spec.key, action=task.spec.action, boot_id=self._host.boot_id(), at=rfc3339(self._clock.now())
        )

    async def _act(self, task: NodeTask, entry: Entry) -> float | None:
        try:
            proof = await self._carry_out(task)
        except HostError as error:
            self._journal.write(msgspec.structs.replace(entry, outcome="Failed", message=str(error)))
            await self._write(task, TaskPhase.FAILED, str(error))
            return None
        if entry.action == "RebootNode":
            return LOOK  # the proof comes with the next boot
        message = proof.get("found") or f"{entry.action} done"
        done = msgspec.structs.replace(entry, outcome="Done", message=message, proof=proof)
        self._journal.write(done)
        self._done(task)
        await self._write(task, TaskPhase.DONE, done.message, proof)
        return None

    async def _carry_out(self, task: NodeTask) -> Proof:
        acts: dict[str, Callable[[NodeTask], Awaitable[Proof]]] = {
            "RebootNode": self._reboot,
            "RestartService": self._restart_service,
            "RestartDevicePlugin": self._restart_device_plugin,
            "ResetGPU": self._reset_gpu,
            DIAGNOSE: self._diagnose,
        }
        act = acts.get(task.spec.action)
        if act is None:
            raise HostError(f"this agent cannot do {task.spec.action}")
        return await act(task)

    async def _reboot(self, _: NodeTask) -> Proof:
        await self._host.reboot()
        return {}

    async def _restart_service(self, task: NodeTask) -> Proof:
        name = task.spec.args.get("service", "")
        if not name:
            raise HostError("args.service is missing: the fault type's rung has to name the service")
        return await self._host.restart_service(name)

    async def _restart_device_plugin(self, _: NodeTask) -> Proof:
        return await self._host.restart_device_plugin()

    async def _reset_gpu(self, task: NodeTask) -> Proof:
        devices = _devices(task)
        if not devices:
            raise HostError("args.devices is missing: no device is known for this fault")
        proof: Proof = {}
        for device in devices:
            proof |= await self._host.reset_gpu(device)
        return proof

    async def _diagnose(self, task: NodeTask) -> Proof:
        """Levels from the first up to the one asked for, then the named checks; what fails ends it."""
        checks = [*map(str, range(1, _level(task) + 1)), *_checks(task)]
        if not checks:
            raise HostError("args.level or args.checks is missing: nothing would be tested")
        for check in checks:
            found = await self._host.diagnose(check)
            if not found.passed:
                return {"result": "fail", "check": check, "found": found.message[:500]}
        return {"result": "pass", "check": ",".join(checks)}

    async def _finish(self, task: NodeTask, entry: Entry) -> float | None:
        """Report what the journal knows of a task that was begun before."""
        if entry.outcome:
            phase = TaskPhase.DONE if entry.outcome == "Done" else TaskPhase.FAILED
            if phase == TaskPhase.DONE:
                self._done(task)
            await self._write(task, phase, entry.message, entry.proof)
            return None
        boot = self._host.boot_id()
        if boot != entry.boot_id and entry.action == "RebootNode":
            await self._write(task, TaskPhase.DONE, "rebooted", {"bootBefore": entry.boot_id, "bootID": boot})
            return None
        if boot == entry.boot_id and entry.action == "RebootNode":
            if self._clock.now() - parse_time(entry.at) < REBOOT_PATIENCE:
                return LOOK
            await self._write(
                task, TaskPhase.FAILED, "a reboot was asked for, and the machine still runs in its old boot"
            )
            return None
        await self._write(
            task, TaskPhase.FAILED, f"interrupted in the middle of {entry.action}; its result is not known"
        )
        return None

    async def _write(self, task: NodeTask, phase: TaskPhase, message: str, proof: Proof | None = None) -> NodeTask:
        """Write the status, on condition that the task is as it was read."""
        now, old = rfc3339(self._clock.now()), task.status
        ended = phase not in OPEN
        new = NodeTaskStatus(
            phase=phase,
            started=old.started or (now if phase == TaskPhase.RUNNING else None),
            finished=now if ended else None,
            boot_id=self._host.boot_id(),
            proof=proof or dict(old.proof),
            output=old.output,
            message=message[:2048],
        )
        patch = merge_diff(msgspec.to_builtins(old), msgspec.to_builtins(new))
        if not patch:
            return task
        meta = {"resourceVersion": task.metadata.resource_version, "uid": task.metadata.uid}
        body = {"metadata": meta, "status": patch}
        written = await self._client.patch_merge(kinds.NODE_TASK, task.metadata.name, body, subresource="status")
        self._tasks.observe_write(written)
        log.info("task", task=task.metadata.name, action=task.spec.action, phase=phase, message=message)
        return written


def _devices(task: NodeTask) -> list[str]:
    return [device for device in task.spec.args.get("devices", "").split(",") if device]


def _level(task: NodeTask) -> int:
    text = task.spec.args.get("level", "")
    return int(text) if text.isdecimal() else 0


def _checks(task: NodeTask) -> list[str]:
    return [name for name in task.spec.args.get("checks", "").split(",") if name]
