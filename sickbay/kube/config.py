"""Where the API server is and who we are: kubeconfig files or the pod's service account, checked before first use.

Looked for in kubectl's order: the file that is named; the files of KUBECONFIG, merged, the first that defines a name
wins; the service account, when we run in a pod; ~/.kube/config. Relative paths count from the file they stand in.
Everything that can be wrong with them is found here and is a ConfigError that names file, entry and remedy.
"""

from __future__ import annotations

import base64
import os
import re
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import yaml
from lightkube.config import client_adapter
from lightkube.config.models import Cluster, User
from lightkube.core.exceptions import ConfigError as LightkubeConfigError

from sickbay.clock import Clock
from sickbay.kube.client import Client
from sickbay.kube.credentials import EXEC_VERSIONS, ExecPlugin, ExecToken, TokenFile
from sickbay.kube.errors import ConfigError
from sickbay.kube.metrics import KubeMetrics

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
DEFAULT_FILE = "~/.kube/config"

TIMEOUT = httpx2.Timeout(30.0, connect=10.0)
"""Seconds between two bytes of an ordinary answer, and to connect. A watch sets its own."""

LIMITS = httpx2.Limits(max_connections=200, max_keepalive_connections=50)
"""Each watch holds a connection; the rest is bursts of evictions and patches."""

_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """One API server and one identity, as written in the configuration; `source` is named in errors."""

    source: str
    cluster: Entry
    user: Entry
    namespace: str = "default"


def connect(kubeconfig: str, context: str, user_agent: str, clock: Clock, metrics: KubeMetrics | None = None) -> Client:
    """A client for the configured API server; empty `kubeconfig` and `context` look for the usual ones.

    Raises ConfigError. Nothing is sent yet, and an exec plug-in is first run with the first request.
    """
    return open_client(load(kubeconfig, context), user_agent, clock, metrics)


def load(
    kubeconfig: str = "",
    context: str = "",
    environ: Mapping[str, str] | None = None,
    service_account: str = SERVICE_ACCOUNT,
) -> Target:
    """Find and read the configuration. Raises ConfigError."""
    env = os.environ if environ is None else environ
    if kubeconfig:
        return from_files([kubeconfig], context)
    if env.get("KUBECONFIG"):
        return from_files([name for name in env["KUBECONFIG"].split(os.pathsep) if name], context, skip_missing=True)
    if env.get("KUBERNETES_SERVICE_HOST") and not context:
        return from_service_account(env, service_account)
    default = Path(env.get("HOME", "~")) / ".kube" / "config"
    if not default.is_file():
        raise ConfigError(f"no cluster is configured: {default} does not exist; pass --kubeconfig or set KUBECONFIG")
    return from_files([str(default)], context)


def from_service_account(environ: Mapping[str, str], account: str = SERVICE_ACCOUNT) -> Target:
    """The identity of the pod we run in. Raises ConfigError."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigError("not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set")
    folder = Path(account)
    if not (folder / "token").is_file():
        raise ConfigError(f"{folder}/token does not exist; set automountServiceAccountToken on the pod")
    namespace = folder / "namespace"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Target(
        source=f"service account in {folder}",
        cluster={"server": server, "certificate-authority": str(folder / "ca.crt")},
        user={"tokenFile": str(folder / "token")},
        namespace=namespace.read_text(encoding="utf-8").strip() if namespace.is_file() else "default",
    )


def from_files(names: list[str], context: str = "", skip_missing: bool = False) -> Target:
    """One context out of one or several kubeconfig files. Raises ConfigError."""
    source = os.pathsep.join(names)
    paths = [Path(name).expanduser() for name in names]
    present = [path for path in paths if path.is_file()]
    if not present or (len(present) < len(paths) and not skip_missing):
        raise ConfigError(f"kubeconfig {source} does not exist; correct --kubeconfig or KUBECONFIG")
    merged = _merge([_read(path) for path in present])
    wanted = context or merged["current-context"]
    if not wanted:
        raise ConfigError(f"kubeconfig {source} has no current-context; pass --context or `kubectl config use-context`")
    chosen = _entry(merged, "contexts", wanted, source)
    cluster = _entry(merged, "clusters", str(chosen.get("cluster") or ""), f"{source}, context {wanted}")
    name = str(chosen.get("user") or "")
    user = _entry(merged, "users", name, f"{source}, context {wanted}") if name else {}
    return Target(f"{source}, context {wanted}", cluster, user, str(chosen.get("namespace") or "default"))


def open_client(target: Target, user_agent: str, clock: Clock, metrics: KubeMetrics | None = None) -> Client:
    """Build the HTTP client. Raises ConfigError for certificates, keys and credentials that cannot be used."""
    server = str(target.cluster.get("server") or "")
    if not re.match(r"https?://[^/]", server):
        raise ConfigError(f"{target.source}: server {server!r} is no http(s) URL; set clusters[].cluster.server")
    try:
        http = httpx2.AsyncClient(
            base_url=server,
            verify=_tls(target),
            auth=_auth(target, clock),
            timeout=TIMEOUT,
            limits=LIMITS,
            proxy=target.cluster.get("proxy-url") or None,
            event_hooks=_hooks(target),
        )
    except (httpx2.InvalidURL, ValueError) as error:
        raise ConfigError(f"{target.source}: server or proxy-url is no URL: {error}") from None
    return Client(http, user_agent, clock, metrics)


def _read(path: Path) -> Entry:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"kubeconfig {path} cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"kubeconfig {path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"kubeconfig {path} holds no configuration; expected clusters, users and contexts")
    for section, inner in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
        content[section] = _section(path, content.get(section), section, inner)
    return content


def _section(path: Path, entries: Any, section: str, inner: str) -> dict[str, Entry]:
    """Entries by name, the first of a name, with file paths made absolute."""
    found: dict[str, Entry] = {}
    for index, entry in enumerate(entries or []):
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise ConfigError(f"kubeconfig {path}: {section}[{index}] has no name")
        content = entry.get(inner) or {}
        if not isinstance(content, dict):
            raise ConfigError(f"kubeconfig {path}: {section}[{index}].{inner} is no mapping")
        found.setdefault(entry["name"], _absolute(path.absolute().parent, content))
    return found


def _absolute(folder: Path, content: Entry) -> Entry:
    fixed = {key: str(folder / content[key]) for key in _PATHS if content.get(key)}
    exec_ = content.get("exec")
    if isinstance(exec_, dict) and os.sep in str(exec_.get("command") or ""):
        fixed["exec"] = exec_ | {"command": str(folder / exec_["command"])}  # type: ignore[assignment]
    return content | fixed


def _merge(files: list[Entry]) -> Entry:
    merged: Entry = {"current-context": "", "clusters": {}, "users": {}, "contexts": {}}
    for content in files:
        merged["current-context"] = merged["current-context"] or content.get("current-context") or ""
        for section in ("clusters", "users", "contexts"):
            merged[section] = content[section] | merged[section]
    return merged


def _entry(merged: Entry, section: str, name: str, source: str) -> Entry:
    entry: Entry | None = merged[section].get(name)
    if entry is None:
        known = ", ".join(sorted(merged[section])) or "none"
        raise ConfigError(f"{source}: no {section[:-1]} named {name!r} (there are: {known})")
    return entry


def _tls(target: Target) -> ssl.SSLContext:
    """Verification of the server and, where configured, our own certificate."""
    cluster, user = _models(target)
    for section, key in ((target.cluster, "certificate-authority"), *((target.user, key) for key in _PATHS[1:3])):
        if section.get(key) and not Path(section[key]).is_file():
            raise ConfigError(f"{target.source}: {key} {section[key]} does not exist")
    try:
        context = _verification(cluster)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigError(f"{target.source}: the cluster's CA is no PEM certificate: {error}") from None
    try:
        _identify(context, user)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigError(f"{target.source}: client certificate and key do not fit or are no PEM: {error}") from None
    return context


def _verification(cluster: Cluster) -> ssl.SSLContext:
    if cluster.certificate_auth_data:
        return ssl.create_default_context(cadata=_decoded(cluster.certificate_auth_data).decode())
    if cluster.certificate_auth:
        return ssl.create_default_context(cafile=cluster.certificate_auth)
    return httpx2.create_ssl_context(verify=not cluster.insecure)


def _identify(context: ssl.SSLContext, user: User) -> None:
    """Load our certificate. OpenSSL reads it from files only, so data passes through a folder nobody else can read."""
    if not (user.client_cert or user.client_cert_data):
        return
    with tempfile.TemporaryDirectory() as folder:
        certificate = _as_file(folder, "tls.crt", user.client_cert_data, user.client_cert)
        key = _as_file(folder, "tls.key", user.client_key_data, user.client_key)
        context.load_cert_chain(certificate, key)


def _as_file(folder: str, name: str, data: str | None, path: str | None) -> str:
    """Data wins over a path, as in kubectl."""
    if not data:
        if not path:
            raise ValueError(f"{name} is missing")
        return path
    target = Path(folder) / name
    target.write_bytes(_decoded(data))
    return str(target)


def _decoded(data: str) -> bytes:
    return base64.b64decode(data, validate=True)


def _models(target: Target) -> tuple[Cluster, User]:
    try:
        return msgspec.convert(target.cluster, Cluster), msgspec.convert(
            {key: value for key, value in target.user.items() if key != "exec"}, User
        )
    except msgspec.ValidationError as error:
        raise ConfigError(f"{target.source}: {error}") from None


def _auth(target: Target, clock: Clock) -> httpx2.Auth | None:
    _, user = _models(target)
    if user.token_file:
        return TokenFile(user.token_file, clock)
    if not user.token and target.user.get("exec"):
        return ExecToken(_plugin(target), clock)
    try:
        return client_adapter.user_auth(user)
    except LightkubeConfigError:
        raise ConfigError(f"{target.source}: auth-provider is not supported; use exec or a token") from None


def _plugin(target: Target) -> ExecPlugin:
    section: Entry = target.user["exec"]
    version, command = section.get("apiVersion"), section.get("command")
    if version not in EXEC_VERSIONS:
        raise ConfigError(f"{target.source}: exec.apiVersion {version!r} is not one of {', '.join(EXEC_VERSIONS)}")
    if not command:
        raise ConfigError(f"{target.source}: exec.command is empty")
    return ExecPlugin(
        api_version=version,
        command=str(command),
        args=tuple(str(each) for each in section.get("args") or ()),
        env={str(each["name"]): str(each["value"]) for each in section.get("env") or ()},
        install_hint=str(section.get("installHint") or ""),
        cluster=_cluster_info(target) if section.get("provideClusterInfo") else None,
    )


def _cluster_info(target: Target) -> dict[str, object]:
    """`spec.cluster` of an ExecCredential: the kubeconfig's cluster, with a CA file inlined."""
    names = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
    info = {name: target.cluster[name] for name in names if target.cluster.get(name)}
    if target.cluster.get("certificate-authority"):
        content = Path(target.cluster["certificate-authority"]).read_bytes()
        info["certificate-authority-data"] = base64.b64encode(content).decode()
    return info


def _hooks(target: Target) -> dict[str, list[Any]]:
    """`tls-server-name`: the name the server's certificate is checked against, where it is not the URL's."""
    name = target.cluster.get("tls-server-name")
    if not name:
        return {}

    async def set_server_name(request: httpx2.Request) -> None:
        request.extensions["sni_hostname"] = name

    return {"request": [set_server_name]}
