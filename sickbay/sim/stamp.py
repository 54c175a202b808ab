"""The stamp that the admission policy `sickbay-changed-by` puts on Nodes (deploy/admission-stamp.yaml), on our server.

A Node keeps no trace of who uncordoned it. The policy writes down who last changed what we keep on a node, in the same
write, and only while a mark of ours is or was on it. Here the hands of people and other controllers write it, since our
API server runs no mutating policies.
"""

from __future__ import annotations

import json
from typing import Any

from sickbay.api.names import APPROVAL_PREFIXES, CHANGED_BY, GROUP, INQUIRY, QUARANTINE
from sickbay.apiserver.errors import Obj
from sickbay.sim.hand import NODES, Hand


class StampedHand(Hand):
    """A hand whose changes to Nodes carry the stamp."""

    def merge(self, resource: str, name: str, patch: Obj, namespace: str = "", subresource: str = "") -> Obj:
        if resource == NODES:
            patch = self._stamped(name, patch, subresource)
        return super().merge(resource, name, patch, namespace, subresource)

    def _stamped(self, name: str, patch: Obj, subresource: str) -> Obj:
        old = self.find(NODES, name)
        if old is None:
            return patch
        new = self.store.patch(NODES, name, patch, subresource=subresource, caller=self.caller, dry_run=True)
        what = changes(old, new)
        if not what:
            return patch
        meta = dict(patch.get("metadata") or {})
        stamp = json.dumps({"user": self.caller.user, "what": ",".join(what)}, separators=(",", ":"))
        meta["annotations"] = {**(meta.get("annotations") or {}), CHANGED_BY: stamp}
        return {**patch, "metadata": meta}


def changes(old: Obj, new: Obj) -> list[str]:
    """What of ours a write changed, in the words of the stamp; empty where no mark of ours is or was on the node."""
    before, after = _annotations(old), _annotations(new)
    if not any(key in marks for marks in (before, after) for key in (QUARANTINE, INQUIRY)):
        return []
    what = []
    if _spec(old).get("unschedulable", False) != _spec(new).get("unschedulable", False):
        what.append("unschedulable")
    if _our_taints(old) != _our_taints(new):
        what.append("taint")
    what += [key for key in _changed(before, after) if key.startswith(f"{GROUP}/")]
    prefixes = tuple(f"{prefix}/" for prefix in APPROVAL_PREFIXES.values())
    labels = old["metadata"].get("labels") or {}, new["metadata"].get("labels") or {}
    return what + [key for key in _changed(*labels) if key.startswith(prefixes)]


def _changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]


def _annotations(node: Obj) -> dict[str, str]:
    return node["metadata"].get("annotations") or {}


def _spec(node: Obj) -> dict[str, Any]:
    return node.get("spec") or {}


def _our_taints(node: Obj) -> list[Obj]:
    return [taint for taint in _spec(node).get("taints") or () if taint["key"] == QUARANTINE]
