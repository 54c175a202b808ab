"""Who speaks to the real API server in tests: people, Kubernetes' own components, kubelets.

People and components carry static tokens. Service accounts are not listed here: their tokens are issued by the server
(`ControlPlane.agent_token`, `ControlPlane.service_account_token`), as in a real cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sickbay.clock import Randomness


@dataclass(frozen=True)
class Identity:
    """A user as the server's token file knows it."""

    user: str
    groups: tuple[str, ...] = ()


# What a test calls the identity -> who that is. Kubelets are named by their user, `system:node:<node>`.
IDENTITIES = {
    "admin": Identity("admin", ("system:masters",)),
    "dev": Identity("dev", ("people",)),
    "alice": Identity("alice", ("people", "gpu-oncall")),
    "nobody": Identity("nobody"),
    "scheduler": Identity("system:kube-scheduler"),
    "controller-manager": Identity("system:kube-controller-manager"),
    "kubelets": Identity("hollow-kubelets"),  # speaks for the kubelets of hollow nodes, by impersonation
    **{f"system:node:node-{n}": Identity(f"system:node:node-{n}", ("system:nodes",)) for n in range(1, 5)},
}


def make_tokens(randomness: Randomness) -> dict[str, str]:
    """A fresh token for each identity: every process on the machine can reach a loopback port."""
    return {name: randomness.hex(40) for name in IDENTITIES}


def write_token_file(path: Path, tokens: dict[str, str]) -> None:
    """The CSV that kube-apiserver reads: token, user, uid, groups."""
    lines = []
    for name, identity in IDENTITIES.items():
        groups = f',"{",".join(identity.groups)}"' if identity.groups else ""
        lines.append(f'{tokens[name]},"{identity.user}","uid-{name}"{groups}\n')
    path.touch(mode=0o600)
    path.write_text("".join(lines))
