"""A kubeconfig for a served API server, so that kubectl and other clients find it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml


def kubeconfig(url: str, *, token: str = "", ca: bytes = b"", user: str = "admin", cluster: str = "sickbay") -> str:
    """The file's text. `ca` is the PEM certificate the server's is checked against.

    Over plain HTTP clients ignore the token: the server must know them by its `anonymous` identity.
    """
    server: dict[str, Any] = {"server": url}
    if ca:
        server["certificate-authority-data"] = base64.b64encode(ca).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": server}],
        "users": [{"name": user, "user": {"token": token} if token else {}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user}}],
        "current-context": cluster,
    }
    text: str = yaml.safe_dump(document, sort_keys=False)
    return text


def write_kubeconfig(path: Path, url: str, *, token: str = "", ca: bytes = b"", user: str = "admin") -> None:
    """Write it readable by the owner alone: it holds a credential. The folder must exist."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(kubeconfig(url, token=token, ca=ca, user=user))
