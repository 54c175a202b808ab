"""What a kind does to its objects on the way into the store, beyond what all kinds have in common.

A strategy prepares (defaults, resets, keeps status and spec apart), bumps `metadata.generation` where the kind has
one, validates, and says how long a graceful deletion takes. It is handed an object whose top level and metadata are
private copies; whatever lies deeper is shared with the stored version and must be copied before it is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sickbay.apiserver.errors import Cause, Obj
from sickbay.apiserver.metadata import subdomain_problems

if TYPE_CHECKING:
    from sickbay.apiserver.store import Store


class Strategy:
    """A kind that is plain data: no status of its own, no generation, deleted at once."""

    has_status = False
    generation = False
    returns_deleted = False
    """Whether the answer to a DELETE carries the object instead of a Status."""
    create_on_update = False
    """Whether a PUT of an absent object creates it."""
    unconditional = True
    """Whether a PUT without a resourceVersion is taken; then the last writer wins."""
    name_problems: staticmethod[[str], list[str]] = staticmethod(subdomain_problems)
    """What is asked of a new object's name."""

    def prepare_create(self, obj: Obj, store: Store) -> None:
        if self.has_status:
            obj.pop("status", None)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        if self.has_status:
            keep(new, old, "status")

    def prepare_status(self, new: Obj, old: Obj) -> None:
        keep(new, old, "spec")

    def prepare_finalize(self, new: Obj, old: Obj) -> None:
        """Through the finalize endpoint only `spec` changes."""
        spec = new.get("spec")
        new.clear()
        new.update(old)
        new["metadata"] = dict(old["metadata"])
        if spec is not None:
            new["spec"] = spec

    def appliable(self, config: Obj, subresource: str) -> Obj:
        """What of an applied configuration counts on an endpoint; the rest is owned by nobody."""
        if subresource == "status":
            return {key: value for key, value in config.items() if key != "spec"}
        if self.has_status:
            return {key: value for key, value in config.items() if key != "status"}
        return config

    def changes_generation(self, new: Obj, old: Obj) -> bool:
        return bool(new.get("spec") != old.get("spec"))

    def validate(self, new: Obj, old: Obj | None, subresource: str) -> list[Cause]:
        """`old` is None on create."""
        return []

    def grace(self, obj: Obj, asked: int | None) -> int | None:
        """Seconds between a DELETE and the end; None where the kind is deleted at once."""
        return None


def keep(new: Obj, old: Obj, field: str) -> None:
    """Put `field` back to what it was."""
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


class SpecStatus(Strategy):
    """A kind with a controller behind it: spec by people, status by the controller, generation counts the specs."""

    has_status = True
    generation = True
