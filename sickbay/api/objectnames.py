"""Names of objects made from other names, legal for every legal node name.

A node's name is a DNS subdomain of up to 253 characters; what we derive must be legal again, and different nodes must
get different names. Names that people read keep the beginning of the node's name; what a cut takes away is made up for
by a UID or a hash.
"""

from __future__ import annotations

import hashlib
import re

SUBDOMAIN_MAX = 253
"""Longest object name, RFC 1123 subdomain."""
LABEL_MAX = 63
"""Longest DNS label, and longest label value."""

_NODE_CUT = 40
_HEX_UID = re.compile(r"[0-9a-f]{8}")


def repair_name(node: str, uid: str, n: int) -> str:
    """Name of the n-th NodeRepair of a node: `<node, cut to 40>-<8 hex of node UID>-<n>`. Two writers of n collide."""
    return f"{cut(node, _NODE_CUT)}-{_short_uid(uid)}-{n}"


def task_name(repair_uid: str, step: str, attempt: int) -> str:
    """Name of the NodeTask of one attempt: `<repair UID>-<step in lower case>-<attempt>`.

    For a domain-wide act the group's id stands in place of the UID.
    """
    return f"{repair_uid.lower()}-{step.lower()}-{attempt}"


def act_key(repair_uid: str, step: str, attempt: int) -> str:
    """Idempotency key of one act: `<repair UID>/<step>/<attempt>`; the group's id for a domain-wide one."""
    return f"{repair_uid}/{step}/{attempt}"


def hook_key(repair_uid: str, step: str, attempt: int, stage: str, hook: str) -> str:
    """Idempotency key of one run of a hook."""
    return f"{act_key(repair_uid, step, attempt)}/{stage}/{hook}"


def hook_job_name(key: str) -> str:
    """Name of the Job of one run of a hook, made from its key: a second one of that run collides."""
    return f"sickbay-hook-{hashlib.sha256(key.encode()).hexdigest()[:20]}"


def job_recovery_name(kind: str, job: str) -> str:
    """Name of a job's JobRecovery: `<kind in lower case>-<job name>`."""
    return fit(f"{kind.lower()}-{job}", SUBDOMAIN_MAX)


def infra_event_name(source: str, id_: str) -> str:
    """Name of the InfraEvent of a provider's event: `<source>-<id>` as far as that is legal, and a hash of both."""
    clean = re.sub(r"[^a-z0-9-]+", "-", f"{source}-{id_}".lower()).strip("-")
    return _hashed(clean, f"{source}/{id_}", LABEL_MAX)


def medik8s_lease_name(node: str) -> str:
    """Name of the node Lease shared with medik8s: `node-<node>`."""
    return fit(f"node-{node}", SUBDOMAIN_MAX)


def label_value(text: str) -> str:
    """`text` as a legal label value, itself where it already is one; cut values stay unique by a hash."""
    clean = re.sub(r"[^A-Za-z0-9_.-]", "-", text).strip("._-")
    if clean == text and len(text) <= LABEL_MAX:
        return text
    return _hashed(clean, text, LABEL_MAX)


def dns_label(text: str) -> str:
    """`text` as a legal DNS label (a group's id), itself where it already is one; otherwise unique by a hash."""
    clean = re.sub(r"[^a-z0-9-]", "-", text.lower()).strip("-")
    if clean == text and len(text) <= LABEL_MAX:
        return text
    return _hashed(clean, text, LABEL_MAX)


def fit(name: str, limit: int) -> str:
    """`name` where it is short enough, otherwise cut and made unique by a hash of the whole."""
    return name if len(name) <= limit else _hashed(name, name, limit)


def cut(name: str, limit: int) -> str:
    """The first `limit` characters, without a trailing '.' or '-', so that '-' may follow."""
    return name[:limit].rstrip(".-_")


def _hashed(clean: str, text: str, limit: int) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    head = cut(clean, limit - 9)
    return f"{head}-{digest}" if head else digest


def _short_uid(uid: str) -> str:
    """The first 8 hex digits of a UID; of its hash where it is no UUID (an imported or hand-made object)."""
    short = uid[:8].lower()
    return short if _HEX_UID.fullmatch(short) else hashlib.sha256(uid.encode()).hexdigest()[:8]
