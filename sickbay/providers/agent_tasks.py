"""The back-end `agent`: acts that the agent on the node carries out, handed over as NodeTasks.

The task's name is made from the act's key, so the same act can never become two tasks; the API server refuses the
second. The agent refuses a task for another boot than its own, which is what keeps a task from being run again after
the reboot it asked for.
"""

from __future__ import annotations

from datetime import timedelta

from sickbay.api import kinds, names
from sickbay.api.objectnames import task_name
from sickbay.api.words import DIAGNOSE, TaskPhase
from sickbay.clock import Clock, rfc3339
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.providers.base import Act, ActState, Ambiguous, Observation, Transient, Withheld

SUPPORTED = frozenset({"RestartService", "RestartDevicePlugin", "ResetGPU", "RebootNode", DIAGNOSE})

STATES = {
    TaskPhase.PENDING: ActState.RUNNING,
    TaskPhase.ACCEPTED: ActState.RUNNING,
    TaskPhase.RUNNING: ActState.RUNNING,
    TaskPhase.DONE: ActState.DONE,
    TaskPhase.FAILED: ActState.FAILED,
    TaskPhase.REFUSED: ActState.FAILED,
    TaskPhase.EXPIRED: ActState.FAILED,
}


class AgentTasks:
    """Hands acts to the agents of the nodes."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    @property
    def keeps_keys(self) -> bool:
        return True

    def supports(self, action: str) -> bool:
        return action in SUPPORTED

    async def submit(self, act: Act) -> None:
        """Create the NodeTask; one that is there already under this key is this act."""
        try:
            await self._client.create(kinds.NODE_TASK, self._task(act))
        except errors.AlreadyExists:
            return
        except (errors.Invalid, errors.Forbidden) as error:
            raise Withheld(str(error)) from error
        except (errors.Unreachable, errors.ServerError, errors.MalformedObject) as error:
            raise Ambiguous(str(error)) from error
        except errors.ApiError as error:
            raise Transient(str(error)) from error

    async def observe(self, act: Act) -> Observation:
        try:
            task = await self._client.get(kinds.NODE_TASK, _name(act))
        except errors.NotFound:
            return Observation(ActState.ABSENT, "no such task")
        except errors.ApiError as error:
            raise Transient(str(error)) from error
        status = task.status
        state = STATES.get(TaskPhase(status.phase)) if status.phase in list(TaskPhase) else None
        message = status.message or f"the agent's task is {status.phase}"
        begun = status.phase not in (TaskPhase.PENDING, TaskPhase.ACCEPTED)
        return Observation(state or ActState.UNKNOWN, message, dict(status.proof), begun)

    async def withdraw(self, act: Act) -> None:
        """Delete the task while no agent has begun it; the version read says so at the moment of the delete."""
        try:
            task = await self._client.get(kinds.NODE_TASK, _name(act))
            if task.status.phase in (TaskPhase.PENDING, TaskPhase.ACCEPTED):
                meta = task.metadata
                await self._client.delete(kinds.NODE_TASK, meta.name, "", meta.uid, meta.resource_version)
        except errors.NotFound:
            return
        except errors.ApiError as error:
            raise Transient(str(error)) from error

    def _task(self, act: Act) -> dict[str, object]:
        uid = act.owner or act.key.split("/")[0]
        owner = {"apiVersion": names.API_VERSION, "kind": "NodeRepair", "name": act.repair, "uid": uid}
        expires = self._clock.now() + timedelta(seconds=act.timeout)
        return {
            "metadata": {"name": _name(act), "ownerReferences": [owner]},
            "spec": {
                "node": {"name": act.target.name, "uid": act.target.uid, "bootID": act.target.boot_id},
                "action": act.action,
                "args": act.args,
                "key": act.key,
                "expires": rfc3339(expires),
            },
        }


def _name(act: Act) -> str:
    repair, step, attempt = act.key.split("/")
    return task_name(repair, step, int(attempt))
