"""Three situations: what breaks when, and how each has to end.

    a GPU fails under a job       the job runs again elsewhere while the node waits for an approval and is repaired
    a connection breaks           the job is restarted where it was; no node is touched
    a GPU asks for a reset soon   the node takes no new job, the one on it ends, then the card is reset

Moments are simulated seconds after everything has come up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sickbay.api import names
from sickbay.sim.demo import fleet
from sickbay.sim.demo.record import Record
from sickbay.sim.hand import JOB_SETS, PODS
from sickbay.sim.world import World

Say = Callable[[str, str], None]

XID_79 = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
XID_63 = "NVRM: Xid (PCI:0000:1b:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping"
BROKEN = "RuntimeError: Connection reset by peer"
ABORTED, ERROR = 134, 1
"""Exit codes: of a process that was killed by SIGABRT, as a watchdog does it, and of any error."""
PATIENCE = 300.0


class Broken(Exception):
    """The story cannot go on; the text says why."""


class Story:
    """See the module."""

    def __init__(self, world: World, record: Record, say: Say) -> None:
        self._world, self._record, self._say = world, record, say
        self._nodes: dict[str, str] = {}
        """The node of each situation."""

    async def happen(self) -> None:
        await self._running("llm", fleet.RANKS, "Running")
        await self._running("eval", 1)
        await self._world.clock.sleep(10)
        await self._degrades()
        await self._world.clock.sleep(20)
        await self._hardware()
        await self._world.clock.sleep(30)
        await self._connection()

    async def _degrades(self) -> None:
        (pod,) = self._ranks("eval")
        node = self._nodes["degrades"] = pod["spec"]["nodeName"]
        self._record.breaks(node, "gpu.xid.63")
        self._say(node, f"kernel: {XID_63}")
        self._world.machine(node).print_kernel(XID_63)
        await self._until(lambda: self._cordoned(node), f"{node} takes no new job")
        self._world.apply(fleet.tune(), "a-researcher")
        self._say("tune", f"submitted, while {node} still runs eval and takes nothing new")

    async def _hardware(self) -> None:
        pod = self._ranks("llm")[1]
        node = self._nodes["hardware"] = pod["spec"]["nodeName"]
        self._record.breaks(node, "gpu.xid.79")
        self._say(node, f"kernel: {XID_79}")
        self._world.machine(node).print_kernel(XID_79)
        self._say("llm", f"{pod['metadata']['name']} on {node}: exit code {ABORTED}")
        self._world.kubelet.exit_pod(pod, ABORTED)
        await self._recovers(1)

    async def _connection(self) -> None:
        pod = self._ranks("llm")[0]
        node = self._nodes["connection"] = pod["spec"]["nodeName"]
        self._say("llm", f"{pod['metadata']['name']} on {node}: {BROKEN}")
        self._world.kubelet.exit_pod(pod, ERROR, log=BROKEN)
        await self._recovers(2)

    # --- waiting

    async def _recovers(self, failures: int) -> None:
        def back() -> bool:
            failed = [f for f in self._record.failures if f.job == "llm"]
            return len(failed) == failures and failed[-1].over

        await self._until(back, "llm runs again")
        await self._running("llm", fleet.RANKS)

    async def _running(self, app: str, ranks: int, phase: str = "") -> None:
        await self._until(
            lambda: len(self._ranks(app)) == ranks and (not phase or self._record.phase(app) == phase),
            f"{ranks} ranks of {app} run",
        )

    async def _until(self, check: Callable[[], bool], what: str) -> None:
        clock = self._world.clock
        begun = clock.monotonic()
        while not check():
            if self._world.problems:
                raise Broken(self._world.problems[0])
            if clock.monotonic() - begun > PATIENCE:
                raise Broken(f"not within {PATIENCE:.0f} simulated seconds: {what}")
            await clock.sleep(1.0)

    def _ranks(self, app: str) -> list[dict[str, Any]]:
        """Running pods of a job, in order of their names."""
        label = f"jobset.sigs.k8s.io/jobset-name={app}" if app == "llm" else f"job-name={app}"
        found = self._world.store.list(PODS, "default", labels=label, fields="status.phase=Running")
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def _cordoned(self, node: str) -> bool:
        return bool((self._world.node(node).get("spec") or {}).get("unschedulable"))

    # --- the end

    def wrong(self) -> list[str]:
        """What did not end as it must; a demo that only looks well would be worth nothing."""
        found = [f"{s.node} ended as {s.outcome}" for s in self._record.stories if s.outcome != "Repaired"]
        verdicts = [f.verdict for f in self._record.failures]
        if verdicts != ["Hardware", "Transient"]:
            found.append(f"the verdicts are {verdicts}")
        found += [f"{node} is still cordoned" for node in self._nodes.values() if self._cordoned(node)]
        touched = {story.node for story in self._record.stories}
        if touched != {self._nodes["degrades"], self._nodes["hardware"]}:
            found.append(f"repairs of {sorted(touched)}")
        landed = {pod["spec"]["nodeName"] for pod in self._ranks("tune")}
        if len(landed) != 2 or self._nodes["degrades"] in landed:
            found.append(f"tune runs on {sorted(landed)}")
        restarted = self._world.store.get(JOB_SETS, "llm", "default")["metadata"]["labels"].get(names.ATTEMPT)
        if restarted != "3":
            found.append(f"llm is at attempt {restarted}")
        return found
