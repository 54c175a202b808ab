"""A real Kubernetes control plane on loopback, with everything it needs in one folder.

etcd and kube-apiserver always run; kube-controller-manager and kube-scheduler on request. There is no kubelet: nodes
are objects that a test (or the simulator's hollow kubelet) keeps alive. The server certifies itself, and its
certificate is the CA. All calls here are synchronous, so that fixtures of any scope can make them; tests speak to the
server through `http_client`.

Processes end in the reverse of the order in which they started: an API server whose etcd is gone lingers on its port.
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2
import yaml

from sickbay.clock import Randomness
from tests.support.audit import Entry, read_log, write_policy
from tests.support.components import api_server, controller_manager, etcd, scheduler
from tests.support.daemon import Daemon, DaemonFailed
from tests.support.identities import make_tokens, write_token_file
from tests.support.keys import write_key_pair
from tests.support.ports import free_ports

ETCD, API_SERVER = "etcd", "kube-apiserver"
CONTROLLER_MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"
NAMESPACE, AGENT, CONTROLLER = "sickbay-system", "sickbay-agent", "sickbay-controller"
PORT_TAKEN = "address already in use"
START_ATTEMPTS = 3
STOP_SECONDS = 3.0  # an API server waits longer for the watches of others, whom nothing stops
TOKEN_SECONDS = 24 * 3600


class ControlPlane:
    """Start with `start()` or a `with` block; DaemonFailed, with the log's end, when a process does not come up.

    With `audit` the API server records who did what (`audit_log`). `hurried` shortens how long controllers wait for a
    silent kubelet.
    """

    def __init__(
        self,
        binaries: Path,
        folder: Path,
        *,
        controllers: bool = False,
        scheduling: bool = False,
        audit: bool = False,
        hurried: bool = False,
        seed: int | None = None,
    ) -> None:
        self.binaries = binaries
        self.folder = folder
        self._audit, self._hurried = audit, hurried
        self._names = [ETCD, API_SERVER]
        self._names += [CONTROLLER_MANAGER] if controllers else []
        self._names += [SCHEDULER] if scheduling else []
        self._tokens = make_tokens(Randomness(seed))
        self._daemons: dict[str, Daemon] = {}
        self._ports: list[int] = []
        self._admin: httpx2.Client | None = None

    # --- life ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Bring everything up. Ports are chosen anew when somebody else took one in the meantime."""
        self._prepare_folder()
        for attempt in range(1, START_ATTEMPTS + 1):
            self._ports = free_ports(5)
            self._daemons = self._make_daemons()
            try:
                for name in self._names:
                    self._daemons[name].start()
                return
            except BaseException as problem:
                self.stop()
                taken = isinstance(problem, DaemonFailed) and PORT_TAKEN in str(problem)
                if not taken or attempt == START_ATTEMPTS:
                    raise

    def stop(self) -> None:
        """End everything and remove etcd's data; logs stay. May be called at any time, also twice."""
        for name in reversed(self._names):
            if name in self._daemons:
                self._daemons[name].stop(STOP_SECONDS)
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)

    def __enter__(self) -> ControlPlane:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- trouble, for tests that make some ----------------------------------------------------------------------

    def start_process(self, name: str) -> None:
        """Start one process again, on its old port and with its old data."""
        self._daemons[name].start()

    def stop_process(self, name: str) -> None:
        """End one process in an orderly way."""
        self._daemons[name].stop(STOP_SECONDS)

    def kill_process(self, name: str) -> None:
        """End one process as a crash would."""
        self._daemons[name].kill()

    def restart_apiserver(self) -> None:
        """A roll-out of the API server: watches break, objects stay."""
        self.stop_process(API_SERVER)
        self.start_process(API_SERVER)

    def pid(self, name: str) -> int:
        """Process id; 0 when it is not running."""
        return self._daemons[name].pid if name in self._daemons else 0

    # --- access -------------------------------------------------------------------------------------------------

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self._ports[2]}"

    @property
    def ca_file(self) -> Path:
        return self.folder / "certs" / "apiserver.crt"

    def token(self, user: str) -> str:
        """Static token of one of `identities.IDENTITIES`. Raises KeyError with the names there are."""
        if user not in self._tokens:
            raise KeyError(f"no identity {user!r}; there are {', '.join(self._tokens)}")
        return self._tokens[user]

    def kubeconfig(self, user: str) -> Path:
        """A kubeconfig file for one of `identities.IDENTITIES`."""
        return self.kubeconfig_for_token(user.replace(":", "-"), self.token(user))

    def kubeconfig_for_token(self, name: str, token: str) -> Path:
        """A kubeconfig file `name`.yaml for any token."""
        path = self.folder / "kubeconfigs" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.touch(mode=0o600)
        cluster = {"server": self.server, "certificate-authority": str(self.ca_file)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}],
            "current-context": "test",
        }
        path.write_text(yaml.safe_dump(document))
        return path

    def http_client(self, user: str = "admin") -> httpx2.AsyncClient:
        """A client that acts as one of `identities.IDENTITIES`; the caller closes it."""
        return self.http_client_for_token(self.token(user))

    def http_client_for_token(self, token: str) -> httpx2.AsyncClient:
        """A client that acts under any token; the caller closes it."""
        return httpx2.AsyncClient(**self.connection(token))

    def connection(self, token: str) -> dict[str, Any]:
        """Arguments of an httpx2 client, synchronous or not, that acts under a token."""
        return {
            "base_url": self.server,
            "verify": ssl.create_default_context(cafile=str(self.ca_file)),
            "headers": {"Authorization": f"Bearer {token}"},
            "timeout": 30.0,
            "trust_env": False,  # a proxy for the world is none for loopback
        }

    def admin(self) -> httpx2.Client:
        """A synchronous client with all rights, closed by `stop`."""
        if self._admin is None:
            self._admin = httpx2.Client(**self.connection(self.token("admin")))
        return self._admin

    def kubectl(self, *arguments: str, user: str = "admin", stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run the real kubectl; the result is returned whatever its exit code."""
        command = [str(self.binaries / "kubectl"), f"--kubeconfig={self.kubeconfig(user)}", *arguments]
        environment = {**os.environ, "HOME": str(self.folder), "NO_PROXY": "127.0.0.1"}
        return subprocess.run(command, input=stdin, env=environment, capture_output=True, text=True, check=False)

    def audit_log(self) -> list[Entry]:
        """What was recorded so far, in the order of the answers. Empty unless started with `audit`."""
        return read_log(self.folder / "audit.log")

    # --- service accounts ---------------------------------------------------------------------------------------

    def controller_token(self) -> str:
        """Token of Sickbay's controller."""
        return self.service_account_token(NAMESPACE, CONTROLLER)

    def agent_token(self, node: str) -> str:
        """Token of the agent on `node`, bound to a Pod there: the server adds the node's name to the user's extra."""
        self._ensure_service_account(NAMESPACE, AGENT)
        pod = f"{AGENT}-{node}"
        self._ensure(
            f"/api/v1/namespaces/{NAMESPACE}/pods",
            {
                "metadata": {"name": pod},
                "spec": {
                    "nodeName": node,
                    "serviceAccountName": AGENT,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "agent", "image": "sickbay"}],
                },
            },
        )
        return self.pod_token(NAMESPACE, AGENT, pod)

    def pod_token(self, namespace: str, account: str, pod: str) -> str:
        """Token of a service account, bound to a Pod that runs under it, as a kubelet would mount it there."""
        found = self._call("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}")
        reference = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": found["metadata"]["uid"]}
        return self._request_token(namespace, account, {"boundObjectRef": reference})

    def service_account_token(self, namespace: str, name: str) -> str:
        """Token of any service account, bound to no Pod; the account is made when it is not there."""
        self._ensure_service_account(namespace, name)
        return self._request_token(namespace, name, {})

    def _ensure_service_account(self, namespace: str, name: str) -> None:
        self._ensure("/api/v1/namespaces", {"metadata": {"name": namespace}})
        self._ensure(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})

    def _request_token(self, namespace: str, name: str, spec: dict[str, Any]) -> str:
        body = {"spec": {"expirationSeconds": TOKEN_SECONDS, **spec}}
        answer = self._call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", body)
        return str(answer["status"]["token"])

    def _ensure(self, path: str, body: dict[str, Any]) -> None:
        answer = self.admin().post(path, json=body)
        if answer.status_code != 409:
            _checked(answer)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        return _checked(self.admin().request(method, path, json=body))

    # --- parts --------------------------------------------------------------------------------------------------

    def _prepare_folder(self) -> None:
        for name in ("etcd", "certs", "logs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        write_key_pair(self.folder / "sa.key", self.folder / "sa.pub")
        write_token_file(self.folder / "tokens.csv", self._tokens)
        if self._audit:
            write_policy(self.folder / "audit-policy.yaml")

    def _make_daemons(self) -> dict[str, Daemon]:
        client, peer, secure, managing, scheduling = self._ports
        commands = {
            ETCD: etcd(self.folder, client, peer),
            API_SERVER: api_server(self.folder, client, secure, self._audit),
        }
        ready = {
            ETCD: lambda: _answers(f"http://127.0.0.1:{client}/readyz"),
            API_SERVER: self._server_ready,
            CONTROLLER_MANAGER: lambda: _answers(f"https://127.0.0.1:{managing}/healthz"),
            SCHEDULER: lambda: _answers(f"https://127.0.0.1:{scheduling}/healthz"),
        }
        if CONTROLLER_MANAGER in self._names:
            commands[CONTROLLER_MANAGER] = controller_manager(
                self.folder, self.kubeconfig("controller-manager"), managing, self._hurried
            )
        if SCHEDULER in self._names:
            commands[SCHEDULER] = scheduler(self.folder, self.kubeconfig("scheduler"), scheduling)
        return {
            name: Daemon(name, [str(self.binaries / name), *command], self.folder / "logs" / f"{name}.log", ready[name])
            for name, command in commands.items()
        }

    def _server_ready(self) -> bool:
        if not self.ca_file.exists():
            return False
        try:
            return self.admin().get("/readyz").status_code == 200
        except (httpx2.HTTPError, ssl.SSLError):
            return False


def _checked(answer: httpx2.Response) -> dict[str, Any]:
    if answer.is_error:
        raise RuntimeError(f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}")
    found: dict[str, Any] = answer.json()
    return found


def _answers(url: str) -> bool:
    """Whether a component of ours says it is well; its certificate proves nothing to us and is not looked at."""
    try:
        return httpx2.get(url, verify=False, trust_env=False, timeout=5.0).status_code == 200
    except httpx2.HTTPError:
        return False
