"""Credentials that change while the process runs: token files and exec plug-ins.

A token file (in a cluster: the projected service account token) is read again every minute and after a 401. An exec
plug-in is run again when its credential expires and after a 401; requests that come meanwhile wait for that one run.
Whatever goes wrong here is a ConfigError with the remedy; the client turns it into `Unauthorized`, so that a
controller backs off and tries again instead of dying.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import httpx2
import msgspec

from sickbay.clock import Clock, parse_time
from sickbay.kube.errors import ConfigError

TOKEN_AGE = 60.0
"""Seconds after which a token file is read again; the same as client-go's cachingTokenSource."""

EXEC_SECONDS = 60.0
"""Seconds an exec plug-in may take; it runs without a terminal, so nobody can be typing."""

EXEC_VERSIONS = tuple(f"client.authentication.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))

_OUTPUT_SHOWN = 300


class TokenFile(httpx2.Auth):
    """Bearer token from a file."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._path = Path(path)
        self._clock = clock
        self._token = ""
        self._read_at = 0.0

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        if not self._token or self._clock.monotonic() - self._read_at >= TOKEN_AGE:
            self._read()
        request.headers["authorization"] = f"Bearer {self._token}"
        response = yield request
        if response.status_code != 401:
            return
        self._read()
        request.headers["authorization"] = f"Bearer {self._token}"
        yield request

    def _read(self) -> None:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"token file {self._path} cannot be read: {error}; mount or create it") from None
        if not token:
            raise ConfigError(f"token file {self._path} is empty; write a token into it")
        self._token, self._read_at = token, self._clock.monotonic()


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """The `exec` section of a kubeconfig user. `cluster` is handed to the plug-in where it asks for it."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    install_hint: str = ""
    cluster: Mapping[str, object] | None = None


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str | None = None
    expiration_timestamp: str | None = None
    client_certificate_data: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    status: _ExecStatus | None = None


class ExecToken(httpx2.Auth):
    """Bearer token from an exec plug-in (client.authentication.k8s.io); one that gives certificates is refused."""

    def __init__(self, plugin: ExecPlugin, clock: Clock, environ: Mapping[str, str] | None = None) -> None:
        self._plugin = plugin
        self._clock = clock
        self._environ = dict(os.environ if environ is None else environ)
        self._lock = asyncio.Lock()
        self._token = ""
        self._expires: datetime | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        used = await self._current("")
        request.headers["authorization"] = f"Bearer {used}"
        response = yield request
        if response.status_code != 401:
            return
        request.headers["authorization"] = f"Bearer {await self._current(used)}"
        yield request

    async def _current(self, refused: str) -> str:
        async with self._lock:
            expired = self._expires is not None and self._clock.now() >= self._expires
            if not self._token or self._token == refused or expired:
                await self._refresh()
            return self._token

    async def _refresh(self) -> None:
        output = await self._run()
        name = self._plugin.command
        try:
            status = msgspec.json.decode(output, type=_ExecCredential).status or _ExecStatus()
            self._expires = parse_time(status.expiration_timestamp) if status.expiration_timestamp else None
        except (msgspec.DecodeError, ValueError) as error:
            raise ConfigError(f"exec plug-in {name} printed no ExecCredential: {error}; run it by hand") from None
        if not status.token and status.client_certificate_data:
            raise ConfigError(f"exec plug-in {name} gives a client certificate; only tokens are supported")
        if not status.token:
            raise ConfigError(f"exec plug-in {name} gave no status.token; run it by hand to see why")
        self._token = status.token

    async def _run(self) -> bytes:
        plugin = self._plugin
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *plugin.args,
                env=self._environ | dict(plugin.env) | {"KUBERNETES_EXEC_INFO": self._exec_info()},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = f"; {plugin.install_hint.strip()}" if plugin.install_hint else "; install it or correct `command`"
            raise ConfigError(f"exec plug-in {plugin.command} cannot be run: {error.strerror or error}{hint}") from None
        try:
            async with asyncio.timeout(EXEC_SECONDS):
                output, complaint = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise ConfigError(f"exec plug-in {plugin.command} did not answer in {EXEC_SECONDS:g} s") from None
        if process.returncode:
            said = " ".join(complaint.decode("utf-8", "replace").split())[:_OUTPUT_SHOWN]
            raise ConfigError(f"exec plug-in {plugin.command} failed with exit code {process.returncode}: {said}")
        return output

    def _exec_info(self) -> str:
        spec: dict[str, object] = {"interactive": False}
        if self._plugin.cluster is not None:
            spec["cluster"] = dict(self._plugin.cluster)
        info = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}
        return msgspec.json.encode(info).decode()
