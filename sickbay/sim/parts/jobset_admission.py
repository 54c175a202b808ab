"""What the validating webhook of JobSet refuses: changes of a template, but for the few that Kueue needs.

After pkg/webhooks/jobset_webhook.go of sigs.k8s.io/jobset v0.11. The definition itself fixes the policies.
"""

from __future__ import annotations

from copy import deepcopy

from sickbay.apiserver.errors import Obj, StatusError
from sickbay.apiserver.writes import Write
from sickbay.sim.hand import JOB_SETS

OPEN_META = ("labels", "annotations")
OPEN_SPEC = ("nodeSelector", "tolerations", "schedulingGates")
"""Fields of a pod template that may change while the JobSet is suspended, or on its way into or out of that."""


def refuse(write: Write) -> None:
    """For `Store.validate_update`: raises StatusError(403) for an update that the webhook denies."""
    if write.resource != JOB_SETS or write.subresource or write.old is None or write.new is None:
        return
    old, new = write.old.get("spec") or {}, write.new.get("spec") or {}
    free = bool(old.get("suspend") or new.get("suspend"))
    if _fixed(old, free) != _fixed(new, free):
        _deny("spec.replicatedJobs")
    if old.get("managedBy") != new.get("managedBy"):
        _deny("spec.managedBy")


def _fixed(spec: Obj, free: bool) -> list[Obj]:
    """The replicatedJobs without what may change."""
    jobs: list[Obj] = deepcopy(spec.get("replicatedJobs") or [])
    for job in jobs if free else ():
        template = ((job.get("template") or {}).get("spec") or {}).get("template") or {}
        for fields, part in ((OPEN_META, template.get("metadata")), (OPEN_SPEC, template.get("spec"))):
            for field in fields:
                (part or {}).pop(field, None)
        if not template.get("metadata", True):
            del template["metadata"]
    return jobs


def _deny(field: str) -> None:
    webhook = 'admission webhook "vjobset.kb.io" denied the request'
    raise StatusError(403, "Forbidden", f"{webhook}: {field}: Invalid value: field is immutable")
