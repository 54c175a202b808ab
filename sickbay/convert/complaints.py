"""What is wrong with the match of a FaultType, told on the FaultType itself: an error there is no fault of a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sickbay.api import kinds
from sickbay.api.meta import Condition
from sickbay.clock import Clock, rfc3339
from sickbay.kube.client import Client
from sickbay.kube.informer import Informer

READABLE = "MatchReadable"
"""Condition of a FaultType: False while the objects it matches cannot be read, or its expression fails on one."""


class Complaints:
    """See the module. `check` raises unless we lead."""

    def __init__(
        self, client: Client, clock: Clock, types: Informer[dict[str, Any]], check: Callable[[], None]
    ) -> None:
        self._client, self._clock, self._types, self._check = client, clock, types, check

    async def tell(self, complaints: Mapping[str, str]) -> None:
        """Bring the condition of each FaultType up to date; "" = nothing to complain of. Raises ApiError."""
        for name, text in sorted(complaints.items()):
            obj = self._types.get(name)
            if obj is None:
                continue  # a built-in type has no object
            status = obj.get("status") or {}
            before = list(status.get("conditions") or ())
            after = _with(before, obj["metadata"].get("generation") or 0, text, rfc3339(self._clock.now()))
            if after == before:
                continue
            self._check()
            meta = {"resourceVersion": obj["metadata"]["resourceVersion"], "uid": obj["metadata"]["uid"]}
            body = {"metadata": meta, "status": {"conditions": after}}
            written = await self._client.patch_merge(kinds.FAULT_TYPE.raw, name, body, subresource="status")
            self._types.observe_write(written)


def _with(before: list[dict[str, Any]], generation: int, text: str, now: str) -> list[dict[str, Any]]:
    """The list with our condition in it; the conditions of others stay as they are."""
    old = next((c for c in before if c.get("type") == READABLE), None)
    status = "False" if text else "True"
    if old is None and not text:
        return before
    same = old is not None and old.get("status") == status
    if same and old is not None and old.get("message", "") == text:
        return before
    made = Condition(
        type=READABLE, status=status, reason="Unreadable" if text else "Readable", message=text,
        observed_generation=generation, last_transition_time=old.get("lastTransitionTime") if same and old else now,
    )  # fmt: skip
    return [c for c in before if c.get("type") != READABLE] + [msgspec.to_builtins(made)]
