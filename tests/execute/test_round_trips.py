"""How long the way from decide's order to the cordon is, in round trips: no read waits for another one."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from sickbay.api import names
from sickbay.execute.owners import Owners
from sickbay.kube import errors
from sickbay.kube.nodelease import NodeLease
from tests.execute.kit import NODES, Bench

TRIP = 0.1


class Slow(httpx2.AsyncBaseTransport):
    """Each request takes a tenth of a second to arrive and none to be answered."""

    def __init__(self, bench: Bench) -> None:
        self._inner, self._clock = bench.wire.inner, bench.clock

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await self._clock.sleep(TRIP)
        return await self._inner.handle_async_request(request)


def shared(bench: Bench) -> None:
    bench.store.create("namespaces", {"metadata": {"name": names.MEDIK8S_LEASES}})


@pytest.mark.parametrize(
    ("leases", "trips"), [(False, 3), (True, 5)], ids=["nobody-shares-leases", "with-the-shared-lease"]
)
async def test_from_the_order_to_the_cordon(leases: bool, trips: int) -> None:
    """All reads; claim; cordon. Where remediators share Leases: a look at the Lease and the taking of it, too."""
    bench = Bench()
    if leases:
        shared(bench)
    bench.open("Quarantine")
    bench.wire.inner = Slow(bench)
    written: list[float] = []

    def note(write: Any) -> None:
        if write.resource == NODES and names.QUARANTINE in (write.new["metadata"].get("annotations") or {}):
            written.append(bench.clock.monotonic())

    bench.store.after_write(note)
    begun = bench.clock.monotonic()
    await bench.shift().look()
    assert round((written[0] - begun) / TRIP) == trips


async def test_that_nobody_shares_leases_is_asked_once_in_a_minute() -> None:
    bench = Bench()
    owners = Owners(NodeLease(bench.shift().tools.client, bench.clock), bench.clock)
    asked = []
    for _ in range(4):
        assert not await owners.in_use()
        asked.append(bench.wire.asked.count("GET namespaces"))
        await bench.clock.sleep(25)
    assert asked == [1, 1, 1, 2]


async def test_a_convention_that_comes_into_use_is_kept_within_a_minute() -> None:
    bench = Bench()
    bench.open("Repair")
    shift = bench.shift()
    await shift.look()
    shared(bench)
    await bench.clock.sleep(61)
    bench.ask("Repair", attempt=2, action="PowerCycle", done=["Quarantine", "Drain"])
    await shift.look()
    lease = bench.store.get("leases.coordination.k8s.io", "node-n1", names.MEDIK8S_LEASES)
    assert lease["spec"]["holderIdentity"] == names.MEDIK8S_HOLDER


async def test_a_release_does_not_wait_for_the_shared_leases() -> None:
    """Whether they are in use cannot be asked; the node returns all the same, and the Lease is tried again."""
    bench = Bench()
    bench.open("Unquarantine")
    bench.wire.refuse = lambda request: 503 if "namespaces" in request.url.path else 0
    shift = bench.shift()
    with pytest.raises(errors.ServerError, match="refused"):
        await shift.look()
    assert not bench.node()["spec"].get("unschedulable")
    bench.wire.refuse = lambda request: 0
    assert (await shift.to_end())["state"] == "Done"
