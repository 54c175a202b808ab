"""The real JobSet controller beside a control plane: a process outside the cluster, called by the server on loopback.

Its definitions, webhooks and role are those of its module (`tests/controlplane/jobset.py`), changed only where they
name a Service that would lead to it: here the server calls a port on loopback, and trusts a certificate made for it.
As in its own installation the pod webhooks see pods of JobSets alone. It acts under its own service account.
"""

from __future__ import annotations

import base64
import os
import ssl
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2
import yaml

from tests.controlplane.jobset import BINARY
from tests.support.certificates import self_signed
from tests.support.controlplane import ControlPlane
from tests.support.daemon import Daemon
from tests.support.install import apply_file, apply_objects, wait_until_served
from tests.support.ports import free_ports

NAME = "jobset-controller-manager"
NAMESPACE = "jobset-system"
RBAC = "rbac.authorization.k8s.io"
OF_JOBSETS = {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}


class JobSetController:
    """A running controller, within a `with` block."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane, self._from, self._folder = plane, folder, plane.folder / "jobset"
        self._daemon: Daemon | None = None

    def __enter__(self) -> JobSetController:
        self._folder.mkdir(exist_ok=True)
        certificate, _key = self_signed(self._folder)
        webhook, health = free_ports(2)
        apply_file(self._plane, self._from / "crds.yaml")
        wait_until_served(self._plane)
        self._start(webhook, health)
        apply_objects(self._plane, *self._webhooks(webhook, certificate.read_bytes()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Its webhooks refuse what they are asked about when it is gone, so they go with it."""
        self._plane.kubectl("delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "jobset")
        if self._daemon is not None:
            self._daemon.stop()

    def _start(self, webhook: int, health: int) -> None:
        apply_objects(self._plane, *self._role())
        token = self._plane.service_account_token(NAMESPACE, NAME)
        config = self._folder / "config.yaml"
        config.write_text(yaml.safe_dump(_configuration(webhook, health, self._folder)))
        environment = {
            **os.environ,
            "KUBECONFIG": str(self._plane.kubeconfig_for_token(NAME, token)),
            "NO_PROXY": "127.0.0.1",
        }
        self._daemon = Daemon(
            NAME,
            [str(self._from / BINARY), f"--config={config}"],
            self._plane.folder / "logs" / "jobset.log",
            lambda: _serves(health, webhook),
            environment,
        )
        self._daemon.start()

    def _role(self) -> list[dict[str, Any]]:
        role = yaml.safe_load((self._from / "role.yaml").read_text())
        role["metadata"]["name"] = NAME
        binding = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
        }
        return [role, binding]

    def _webhooks(self, port: int, certificate: bytes) -> list[dict[str, Any]]:
        found = [obj for obj in yaml.safe_load_all((self._from / "webhooks.yaml").read_text()) if obj]
        for configuration in found:
            configuration["metadata"]["name"] = "jobset"
            for hook in configuration["webhooks"]:
                path = hook["clientConfig"].pop("service")["path"]
                bundle = base64.b64encode(certificate).decode()
                hook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
                if any("pods" in rule["resources"] for rule in hook["rules"]):
                    hook["objectSelector"] = OF_JOBSETS
        return found


def _configuration(webhook: int, health: int, certificates: Path) -> dict[str, Any]:
    return {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"port": webhook, "host": "127.0.0.1", "certDir": str(certificates)},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
    }


def _serves(health: int, webhook: int) -> bool:
    """Well, and its webhooks answer. Their certificate is for the server to judge."""
    try:
        well = httpx2.get(f"http://127.0.0.1:{health}/healthz", trust_env=False, timeout=5.0).status_code == 200
        httpx2.get(f"https://127.0.0.1:{webhook}/", verify=False, trust_env=False, timeout=5.0)
        return well
    except (httpx2.HTTPError, ssl.SSLError):
        return False
