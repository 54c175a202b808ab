"""A hold for a span of time, from a machine whose clock is not the cluster's."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sickbay.api import crds
from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.kubeconfig import write_kubeconfig
from sickbay.apiserver.serve import serve
from sickbay.apiserver.store import Store
from sickbay.apiserver.writes import Caller
from sickbay.clock import Randomness, SystemClock, parse_time
from tests.cli.conftest import Answer, command

HOLDS = "holds.sickbay.dev"
HOUR = timedelta(hours=1)


class Apart(SystemClock):
    """The cluster's clock, as far from ours as it is said."""

    def __init__(self, by: timedelta) -> None:
        super().__init__()
        self.by = by

    def now(self) -> datetime:
        return super().now() + self.by


async def held(folder: Path, by: timedelta, *words: str) -> tuple[Answer, Store]:
    store = Store(Apart(by), Randomness(1))
    for manifest in crds.manifests():
        store.create("customresourcedefinitions.apiextensions.k8s.io", manifest)
    app = ApiServer(store, anonymous=Caller("jo", ("system:masters", "system:authenticated")))
    async with await serve(app) as server:
        write_kubeconfig(folder / "config", server.url, user="jo")
        return await command(*words, "--reason", "why", "--kubeconfig", str(folder / "config")), store


def lasts(store: Store, name: str) -> timedelta:
    """From the moment at which the server made it."""
    hold = store.get(HOLDS, name)
    return parse_time(hold["spec"]["until"]) - parse_time(hold["metadata"]["creationTimestamp"])


@pytest.mark.parametrize("by", [100 * HOUR, -2 * HOUR], ids=["ours is behind", "ours is ahead"])
@pytest.mark.parametrize("words", [("hold", "x", "--node", "n1"), ("stop",)], ids=lambda words: words[0])
async def test_a_hold_lasts_as_long_as_it_was_meant(words: tuple[str, ...], by: timedelta, tmp_path: Path) -> None:
    answer, store = await held(tmp_path, by, *words, "--for", "4h")
    assert answer.code == 0, answer.err
    name = "stop" if words[0] == "stop" else "x"
    assert abs(lasts(store, name) - 4 * HOUR) < timedelta(minutes=1)
    assert "the hold ends by the cluster's" in answer.err
    assert f"is in force until {store.get(HOLDS, name)['spec']['until']}" in answer.out


async def test_a_few_seconds_are_left_alone(tmp_path: Path) -> None:
    answer, store = await held(tmp_path, timedelta(seconds=20), "hold", "x", "--node", "n1", "--for", "4h")
    assert "clock" not in answer.err
    assert store.get(HOLDS, "x")["metadata"]["generation"] == 1


async def test_a_hold_without_an_end_has_none(tmp_path: Path) -> None:
    answer, store = await held(tmp_path, 100 * HOUR, "hold", "x", "--node", "n1")
    assert (answer.code, "until" in store.get(HOLDS, "x")["spec"]) == (0, False)
    assert "end it with: sickbay release x" in answer.out
