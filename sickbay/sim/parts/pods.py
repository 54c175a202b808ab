"""Hollow pods: what kubelets do with the pods bound to their nodes.

A pod bound to a node whose kubelet and runtime work runs one second later. It runs until it is told to exit
(`exit_pod`), until `sim.sickbay.dev/run-for` is over, or until it is deleted: then its containers stop after
`sim.sickbay.dev/stop-takes` (a second, unless said) and at the latest when the grace is over, and the kubelet removes
the object. A node that is down does none of this; when it boots, containers of before are gone: pods that may not
restart have failed, the others start again.

All containers of a pod do the same. Exits are those of the first one.

Pods of Jobs come one step further each second, all of a gang together: where one is stalled or its machine is down, the
others wait for it. They report it every ten seconds, where a RecoveryPolicy may want to know, until a test tells their
steps itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sickbay.api.duration import parse_duration
from sickbay.apiserver.errors import Obj
from sickbay.apiserver.writes import Write
from sickbay.clock import rfc3339
from sickbay.sim.hand import NODES, PODS, Hand, condition_of, labels_of
from sickbay.sim.machine import Machine
from sickbay.sim.parts.base import NODE_CONTROLLER, Part, pod_key
from sickbay.sim.parts.disruption import controller_of
from sickbay.sim.stage import Stage

RUN_FOR = "sim.sickbay.dev/run-for"
STOP_TAKES = "sim.sickbay.dev/stop-takes"
STEP = "sickbay.dev/step"
GANGS = ("jobset.sigs.k8s.io/jobset-name", "batch.kubernetes.io/job-name", "job-name")
"""Labels by which pods of one gang know each other."""
POLICIES = "recoverypolicies.sickbay.dev"
KILLED = 137
"""128 + SIGKILL: the exit code of a container that went down with its machine or outlived its grace."""
TERMINATED = 143
SYNC_SECONDS = 10.0
"""The kubelet compares what the API server says of its pods with what it knows (syncPeriod of pkg/kubelet/status)."""

LIVE = ("Pending", "Running")
OF_THE_POD = ("Terminated", "NodeShutdown", "Shutdown", "Preempting", "Evicted", "UnexpectedAdmissionError")
"""Reasons with which a kubelet ends a pod for good, whatever its restartPolicy; they stand in the pod's status."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds that containers take."""

    start: float = 1.0
    stop: float = 1.0
    """Where the pod names no time."""
    restart: float = 10.0
    """The kubelet's first crash-loop back-off; it does not grow here."""
    report: float = 10.0
    """Between two reports of a job's step; 0 for jobs that report none."""


AT_ONCE = Pace(0.0, 0.0, report=0.0)


@dataclass(slots=True)
class _Container:
    """What runs for a pod, in the kubelet's memory."""

    uid: str
    boot_id: str
    started: float | None = None
    due: float = 0.0
    restarts: int = 0
    stopping: float | None = None
    stalled: bool = False
    told: bool = False
    """Its steps are told from outside."""
    reported: float | None = None
    """When it last reported a step."""
    unseen: bool = False
    """The lifecycle controller has called it not ready while its node was out of sight."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ended."""

    code: int
    signal: int = 0
    reason: str = ""
    log: str = ""


class Pods(Part):
    """Keys are `namespace/name`."""

    name = "kubelet-pods"
    user = "system:node"

    def __init__(self, stage: Stage, pace: Pace = Pace()) -> None:
        super().__init__(stage)
        self._pace = pace
        self._containers: dict[str, _Container] = {}
        self._logs: dict[str, list[tuple[datetime, str]]] = {}
        """What pods have written, and when, by UID."""

    def adopt(self, machine: Machine) -> None:
        """Watch a machine: its boots end containers, its silence stops their keeper."""
        machine.listeners.append(lambda what: self._wake_pods_of(machine.name))

    def _wake_pods_of(self, node: str) -> None:
        for pod in self.store.list(PODS, fields=f"spec.nodeName={node}"):
            self.wake(pod_key(pod["metadata"]))

    # --- what the timeline may do

    def exit_pod(self, pod: Obj, code: int, signal: int = 0, reason: str = "", log: str = "") -> None:
        """The pod's container exits now. Nothing happens on a node that is down."""
        machine = self._machine(pod)
        if machine is not None and machine.up:
            self._exit(pod, machine, Exit(code, signal, reason, log))

    def stall_pods(self, pods: Iterable[Obj]) -> None:
        """They keep running, but come no further, and nor do the others of their gangs."""
        stalled = list(pods)
        for pod in stalled:
            container = self._containers.get(pod_key(pod["metadata"]))
            if container is not None:
                self._step_further(pod, container, now=True)
        for pod in stalled:
            container = self._containers.get(pod_key(pod["metadata"]))
            if container is not None:
                container.stalled = True

    def write_log(self, pod: Obj, text: str) -> None:
        """The pod prints these lines and runs on."""
        machine = self._machine(pod)
        if machine is not None and machine.up:
            self._print(pod["metadata"]["uid"], text)

    def _print(self, uid: str, text: str) -> None:
        lines = [line for line in text.splitlines() if line]
        if lines:
            self._logs.setdefault(uid, []).extend((self.clock.now(), line) for line in lines)

    def log_of(self, pod: Obj) -> list[tuple[datetime, str]] | None:
        """What the pod's kubelet gives; None where it does not answer."""
        machine = self._machine(pod)
        if machine is None or not machine.kubelet_works:
            return None
        return self._logs.get(pod["metadata"]["uid"], [])

    def report_step(self, pod: Obj, step: int) -> None:
        """The pod says how far it has come; from then on it says nothing by itself."""
        container = self._containers.get(pod_key(pod["metadata"]))
        if container is not None:
            container.told = True
        self._write_step(pod, step)

    def _write_step(self, pod: Obj, step: int) -> None:
        meta = pod["metadata"]
        patch = {"metadata": {"annotations": {STEP: str(step)}}}
        self._hand(pod).merge(PODS, meta["name"], patch, meta["namespace"])

    # --- one pod

    def heeds(self) -> Iterable[str]:
        return (PODS,)

    def touched(self, write: Write) -> Iterable[str]:
        if write.resource != PODS:
            return ()
        key = f"{write.namespace}/{write.name}"
        if write.user == NODE_CONTROLLER and write.subresource == "status" and key in self._containers:
            self._containers[key].unseen = True
        return (key,)

    def step(self, key: str) -> float | None:
        namespace, _, name = key.partition("/")
        pod = self.store.find(PODS, name, namespace)
        if pod is None:
            gone = self._containers.pop(key, None)
            self._logs.pop(gone.uid if gone is not None else "", None)
            return None
        machine = self._machine(pod)
        if machine is None or not machine.kubelet_works or not machine.runtime_works:
            return None
        container = self._container(key, pod, machine)
        if container.boot_id != machine.boot_id:
            return self._after_boot(pod, machine, container)
        if pod["metadata"].get("deletionTimestamp"):
            return self._stop(pod, machine, container)
        phase = (pod.get("status") or {}).get("phase")
        if phase not in LIVE:
            return None
        if container.started is None:
            return self._start(pod, container)
        return self._run_on(pod, machine, container)

    def _container(self, key: str, pod: Obj, machine: Machine) -> _Container:
        container = self._containers.get(key)
        if container is None or container.uid != pod["metadata"]["uid"]:
            due = self.clock.monotonic() + self._pace.start
            container = self._containers[key] = _Container(pod["metadata"]["uid"], machine.boot_id, due=due)
        return container

    def _start(self, pod: Obj, container: _Container) -> float | None:
        now = self.clock.monotonic()
        if now < container.due:
            return container.due - now
        container.started, container.reported = now, None
        started = rfc3339(self.clock.now())
        state = {"running": {"startedAt": started}}
        self._report(pod, {"phase": "Running", "startTime": started, "podIP": "10.244.0.1"}, state, container, True)
        return 0.0

    def _run_on(self, pod: Obj, machine: Machine, container: _Container) -> float | None:
        again = self._step_further(pod, container)
        if container.unseen:
            again = min(again or SYNC_SECONDS, self._restore(pod, container))
        text = (pod["metadata"].get("annotations") or {}).get(RUN_FOR)
        if not text or container.started is None:
            return again
        left = container.started + parse_duration(text).total_seconds() - self.clock.monotonic()
        if left > 0:
            return left if again is None else min(left, again)
        self._exit(pod, machine, Exit(0))
        return None

    def _restore(self, pod: Obj, container: _Container) -> float:
        """Report once more what the kubelet knows, as it does when the API server says otherwise and its node is seen
        again. Returns the seconds until the next look. What somebody else has made of a pod's status is left alone."""
        node = self.store.find(NODES, pod["spec"]["nodeName"])
        if node is not None and condition_of(node, "Ready").get("status") == "True":
            container.unseen = False
            meta, ready = pod["metadata"], self._condition("Ready", True)
            patch = {"status": {"conditions": [ready]}}
            self._hand(pod).strategic(PODS, meta["name"], patch, meta["namespace"], "status")
        return SYNC_SECONDS

    def _step_further(self, pod: Obj, container: _Container, now: bool = False) -> float | None:
        """Report the step, when that is due; returns the seconds until the next report, None where there is none."""
        every, moment = self._pace.report, self.clock.monotonic()
        if not every or container.started is None or container.told or not self._is_read(pod):
            return None
        if not self._gang_goes_on(pod):
            return every
        last = container.reported if container.reported is not None else container.started + 1.0 - every
        left = last + every - moment
        if left > 0 and not now:
            return left
        container.reported = moment
        self._write_step(pod, max(0, round(moment - container.started)))
        return every

    def _gang_goes_on(self, pod: Obj) -> bool:
        """Whether every live pod of its job runs on a machine that is up, and is not stalled."""
        labels, namespace = labels_of(pod), pod["metadata"]["namespace"]
        key = next((k for k in GANGS if k in labels), "")
        mates = self.store.list(PODS, namespace, labels=f"{key}={labels[key]}") if key else [pod]
        for mate in mates:
            phase = (mate.get("status") or {}).get("phase")
            if phase in ("Succeeded", "Failed"):
                continue
            machine, container = self._machine(mate), self._containers.get(pod_key(mate["metadata"]))
            if phase != "Running" or machine is None or not machine.up or container is None or container.stalled:
                return False
        return True

    def _is_read(self, pod: Obj) -> bool:
        owned = controller_of(pod).get("kind") == "Job"
        return owned and bool(self.store.list(POLICIES, pod["metadata"]["namespace"]))

    def _after_boot(self, pod: Obj, machine: Machine, container: _Container) -> float | None:
        container.boot_id, container.stalled, container.reported = machine.boot_id, False, None
        if pod["metadata"].get("deletionTimestamp"):
            self._remove(pod)
            return None
        if (pod.get("status") or {}).get("phase") not in LIVE or container.started is None:
            return 0.0
        # The back-off is in the kubelet's memory: a boot forgets it.
        self._exit(pod, machine, Exit(KILLED, reason="ContainerStatusUnknown"), booted=True)
        return 0.0

    # --- ends

    def _exit(self, pod: Obj, machine: Machine, how: Exit, booted: bool = False) -> None:
        key = pod_key(pod["metadata"])
        container = self._container(key, pod, machine)
        self._print(container.uid, how.log)
        policy = (pod.get("spec") or {}).get("restartPolicy", "Always")
        if how.reason in OF_THE_POD:
            status = {"phase": "Failed", "reason": how.reason, "message": how.log}
            state = {"terminated": self._terminated(replace(how, reason="Error"))}
            self._report(pod, status, state, container, False)
            return
        state = {"terminated": self._terminated(how)}
        if policy == "Never" or (policy == "OnFailure" and how.code == 0):
            self._report(pod, {"phase": "Succeeded" if how.code == 0 else "Failed"}, state, container, False)
            return
        container.started, container.restarts = None, container.restarts + 1
        container.due = self.clock.monotonic() + (self._pace.start if booted else self._pace.restart)
        self._report(pod, {}, {"waiting": {"reason": "CrashLoopBackOff"}}, container, False, last=state)
        self.wake(key)

    def _terminated(self, how: Exit) -> Obj:
        reason = how.reason or ("Completed" if how.code == 0 else "Error")
        ended: Obj = {"exitCode": how.code, "reason": reason, "finishedAt": rfc3339(self.clock.now())}
        if how.signal:
            ended["signal"] = how.signal
        if how.log:
            ended["message"] = how.log[-4096:]
        return ended

    def _stop(self, pod: Obj, machine: Machine, container: _Container) -> float | None:
        """Told to stop: gone after `stop-takes`, killed when the grace is over."""
        now, meta = self.clock.monotonic(), pod["metadata"]
        if container.stopping is None:
            container.stopping = now
        text = (meta.get("annotations") or {}).get(STOP_TAKES)
        takes = parse_duration(text).total_seconds() if text else self._pace.stop
        grace = float(meta.get("deletionGracePeriodSeconds") or 0)
        left = container.stopping + min(takes, grace) - now
        if left > 0:
            return left
        if (pod.get("status") or {}).get("phase") in LIVE:
            code = TERMINATED if takes <= grace else KILLED
            state = {"terminated": self._terminated(Exit(code, reason="Error"))}
            self._report(pod, {"phase": "Failed"}, state, container, False)
        self._remove(pod)
        return None

    def _remove(self, pod: Obj) -> None:
        meta = pod["metadata"]
        self._hand(pod).discard(PODS, meta["name"], meta["namespace"], uid=meta["uid"], grace=0)

    # --- writing

    def _machine(self, pod: Obj) -> Machine | None:
        return self.stage.machines.get((pod.get("spec") or {}).get("nodeName", ""))

    def _hand(self, pod: Obj) -> Hand:
        return Hand(self.store, f"system:node:{pod['spec'].get('nodeName', '')}", "sim-kubelet", ("system:nodes",))

    def _report(
        self, pod: Obj, status: Obj, state: Obj, container: _Container, ready: bool, last: Obj | None = None
    ) -> None:
        meta = pod["metadata"]
        conditions = [
            self._condition(type_, ready or type_ == "Initialized")
            for type_ in ("Initialized", "Ready", "ContainersReady")
        ]
        statuses: list[dict[str, Any]] = [
            {"name": c["name"], "ready": ready, "restartCount": container.restarts, "image": c.get("image", "")}
            for c in pod["spec"].get("containers") or ()
        ]
        for entry in statuses:
            entry["state"] = state
            if last is not None:
                entry["lastState"] = last
        patch = {"status": {**status, "conditions": conditions, "containerStatuses": statuses}}
        self._hand(pod).strategic(PODS, meta["name"], patch, meta["namespace"], "status")

    def _condition(self, type_: str, true: bool) -> Obj:
        return {
            "type": type_,
            "status": "True" if true else "False",
            "lastProbeTime": None,
            "lastTransitionTime": rfc3339(self.clock.now()),
        }
