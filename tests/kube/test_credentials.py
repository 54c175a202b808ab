"""Tokens that change while we run, and exec plug-ins with everything they can do wrong."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sickbay.clock import Clock, SystemClock, rfc3339
from sickbay.kube import credentials
from sickbay.kube.credentials import ExecPlugin, ExecToken, TokenFile
from sickbay.kube.errors import ConfigError
from sickbay.sim.loop import EPOCH

V1 = "client.authentication.k8s.io/v1"


class Server:
    """Accepts some tokens, remembers all."""

    def __init__(self, *accepted: str) -> None:
        self.accepted = set(accepted)
        self.seen: list[str] = []

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        token = request.headers["authorization"].removeprefix("Bearer ")
        self.seen.append(token)
        return httpx2.Response(200 if token in self.accepted else 401)

    async def get(self, auth: httpx2.Auth) -> int:
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(self), base_url="http://api") as http:
            return (await http.get("/", auth=auth)).status_code


class Still:
    """A clock that stands where a test puts it."""

    def __init__(self) -> None:
        self.time = EPOCH
        self.seconds = 0.0

    def now(self) -> Any:
        return self.time

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing sleeps here")


async def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    server, auth = Server("one", "two"), TokenFile(str(path), clock)
    await server.get(auth)
    path.write_text("two")
    await clock.sleep(59)
    await server.get(auth)
    await clock.sleep(1)
    await server.get(auth)
    assert server.seen == ["one", "one", "two"]


async def test_a_refused_token_is_read_again_at_once(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    server, auth = Server("old"), TokenFile(str(path), clock)
    assert await server.get(auth) == 200
    server.accepted = {"new"}
    path.write_text("new")
    assert await server.get(auth) == 200
    assert server.seen == ["old", "old", "new"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [pytest.param(None, "cannot be read", id="missing"), pytest.param(b" \n", "is empty", id="empty")],
)
async def test_a_token_file_of_no_use_is_named(
    tmp_path: Path, clock: Clock, content: bytes | None, complaint: str
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=complaint) as caught:
        await Server().get(TokenFile(str(path), clock))
    assert str(path) in str(caught.value)


def plugin(tmp_path: Path, code: str, **more: Any) -> ExecPlugin:
    """A plug-in in Python; `count` holds how often it was run before."""
    script = tmp_path / "plugin.py"
    script.write_text(
        "import json, os, pathlib, sys\n"
        "def give(token, **status):\n"
        "    print(json.dumps({'kind': 'ExecCredential', 'status': {'token': token} | status}))\n"
        f"runs = pathlib.Path({str(tmp_path / 'runs')!r})\n"
        "count = len(runs.read_text()) if runs.exists() else 0\n"
        "runs.write_text('x' * (count + 1))\n" + code
    )
    return ExecPlugin(V1, sys.executable, (str(script),), **more)


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text())


async def test_an_exec_plug_in_is_run_once_for_many_requests(tmp_path: Path, real_loop: None) -> None:
    auth = ExecToken(plugin(tmp_path, "give('t')"), SystemClock())
    server = Server("t")
    assert await asyncio.gather(*(server.get(auth) for _ in range(5))) == [200] * 5
    assert runs(tmp_path) == 1


async def test_an_exec_plug_in_is_run_again_when_its_token_is_refused(tmp_path: Path, real_loop: None) -> None:
    auth = ExecToken(plugin(tmp_path, "give(f't{count}')"), SystemClock())
    server = Server("t1")
    assert await server.get(auth) == 200
    assert server.seen == ["t0", "t1"]
    assert runs(tmp_path) == 2


async def test_an_exec_plug_in_is_run_again_when_its_token_expires(tmp_path: Path, real_loop: None) -> None:
    clock = Still()
    code = f"give(f't{{count}}', expirationTimestamp={rfc3339(EPOCH.replace(hour=9))!r})"
    auth, server = ExecToken(plugin(tmp_path, code), clock), Server("t0", "t1")
    await server.get(auth)
    await server.get(auth)
    clock.time = EPOCH.replace(hour=9)
    await server.get(auth)
    assert server.seen == ["t0", "t0", "t1"]


async def test_an_exec_plug_in_gets_its_environment_and_the_cluster(tmp_path: Path, real_loop: None) -> None:
    code = "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\ngive(json.dumps([info, os.environ['A']]))"
    wanted = plugin(tmp_path, code, env={"A": "b"}, cluster={"server": "https://api"})
    server = Server()
    await server.get(ExecToken(wanted, SystemClock(), environ={"A": "a"}))
    info, value = json.loads(server.seen[0])
    assert value == "b"
    assert info["apiVersion"] == V1
    assert info["spec"] == {"interactive": False, "cluster": {"server": "https://api"}}


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        pytest.param("sys.exit('not logged in')", "failed with exit code 1: not logged in", id="fails"),
        pytest.param("print('hello')", "printed no ExecCredential", id="prints text"),
        pytest.param("print('{}')", "gave no status.token", id="no status"),
        pytest.param("give(None, clientCertificateData='x')", "only tokens are supported", id="certificate"),
        pytest.param("give('t', expirationTimestamp='soon')", "printed no ExecCredential", id="odd expiry"),
    ],
)
async def test_what_a_plug_in_does_wrong_is_named(tmp_path: Path, real_loop: None, code: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        await Server().get(ExecToken(plugin(tmp_path, code), SystemClock()))


@pytest.mark.parametrize(
    ("hint", "remedy"), [("run `brew install x`", "brew install x"), ("", "install it or correct `command`")]
)
async def test_a_plug_in_that_is_not_there_shows_its_install_hint(hint: str, remedy: str, real_loop: None) -> None:
    missing = ExecPlugin(V1, "no-such-plugin", install_hint=hint)
    with pytest.raises(ConfigError, match=f"no-such-plugin cannot be run: .*{remedy}"):
        await Server().get(ExecToken(missing, SystemClock()))


async def test_a_plug_in_that_hangs_is_ended(tmp_path: Path, real_loop: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "EXEC_SECONDS", 0.05)
    with pytest.raises(ConfigError, match="did not answer in"):
        await Server().get(ExecToken(plugin(tmp_path, "sys.stdin.read(); import time; time.sleep(60)"), SystemClock()))
