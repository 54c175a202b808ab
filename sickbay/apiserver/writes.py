"""Who writes, and what a write looks like to those who watch over the store (the simulator's faults, its records)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from sickbay.apiserver.errors import Obj


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated client. `extra` is `userInfo.extra`, as bound service account tokens carry it."""

    user: str
    groups: tuple[str, ...] = ()
    user_agent: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    uid: str = ""
    field_manager: str = ""
    """The name under which writes own fields, where the client gives one."""

    @property
    def manager(self) -> str:
        return self.field_manager or self.user_agent.partition("/")[0] or "unknown"


SYSTEM = Caller("system:apiserver", ("system:masters", "system:authenticated"))
"""Who acts when the store is called directly."""


class Write(msgspec.Struct, frozen=True):
    """One write. `resource` is the group-resource text: `nodes`, `noderepairs.sickbay.dev`.

    Before a write `old` is the object as it is (None when absent) and `new` is what a create or update brings; for a
    patch, a delete and an eviction it is None. After it `old` and `new` are the states before and after; `new` is None
    when the object is gone. A write that changed nothing has `old is new`.
    """

    verb: str
    """create | update | patch | delete | evict"""
    resource: str
    kind: str
    namespace: str
    name: str
    subresource: str
    user: str
    user_agent: str
    old: Obj | None
    new: Obj | None

    def done(self, old: Obj | None, new: Obj | None, *, namespace: str = "", name: str = "") -> Write:
        """The write as it came out; a create may have been given its name and namespace only then."""
        return Write(
            self.verb,
            self.resource,
            self.kind,
            namespace or self.namespace,
            name or self.name,
            self.subresource,
            self.user,
            self.user_agent,
            old,
            new,
        )


Hook = Callable[[Write], None]
