"""Bugs to plant: what somebody might break one day, and what chaos says of it.

Each replaces functions of the product for as long as it is planted. A seed that catches it is recorded beside it in
`test_planted_bugs`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

from sickbay.api import kinds, names
from sickbay.decide import approval, breaker, entering, gate, progress, slots
from sickbay.decide.approval import Answer
from sickbay.execute import claim, guard, validate
from sickbay.execute.attempt import is_current
from sickbay.kube.client import Client
from sickbay.recover import affinity, suspects


def always(_spec: Any) -> bool:
    return True


@dataclass(frozen=True)
class Bug:
    told: str
    """What the invariant says."""
    changes: tuple[tuple[Any, str, Any], ...]
    likely: Callable[[dict[str, Any]], bool] = always
    """Whether a world could show it: which seeds are worth a try."""

    @contextlib.contextmanager
    def planted(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for where, name, instead in self.changes:
                stack.enter_context(mock.patch.object(where, name, instead))
            yield


# --- approvals


def _by_label_alone(node, inquiry, form):
    """The question's binding is not looked at: whatever stands under the label is the answer."""
    value = node.labels.get(form.key_of(inquiry.step), "").lower()
    return {"approved": Answer.APPROVED, "denied": Answer.DENIED}.get(value, approval.answer(node, inquiry, form))


def _denied_is_approved(node, inquiry, form):
    given = approval.answer(node, inquiry, form)
    return Answer.APPROVED if given == Answer.DENIED else given


# --- claims and acts


async def _unclaimed(self, repair, proof):
    """Whoever comes first acts, and says so afterwards."""
    return claim.Claim(repair, resumed=is_current(repair))


_claim = claim.Claims.claim


async def _never_resumed(self, repair, proof):
    """What another process has begun counts as not begun."""
    found = await _claim(self, repair, proof)
    return claim.Claim(found.repair, resumed=False)


async def _delete(self, name, namespace, uid, grace=None):
    """Around the eviction API and its budgets."""
    await self.delete(kinds.POD, name, namespace, uid=uid)


def _gated(spec: dict[str, Any]) -> bool:
    rules = [o for o in spec["objects"] if o["kind"] == "RepairRule"]
    return any("approval" in s for o in rules for entry in o["spec"]["rules"] for s in entry["procedure"])


def _does(*words: str) -> Callable[[dict[str, Any]], bool]:
    return lambda spec: any(entry["do"] in words for entry in spec["timeline"])


def _only(step: str) -> Callable[[dict[str, Any]], bool]:
    return lambda spec: any(
        [s["step"] for s in entry["procedure"]] == [step]
        for o in spec["objects"]
        if o["kind"] == "RepairRule"
        for entry in o["spec"]["rules"]
    )


BUGS: dict[str, Bug] = {
    "a plan that is through closes with its fault still there": Bug(
        "repairs are opened without end", ((entering, "_nothing_more_to_do", lambda work: False),), _only("Drain")
    ),
    "the binding of a question is not looked at": Bug(
        "began without its own approval",
        ((gate, "answer", _by_label_alone),),
        lambda spec: _gated(spec) and any("-node" in str(e.get("set")) for e in spec["timeline"]),
    ),
    "denied is taken for approved": Bug(
        "began without its own approval", ((gate, "answer", _denied_is_approved),), _gated
    ),
    "a cap counts what stands, not what is promised": Bug(
        "nodes out of service, maxUnavailable is", ((slots, "unavailable", lambda view: view.out),)
    ),
    "any reset closes the breaker": Bug(
        "the breaker left Open",
        ((breaker, "_reset_by_hand", lambda pool: names.RESET_BREAKER in pool.metadata.annotations),),
        lambda spec: any(names.RESET_BREAKER in o["metadata"].get("annotations", {}) for o in spec["objects"]),
    ),
    "a person's cancel is forgotten": Bug(
        "a person took the node back",
        (
            (progress, "persons_hand", lambda repair, node: ""),
            (guard, "still_ours", lambda repair, node: True),
        ),
        _does("uncordon", "annotate"),
    ),
    "nobody claims before acting": Bug("is not claimed", ((claim.Claims, "claim", _unclaimed),)),
    "what a dead process has sent is sent again": Bug(
        "came 2 times",
        ((claim.Claims, "claim", _never_resumed),),
        lambda spec: any(f["provider"].get("keys") is False for f in spec["fleet"]),
    ),
    "validation looks at nothing": Bug(
        "Validate passed, and node", ((validate, "node_problems", lambda node, repair: []),)
    ),
    "Holds are not looked at": Bug(
        "under a Hold of level",
        (
            (guard, "check_holds", lambda *arguments: None),
            (entering, "stopped_by_hold", lambda work: False),
            (progress.freeze, "hold_still", lambda work: progress._steps(work)),
        ),
        _does("hold"),
    ),
    "a job is let go before it is fenced off": Bug(
        "which its job suspects",
        (
            (suspects, "isolated", lambda node, uid: True),
            (affinity, "exclude", lambda pod_spec, before, after: None),
        ),
        lambda spec: "recover" in spec["components"] and _does("podExit")(spec),
    ),
    "pods are deleted and not evicted": Bug(
        "allows no disruption",
        ((Client, "evict", _delete),),
        lambda spec: any(o["kind"] == "PodDisruptionBudget" for o in spec["objects"]),
    ),
}
