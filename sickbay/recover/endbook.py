"""The ends of ranks, remembered from their pods, whose controllers delete them within moments, until they are judged.

Not every end is judged by this process: most jobs of a cluster belong to nobody's policy, and a replica that stands by
judges none. So what nobody asks for goes with time; a job whose pods are still there loses nothing by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from sickbay.api import names
from sickbay.api.core import Pod
from sickbay.clock import Clock
from sickbay.recover.adapters.base import Adapter
from sickbay.recover.ends import End, end_of
from sickbay.recover.job import JobId, number
from sickbay.recover.logs import Reading, read
from sickbay.recover.view import RankPod


class EndBook:
    """See the module."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends: dict[JobId, dict[str, End]] = {}
        """By job and pod UID."""
        self._judged: dict[str, None] = {}
        """UIDs of pods whose ends are judged and that are still there."""
        self._logs: dict[JobId, dict[str, str]] = {}

    def note(self, id_: JobId, adapter: Adapter, pod: Pod, gone: bool) -> None:
        """A pod as it is now, or as it was last."""
        judged = pod.uid in self._judged
        if gone:
            self._judged.pop(pod.uid, None)
        found = None if judged else self._end(adapter, pod, gone)
        if found is not None:
            end = replace(found, job=adapter.owner(pod))
            known = self._ends.setdefault(id_, {})
            if known.get(pod.uid, end).how in (end.how, "Deleted"):
                known[pod.uid] = known.get(pod.uid, end) if end.how == "Deleted" else end

    def _end(self, adapter: Adapter, pod: Pod, gone: bool) -> End | None:
        rank, attempt, restart = adapter.rank(pod), number(pod.labels.get(names.ATTEMPT), 1), adapter.restart(pod)
        found = end_of(pod, rank, attempt, restart, self._clock.now())
        if found is not None or pod.finished or not (gone or pod.deleting):
            return found
        disrupted = pod.condition("DisruptionTarget")
        how = "Disrupted" if disrupted is not None and disrupted.status == "True" else "Deleted"
        reason = disrupted.reason if disrupted is not None else ""
        now = self._clock.now()
        return End(rank, pod.node_name, pod.name, pod.uid, now, attempt, restart, how=how, reason=reason)

    def of(self, id_: JobId, pods: Iterable[RankPod]) -> tuple[End, ...]:
        """All ends of a job that are not judged, those that its pods still show included."""
        found = dict(self._ends.get(id_, {}))
        for each in pods:
            end = end_of(each.pod, each.rank, each.attempt, each.restart, self._clock.now())
            if end is not None and each.pod.uid not in found and each.pod.uid not in self._judged:
                found[each.pod.uid] = replace(end, job=each.job)
        return tuple(found.values())

    def consume(self, id_: JobId, uids: set[str], there: set[str]) -> None:
        """These ends have been judged, and say nothing about what comes after. `there`: UIDs of the job's pods."""
        for uid in uids:
            self._drop(id_, uid)
            if uid in there:
                self._judged[uid] = None

    def jobs(self) -> list[JobId]:
        """Jobs of which something is remembered."""
        return list(self._ends)

    def forget(self, id_: JobId, before: datetime) -> None:
        """Ends of a job that are older than this."""
        for end in list(self._ends.get(id_, {}).values()):
            if end.at < before:
                self._drop(id_, end.uid)

    def _drop(self, id_: JobId, uid: str) -> None:
        for book in (self._ends, self._logs):
            known = book.get(id_, {})
            known.pop(uid, None)
            if not known:
                book.pop(id_, None)

    # --- their logs

    def unread(self, id_: JobId) -> list[End]:
        """Failed ranks whose log nobody has asked for yet."""
        ends, logs = self._ends.get(id_, {}).values(), self._logs.get(id_, {})
        return [e for e in ends if e.how == "Exited" and not e.log and e.uid not in logs]

    def keep_log(self, id_: JobId, end: End, text: str) -> None:
        if end.uid in self._ends.get(id_, {}):
            self._logs.setdefault(id_, {})[end.uid] = text

    def reading(self, id_: JobId, end: End) -> Reading:
        return read(self._logs.get(id_, {}).get(end.uid) or end.log)
