"""Endpoints that hooks may call: the controller's configuration, never a rule's.

Rules name an endpoint; where it is and what it is signed with stands in a file that only the operator writes:

    endpoints:
    - name: inventory
      url: https://inventory.example/sickbay
      secretFile: /etc/sickbay/hooks/inventory    # or secretEnv: NAME; what requests are signed with
      caFile: /etc/sickbay/hooks/ca.pem           # absent: the authorities of the system
      allowPlainHTTP: false                       # true: for tests; said at every start

A secret is never sent without TLS: an http address is refused unless that is allowed in so many words.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog

from sickbay.api import listfile

log = structlog.get_logger(__name__)


class EndpointError(ValueError):
    """The file cannot be used; the text names file, endpoint, field and remedy."""


@dataclass(frozen=True)
class Endpoint:
    """One that may be called."""

    name: str
    url: str
    secret: bytes = b""
    ca_file: str = ""


class _Entry(msgspec.Struct, rename="camel"):
    name: str
    url: str
    secret_file: str = ""
    secret_env: str = ""
    ca_file: str = ""
    allow_plain_http: bool = msgspec.field(default=False, name="allowPlainHTTP")


def read(path: str) -> dict[str, Endpoint]:
    """The endpoints of a file, by name. Raises EndpointError."""
    try:
        entries = listfile.entries(path, "endpoints", _Entry)
    except listfile.BadFileError as error:
        raise EndpointError(str(error)) from None
    found: dict[str, Endpoint] = {}
    for entry in entries:
        if entry.name in found:
            raise EndpointError(f"{path}: endpoint {entry.name}: named twice; give each a name of its own")
        found[entry.name] = _endpoint(path, entry, os.environ)
    return found


def _endpoint(path: str, entry: _Entry, environment: Mapping[str, str]) -> Endpoint:
    where = f"{path}: endpoint {entry.name}"
    if entry.url.startswith("http://"):
        if not entry.allow_plain_http:
            raise EndpointError(
                f"{where}: url {entry.url} is not encrypted, and requests carry a signature; use https, or set "
                "allowPlainHTTP: true where nobody can listen"
            )
        log.warning("hooks are called without TLS: whoever listens can read and replay them", endpoint=entry.name)
    elif not entry.url.startswith("https://"):
        raise EndpointError(f"{where}: url {entry.url!r} is no address; write https://host/path")
    if entry.ca_file and not Path(entry.ca_file).is_file():
        raise EndpointError(
            f"{where}: caFile {entry.ca_file} is not there; name a file with certificates, or leave it out"
        )
    return Endpoint(entry.name, entry.url, _secret(where, entry, environment), entry.ca_file)


def _secret(where: str, entry: _Entry, environment: Mapping[str, str]) -> bytes:
    if entry.secret_file:
        try:
            secret = Path(entry.secret_file).read_bytes().strip()
        except OSError as error:
            raise EndpointError(f"{where}: secretFile {entry.secret_file} cannot be read: {error.strerror}") from None
    else:
        secret = environment.get(entry.secret_env, "").encode() if entry.secret_env else b""
    if not secret:
        raise EndpointError(
            f"{where}: there is no secret to sign with; give secretFile or secretEnv with at least a word"
        )
    return secret
