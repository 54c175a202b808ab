"""Repair: dispatch one act under a key, look before repeating, succeed only on proof.

A back-end's word is not proof. A reboot counts when the node's boot ID differs from the one recorded before the call; a
reset or a restarted service when the agent of the node says so with its own proof. What is unknown stays unknown: a
call whose answer was lost is looked up by its key before it is ever sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sickbay.api import kinds, names
from sickbay.api.actions import ACTIONS, needs_empty_node
from sickbay.api.core import Node
from sickbay.api.repair_rule import DrainOptions
from sickbay.api.words import ReportState, Step, StepState
from sickbay.clock import Clock
from sickbay.execute import lifecycle
from sickbay.execute.governor import Governor
from sickbay.execute.guard import Stopped, still_ours
from sickbay.execute.podfilter import Drain, Fate, judge, unreachable
from sickbay.execute.progress import Look, Progress, done, failed
from sickbay.kube.client import Client
from sickbay.providers.base import Act as ProviderAct
from sickbay.providers.base import ActState, Ambiguous, Observation, Permanent, Provider, Target, Transient

LOOK = 5.0
"""Seconds between two looks at an act under way."""
SENDS = 6
"""How often one act is sent while it is refused for a reason that may pass. With doubling pauses: about 2.5 minutes."""
PAUSE_FIRST, PAUSE_MOST = 5.0, 60.0
NEW_BOOT = ("RebootNode", "PowerCycle", "ReprovisionNode", "RedeployNode")
"""Acts whose proof is a boot ID that differs from the one before."""
BY_AGENT = ("RestartService", "RestartDevicePlugin", "ResetGPU", "SetDeviceConfig")
"""Acts inside a running node: only its agent can do them, whatever the back-end of the pool is."""


@dataclass
class _Sending:
    """What this process knows of an act it has sent or tried to send."""

    sends: int = 0
    next_at: float = 0.0
    accepted: bool = False
    ambiguous: bool = False


class Repair:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        providers: Mapping[str, Provider],
        governor: Governor,
        check: Callable[[], None],
        observe: Callable[[Node], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._providers = providers
        self._governor = governor
        self._check = check
        self._observe = observe
        self._sending: dict[str, _Sending] = {}

    async def look(self, look: Look) -> Progress:
        proof = _proven(look)
        if proof is not None:
            return self._end(look, proof)
        name = "agent" if look.current.action in BY_AGENT else look.repair.spec.plan.provider.name
        provider = self._providers.get(name)
        if provider is None or not provider.supports(look.current.action):
            return self._end(look, _unsupported(look, name))
        act = _act(look)
        state = self._sending.setdefault(look.key, _Sending(accepted=look.resumed))
        if state.accepted or state.ambiguous:
            return self._end(look, await self._follow(look, provider, act, state))
        return self._end(look, await self._send(look, provider, act, state))

    def _end(self, look: Look, progress: Progress) -> Progress:
        if progress.ended:
            self._sending.pop(look.key, None)
        return progress

    async def _send(self, look: Look, provider: Provider, act: ProviderAct, state: _Sending) -> Progress:
        now = self._clock.monotonic()
        if look.late:
            return failed("the act was never accepted")
        if now < state.next_at:
            return Progress(ReportState.CLAIMED, look.report.message, again=max(0.1, state.next_at - now))
        await self._last_check(look)
        self._check()
        self._governor.count()
        state.sends += 1
        state.ambiguous = True  # until an answer is there: this look may be cancelled in the middle of the call
        try:
            await provider.submit(act)
        except Transient as error:
            state.ambiguous = False
            return self._again(state, str(error))
        except Permanent as error:
            return failed(str(error))
        except Ambiguous as error:
            return Progress(
                ReportState.IN_PROGRESS, f"the answer was lost ({error}); looking what became of it", again=1
            )
        state.accepted, state.ambiguous = True, False
        return Progress(ReportState.IN_PROGRESS, f"{act.action} accepted by {_name(look)}", again=LOOK)

    async def _last_check(self, look: Look) -> None:
        """What must hold at the moment of the act, looked at on the server."""
        node = await self._client.get(kinds.NODE, look.node.name)
        if node.uid != look.repair.spec.node.uid or not still_ours(look.repair, node):
            raise Stopped("the node is not held by this repair any more")
        refusal = self._governor.refusal()
        if refusal:
            raise Stopped(refusal)
        if needs_empty_node(look.current.action) and not look.step.allow_undrained:
            await self._check_empty(look)
        if ACTIONS[look.current.action].node_wide:
            text = f"{look.current.action} by Sickbay"
            node = await lifecycle.show(self._client, look, names.MAINTENANCE_IN_PROGRESS, "True", text)
            self._observe(node)

    async def _check_empty(self, look: Look) -> None:
        """A rule without a Drain step leaves that to the owner: wait until only exempted pods are left."""
        drained = look.repair.status.step(Step.DRAIN).state
        if drained in (StepState.DONE, StepState.SKIPPED):
            return
        pods = await self._client.list(kinds.POD, fields=f"spec.nodeName={look.node.name}")
        terms = Drain(DrainOptions(), look.now, look.now, unreachable(look.node))
        left = [p for p in pods.items if judge(p, terms).fate in (Fate.GOES, Fate.WAITS, Fate.ENDING)]
        if left or pods.malformed:
            raise Stopped(f"{len(left)} pods are still on the node, and the rule has no Drain step")

    def _again(self, state: _Sending, why: str) -> Progress:
        if state.sends >= SENDS:
            return failed(f"refused {state.sends} times: {why}")
        pause = min(PAUSE_FIRST * (1 << (state.sends - 1)), PAUSE_MOST)
        state.next_at = self._clock.monotonic() + pause
        return Progress(ReportState.CLAIMED, f"refused for now: {why}", again=pause)

    async def _follow(self, look: Look, provider: Provider, act: ProviderAct, state: _Sending) -> Progress:
        try:
            seen = await provider.observe(act)
        except Transient as error:
            if look.late:
                return Progress(ReportState.UNKNOWN, f"the back-end cannot be asked: {error}")
            return Progress(ReportState.IN_PROGRESS, f"the back-end cannot be asked: {error}", again=LOOK * 2)
        if seen.state is ActState.FAILED:
            return failed(seen.message or "the back-end reports a failure", seen.proof)
        if seen.state is ActState.ABSENT and provider.keeps_keys:
            state.accepted = state.ambiguous = False
            return Progress(ReportState.CLAIMED, "it was not accepted; sending it again under its key", again=0.2)
        if seen.state is ActState.DONE and look.current.action not in NEW_BOOT:
            return done(seen.message or f"{look.current.action} done", seen.proof)
        if look.late:
            return _too_late(look, seen, state)
        return Progress(ReportState.IN_PROGRESS, _waiting(look, seen), again=LOOK)


def _proven(look: Look) -> Progress | None:
    """A new boot ID proves a reboot, whatever the back-end says or does not say."""
    before, now = look.report.proof.get("bootBefore", ""), look.node.boot_id
    if look.current.action in NEW_BOOT and before and now and now != before:
        return done(f"the node has booted anew ({now})", {"bootID": now})
    return None


def _unsupported(look: Look, provider: str) -> Progress:
    action = look.current.action
    if action in ACTIONS and ACTIONS[action].parks and not look.late:
        text = f"{action} is for people: back-end {provider} cannot do it. When it is done, boot the node"
        return Progress(ReportState.IN_PROGRESS, text, again=60)
    return failed(f"back-end {provider} cannot do {action}")


def _too_late(look: Look, seen: Observation, state: _Sending) -> Progress:
    if state.ambiguous or seen.state is ActState.UNKNOWN:
        return Progress(ReportState.UNKNOWN, f"nobody knows what became of {look.current.action}")
    if seen.state is ActState.DONE:
        return failed("the back-end says it is done, but the boot ID never changed")
    return failed(f"{look.current.action} did not end in time: {seen.message or seen.state}")


def _waiting(look: Look, seen: Observation) -> str:
    if seen.state is ActState.DONE:
        return "the back-end says it is done; waiting for a new boot ID"
    return seen.message or f"{look.current.action} is under way"


def _name(look: Look) -> str:
    return "the agent" if look.current.action in BY_AGENT else look.repair.spec.plan.provider.name


def _act(look: Look) -> ProviderAct:
    node = look.repair.spec.node
    devices = sorted({d for fault in look.repair.spec.faults for d in fault.devices})
    args = dict(look.current.args) | ({"devices": ",".join(devices)} if devices else {})
    return ProviderAct(
        key=look.key,
        action=look.current.action,
        target=Target(
            name=node.name,
            uid=node.uid,
            provider_id=node.provider_id,
            boot_id=look.report.proof.get("bootBefore", "") or node.boot_id,
        ),
        repair=look.repair.metadata.name,
        args=args,
        timeout=max(60.0, (look.deadline - look.now).total_seconds()),
    )
