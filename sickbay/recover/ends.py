"""How one rank ended: exit code and signal in one form, and whether anybody meant it to end.

Shells and containers show a signal as 128+n, Python's subprocess (torchelastic) as -n, Slurm as 0:n; here a signal is
a signal. That a process was killed says nothing about by whom: out of memory needs proof (reason OOMKilled), and
SIGTERM is what victims of a teardown get, never a cause.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sickbay.api.core import ContainerStatus, Pod, Terminated
from sickbay.clock import parse_time

SIGTERM, SIGKILL, SIGABRT, SIGSEGV, SIGBUS = 15, 9, 6, 11, 7
_NAMES = {SIGTERM: "SIGTERM", SIGKILL: "SIGKILL", SIGABRT: "SIGABRT", SIGSEGV: "SIGSEGV", SIGBUS: "SIGBUS"}
SIGNALS = 64
"""Highest signal number of Linux: exit codes above 128 + 64 are codes of the program's own."""

POLICY_REASONS = ("PreemptionByScheduler", "EvictionByEvictionAPI", "TerminationByKubelet", "DeletionByTaintManager")
"""Reasons of DisruptionTarget that speak of somebody's decision. What a taint manager does depends on the node."""
KUBELET_REASONS = ("Preempting", "Evicted", "NodeShutdown", "Terminated", "Shutdown")
"""status.reason of pods that a kubelet has ended: critical pods need room, pressure, a graceful shutdown."""
ADMISSION_REASONS = ("UnexpectedAdmissionError", "OutOf", "NodeAffinity", "Allocate failed")
"""status.reason of pods that a kubelet would not start: the node does not have what the scheduler thought it has."""


@dataclass(frozen=True)
class End:
    """One rank's end. `code` is the exit code of a plain exit, `signal` the signal of a killed process."""

    rank: str
    node: str
    pod: str
    uid: str
    at: datetime
    attempt: int = 1
    restart: int = 0
    code: int = 0
    signal: int = 0
    how: str = "Exited"
    """Exited | OutOfMemory | Disrupted | Refused (not even started) | Missing (its node does not bring it up) |
    NodeLost | Deleted"""
    reason: str = ""
    log: str = ""
    job: str = ""
    """UID of the job object that the rank belonged to; "" where that is not known."""

    @property
    def terminated(self) -> bool:
        """Asked to end from outside: a victim as long as anything else is there to blame."""
        return self.signal == SIGTERM or self.how in ("Disrupted", "Deleted")

    def words(self) -> str:
        where = f"rank {self.rank} on {self.node or 'no node'}"
        if self.how == "Exited":
            return f"{where}: {outcome(self.code, self.signal)}"
        told = {"OutOfMemory": "out of memory", "NodeLost": "its node was lost", "Deleted": "its pod was deleted"}
        return f"{where}: {told.get(self.how, self.how.lower())}{f' ({self.reason})' if self.reason else ''}"


def normalise(code: int, signal: int = 0) -> tuple[int, int]:
    """(exit code, signal) of a process, of which exactly one is set for a failure."""
    if signal > 0:
        return 0, signal
    if code < 0:
        return 0, -code
    if 128 < code <= 128 + SIGNALS:
        return 0, code - 128
    return code, 0


def outcome(code: int, signal: int) -> str:
    return f"killed by {_NAMES.get(signal, f'signal {signal}')}" if signal else f"exit code {code}"


def end_of(pod: Pod, rank: str, attempt: int, restart: int, now: datetime) -> End | None:
    """How this pod failed; None for one that has not."""
    if pod.phase != "Failed":
        return None
    last = _last(pod)
    code, signal = normalise(last.exit_code, last.signal) if last is not None else (0, 0)
    at = _moment(last.finished_at if last is not None else None) or _disrupted_at(pod) or now
    how, reason = _how(pod, last)
    return End(
        rank=rank,
        node=pod.node_name,
        pod=pod.name,
        uid=pod.uid,
        at=at,
        attempt=attempt,
        restart=restart,
        code=code,
        signal=signal,
        how=how,
        reason=reason,
        log=last.message if last is not None else "",
    )


def _how(pod: Pod, last: Terminated | None) -> tuple[str, str]:
    disrupted = pod.condition("DisruptionTarget")
    if last is not None and last.reason == "OOMKilled":
        return "OutOfMemory", last.reason
    if disrupted is not None and disrupted.status == "True":
        return "Disrupted", disrupted.reason
    if last is not None and last.reason == "ContainerStatusUnknown":
        return "NodeLost", last.reason  # the machine went down with it: nobody saw the container end
    if pod.status.reason.startswith(ADMISSION_REASONS):
        return "Refused", pod.status.reason
    if pod.status.reason in KUBELET_REASONS:
        return "Disrupted", pod.status.reason
    return "Exited", last.reason if last is not None else pod.status.reason


def _last(pod: Pod) -> Terminated | None:
    """The container that failed first; sidecars that were then stopped do not count."""
    return _first(pod.status.container_statuses) or _first(pod.status.init_container_statuses)


def _first(statuses: Iterable[ContainerStatus]) -> Terminated | None:
    ended = [s.state.terminated for s in statuses if s.state.terminated is not None]
    failed = [t for t in ended if t.exit_code or t.signal]
    return min(failed, key=lambda t: t.finished_at or "", default=None)


def _disrupted_at(pod: Pod) -> datetime | None:
    condition = pod.condition("DisruptionTarget") or pod.condition("Ready")
    return _moment(condition.last_transition_time) if condition is not None else None


def _moment(text: str | None) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
