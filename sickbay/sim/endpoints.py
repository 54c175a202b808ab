"""Endpoints that hooks may call in a world, each with one way to answer.

ok       200        fails    503 for ever
refuses  403        later    202 twice, then 200
"""

from __future__ import annotations

import httpx2

from sickbay.execute.hooks.endpoints import Endpoint

NAMES = ("ok", "refuses", "fails", "later")


def endpoints() -> dict[str, Endpoint]:
    return {name: Endpoint(name, f"https://{name}.example/hook", b"a secret of the world") for name in NAMES}


class Answering(httpx2.AsyncBaseTransport):
    """Answers for one endpoint."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._asked: dict[str, int] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        key = request.headers.get("idempotency-key", "")
        count = self._asked[key] = self._asked.get(key, 0) + 1
        code = {"refuses": 403, "fails": 503}.get(self._name, 200)
        if self._name == "later" and count < 3:
            code = 202
        return httpx2.Response(code, text=f"request {count}", request=request)


def transport(endpoint: Endpoint) -> httpx2.AsyncBaseTransport:
    return Answering(endpoint.name)
