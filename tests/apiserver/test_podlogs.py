"""Logs of pods: what their kubelets give, in the form that kubectl logs and our own client ask for."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx2
import pytest

from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.transport import InProcessTransport
from sickbay.apiserver.writes import SYSTEM

LINES = [(datetime(2027, 3, 1, 8, 0, second, tzinfo=UTC), f"line {second}") for second in range(3)]
PATH = "/api/v1/namespaces/default/pods/p/log"


def client(store, node="n1", lines=LINES):
    server = ApiServer(store, anonymous=SYSTEM)
    server.logs = lambda pod: lines
    spec = {"containers": [{"name": "main", "image": "x"}], **({"nodeName": node} if node else {})}
    store.create("namespaces", {"metadata": {"name": "default"}}) if store.find(
        "namespaces", "default"
    ) is None else None
    store.create("pods", {"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
    return httpx2.AsyncClient(transport=InProcessTransport(server), base_url="http://ours")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "line 0\nline 1\nline 2\n"),
        ("?tailLines=1", "line 2\n"),
        ("?tailLines=0", ""),
        ("?tailLines=9", "line 0\nline 1\nline 2\n"),
        ("?tailLines=1&timestamps=true", "2027-03-01T08:00:02.000000Z line 2\n"),
    ],
)
async def test_the_end_of_a_log_is_given_as_text(store, query, expected):
    answer = await client(store).get(PATH + query)
    assert (answer.status_code, answer.text) == (200, expected)


async def test_a_pod_without_a_node_has_written_nothing(store):
    assert (await client(store, node="").get(PATH)).text == ""


@pytest.mark.parametrize(
    ("lines", "query", "code"), [(None, "", 500), (LINES, "?tailLines=-1", 400)], ids=["kubelet-is-away", "negative"]
)
async def test_what_cannot_be_read_is_an_error(store, lines, query, code):
    assert (await client(store, lines=lines).get(PATH + query)).status_code == code


async def test_a_log_cannot_be_written(store):
    assert (await client(store).post(PATH)).status_code == 405
