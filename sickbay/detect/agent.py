"""The agent of one node: raw signals in, conditions of its own Node out; and the tasks of its node, carried out.

    kernel log, log files ─► Intake ──┐
    NVML in a child ───────► GpuWatch ┼─► Findings ─► Ledger ─► StatusWriter ─► Node
    systemd ───────────────► units ───┘
    NodeTasks ─────────────► TaskRunner ─► Host

It waits for its Node to appear, takes over what stands there, and reads on where it stopped; after a boot the kernel
log is read from its first message. What an earlier boot left behind is cleared when the new one has proven clean: the
log read to its end, the GPUs seen twice without a loss, and half a minute gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import msgspec
import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from sickbay.api import kinds, names
from sickbay.api.core import Node, ObjectReference
from sickbay.api.node_task import NodeTask
from sickbay.api.words import ClearsBy
from sickbay.clock import Clock, Randomness
from sickbay.detect import gpus, units
from sickbay.detect.alarm import Alarm
from sickbay.detect.devicemap import DeviceMap
from sickbay.detect.findings import Findings
from sickbay.detect.gpus import GpuJudge, GpuProbe
from sickbay.detect.gpuwatch import GpuWatch
from sickbay.detect.intake import Intake
from sickbay.detect.items import item
from sickbay.detect.ledger import Ledger, Mark
from sickbay.detect.rhythm import Rhythm
from sickbay.detect.saved import Saved, Store
from sickbay.detect.sight import Sight
from sickbay.detect.source import Source, SourceError
from sickbay.detect.units import ServiceJudge, ServiceProbe
from sickbay.detect.writer import Desired, StatusWriter
from sickbay.kube.backoff import Backoff
from sickbay.kube.client import Client
from sickbay.kube.events import EventRecorder, reference
from sickbay.kube.informer import Informer
from sickbay.kube.keeper import LeaseKeeper
from sickbay.providers.agent.host import Host
from sickbay.providers.agent.isolation import Isolator
from sickbay.providers.agent.journal import Journal
from sickbay.providers.agent.runner import ALLOWED, TaskRunner

COMPONENT = "sickbay-agent"
SETTLE = 30.0
"""Seconds after start before a new boot counts as clean."""
RESETTLE = 5.0
"""Seconds between two looks whether it does."""
CLEAN_LOOKS = 2
SAVE = 30.0
"""Seconds between two looks whether there is a position to be saved."""
FIRST_LOOK = 10.0
"""Seconds that reading the kernel log waits for the first look at the GPUs, which says what sits where."""

STILL_AWAITED = 60.0
"""Seconds between two log lines that say that the Node is not registered yet."""

_GPUS, _SERVICES = "GPU driver", "services"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class AgentOptions:
    """`identity` is shown in the Lease; `allowed`: acts that tasks may ask for."""

    node: str
    identity: str = ""
    allowed: Collection[str] = ALLOWED


@dataclass(frozen=True)
class Parts:
    """The host as the agent sees it. Without a probe that part is not watched, and not missed."""

    host: Host
    journal: Journal
    store: Store
    sources: Sequence[Source] = ()
    gpus: GpuProbe | None = None
    services: ServiceProbe | None = None
    has_nvswitch: bool = False
    uptime: Callable[[], float] = lambda: float("inf")
    """Seconds since boot."""
    keeper: Callable[..., LeaseKeeper] = LeaseKeeper
    rhythm: Rhythm = field(default_factory=Rhythm)


class Agent:
    """See the module."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        randomness: Randomness,
        options: AgentOptions,
        parts: Parts,
        registry: CollectorRegistry | None = None,
    ) -> None:
        registry = registry or CollectorRegistry()
        self._client, self._clock, self._randomness = client, clock, randomness
        self._options, self._parts, self._name = options, parts, options.node
        self._saved = parts.store.load()
        self._settled, self._node_uid = self._saved.settled, self._saved.node_uid
        self._boot = parts.host.boot_id()
        self._ledger = Ledger(self._boot)
        self._devices = DeviceMap(self._saved.devices)
        self._nodes: Informer[Node] = Informer(
            client, kinds.NODE, clock, randomness.fork(), fields=f"metadata.name={self._name}"
        )
        self._events = EventRecorder(client, clock, randomness.fork(), component=COMPONENT, instance=self._name)
        self._writer = StatusWriter(
            client, clock, randomness.fork(), self._nodes, self._name, self._desired, self._all_written
        )
        self._findings = Findings(self._ledger, self._devices, clock, self._say, registry)
        self._gpus = GpuWatch(self._findings, clock, parts.uptime, self._node, GpuJudge())
        self._services = ServiceJudge(parts.has_nvswitch)
        self._tasks = TaskRunner(
            client, clock, randomness.fork(), self._name, self._uid, parts.host, parts.journal, options.allowed,
            done=self._task_done,
        )  # fmt: skip
        self._isolator = Isolator(parts.host, self._node, clock, randomness.fork(), self._say)
        self._sight = Sight(self._watched(), self._writer.wake)
        self._positions: dict[str, str] = {}
        self._read_at: dict[str, float] = {}
        self._intakes: dict[str, Intake] = {}
        self._started = clock.monotonic()
        self._appeared, self._other_uid, self._looked = asyncio.Event(), Alarm(clock), asyncio.Event()
        self._look_gpus, self._look_services, self._tick = Alarm(clock), Alarm(clock), Alarm(clock)
        self._rhythm = parts.rhythm
        self._wire(registry)

    def _wire(self, registry: CollectorRegistry) -> None:
        self._findings.changed = self._found
        self._findings.look_at_services = self._look_services.ring
        self._nodes.on_change(self._node_changed)
        blind = Gauge("sickbay_agent_blind", "1 while a source cannot be read", registry=registry)
        blind.set_function(lambda: float(self._sight.broken))
        self._lines = Counter("sickbay_agent_lines", "Lines read", ["source"], registry=registry)
        self._lost = Counter("sickbay_agent_lost_records", "Overwritten unread", ["source"], registry=registry)
        age = Gauge("sickbay_agent_read_age_seconds", "Since a source gave an answer", ["source"], registry=registry)
        for source in self._parts.sources:
            age.labels(source.name).set_function(self._age_of(source.name))

    def _age_of(self, source: str) -> Callable[[], float]:
        return lambda: self._clock.monotonic() - self._read_at.get(source, self._started)

    # --- from outside

    def awaited(self) -> list[str]:
        """What start-up waits for, in words; empty when ready."""
        if not self._appeared.is_set():
            return [f"node {self._name} to be registered"]
        return [f"the {name} to be read" for name in self._sight.missing]

    async def run(self) -> None:
        """Detect and act until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._nodes.run())
            await self._nodes.synced.wait()
            await self._await_node()
            self._take_over()
            group.create_task(self._events.run())
            group.create_task(self._writer.run())
            group.create_task(self._keep_lease())
            group.create_task(self._save_now_and_then())
            group.create_task(self._ticking())
            if self._parts.gpus is not None:
                group.create_task(self._watch_gpus(self._parts.gpus))
            if self._parts.services is not None:
                group.create_task(self._watch_services(self._parts.services))
            for source in self._parts.sources:
                group.create_task(self._read(source))
            group.create_task(self._tasks.run())
            group.create_task(self._isolator.run())

    # --- the Node

    async def _await_node(self) -> None:
        """A Node may come late; a name that is written wrongly never does, so the waiting is told."""
        if self._appeared.is_set():
            return
        telling = asyncio.create_task(self._tell_awaited())
        try:
            await self._appeared.wait()
        finally:
            telling.cancel()

    async def _tell_awaited(self) -> None:
        while not self._appeared.is_set():
            log.warning(
                "waiting for the node to be registered", node=self._name,
                remedy="if no node of that name is to come, start the agent with --node NAME; see: kubectl get nodes",
            )  # fmt: skip
            await self._clock.sleep(STILL_AWAITED)

    def _node(self) -> Node | None:
        return self._nodes.get(self._name)

    def _uid(self) -> str:
        node = self._node()
        return node.uid if node is not None else ""

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            if not self._appeared.is_set() or new.uid != self._node_uid:
                # Registered anew: it may be another machine by now, so what it should have is counted afresh.
                self._gpus.most = self._saved.gpus if new.uid == self._node_uid else 0
                self._node_uid = new.uid
                self._other_uid.ring()
            self._appeared.set()
        self._writer.wake()
        self._isolator.wake()
        self._rhythm.stir()

    def _take_over(self) -> None:
        """What stood before: on the Node, and in the saved state."""
        saved, node = self._saved, self._node()
        if not saved.boot_id:
            self._settled = self._boot  # nothing is known of the boot before
        if node is not None:
            self._ledger.adopt(node, saved.marks, saved.written)
        if saved.boot_id == self._boot:
            self._positions = dict(saved.positions)
        else:
            per_boot = {source.name for source in self._parts.sources if source.per_boot}
            self._positions = {name: at for name, at in saved.positions.items() if name not in per_boot}
        self._gpus.resets = frozenset(saved.resets)
        log.info("agent starts", node=self._name, boot=self._boot, standing=len(self._ledger.marks()))
        self._save()  # an agent that dies within seconds must still know after a reboot that there was one

    def _desired(self) -> Desired:
        return Desired([*self._ledger.wanted(), *self._sight.wanted()], self._ledger.devices())

    def _watched(self) -> list[str]:
        watched = [source.name for source in self._parts.sources]
        watched += [_GPUS] if self._parts.gpus is not None else []
        return watched + ([_SERVICES] if self._parts.services is not None else [])

    def _say(self, type_: str, reason: str, message: str, device: str = "") -> None:
        node = self._node()
        related = ObjectReference(kind=names.DEVICE, name=device) if device else None
        if node is not None:
            self._events.event(reference(kinds.NODE, node), type_, reason, message, related=related)

    async def _keep_lease(self) -> None:
        """Renew the Lease, which belongs to the Node and goes with it; for a Node registered anew it is made anew."""
        while True:
            owner = {"apiVersion": "v1", "kind": "Node", "name": self._name, "uid": self._uid()}
            keeper = self._parts.keeper(
                self._client, self._clock, self._randomness, name=self._name, namespace=names.AGENT_LEASES,
                identity=self._options.identity or self._name, owner=owner,
            )  # fmt: skip
            task = asyncio.create_task(keeper.run())
            try:
                uid = self._uid()
                while self._uid() in ("", uid):
                    await self._other_uid.wait()
            finally:
                task.cancel()

    # --- sources

    async def _read(self, source: Source) -> None:
        """Read one source for ever; one that breaks is opened again."""
        if self._parts.gpus is not None and not self._looked.is_set():
            await self._first_look()
        intake = self._intakes[source.name] = Intake(self._findings, source.trust)
        backoff = Backoff(self._randomness, 1.0, 30.0)
        while True:
            try:
                await source.open(self._positions.get(source.name, ""))
                while True:
                    await self._take(source, intake)
                    backoff.reset()
            except SourceError as error:
                self._sight.note(source.name, str(error))
            finally:
                source.close()
            await self._clock.sleep(backoff.next())

    async def _first_look(self) -> None:
        waiting = asyncio.create_task(self._looked.wait())
        timer = asyncio.create_task(self._clock.sleep(FIRST_LOOK))
        try:
            await asyncio.wait([waiting, timer], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            timer.cancel()

    async def _take(self, source: Source, intake: Intake) -> None:
        batch = await source.read()
        if batch.lost:
            self._lost.labels(source.name).inc(batch.lost)
            self._findings.lost(source.name, batch.lost)
        if batch.lines:
            self._lines.labels(source.name).inc(len(batch.lines))
            intake.feed(batch.lines, self._clock.monotonic())
            if intake.next_due is not None:
                self._tick.ring()
        self._positions[source.name] = batch.position
        self._rhythm.stir()
        self._read_at[source.name] = self._clock.monotonic()
        if batch.end or self._sight.has_read(source.name):
            self._sight.note(source.name)
        else:
            await self._clock.sleep(0)  # a long backlog leaves room for the others

    async def _ticking(self) -> None:
        """Report lines that waited for their neighbours in vain, and settle a new boot."""
        while True:
            due = [at for intake in self._intakes.values() if (at := intake.next_due) is not None]
            now = self._clock.monotonic()
            if self._settled != self._boot:
                due.append(max(self._started + SETTLE, now + RESETTLE))
            await self._tick.wait(max(0.0, min(due) - now) if due else None)
            for intake in self._intakes.values():
                intake.tick(self._clock.monotonic())
            self._settle()

    # --- probes

    async def _watch_gpus(self, probe: GpuProbe) -> None:
        while True:
            report = await probe.poll()
            why = self._gpus.take(report)
            self._sight.note(_GPUS, why)
            self._looked.set()
            await self._rhythm.pause(self._look_gpus, gpus.POLL, self._gpus_rest)

    async def _watch_services(self, probe: ServiceProbe) -> None:
        while True:
            try:
                seen = await probe.poll()
            except (OSError, TimeoutError) as error:
                self._sight.note(_SERVICES, str(error) or type(error).__name__)
            else:
                self._sight.note(_SERVICES)
                for judged in self._services.judge(seen, self._clock.monotonic()):
                    if judged.bad:
                        self._service_bad(judged)
                    elif self._ledger.stands(judged.item):
                        self._findings.clear(_is(judged.item), "Recovered")
            await self._rhythm.pause(self._look_services, units.POLL, self._services_rest)

    def _service_bad(self, judged: units.Judged) -> None:
        known = item(judged.item)
        if known.severity in ("Error", "Critical"):
            self._findings.report(known, "", "", judged.detail)
        else:
            self._say("Warning", known.condition, f"{judged.unit}: {judged.detail}")

    def _task_done(self, task: NodeTask) -> None:
        """A task of ours has ended well: a reset GPU is looked at at once, and a clean look clears its faults."""
        if task.spec.action != "ResetGPU":
            return
        for uuid in task.spec.args.get("devices", "").split(","):
            self._gpus.reset_done(uuid)
        self._look_gpus.ring()

    def _found(self, urgent: bool = False) -> None:
        self._writer.wake(urgent)
        self._rhythm.stir()

    # --- when looks would find what they found before

    def _gpus_rest(self) -> bool:
        return self._settled == self._boot and self._gpus.at_rest

    def _services_rest(self) -> bool:
        standing = any(self._ledger.stands(name) for name in units.ITEMS.values())
        return self._services.at_rest and not standing and self._sight.clear

    def _nothing_to_save(self) -> bool:
        return self._writer.clean and self._to_save() == self._saved

    # --- what is over with the boot

    def _settle(self) -> None:
        """A clean start of a new boot is the proof for what an earlier one left behind."""
        if self._settled == self._boot or self._clock.monotonic() - self._started < SETTLE:
            return
        if not self._sight.clear:
            return
        if self._parts.gpus is not None and self._gpus.clean < CLEAN_LOOKS:
            return
        self._settled = self._boot
        self._findings.clear(self._left_behind, "Rebooted")
        self._rhythm.stir()

    def _left_behind(self, mark: Mark) -> bool:
        """True for what only lines told of in an earlier boot; what is looked at is judged by the looks."""
        looked_at = self._parts.gpus is not None and self._gpus.covers(mark)
        looked_at |= self._parts.services is not None and mark.item in units.ITEMS.values()
        return mark.boot != self._boot and not looked_at and item(mark.item).clears_by != ClearsBy.REPLACEMENT

    # --- memory

    def _all_written(self) -> None:
        """The Node says all that is known: from here on a restart may go on where reading is now."""
        self._save()

    async def _save_now_and_then(self) -> None:
        while True:
            await self._rhythm.sleep(self._clock, SAVE, self._nothing_to_save)
            if self._writer.clean:
                self._save()

    def _to_save(self) -> Saved:
        waiting = {name for name, intake in self._intakes.items() if intake.next_due is not None}
        read = {name: at for name, at in self._positions.items() if name not in waiting}
        return Saved(
            boot_id=self._boot,
            settled=self._settled,
            positions=self._saved.positions | read if self._saved.boot_id == self._boot else read,
            devices=self._devices.all(),
            marks=[msgspec.structs.replace(mark) for mark in self._ledger.marks()],
            written=sorted({*self._saved.written, *self._ledger.written}),
            node_uid=self._node_uid,
            gpus=self._gpus.most,
            resets=sorted(self._gpus.resets),
        )

    def _save(self) -> None:
        new = self._to_save()
        if new == self._saved:
            return
        try:
            self._parts.store.save(new)
        except OSError as error:
            log.warning("state not saved; after a restart some lines are read again", error=str(error))
        self._saved = new


def _is(name: str) -> Callable[[Mark], bool]:
    return lambda mark: mark.item == name
