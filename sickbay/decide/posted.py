"""Write conditions on the objects that people write, where they say something new."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from sickbay.api import kinds, names
from sickbay.api.core import ObjectReference
from sickbay.api.fault_type import FaultType
from sickbay.api.repair_rule import RepairRule
from sickbay.clock import Clock
from sickbay.decide import plan, standing
from sickbay.decide.sources import Sources
from sickbay.kube.client import Client
from sickbay.kube.events import WARNING, EventRecorder


class Posted:
    """`check` raises when we do not lead. Raises ApiError; a Conflict means: look again."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        sources: Sources,
        recorder: EventRecorder,
        prefixes: Mapping[str, str],
        check: Callable[[], None],
    ) -> None:
        self._client, self._clock, self._sources = client, clock, sources
        self._recorder, self._prefixes, self._check = recorder, prefixes, check
        self._judged: dict[str, tuple[RepairRule, Mapping[str, FaultType], list[standing.Said]]] = {}
        """What was found of each rule, for as long as neither it nor the catalogue changes."""

    async def fault_type(self, name: str) -> None:
        """Conditions of a FaultType."""
        sources = self._sources
        obj = sources.types.get(name)
        if obj is None:
            return
        problem, guard = sources.catalogue.problems.get(name, ""), sources.guard.set_aside.get(name, "")
        said = standing.of_type(obj, problem, guard, sources.guard.failing.get(name, {}))
        if await self._write(kinds.FAULT_TYPE.raw, obj, said) and guard:
            self._event("FaultType", obj, names.MATCHES_TOO_MANY, guard)

    async def rule(self, name: str) -> None:
        """Conditions of a RepairRule."""
        rule = self._sources.rules.get(name)
        if rule is None:
            self._judged.pop(name, None)
            return
        types, known = self._sources.catalogue.types, self._judged.get(name)
        if known is not None and known[0] is rule and known[1] is types:
            said = known[2]
        else:
            said = standing.of_rule(rule, types, lambda r: plan.resolve_prefix(r, self._prefixes))
            self._judged[name] = (rule, types, said)
        await self._write(kinds.REPAIR_RULE.raw, msgspec.to_builtins(rule), said)

    async def _write(
        self, kind: kinds.Kind[dict[str, Any]], obj: Mapping[str, Any], said: Iterable[standing.Said]
    ) -> bool:
        status = standing.status(obj, said, self._clock.now())
        if status is None:
            return False
        self._check()
        meta = obj["metadata"]
        body = {"metadata": {"resourceVersion": meta["resourceVersion"], "uid": meta["uid"]}, "status": status}
        await self._client.patch_merge(kind, meta["name"], body, subresource="status")
        return True

    def _event(self, kind: str, obj: Mapping[str, Any], reason: str, message: str) -> None:
        meta = obj["metadata"]
        about = ObjectReference(api_version=names.API_VERSION, kind=kind, name=meta["name"], uid=meta["uid"])
        self._recorder.event(about, WARNING, reason, message)
