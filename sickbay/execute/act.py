"""Repair: dispatch one act under a key, look before repeating, succeed only on proof (`proof`).

What is unknown stays unknown: a call whose answer was lost, and a claim that is not of this term, are looked up by
their key before anything is ever sent again. A back-end that keeps keys can say that it has none: then the act is sent
again under the same key. From any other, a missing act means nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from sickbay.api import kinds, names
from sickbay.api.actions import ACTIONS, domain_wide, needs_empty_node
from sickbay.api.core import Node
from sickbay.api.node_repair import Group, RepairFault
from sickbay.api.repair_rule import DrainOptions
from sickbay.api.words import ReportState, Step, StepState, WaitsFor
from sickbay.clock import Clock
from sickbay.execute import lifecycle, proof
from sickbay.execute.backends import Backend, Backends
from sickbay.execute.company import Company
from sickbay.execute.governor import Governor
from sickbay.execute.guard import Stopped
from sickbay.execute.podfilter import Drain, Fate, judge, unreachable
from sickbay.execute.progress import Look, Progress, Told, failed
from sickbay.kube.client import Client
from sickbay.providers.base import Act as ProviderAct
from sickbay.providers.base import ActState, Ambiguous, Permanent, ProviderError, Target, Transient, Withheld

log = structlog.get_logger(__name__)

LOOK, LOOK_PARKED = 10.0, 60.0
"""Seconds between two looks at an act under way; at one that waits for third parties."""
LOOK_SOON = 1.0
"""Seconds until the first look after a lost answer."""
SENDS = 6
"""How often one act is sent at most. With doubling pauses: about 2.5 minutes."""
PAUSE_FIRST, PAUSE_MOST = 5.0, 60.0


@dataclass
class _Sending:
    """What this process knows of one act in this term."""

    uid: str
    """UID of the repair."""
    ambiguous: bool
    """It may have been accepted: it has to be looked up before anything is sent."""
    accepted: bool = False
    sends: int = 0
    next_at: float = 0.0
    result: Progress | None = None
    """Its end, until that is on record."""


class Repair:
    """Lives for one term: what it remembers of its acts is true only as long as nobody else leads."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        backends: Backends,
        governor: Governor,
        observe: Callable[[Node], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._backends = backends
        self._governor = governor
        self._observe = observe
        self._company = Company(client)
        self._sending: dict[str, _Sending] = {}

    async def look(self, look: Look) -> Progress:
        state = self._sending.setdefault(look.key, _Sending(look.repair.metadata.uid, ambiguous=look.resumed))
        if state.result is None:
            progress = proof.proven(look) or await self._go_on(look, state)
            if not progress.ended:
                return progress
            state.result = progress
        return state.result

    def forget(self, uid: str) -> None:
        """The ends of this repair's acts are on record."""
        for key in [key for key, sending in self._sending.items() if sending.uid == uid]:
            del self._sending[key]

    def keep(self, uids: set[str]) -> None:
        """Forget all repairs but these."""
        self._sending = {key: sending for key, sending in self._sending.items() if sending.uid in uids}

    async def _go_on(self, look: Look, state: _Sending) -> Progress:
        backend = self._backends.choose(look.repair, look.current.action, look.node)
        if backend is None:
            return proof.unsupported(look)
        if state.accepted or state.ambiguous:
            return await self._follow(look, backend, state)
        return await self._send(look, backend, state)

    async def _send(self, look: Look, backend: Backend, state: _Sending) -> Progress:
        now = self._clock.monotonic()
        if look.late:
            return failed(f"{look.current.action} was never accepted: {look.report.message}")
        if now < state.next_at:
            return Progress(ReportState.CLAIMED, look.report.message, again=max(0.1, state.next_at - now))
        await self._prepare(look)
        look.check()
        self._govern(look, count=True)
        state.sends += 1
        state.ambiguous = True  # until an answer is there: this look may be cancelled in the middle of the call
        try:
            await backend.submit(_act(look))
        except Transient as error:
            state.ambiguous = False
            return self._again(state, str(error))
        except Permanent as error:
            return failed(str(error))
        except Withheld as error:
            return failed(f"{look.current.action} was not handed over: {error}", {names.WITHHELD: "true"})
        except Ambiguous as error:
            text = f"the answer was lost ({error}); looking what became of it"
            return Progress(ReportState.IN_PROGRESS, text, again=LOOK_SOON)
        state.accepted, state.ambiguous = True, False
        text = f"{look.current.action} accepted by {backend.name}"
        told = Told(names.step_reason(Step.REPAIR, ReportState.IN_PROGRESS), f"{text}, key {look.key}", warning=False)
        return Progress(ReportState.IN_PROGRESS, text, again=_pace(look), events=(told,))

    async def _prepare(self, look: Look) -> None:
        """What must hold at the moment of the act, looked at on the server; the permit last, and afresh."""
        await look.permit()
        self._govern(look)
        if domain_wide(look.current.action):
            await self._company.require(look.repair)
        if needs_empty_node(look.current.action) and not look.step.allow_undrained:
            await self._check_empty(look)
        if ACTIONS[look.current.action].node_wide:
            shown = (names.MAINTENANCE_IN_PROGRESS, "True", f"{look.current.action} by Sickbay")
            self._observe(await lifecycle.show(self._client, look, shown))
        await look.permit(fresh=True)

    def _govern(self, look: Look, count: bool = False) -> None:
        """Counting and judging must not be torn apart by a wait: other looks go on meanwhile."""
        refusal = self._governor.take(look.key) if count else self._governor.refusal(look.key)
        if refusal:
            raise Stopped(refusal, again=60)

    async def _check_empty(self, look: Look) -> None:
        """A rule without a Drain step leaves that to the owner: wait until only exempted pods are left."""
        if look.repair.status.step(Step.DRAIN).state in (StepState.DONE, StepState.SKIPPED):
            return
        terms = Drain(DrainOptions(), look.now, look.now, unreachable(look.node))
        left, count = [], 0
        members = look.repair.spec.group.members if domain_wide(look.current.action) else []
        for name in members or [look.node.name]:
            pods = await self._client.list(kinds.POD, fields=f"spec.nodeName={name}")
            left += [p for p in pods.items if judge(p, terms).fate in (Fate.GOES, Fate.WAITS, Fate.ENDING)]
            count += len(pods.malformed)
        count += len(left)
        if count:
            named = ", ".join(f"{p.namespace}/{p.name}" for p in left[:3])
            raise Stopped(f"{count} pods are still on the node ({named}), and the rule has no Drain step",
                          WaitsFor.JOB, again=10)  # fmt: skip

    def _again(self, state: _Sending, why: str) -> Progress:
        if state.sends >= SENDS:
            return failed(f"refused {state.sends} times: {why}")
        pause = min(PAUSE_FIRST * (1 << (state.sends - 1)), PAUSE_MOST)
        state.next_at = self._clock.monotonic() + pause
        return Progress(ReportState.CLAIMED, f"refused for now: {why}", again=pause)

    async def _follow(self, look: Look, backend: Backend, state: _Sending) -> Progress:
        look.check()
        try:
            seen = await backend.observe(_act(look))
        except Transient as error:
            text = f"{backend.name} cannot be asked: {error}"
            state_word = ReportState.UNKNOWN if look.late else ReportState.IN_PROGRESS
            return Progress(state_word, text, again=2 * LOOK)
        end = proof.ended(look, seen)
        if end is not None:
            return end
        if seen.state is ActState.ABSENT and backend.keeps_keys:
            return self._not_there(look, state)
        if seen.state is ActState.RUNNING and not seen.begun:
            await self._still_permitted(look, backend, state)
        if seen.state in (ActState.RUNNING, ActState.DONE):
            state.accepted, state.ambiguous = True, False
        if look.late:
            return proof.too_late(look, seen, state.accepted)
        return proof.under_way(look, seen, _pace(look))

    async def _still_permitted(self, look: Look, backend: Backend, state: _Sending) -> None:
        """Accepted, and nobody has begun it: what stops an act stops this one too. It is taken back, and sent again
        under its key when the way is free."""
        try:
            await look.permit()
        except Stopped:
            look.check()
            try:
                await backend.withdraw(_act(look))
            except ProviderError as error:
                log.warning("not withdrawn", key=look.key, error=str(error))
            state.accepted, state.ambiguous, state.sends = False, True, max(0, state.sends - 1)
            raise

    def _not_there(self, look: Look, state: _Sending) -> Progress:
        """The back-end keeps keys and has none: nothing has been accepted."""
        state.accepted = state.ambiguous = False
        if look.late or state.sends >= SENDS:
            return failed(f"{look.current.action} was never accepted, though sent {state.sends} times")
        return Progress(ReportState.CLAIMED, "it was not accepted; sending it again under its key", again=0.2)


def _pace(look: Look) -> float:
    known = ACTIONS.get(look.current.action)
    return LOOK_PARKED if known is not None and known.parks else LOOK


def _devices(faults: list[RepairFault]) -> list[str]:
    """Those that are still at fault; what an earlier act has put right is left alone. All, where none is left."""
    still = [fault for fault in faults if fault.cleared_at is None] or faults
    return sorted({device for fault in still for device in fault.devices})


def _act(look: Look) -> ProviderAct:
    node = look.repair.spec.node
    devices = _devices(look.repair.spec.faults)
    args = dict(look.current.args) | ({"devices": ",".join(devices)} if devices else {})
    group = look.repair.spec.group if domain_wide(look.current.action) else Group()
    return ProviderAct(
        key=look.key,
        action=look.current.action,
        target=Target(
            name=node.name,
            uid=node.uid,
            provider_id=node.provider_id,
            boot_id=look.report.proof.get(proof.BOOT_BEFORE, "") or look.node.boot_id or node.boot_id,
        ),
        repair=look.repair.metadata.name,
        args=args,
        owner=look.repair.metadata.uid,
        members=tuple(group.members),
        timeout=max(60.0, (look.deadline - look.now).total_seconds()),
    )
