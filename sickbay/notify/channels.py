"""Where messages go. A channel takes a message or raises; the controller sees to repetition."""

from __future__ import annotations

import hashlib
import hmac
from typing import Protocol

import httpx2
import msgspec

from sickbay.clock import Clock, Randomness
from sickbay.notify.messages import Message

TRIES = 4
"""Sends of one message within one go; with doubling pauses from 1 s."""
FIRST_PAUSE = 1.0
SECONDS = 10.0
"""For one send."""
SIGNATURE = "X-Sickbay-Signature"
"""`sha256=<hex>`: HMAC of the body under the channel's secret, in the form that GitHub's webhooks made common."""


class NotDelivered(Exception):
    """The message did not arrive; the text says why. `final`: sending it again would not help."""

    def __init__(self, why: str, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


class Channel(Protocol):
    @property
    def name(self) -> str: ...

    async def send(self, message: Message) -> None:
        """Deliver. Raises NotDelivered."""
        ...


class Webhook:
    """POSTs a message as one JSON object.

    Arrived means a 2xx answer, and no error code in its body: several chat services answer 200 to what they refuse
    (`errcode`, `code` or `StatusCode` other than 0).
    """

    def __init__(
        self, name: str, url: str, http: httpx2.AsyncClient, clock: Clock, randomness: Randomness, secret: str = ""
    ) -> None:
        self._name, self._url, self._http = name, url, http
        self._clock, self._randomness, self._secret = clock, randomness, secret.encode()

    @property
    def name(self) -> str:
        return self._name

    async def send(self, message: Message) -> None:
        body = msgspec.json.encode(message)
        pause = FIRST_PAUSE
        for attempt in range(1, TRIES + 1):
            try:
                return await self._once(body)
            except NotDelivered as failure:
                if failure.final or attempt == TRIES:
                    raise
            await self._clock.sleep(pause * (1 + self._randomness.uniform(0, 0.3)))
            pause *= 2
        return None

    async def _once(self, body: bytes) -> None:
        headers = {"content-type": "application/json"}
        if self._secret:
            headers[SIGNATURE] = "sha256=" + hmac.new(self._secret, body, hashlib.sha256).hexdigest()
        try:
            answer = await self._http.post(self._url, content=body, headers=headers, timeout=SECONDS)
        except (httpx2.HTTPError, OSError) as error:
            raise NotDelivered(f"{self._name}: {error or type(error).__name__}") from error
        if answer.status_code // 100 != 2:
            final = answer.status_code // 100 == 4 and answer.status_code not in (408, 425, 429)
            raise NotDelivered(f"{self._name}: answered {answer.status_code}", final)
        code = _body_code(answer.content)
        if code:
            raise NotDelivered(f"{self._name}: answered {answer.status_code} with error code {code}")


class _Verdict(msgspec.Struct):
    errcode: int = 0
    code: int = 0
    status_code: int = msgspec.field(default=0, name="StatusCode")


def _body_code(body: bytes) -> int:
    try:
        verdict = msgspec.json.decode(body, type=_Verdict, strict=False)
    except msgspec.DecodeError:
        return 0  # not one of those services
    return verdict.errcode or verdict.code or verdict.status_code
