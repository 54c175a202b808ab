"""Between the list that is shown and the answer things may change: only what was shown is answered."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click
import httpx2
import pytest

from sickbay.api import names
from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.transport import DirectTransport
from sickbay.apiserver.writes import Caller
from sickbay.cli.ops import questions
from sickbay.cli.ops.questions import Question, Wanted
from sickbay.kube.client import Client
from tests.cli.conftest import MERGE, Cluster
from tests.cli.test_ops import LABEL, waiting


def client_of(cluster: Cluster) -> Client:
    app = ApiServer(cluster.store, anonymous=Caller("jo", ("system:masters",)))
    return Client(httpx2.AsyncClient(base_url="http://cluster", transport=DirectTransport(app)), "test")


def patch(cluster: Cluster, labels: dict[str, Any] | None = None, **asked: Any) -> None:
    meta = cluster.store.get("nodes", "n1")["metadata"]
    inquiry = json.loads(meta["annotations"][names.INQUIRY]) | asked
    body = {"labels": labels or {}, "annotations": {names.INQUIRY: json.dumps(inquiry)}}
    cluster.store.patch("nodes", "n1", {"metadata": body}, MERGE, "")


CHANGES = [
    pytest.param(lambda c: patch(c, attempt=2), "another question", id="the next attempt"),
    pytest.param(lambda c: patch(c, step="Repair"), "only Repair is asked for", id="the next step"),
    pytest.param(lambda c: patch(c, {LABEL: "denied"}), "Drain is denied already", id="somebody was faster"),
    pytest.param(lambda c: patch(c, {LABEL: None}), "its label was taken away", id="taken back"),
]


@pytest.mark.parametrize(("change", "says"), CHANGES)
async def test_a_question_that_has_changed_since_it_was_shown_is_not_answered(
    cluster: Cluster, change: Callable[[Cluster], None], says: str
) -> None:
    waiting(cluster, cluster.node("n1"))
    client = client_of(cluster)
    (shown,) = (await questions.find(client, Wanted("Drain", ("n1",)))).questions
    change(cluster)
    with pytest.raises(click.ClickException, match=says):
        await questions.again(client, shown)


async def test_a_heartbeat_is_no_change(cluster: Cluster) -> None:
    waiting(cluster, cluster.node("n1"))
    client = client_of(cluster)
    (shown,) = (await questions.find(client, Wanted("Drain", ("n1",)))).questions
    cluster.store.patch("nodes", "n1", {"metadata": {"annotations": {"beat": "1"}}}, MERGE, "")
    again = await questions.again(client, shown)
    assert isinstance(again, Question)
    assert again.identity == shown.identity
    assert again.node.metadata.resource_version != shown.node.metadata.resource_version
