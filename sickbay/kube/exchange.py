"""One request and its answer, as the client sees them: what a way to an API server has to offer.

    Outgoing (outgoing.py)   over HTTP
    sim/wire.py              to the simulator's own server, in this process

A way may raise what httpx2 raises where no answer comes (`httpx2.HTTPError`). Watches are streams and go by HTTP's
interface in either case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol


class Reply(NamedTuple):
    """Names of headers are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class Exchange(Protocol):
    async def exchange(
        self, method: str, path: str, params: Mapping[str, str] | None, content: bytes | None, content_type: str
    ) -> Reply:
        """Send one request and wait for its whole answer, whatever its status. `path` is as it reads, not quoted."""
        ...
