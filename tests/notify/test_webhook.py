"""The webhook: what counts as arrived, what is tried again, what is signed."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

import httpx2
import msgspec
import pytest

from sickbay.clock import Randomness
from sickbay.notify.channels import TRIES, NotDelivered, Webhook
from sickbay.notify.messages import Message
from tests.support.virtual import clock

MESSAGE = Message(key="opened", about="u1", category="DeviceFault", node="n1", title="n1: gpu.xid.79", text="gone")


def webhook(answer: Callable[[httpx2.Request], httpx2.Response], secret: str = "") -> Webhook:
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return Webhook("chat", "http://chat.example/hook", http, clock(), Randomness(1), secret)


async def test_a_message_arrives_as_one_json_object() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(204)

    await webhook(answer).send(MESSAGE)
    (request,) = seen
    assert msgspec.json.decode(request.content, type=Message) == MESSAGE
    assert "x-sickbay-signature" not in request.headers


async def test_with_a_secret_the_body_is_signed() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200)

    await webhook(answer, secret="s3cret").send(MESSAGE)
    wanted = hmac.new(b"s3cret", seen[0].content, hashlib.sha256).hexdigest()
    assert seen[0].headers["x-sickbay-signature"] == f"sha256={wanted}"


@pytest.mark.parametrize(
    ("status", "body", "tries", "final"),
    [
        pytest.param(500, b"", TRIES, False, id="a server error is tried again"),
        pytest.param(429, b"", TRIES, False, id="too many is tried again"),
        pytest.param(404, b"", 1, True, id="a wrong address is final"),
        pytest.param(
            200, b'{"errcode": 310000, "errmsg": "sign not match"}', TRIES, False, id="DingTalk refuses with 200"
        ),
        pytest.param(200, b'{"code": 19021}', TRIES, False, id="Feishu refuses with 200"),
    ],
)
async def test_what_did_not_arrive_is_tried_again_within_bounds(
    status: int, body: bytes, tries: int, final: bool
) -> None:
    count = 0

    def answer(_: httpx2.Request) -> httpx2.Response:
        nonlocal count
        count += 1
        return httpx2.Response(status, content=body)

    with pytest.raises(NotDelivered) as refused:
        await webhook(answer).send(MESSAGE)
    assert (count, refused.value.final) == (tries, final)


async def test_a_lost_connection_is_tried_again_and_then_arrives() -> None:
    count = 0

    def answer(request: httpx2.Request) -> httpx2.Response:
        nonlocal count
        count += 1
        if count < 3:
            raise httpx2.ConnectError("refused", request=request)
        return httpx2.Response(200, content=b"ok")

    begun = clock().monotonic()
    await webhook(answer).send(MESSAGE)
    assert count == 3
    assert clock().monotonic() - begun >= 3  # it paused 1 s, then 2 s
