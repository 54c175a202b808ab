"""Every way a connection can be misconfigured is found before first use and named with its remedy."""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sickbay.clock import Randomness, SystemClock
from sickbay.kube import config
from sickbay.kube.credentials import ExecToken, TokenFile
from sickbay.kube.errors import ConfigError
from sickbay.sim.loop import EPOCH


def make_certificate(name: str = "test") -> tuple[str, str]:
    """A self-signed certificate and its key, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(Randomness(1).below(10**9) + 1)
        .not_valid_before(EPOCH)
        .not_valid_after(EPOCH + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), pem.decode()


CERTIFICATE, KEY = make_certificate()
_, OTHER_KEY = make_certificate("other")


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def kubeconfig(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443"} | (cluster or {})}],
        "users": [{"name": "u", "user": {"token": "secret"} if user is None else user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
        "current-context": "x",
    } | more


def write(folder: Path, content: Any, name: str = "config") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def opened(path: str, context: str = "") -> Any:
    return config.connect(path, context, "sickbay-test", SystemClock())


def test_a_kubeconfig_gives_server_user_and_namespace(tmp_path: Path) -> None:
    target = config.load(write(tmp_path, kubeconfig()))
    assert target.cluster["server"] == "https://api:6443"
    assert target.user == {"token": "secret"}
    assert target.namespace == "ns"
    client = opened(target.source.split(",", maxsplit=1)[0])
    assert str(client.http.base_url) == "https://api:6443"
    assert client.user_agent == "sickbay-test"


@pytest.mark.parametrize(
    ("content", "context", "complaint"),
    [
        pytest.param("a: [", "", "is not YAML", id="no YAML"),
        pytest.param("- a", "", "holds no configuration", id="a list"),
        pytest.param("", "", "holds no configuration", id="empty file"),
        pytest.param({"clusters": [{"cluster": {}}]}, "", r"clusters\[0\] has no name", id="nameless cluster"),
        pytest.param({"users": [{"name": "u", "user": "x"}]}, "", r"users\[0\].user is no mapping", id="user no map"),
        pytest.param(kubeconfig(), "prod", r"no context named 'prod' \(there are: x\)", id="unknown context"),
        pytest.param(kubeconfig() | {"current-context": ""}, "", "no current-context", id="no context chosen"),
        pytest.param(kubeconfig(clusters=[]), "", r"no cluster named 'c' \(there are: none\)", id="missing cluster"),
        pytest.param(kubeconfig(users=[]), "", "no user named 'u'", id="missing user"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(tmp_path: Path, content: Any, context: str, complaint: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(ConfigError, match=complaint) as caught:
        config.load(path, context)
    assert path in str(caught.value)


@pytest.mark.parametrize(
    ("cluster", "user", "complaint"),
    [
        pytest.param({"server": ""}, None, "server '' is no http", id="no server"),
        pytest.param({"server": "api:6443"}, None, "server 'api:6443' is no http", id="server without scheme"),
        pytest.param({"server": 5}, None, "server '5' is no http", id="server of another type"),
        pytest.param({"server": "https://api:none"}, None, "no URL: Invalid port", id="server with an odd port"),
        pytest.param({"server": "https://"}, None, "server 'https://' is no http", id="server without host"),
        pytest.param({"proxy-url": "ftp://x"}, None, "no URL", id="proxy of another kind"),
        pytest.param({"certificate-authority": "ca.pem"}, None, "ca.pem does not exist", id="CA file missing"),
        pytest.param({"certificate-authority-data": b64("no pem")}, None, "CA is no PEM", id="CA data no PEM"),
        pytest.param({"certificate-authority-data": "%%%"}, None, "CA is no PEM", id="CA data no base64"),
        pytest.param({"insecure-skip-tls-verify": "maybe"}, None, "insecure-skip-tls-verify", id="flag no bool"),
        pytest.param({}, {"client-certificate": "c.pem", "client-key": "k.pem"}, "c.pem does not exist", id="no cert"),
        pytest.param(
            {},
            {"client-certificate-data": b64(CERTIFICATE), "client-key-data": b64(OTHER_KEY)},
            "do not fit",
            id="another certificate's key",
        ),
        pytest.param({}, {"client-certificate-data": b64(CERTIFICATE)}, "do not fit", id="certificate without key"),
        pytest.param({}, {"auth-provider": {"name": "gcp"}}, "auth-provider is not supported", id="auth-provider"),
        pytest.param(
            {}, {"exec": {"apiVersion": "v9", "command": "x"}}, "exec.apiVersion 'v9' is not one of", id="exec version"
        ),
        pytest.param(
            {}, {"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}, "exec.command is empty", id="exec command"
        ),
    ],
)
def test_what_cannot_be_used_is_named_with_file_and_context(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any] | None, complaint: str
) -> None:
    path = write(tmp_path, kubeconfig(cluster, user))
    with pytest.raises(ConfigError, match=complaint) as caught:
        opened(path)
    assert f"{path}, context x" in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere does not exist; correct --kubeconfig"):
        config.load(str(tmp_path / "nowhere"))


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(str(path))


def test_certificates_and_keys_are_taken_from_data_and_from_files_beside_the_kubeconfig(tmp_path: Path) -> None:
    write(tmp_path, CERTIFICATE, "ca.pem")
    write(tmp_path, KEY, "key.pem")
    by_file = kubeconfig({"certificate-authority": "ca.pem"}, {"client-certificate": "ca.pem", "client-key": "key.pem"})
    by_data = kubeconfig(
        {"certificate-authority-data": b64(CERTIFICATE)},
        {"client-certificate-data": b64(CERTIFICATE), "client-key-data": b64(KEY)},
    )
    assert opened(write(tmp_path, by_file, "files")).http.auth is None
    assert opened(write(tmp_path, by_data, "data")).http.auth is None


@pytest.mark.parametrize(
    ("user", "kind"),
    [
        pytest.param({"tokenFile": "token"}, TokenFile, id="token file"),
        pytest.param({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}}, ExecToken, id="exec"),
        pytest.param({"token": "t", "tokenFile": "token"}, TokenFile, id="a file wins over a token, as in kubectl"),
    ],
)
def test_credentials_that_change_are_read_when_needed(tmp_path: Path, user: dict[str, Any], kind: type) -> None:
    assert isinstance(opened(write(tmp_path, kubeconfig(user=user))).http.auth, kind)


def test_several_files_are_merged_and_the_first_that_names_a_thing_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "a", kubeconfig({"server": "https://first"}, users=[], contexts=[]), "one")
    second = write(tmp_path / "b", kubeconfig({"server": "https://second"}, {"tokenFile": "t"}), "two")
    missing = str(tmp_path / "missing")
    target = config.load(environ={"KUBECONFIG": f"{first}:{missing}:{second}"})
    assert target.cluster["server"] == "https://first"
    assert target.user == {"tokenFile": str(tmp_path / "b" / "t")}


def test_a_relative_exec_command_counts_from_its_kubeconfig(tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1"
    relative = kubeconfig(user={"exec": {"apiVersion": version, "command": "./bin/login"}})
    plain = kubeconfig(user={"exec": {"apiVersion": version, "command": "login"}})
    assert config.load(write(tmp_path, relative, "r")).user["exec"]["command"] == str(tmp_path / "bin/login")
    assert config.load(write(tmp_path, plain, "p")).user["exec"]["command"] == "login"


def test_the_configuration_is_looked_for_in_kubectls_order(tmp_path: Path) -> None:
    home = write(tmp_path / ".kube", kubeconfig({"server": "https://home"}))
    named = write(tmp_path, kubeconfig({"server": "https://named"}), "named")
    environment = {"HOME": str(tmp_path)}
    assert config.load(environ=environment).cluster["server"] == "https://home"
    assert config.load(environ=environment | {"KUBECONFIG": named}).cluster["server"] == "https://named"
    assert config.load(home, environ=environment | {"KUBECONFIG": named}).cluster["server"] == "https://home"
    in_pod = pod_environment(tmp_path) | environment
    account = str(tmp_path / "account")
    assert config.load(environ=in_pod, service_account=account).cluster["server"] == "https://10.0.0.1:443"
    assert config.load(context="x", environ=in_pod, service_account=account).cluster["server"] == "https://home"


def test_no_configuration_at_all_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no cluster is configured: .* pass --kubeconfig or set KUBECONFIG"):
        config.load(environ={"HOME": str(tmp_path)})


def pod_environment(tmp_path: Path) -> dict[str, str]:
    for name, content in (("token", "pod-token"), ("namespace", "sickbay-system\n"), ("ca.crt", CERTIFICATE)):
        write(tmp_path / "account", content, name)
    return {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_in_a_pod_the_service_account_is_used(tmp_path: Path) -> None:
    target = config.from_service_account(pod_environment(tmp_path), str(tmp_path / "account"))
    assert target.namespace == "sickbay-system"
    client = config.open_client(target, "sickbay-test", SystemClock())
    assert isinstance(client.http.auth, TokenFile)


def test_an_ipv6_service_address_is_bracketed(tmp_path: Path) -> None:
    environment = pod_environment(tmp_path) | {"KUBERNETES_SERVICE_HOST": "fd00::1"}
    target = config.from_service_account(environment, str(tmp_path / "account"))
    assert target.cluster["server"] == "https://[fd00::1]:443"


def test_a_pod_without_token_says_so(tmp_path: Path) -> None:
    environment = pod_environment(tmp_path)
    (tmp_path / "account" / "token").unlink()
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        config.from_service_account(environment, str(tmp_path / "account"))
    with pytest.raises(ConfigError, match="not in a pod"):
        config.from_service_account({}, str(tmp_path / "account"))


async def test_the_servers_certificate_is_checked_against_tls_server_name(tmp_path: Path) -> None:
    client = opened(write(tmp_path, kubeconfig({"tls-server-name": "api.internal"})))
    request = client.http.build_request("GET", "/")
    for hook in client.http.event_hooks["request"]:
        await hook(request)
    assert request.extensions["sni_hostname"] == "api.internal"


def test_cluster_information_for_exec_plug_ins_has_the_ca_inlined(tmp_path: Path) -> None:
    write(tmp_path, CERTIFICATE, "ca.pem")
    exec_ = {"apiVersion": "client.authentication.k8s.io/v1", "command": "x", "provideClusterInfo": True}
    target = config.load(write(tmp_path, kubeconfig({"certificate-authority": "ca.pem"}, {"exec": exec_})))
    plugin = config._plugin(target)
    assert plugin.cluster == {"server": "https://api:6443", "certificate-authority-data": b64(CERTIFICATE)}
