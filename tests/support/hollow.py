"""Hollow kubelets for the real API server of the tests.

An identity of their own (`kubelets`) may watch nodes and pods and impersonate `system:node:*`, and nothing else, so the
Node authorizer and NodeRestriction judge each write as they judge a real kubelet's.
"""

from __future__ import annotations

import ssl

import httpx2

from sickbay.apiserver.writes import Caller
from sickbay.clock import Clock, Randomness
from sickbay.kube.client import Client
from sickbay.sim.hollow import HollowKubelets
from tests.support.controlplane import ControlPlane
from tests.support.install import apply_objects

USER = "hollow-kubelets"
"""The user behind identity `kubelets`."""


def allow_kubelets(plane: ControlPlane) -> None:
    """Let the stand-in watch nodes and pods, and act as any kubelet."""
    rules = [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]},
        {"apiGroups": [""], "resources": ["groups"], "resourceNames": ["system:nodes"], "verbs": ["impersonate"]},
    ]
    rbac = "rbac.authorization.k8s.io"
    apply_objects(
        plane,
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": USER}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": USER},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": USER},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": USER}],
        },
    )


class Impersonated:
    """One connection pool, and a client on it for each kubelet."""

    def __init__(self, plane: ControlPlane, clock: Clock) -> None:
        self._plane, self._clock = plane, clock
        verify = ssl.create_default_context(cafile=str(plane.ca_file))
        limits = httpx2.Limits(max_connections=16)
        self._transport = httpx2.AsyncHTTPTransport(verify=verify, trust_env=False, limits=limits)
        self._clients: dict[str, Client] = {}

    def reader(self) -> Client:
        return self._client({})

    def speak(self, caller: Caller) -> Client:
        """A client under the user of a caller."""
        if caller.user not in self._clients:
            self._clients[caller.user] = self._client(
                {"Impersonate-User": caller.user, "Impersonate-Group": "system:nodes"}
            )
        return self._clients[caller.user]

    def _client(self, headers: dict[str, str]) -> Client:
        token = {"Authorization": f"Bearer {self._plane.token('kubelets')}"}
        http = httpx2.AsyncClient(
            transport=self._transport, base_url=self._plane.server, headers={**token, **headers}, timeout=30.0
        )
        return Client(http, "hollow-kubelet", self._clock)

    async def aclose(self) -> None:
        await self._transport.aclose()


class PlaneKubelets(HollowKubelets):
    """Hollow kubelets on a control plane."""

    def __init__(self, plane: ControlPlane, clock: Clock, randomness: Randomness, pace: float = 1.0) -> None:
        self._connection = Impersonated(plane, clock)
        super().__init__(clock, randomness, self._connection.reader(), self._connection.speak, pace)

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self._connection.aclose()
