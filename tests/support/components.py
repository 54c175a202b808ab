"""Command lines of the four processes of the control plane.

Everything listens on loopback only. `folder` holds their data, keys and certificates.
"""

from __future__ import annotations

from pathlib import Path

ISSUER = "https://kubernetes.default.svc"


def etcd(folder: Path, client: int, peer: int) -> list[str]:
    """Without fsync: a test machine's power cut loses nothing worth keeping, and each write is some ms faster."""
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
    ]


def api_server(folder: Path, etcd_client: int, secure: int, audit: bool = False) -> list[str]:
    """NodeRestriction is not on by default; without it a kubelet's identity may label any node.

    With `audit` every write is logged to `audit.log`, by the policy in `audit-policy.yaml`.
    """
    audited = [f"--audit-policy-file={folder / 'audit-policy.yaml'}", f"--audit-log-path={folder / 'audit.log'}"]
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd_client}",
        f"--secure-port={secure}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--cert-dir={folder / 'certs'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={folder / 'sa.pub'}",
        f"--service-account-signing-key-file={folder / 'sa.key'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--endpoint-reconciler-type=none",
        "--allow-privileged=true",  # the agent's DaemonSet needs it, as on any cluster with GPUs
        *(audited if audit else ()),
    ]


def controller_manager(folder: Path, kubeconfig: Path, secure: int, hurried: bool = False) -> list[str]:
    """Each controller acts with its own service account; with the manager's own it may not even create pods.

    With `hurried` a node whose kubelet is silent turns Unknown after 6 seconds instead of 50, and nodes are given up
    one after the other without delay.
    """
    hurry = ["--node-monitor-period=1s", "--node-monitor-grace-period=6s", "--node-startup-grace-period=6s"]
    hurry += ["--node-eviction-rate=10"]
    return [
        *(hurry if hurried else ()),
        f"--service-account-private-key-file={folder / 'sa.key'}",
        "--use-service-account-credentials=true",
        *_elected_by_nobody(folder / "certs-controller-manager", kubeconfig, secure),
    ]


def scheduler(folder: Path, kubeconfig: Path, secure: int) -> list[str]:
    return _elected_by_nobody(folder / "certs-scheduler", kubeconfig, secure)


def _elected_by_nobody(certificates: Path, kubeconfig: Path, secure: int) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={secure}",
        f"--cert-dir={certificates}",
    ]
