"""Renewing a Lease in one step: what a merge patch of a Lease's `spec` does, without the price of a patch.

Renewals are most of what an API server of ours is asked to write, and each is the same: a few known fields of one kind
are set. Whatever is not exactly that (another field, a version that is not the present one, managed fields) is left to
the ordinary way, which answers it with all its rules; this one has no answer of its own.
"""

from __future__ import annotations

from sickbay.apiserver.errors import Obj
from sickbay.apiserver.store import Store
from sickbay.apiserver.writes import Caller, Write

LEASES = "leases.coordination.k8s.io"
FIELDS = {"holderIdentity": str, "leaseDurationSeconds": int, "renewTime": str, "leaseTransitions": int}
"""What a renewal sets, and of which type."""
KEYS = {"metadata", "spec"}


def renewed(store: Store, name: str, namespace: str, patch: Obj, caller: Caller) -> Obj | None:
    """The renewed Lease; None, with nothing changed, where the patch is for the ordinary way.

    `patch` may set fields of `spec`, under the condition of a `metadata.resourceVersion`, and nothing else. Texts are
    taken as they are: `renewTime` must be RFC 3339 with microseconds, as the ordinary way would store it.
    """
    old = store.find(LEASES, name, namespace) if store.decides else None
    if old is None or not _plain(patch, old):
        return None
    spec: Obj = {**(old.get("spec") or {}), **patch["spec"]}
    if spec == old.get("spec"):
        return None
    kind = store.type(LEASES)
    write = Write("patch", kind.key, kind.kind, namespace, name, "", caller.user, caller.user_agent, old, None)
    store.announce(write)
    stored = store.put(kind, {**old, "spec": spec})
    store.report(write.done(old, stored))
    return stored


def _plain(patch: Obj, old: Obj) -> bool:
    meta, spec = patch.get("metadata"), patch.get("spec")
    before = old["metadata"]
    if meta and meta != {"resourceVersion": before["resourceVersion"]}:
        return False
    if "managedFields" in before or "deletionTimestamp" in before or not patch.keys() <= KEYS:
        return False
    if not isinstance(spec, dict):
        return False
    return all(type(value) is FIELDS.get(field) for field, value in spec.items())
