"""Leader election on a Lease.

`Elector.run(lead)` takes the lease, runs `lead(leadership)` for as long as it holds it, and starts over when it was
lost; `lead` is cancelled and awaited before anything else happens. What writes in the leader's name asks
`leadership.check()` first: cancellation takes a moment, the monotonic clock does not.

Every write is conditional on the version read, so of two that reach for a free lease one gets a Conflict. A renewal
whose answer is lost counts as not made; an acquisition likewise, and the next look finds the lease in our own name.
The identity ends in random digits of this process, so nobody else can have the same.

A Lease that somebody deletes under its holder is not made anew before the holder has noticed, and its next term leaves
room for terms that whoever makes it may have missed. Only a candidate that never saw the Lease can be too early, by at
most the renew deadline; its writes are conditional all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import structlog

from sickbay.api.core import Lease
from sickbay.api.kinds import LEASE
from sickbay.clock import Clock, Randomness, parse_time, rfc3339_micro
from sickbay.kube import errors
from sickbay.kube.client import Client
from sickbay.kube.leadership import Leadership, NotLeading, Observation, next_term
from sickbay.kube.metrics import KubeMetrics

LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 15, 10.0, 2.0
"""Seconds; client-go's defaults. Between deadline and duration lies the safety margin."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds: how long others wait for a silent leader, when it gives up itself, and how often it renews."""

    duration: int = LEASE_DURATION
    deadline: float = RENEW_DEADLINE
    period: float = RETRY_PERIOD


USUAL = LeaseTimes()

TERMS_MISSED = 1000
"""Terms skipped when a deleted Lease is made anew: more than can have passed out of one candidate's sight."""

ABSENCE = 60.0
"""Seconds. Where nobody has led for longer, nobody has watched either: more than a successor needs to take over."""

RELEASE_SECONDS = 5.0
"""How long giving the lease back may take when the process is asked to end."""

log = structlog.get_logger(__name__)

Lead = Callable[[Leadership], Coroutine[Any, Any, None]]


class Elector:
    """See the module. Raises ValueError for times that leave no margin."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        randomness: Randomness,
        *,
        name: str,
        namespace: str,
        identity: str,
        times: LeaseTimes = USUAL,
        on_lost: Callable[[], None] | None = None,
        metrics: KubeMetrics | None = None,
    ) -> None:
        if not 0 < times.period < times.deadline < times.duration:
            raise ValueError(
                f"lease {name}: retry period {times.period:g} s < renew deadline {times.deadline:g} s "
                f"< lease duration {times.duration} s must hold"
            )
        self.identity = f"{identity}_{randomness.hex(8)}"
        self.holder = ""
        self._client = client
        self._clock = clock
        self._randomness = randomness
        self._name, self._namespace = name, namespace
        self._duration, self._deadline, self._period = times.duration, times.deadline, times.period
        self._on_lost = on_lost
        self._metrics = metrics or client.metrics
        self._seen = Observation()
        self._known = False
        self._absent_since: float | None = None
        self._lease: Lease | None = None
        self._term = 0
        self._leadership: Leadership | None = None
        self._metrics.leader.labels(name).set_function(lambda: float(self.is_leader()))

    @property
    def leadership(self) -> Leadership | None:
        """The present term, None while we do not hold the lease."""
        return self._leadership

    def is_leader(self) -> bool:
        """Whether we surely lead at this moment, by the monotonic clock."""
        return self._leadership is not None and self._leadership.valid()

    def check(self) -> None:
        """For whatever writes in the leader's name: raises NotLeading unless we surely lead at this moment."""
        if self._leadership is None:
            raise NotLeading(f"this process does not hold the lease {self._name}")
        self._leadership.check()

    async def run(self, lead: Lead) -> None:
        """Lead whenever we can, until cancelled or until `lead` returns; then give the lease back.

        What `lead` raises ends the run and is raised from it.
        """
        while True:
            leadership = await self.acquire()
            try:
                finished = await self._serve(leadership, lead)
            except BaseException:
                await self._release()
                raise
            if finished:
                await self._release()
                return

    async def acquire(self) -> Leadership:
        """Wait until the lease is ours."""
        while True:
            try:
                leadership = await self._try()
            except errors.ApiError as error:
                log.warning("lease not taken", lease=self._name, error=str(error))
                leadership = None
            if leadership is not None:
                log.info("leading", lease=self._name, term=leadership.term, identity=self.identity)
                return leadership
            await self._clock.sleep(self._period * (1 + self._randomness.uniform(0, 0.2)))

    async def _serve(self, leadership: Leadership, lead: Lead) -> bool:
        """One term. Returns whether `lead` came to its end; False when the lease was lost."""
        work = asyncio.ensure_future(lead(leadership))
        guards = [asyncio.ensure_future(self._renew(leadership)), asyncio.ensure_future(self._watchdog(leadership))]
        try:
            await asyncio.wait({work, *guards}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
                return True
            self._lost(leadership)
            return False
        finally:
            leadership.end()
            self._leadership = None
            await _end([work, *guards])

    async def _renew(self, leadership: Leadership) -> None:
        """Renew every period; returns when the lease is another's."""
        while True:
            await self._clock.sleep(self._period)
            try:
                if not await self._renew_once(leadership):
                    return
            except errors.ApiError as error:
                log.warning("lease not renewed", lease=self._name, error=str(error), left=leadership.remaining())

    async def _renew_once(self, leadership: Leadership) -> bool:
        assert self._lease is not None
        sent = self._clock.monotonic()
        try:
            self._lease = await self._write(self._lease, leadership.term, taking=False)
        except errors.NotFound:
            return False  # deleted: anybody may make it anew at this moment
        except errors.Conflict:
            current = await self._client.get(LEASE, self._name, self._namespace)
            self._note(current)
            self._lease = current
            return current.spec.holder_identity == self.identity  # somebody touched it; the next round renews
        leadership.extend(sent + self._deadline)
        return True

    async def _watchdog(self, leadership: Leadership) -> None:
        """Returns when the term is over by the clock, whatever the network does meanwhile."""
        while (left := leadership.remaining()) > 0:
            await self._clock.sleep(left)

    def _lost(self, leadership: Leadership) -> None:
        leadership.end()
        self._metrics.lease_lost.labels(self._name).inc()
        log.error("lease lost", lease=self._name, term=leadership.term, holder=self.holder)
        if self._on_lost is not None:
            self._on_lost()

    async def _try(self) -> Leadership | None:
        """Take the lease if it is free. Conflict and AlreadyExists mean that another was quicker."""
        sent = self._clock.monotonic()
        try:
            lease = await self._client.get(LEASE, self._name, self._namespace)
        except errors.NotFound:
            return await self._make(sent)
        self._note(lease)
        free = self._seen.expired(lease, self._clock.monotonic())
        if not free and lease.spec.holder_identity != self.identity:
            return None
        term = next_term(lease, self._term)
        sent = self._clock.monotonic()
        self._lease = await self._write(lease, term, taking=True)
        self._count_absence(lease)
        return self._begin(term, sent)

    def _count_absence(self, lease: Lease) -> None:
        """A gap that no watch can tell of: its process was not there. By wall clocks, which is enough for a metric."""
        try:
            away = (self._clock.now() - parse_time(lease.spec.renew_time or "")).total_seconds()
        except ValueError:
            return
        if away > ABSENCE:
            log.warning("nobody has led for a while", lease=self._name, seconds=round(away))
            self._metrics.watch_gaps.labels(LEASE.kind, "absence").inc()

    async def _make(self, sent: float) -> Leadership | None:
        """Make the Lease. One that vanished under its holder is not made anew before the holder has noticed."""
        term = next_term(None, self._term)
        if self._known:
            if self._absent_since is None:
                self._absent_since = self._clock.monotonic()
            if sent < self._absent_since + self._duration:
                return None
            term += TERMS_MISSED
        self._known = True
        body = {"metadata": {"name": self._name, "namespace": self._namespace}, "spec": self._spec(term, True)}
        self._lease = await self._client.create(LEASE, body, self._namespace)
        return self._begin(term, sent)

    def _begin(self, term: int, sent: float) -> Leadership:
        self.holder, self._term = self.identity, term
        self._leadership = Leadership(self._clock, term, sent + self._deadline)
        return self._leadership

    def _note(self, lease: Lease) -> None:
        self._seen.see(lease, self._clock.monotonic())
        self._known, self._absent_since = True, None
        self.holder = lease.spec.holder_identity or ""
        self._term = max(self._term, lease.spec.lease_transitions or 0)

    async def _write(self, lease: Lease, term: int, taking: bool) -> Lease:
        meta = {"resourceVersion": lease.metadata.resource_version}
        body = {"metadata": meta, "spec": self._spec(term, taking)}
        return await self._client.patch_merge(LEASE, self._name, body, self._namespace)

    def _spec(self, term: int, taking: bool) -> dict[str, Any]:
        now = rfc3339_micro(self._clock.now())
        spec: dict[str, Any] = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._duration,
            "renewTime": now,
            "leaseTransitions": term,
        }
        return spec | {"acquireTime": now} if taking else spec

    async def _release(self) -> None:
        """Give the lease back, so that the next need not wait. Best effort: it runs out by itself."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._give_back(lease)
        except (errors.ApiError, TimeoutError) as error:
            log.info("lease not given back", lease=self._name, error=str(error))

    async def _give_back(self, lease: Lease) -> None:
        try:
            await self._free(lease)
        except errors.Conflict:
            # A renewal of ours may have arrived although it was cut off before its answer came.
            lease = await self._client.get(LEASE, self._name, self._namespace)
            if lease.spec.holder_identity == self.identity:
                await self._free(lease)

    async def _free(self, lease: Lease) -> None:
        meta = {"resourceVersion": lease.metadata.resource_version}
        body = {"metadata": meta, "spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
        await self._client.patch_merge(LEASE, self._name, body, self._namespace)


async def _end(tasks: list[asyncio.Future[Any]]) -> None:
    """Cancel and wait; what they raise on the way out was either seen before or comes from the cancellation."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
