"""Who did what, by the API server's own record: its audit log.

Objects cannot tell: managedFields name clients, not users, and hold nothing after a removal. The log holds each write
of nodes, pods, Leases and our kinds, and each request of our service accounts, with user, User-Agent and answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

WRITES = ("create", "update", "patch", "delete", "deletecollection")

POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "verbs": [*WRITES],
            "resources": [
                {"group": "", "resources": ["nodes", "nodes/*", "pods", "pods/*"]},
                {"group": "coordination.k8s.io"},
                {"group": "sickbay.dev"},
            ],
        },
        {"level": "Metadata", "userGroups": ["system:serviceaccounts:sickbay-system"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One request. `user` is who was acted as, also where that was by impersonation."""

    user: str
    agent: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    received: float
    """Seconds since 1970, by the server's clock."""
    seconds: float
    """How long the answer took."""

    @property
    def done(self) -> bool:
        """Carried out, not refused."""
        return self.code < 400

    @property
    def write(self) -> bool:
        return self.verb in WRITES

    @property
    def ours(self) -> bool:
        """By a process of Sickbay, whatever its identity."""
        return self.agent.startswith("sickbay-")


def write_policy(path: Path) -> None:
    path.write_text(yaml.safe_dump(POLICY))


def read_log(path: Path) -> list[Entry]:
    """All entries; a line that is still being written is left for the next time."""
    if not path.exists():
        return []
    whole, _, _ = path.read_text().rpartition("\n")
    return [_entry(json.loads(line)) for line in whole.splitlines()]


def _entry(event: dict[str, Any]) -> Entry:
    about = event.get("objectRef") or {}
    received, answered = (datetime.fromisoformat(event[k]) for k in ("requestReceivedTimestamp", "stageTimestamp"))
    return Entry(
        user=(event.get("impersonatedUser") or event["user"])["username"],
        agent=event.get("userAgent", ""),
        verb=event["verb"],
        resource=about.get("resource", ""),
        subresource=about.get("subresource", ""),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        code=(event.get("responseStatus") or {}).get("code", 0),
        received=received.timestamp(),
        seconds=(answered - received).total_seconds(),
    )
