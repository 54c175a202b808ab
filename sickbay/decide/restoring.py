"""Our mark, taken away by known automation: put back once, with an alert.

A driver manager or kured uncordons what it has cordoned, and takes our cordon with it. That is no person's word, so the
repair is not cancelled: execute sets cordon, mark and taint again. The second time is taken for a person's, since two
systems that keep undoing each other do more harm than either; and so is everything by a user nobody has named as
automation, or that no admission policy has stamped.

While the mark is off, pods may have come to the node: a drain that was done is done again before anything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from fnmatch import fnmatchcase

from sickbay.api import names
from sickbay.api.core import Node
from sickbay.api.node_repair import Restored
from sickbay.api.nodemarks import TAINT, UNSCHEDULABLE, changed_by
from sickbay.api.words import Step, StepState
from sickbay.clock import rfc3339
from sickbay.decide.hand import persons_hand
from sickbay.decide.work import Work

PATIENCE = timedelta(minutes=10)
"""How long putting it back may take; then the removal counts as a person's."""
LOOK = timedelta(seconds=30)


def automation(node: Node, patterns: Iterable[str]) -> str:
    """The known automation that changed our mark last; "" for anybody else, and where nothing tells."""
    stamp = changed_by(node)
    user, what = stamp.user.lower(), stamp.what.split(",")
    ours = any(word in what for word in (UNSCHEDULABLE, TAINT, names.QUARANTINE))
    return stamp.user if ours and any(fnmatchcase(user, p.lower()) for p in patterns) else ""


def handled(work: Work, hand: str) -> bool:
    """True when this hand is automation's for the first time: the mark is asked to be put back."""
    known = work.status.restored
    if known is not None:
        return not known.done and work.now < work.moment(known.at) + PATIENCE
    user = automation(work.node, work.view.automation)
    if not user or work.view.withdrawn:
        return False  # nothing is put on a node on which nothing may begin
    work.status.restored = Restored(by=user[:512], at=rfc3339(work.now))
    drain = work.state(Step.DRAIN) if work.plan.step(Step.DRAIN) is not None else None
    acted = work.is_state(Step.REPAIR, StepState.RUNNING, StepState.DONE)
    if drain is not None and drain.state == StepState.DONE and not acted:
        drain.state = StepState.WAITING
    text = f"{user} took our mark away ({hand}); it is put back, once"
    work.note(names.MARK_RESTORED, text, warning=True)
    return True


def pending(work: Work) -> bool:
    """True while execute has not put the mark back yet: nothing else is decided."""
    known = work.status.restored
    if known is None or known.done:
        return False
    if not persons_hand(work.repair, work.node):
        known.done = True
        return False
    if work.current.deadline and work.moment(work.current.deadline) <= work.now + LOOK:
        work.current.deadline = rfc3339(work.now + 2 * LOOK)  # this wait is none of the step's
    work.wake(work.now + LOOK)
    return True
