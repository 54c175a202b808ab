"""Alerts: what the webhook takes, and the conditions that follow."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from sickbay.convert import intake, payload
from sickbay.convert.alerts import Alert, AlertBook, decode, matching
from sickbay.convert.asked import Asked, asked
from sickbay.convert.notice import Notice, Undecodable
from sickbay.convert.wanted import Wanted
from sickbay.kube import errors
from sickbay.kube.leadership import NotLeading
from tests.convert.made import node, stamp


def alert(status: str = "firing", print_: str = "aa", starts: float = 0, **labels: str) -> dict[str, Any]:
    labels = {"alertname": "GpuHot", "node": "n-1", **labels}
    return {"status": status, "fingerprint": print_, "labels": labels, "startsAt": stamp(starts),
            "annotations": {"summary": "too hot"}}  # fmt: skip


def body(*alerts: Any, **more: Any) -> bytes:
    return json.dumps({"version": "4", "alerts": list(alerts), **more}).encode()


def fault(**match: Any) -> Asked:
    spec = {
        "class": "GPU", "severity": "Error", "scope": "Node", "remedy": [], "clearsBy": "condition",
        "match": [{"alert": {"name": "GpuHot", "node": "node", **match}}],
    }  # fmt: skip
    return asked([{"metadata": {"name": "acme.hot"}, "spec": spec}])["AcmeHot"]


@pytest.mark.parametrize(
    ("match", "labels", "meant"),
    [
        ({}, {}, ["n-1"]),
        ({}, {"alertname": "Other"}, None),
        ({"labels": {"severity": "page"}}, {}, None),
        ({"labels": {"severity": "page"}}, {"severity": "page"}, ["n-1"]),
        ({"node": "instance"}, {"instance": "n-1:9400"}, ["n-1:9400", "n-1"]),
        ({"node": "absent"}, {}, []),
    ],
)
def test_which_alerts_are_meant_and_which_node(match: Any, labels: Any, meant: list[str] | None) -> None:
    found = list(matching(decode(body(alert(**labels))), [fault(**match)]))
    assert [names for _, _, names in found] == ([] if meant is None else [meant])


class Told:
    """A node whose condition is kept as it was written."""

    def __init__(self) -> None:
        self.one, self.book, self.node = fault(), AlertBook(), node()

    def take(self, *alerts: dict[str, Any]) -> Wanted | None:
        for each in decode(body(*alerts)):
            self.book.take(self.node, self.one, each)
        wanted = self.book.wanted(self.node, self.one)
        if wanted is not None:
            self.node = node(conditions={wanted.type: (wanted.status, wanted.reason, wanted.message)})
        return wanted

    @property
    def status(self) -> str:
        condition = self.node.condition("AcmeHot")
        return condition.status if condition is not None else ""


def test_it_is_bad_while_one_fires_and_over_when_all_are_resolved() -> None:
    told = Told()
    told.take(alert(print_="aa"), alert(print_="bb"))
    assert told.status == "True"
    told.take(alert("resolved", "aa"))
    assert told.status == "True"
    told.take(alert("resolved", "bb"))
    assert told.status == "False"


def test_a_restart_between_firing_and_resolved_loses_nothing() -> None:
    told = Told()
    told.take(alert(print_="aa"), alert(print_="bb"))
    told.book = AlertBook()
    assert told.book.wanted(told.node, told.one) is not None
    told.take(alert("resolved", "aa"))
    assert told.status == "True"
    told.book = AlertBook()
    told.take(alert("resolved", "bb"))
    assert told.status == "False"


def test_an_older_message_that_arrives_late_raises_nothing_again_and_a_new_firing_does() -> None:
    told = Told()
    told.take(alert(starts=10))
    told.take(alert("resolved", starts=10))
    told.take(alert(starts=10))
    assert told.status == "False"
    told.take(alert(starts=99))
    assert told.status == "True"
    told.take(alert("resolved", starts=10))
    assert told.status == "True"


def test_resolved_alerts_that_never_fired_say_nothing() -> None:
    told = Told()
    assert told.take(alert("resolved")) is None


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("ab"), st.integers(0, 3)), max_size=6), st.randoms())
def test_order_and_repetition_within_a_message_change_nothing(rows: Any, random: Any) -> None:
    entries = [alert("firing" if firing else "resolved", print_ * 2, starts) for firing, print_, starts in rows]
    shuffled = [*entries, *entries]
    random.shuffle(shuffled)
    assert decode(body(*shuffled)) == decode(body(*entries))


@pytest.mark.parametrize(
    "wrong",
    [
        b"", b"[]", b"{}", b"<html>", b'{"version": "3", "alerts": []}', body("x"), body(alert("pending")),
        b'{"version": "4", "alerts": {}}', b'{"version": "4", "alerts": [{"status": "firing", "labels": []}]}',
        b" " * (payload.BODY_MAX + 1),
    ],
    ids=range(10),
)  # fmt: skip
def test_what_is_no_message_is_refused_in_words(wrong: bytes) -> None:
    with pytest.raises(Undecodable):
        decode(wrong)


LEAF = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from(["4", "firing", "resolved"])
KEYS = st.sampled_from(
    ["version", "alerts", "status", "labels", "fingerprint", "startsAt", "annotations", "summary", "x"]
)
ANYTHING = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5))


@given(st.binary(max_size=60) | ANYTHING.map(lambda v: json.dumps(v).encode()) | ANYTHING.map(lambda v: body(v)))
def test_no_body_breaks_the_decoder(data: bytes) -> None:
    try:
        found = decode(data)
    except Undecodable as error:
        assert str(error)
    else:
        assert all(isinstance(each, Alert) and each.fingerprint for each in found)


class Door:
    """The webhook in front of something that takes alerts, or does not."""

    def __init__(self, token: str = "s3cret", fails: Exception | None = None) -> None:
        self.taken: list[Alert] = []
        self.token, self.fails = token, fails
        self.app = intake.app(self._take, self._take_notices, lambda: self.token, CollectorRegistry())

    async def _take(self, received: list[Alert]) -> int:
        if self.fails is not None:
            raise self.fails
        self.taken += received
        return len(received)

    async def _take_notices(self, received: list[Notice]) -> int:
        return len(received)

    async def post(self, content: bytes, token: str | None = "s3cret", path: str = "/alerts") -> tuple[int, str]:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        transport = httpx2.ASGITransport(app=self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://convert") as http:
            answer = await http.post(path, content=content, headers=headers)
            return answer.status_code, answer.text


async def test_a_message_with_the_token_is_taken() -> None:
    door = Door()
    assert await door.post(body(alert())) == (200, "1 taken\n")
    assert [each.fingerprint for each in door.taken] == ["aa"]


@pytest.mark.parametrize("token", [None, "", "wrong", "s3cre", "s3cret2", "Bearer s3cret"])
async def test_without_the_token_nobody_gets_in(token: str | None) -> None:
    door = Door()
    status, text = await door.post(body(alert()), token)
    assert (status, door.taken) == (401, []) and "s3cret" not in text


async def test_an_empty_token_lets_nobody_in_and_a_renewed_one_counts_at_once() -> None:
    door = Door(token="")
    assert (await door.post(body(alert()), ""))[0] == 401
    door.token = "next"
    assert (await door.post(body(alert())))[0] == 401
    assert (await door.post(body(alert()), "next"))[0] == 200


@pytest.mark.parametrize(
    ("content", "fails", "status"),
    [
        pytest.param(b"<html>", None, 400, id="no message"),
        pytest.param(b" " * (payload.BODY_MAX + 10), None, 413, id="too large"),
        pytest.param(body(alert()), NotLeading("term 1 is over"), 503, id="another replica leads"),
        pytest.param(body(alert()), errors.Unreachable("gone"), 503, id="the API server is away"),
    ],
)
async def test_what_is_not_written_is_not_acknowledged(content: bytes, fails: Exception | None, status: int) -> None:
    """Alertmanager sends again what was answered with 5xx."""
    door = Door(fails=fails)
    assert (await door.post(content))[0] == status
    assert door.taken == []
