"""Requests ready to be sent, for the price of what differs between them.

A controller asks for the same few thousand paths for ever; to put base URL, path and headers together anew each time
cost more than half of what a request costs in this process (benchmarks/README.md). So URLs are kept by path, and
headers by content type. Credentials that change (token files, exec plug-ins) are not among them: they are added on
sending.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote

import httpx2

from sickbay.kube.exchange import Reply

URLS_KEPT = 16384
"""Paths of one cluster with 10,000 nodes: each Node and its Leases, and what is open at a time."""

SEGMENT = "/:@!$&'()*+,;=~"
"""What a path holds as it stands (RFC 3986, `pchar`). A name that people mistyped must not become a query."""


class Outgoing:
    """Builds requests to one API server under one User-Agent; base URL, headers and time-outs are `http`'s."""

    def __init__(self, http: httpx2.AsyncClient, user_agent: str) -> None:
        self._http, self._user_agent = http, user_agent
        self._extensions = {"timeout": http.timeout.as_dict()}
        self._url = lru_cache(maxsize=URLS_KEPT)(self._join)
        self._headers: dict[str, list[tuple[bytes, bytes]]] = {}

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
        content_type: str = "",
        silence: float | None = None,
    ) -> httpx2.Request:
        """`silence`: seconds without a byte after which the connection counts as lost, where it is not the usual."""
        url = self._url(path)
        if params:
            url = url.copy_merge_params(params)
        extensions = self._extensions if silence is None else {"timeout": httpx2.Timeout(silence).as_dict()}
        headers = self._headers_for(content_type)
        return httpx2.Request(method, url, headers=headers, content=content, extensions=extensions)

    async def exchange(
        self, method: str, path: str, params: Mapping[str, str] | None, content: bytes | None, content_type: str
    ) -> Reply:
        """See `Exchange`."""
        request = self.request(method, path, params=params, content=content, content_type=content_type)
        response = await self._http.send(request)
        return Reply(response.status_code, response.content, response.headers)

    def _join(self, path: str) -> httpx2.URL:
        base = self._http.base_url
        return base.copy_with(raw_path=base.raw_path + quote(path.lstrip("/"), safe=SEGMENT).encode("ascii"))

    def _headers_for(self, content_type: str) -> list[tuple[bytes, bytes]]:
        found = self._headers.get(content_type)
        if found is None:
            headers = httpx2.Headers(self._http.headers)
            headers.update({"user-agent": self._user_agent, "accept": "application/json"})
            if content_type:
                headers["content-type"] = content_type
            found = self._headers[content_type] = headers.raw
        return found
