"""A hook that calls an endpoint: one signed POST, repeated under the same key until there is an answer.

    X-Sickbay-Timestamp   seconds since 1970, so that an old request can be told from a new one
    X-Sickbay-Signature   sha256=<hex>: HMAC-SHA256 of "<timestamp>.<body>" under the endpoint's secret
    Idempotency-Key       <repair UID>/<step>/<attempt>/<stage>/<hook>, the same in every repetition

2xx is a yes; 202 is "not done yet", and the same request comes again. 4xx is a no; anything else, and no answer, is
tried again with growing pauses until the hook's own time is over. A redirect is no answer: it would carry the signature
to somebody else.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec

from sickbay.clock import Clock
from sickbay.execute.hooks.endpoints import Endpoint

SECONDS = 10.0
"""For one request."""
PAUSE_FIRST, PAUSE_MOST = 5.0, 60.0
"""Seconds between two requests that brought no answer."""
LATER = 15.0
"""Seconds until a request that was answered with 202 comes again."""
SHOWN = 400
"""Characters of the answer that are recorded."""

Transports = Callable[[Endpoint], httpx2.AsyncBaseTransport]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one request. `done` None: ask again after `again` seconds."""

    done: bool | None
    message: str
    again: float = 0.0


def over_tls(endpoint: Endpoint) -> httpx2.AsyncBaseTransport:
    """The network, with the endpoint's own certificate authority where it has one."""
    context = ssl.create_default_context(cafile=endpoint.ca_file or None)
    return httpx2.AsyncHTTPTransport(verify=context)


class Caller:
    """Sends requests; remembers only how often one went unanswered."""

    def __init__(self, clock: Clock, transports: Transports = over_tls) -> None:
        self._clock = clock
        self._transports = transports
        self._clients: dict[str, httpx2.AsyncClient] = {}
        self._unanswered: dict[str, int] = {}

    async def ask(self, endpoint: Endpoint, key: str, body: dict[str, Any]) -> Answer:
        """Send it once."""
        content = msgspec.json.encode(body)
        try:
            async with asyncio.timeout(SECONDS + 5):
                reply = await self._client(endpoint).post(
                    endpoint.url, content=content, headers=self._headers(endpoint, key, content), timeout=SECONDS
                )
        except (httpx2.HTTPError, OSError, TimeoutError) as error:
            return self._again(key, f"{endpoint.name} did not answer: {error or type(error).__name__}")
        text = reply.text[:SHOWN].strip()
        said = f"{endpoint.name} answered {reply.status_code}" + (f": {text}" if text else "")
        if reply.status_code == 202:
            return Answer(None, said, LATER)
        if reply.status_code // 100 == 2:
            self._unanswered.pop(key, None)
            return Answer(True, said)
        if reply.status_code // 100 in (3, 4) and reply.status_code not in (408, 425, 429):
            self._unanswered.pop(key, None)
            return Answer(False, said)
        return self._again(key, said)

    def _again(self, key: str, why: str) -> Answer:
        count = self._unanswered.get(key, 0)
        self._unanswered[key] = count + 1
        return Answer(None, why, min(PAUSE_FIRST * (1 << min(count, 8)), PAUSE_MOST))

    def _headers(self, endpoint: Endpoint, key: str, content: bytes) -> dict[str, str]:
        stamp = str(int(self._clock.now().timestamp()))
        signed = hmac.new(endpoint.secret, stamp.encode() + b"." + content, hashlib.sha256).hexdigest()
        return {
            "content-type": "application/json",
            "idempotency-key": key,
            "x-sickbay-timestamp": stamp,
            "x-sickbay-signature": f"sha256={signed}",
        }

    def _client(self, endpoint: Endpoint) -> httpx2.AsyncClient:
        if endpoint.name not in self._clients:
            transport = self._transports(endpoint)
            self._clients[endpoint.name] = httpx2.AsyncClient(transport=transport, follow_redirects=False)
        return self._clients[endpoint.name]

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()
