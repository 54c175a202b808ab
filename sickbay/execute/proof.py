"""Repair, judged: has the act been proven, has it ended, is it still under way? No I/O.

A back-end's word is not proof. A reboot counts when the node's boot ID differs from the one recorded before the call;
where a node reports none, when it has gone down and come back since. A reset or a restarted service counts when its
back-end says so; whether it helped, Validate finds out.
"""

from __future__ import annotations

from sickbay.api.actions import ACTIONS
from sickbay.api.core import Node
from sickbay.api.node_repair import NodeRepair
from sickbay.api.words import ReportState, Step
from sickbay.clock import rfc3339
from sickbay.execute.progress import Look, Progress, done, failed
from sickbay.providers.base import ActState, Observation

NEW_BOOT = ("RebootNode", "PowerCycle", "ReprovisionNode", "RedeployNode")
"""Acts whose proof is a boot ID that differs from the one before."""
BOOT_BEFORE, BOOT_ID, WENT_DOWN = "bootBefore", "bootID", "wentDown"
"""Keys of a report's proof."""


def baseline(repair: NodeRepair, node: Node) -> dict[str, str]:
    """What is recorded with the claim of an act, to compare with afterwards. The node is as just read."""
    return {BOOT_BEFORE: node.boot_id} if repair.status.current.step == Step.REPAIR and node.boot_id else {}


def proven(look: Look) -> Progress | None:
    """A new boot proves a reboot, whatever the back-end says or does not say."""
    if look.current.action not in NEW_BOOT:
        return None
    before, now = look.report.proof.get(BOOT_BEFORE, ""), look.node.boot_id
    if before:
        return done(f"the node has booted anew ({now})", {BOOT_ID: now}) if now and now != before else None
    if look.report.proof.get(WENT_DOWN) and look.node.ready:
        return done("the node went down and came back (it reports no boot ID)", {BOOT_ID: now} if now else {})
    return None


def under_way(look: Look, seen: Observation, again: float) -> Progress:
    """Nothing is decided yet."""
    action = look.current.action
    proof = {}
    if action in NEW_BOOT and not look.report.proof.get(BOOT_BEFORE) and not look.node.ready:
        proof = {WENT_DOWN: look.report.proof.get(WENT_DOWN) or rfc3339(look.now)}
    message = seen.message or f"{action} is under way"
    if seen.state is ActState.DONE:
        message = "the back-end says it is done; waiting for the node to boot anew"
    return Progress(ReportState.IN_PROGRESS, message, proof, again=again)


def ended(look: Look, seen: Observation) -> Progress | None:
    """The end that a back-end reports, where its word is enough."""
    if seen.state is ActState.FAILED:
        return failed(seen.message or "the back-end reports a failure", seen.proof)
    if seen.state is ActState.DONE and look.current.action not in NEW_BOOT:
        return done(seen.message or f"{look.current.action} done", seen.proof)
    return None


def too_late(look: Look, seen: Observation, accepted: bool) -> Progress:
    """The deadline has come. `accepted`: the back-end has surely taken the act."""
    action = look.current.action
    if seen.state is ActState.DONE:
        return failed("the back-end says it is done, but the node never booted anew")
    if not accepted or (seen.state in (ActState.UNKNOWN, ActState.ABSENT) and action not in NEW_BOOT):
        return Progress(ReportState.UNKNOWN, f"nobody knows what became of {action}")
    return failed(f"{action} did not end in time: {seen.message or seen.state}")


def unsupported(look: Look) -> Progress:
    """No back-end can do it: people do what waits for third parties anyway, everything else has failed."""
    action, name = look.current.action, look.repair.spec.plan.provider.name
    known = ACTIONS.get(action)
    if known is not None and known.parks and not look.late:
        text = f"{action} is for people: back-end {name} cannot do it. When it is done, boot the node"
        return Progress(ReportState.IN_PROGRESS, text, again=60)
    return failed(f"back-end {name} cannot do {action}")
