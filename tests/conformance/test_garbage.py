"""What happens to dependents, and to namespaces: our housekeeper against the real controller-manager."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sickbay.apiserver.housekeeping import Housekeeper
from sickbay.apiserver.store import Store
from sickbay.clock import Randomness
from sickbay.sim.loop import VirtualLoop
from tests.conformance.server import Server, clients_of
from tests.support import virtual
from tests.support.controlplane import ControlPlane


@pytest.fixture(scope="module")
def managed_plane(control_plane_binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(control_plane_binaries, tmp_path_factory.mktemp("managed"), controllers=True) as running:
        yield running


@asynccontextmanager
async def our_kept_server() -> AsyncIterator[Server]:
    store = Store(virtual.clock(), Randomness(1))
    housekeeping = asyncio.ensure_future(Housekeeper(store).run())
    found = Server(clients_of(store), store.compact, real=False)
    async with found.client:
        yield found
    housekeeping.cancel()
    await asyncio.wait([housekeeping])


@pytest.fixture
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """Shadows the suite's: here somebody collects garbage."""
    if isinstance(asyncio.get_running_loop(), VirtualLoop):
        async with our_kept_server() as found:
            yield found
        return
    plane = request.getfixturevalue("managed_plane")
    found = Server(plane.http_client, plane.restart_apiserver, real=True)
    async with found.client:
        yield found


async def eventually(check: Callable[[], Awaitable[bool]]) -> bool:
    """Whether it becomes so within 30 seconds."""
    for _ in range(300):
        if await check():
            return True
        await asyncio.sleep(0.1)  # noqa: TID251 - controllers work in the background on both
    return False


class Family:
    """Config maps of a namespace that own one another."""

    def __init__(self, server: Server, namespace: str) -> None:
        self.server = server
        self.path = f"/api/v1/namespaces/{namespace}/configmaps"

    async def make(self, name: str, *owners: dict[str, Any], **metadata: Any) -> dict[str, Any]:
        references = [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
                "blockOwnerDeletion": True,
            }
            for owner in owners
        ]
        meta = {"name": name, "ownerReferences": references} | metadata
        return await self.server.made(self.path, {"metadata": meta})

    async def delete(self, name: str, policy: str = "Background") -> None:
        assert (await self.server.delete(f"{self.path}/{name}", propagationPolicy=policy)).code == 200

    async def names(self) -> list[str]:
        return [name for name in (await self.server.get(self.path)).names if name != "kube-root-ca.crt"]

    async def become(self, *names: str) -> bool:
        async def check() -> bool:
            return await self.names() == list(names)

        return await eventually(check)

    async def being_deleted(self, name: str) -> bool:
        async def check() -> bool:
            body = (await self.server.get(f"{self.path}/{name}")).body
            return "deletionTimestamp" in body.get("metadata", {})

        return await eventually(check)


@pytest.fixture
async def family(server: Server) -> Family:
    name = server.unique("family")
    await server.made("/api/v1/namespaces", {"metadata": {"name": name}})
    return Family(server, name)


async def test_children_and_their_children_go_with_the_owner(family: Family) -> None:
    owner = await family.make("owner")
    child = await family.make("child", owner)
    await family.make("grandchild", child)
    await family.make("stranger")
    await family.delete("owner")
    assert await family.become("stranger")


async def test_a_child_of_two_outlives_the_first(family: Family) -> None:
    first, second = await family.make("first"), await family.make("second")
    await family.make("child", first, second)
    await family.delete("first")
    assert await family.become("child", "second")
    await family.delete("second")
    assert await family.become()


async def test_a_child_of_an_owner_that_never_was_goes(family: Family) -> None:
    ghost = {"metadata": {"name": "ghost", "uid": "00000000-0000-0000-0000-000000000000"}}
    await family.make("child", ghost)
    assert await family.become()


async def test_in_the_foreground_children_go_first(family: Family) -> None:
    owner = await family.make("owner")
    await family.make("child", owner, finalizers=["a.b/held"])
    await family.delete("owner", "Foreground")
    assert await family.being_deleted("child")
    assert await family.names() == ["child", "owner"]
    await family.server.patch("merge", f"{family.path}/child", {"metadata": {"finalizers": None}})
    assert await family.become()


async def test_orphans_stay_and_forget(family: Family) -> None:
    owner = await family.make("owner")
    await family.make("child", owner)
    await family.delete("owner", "Orphan")
    assert await family.become("child")
    child = (await family.server.get(f"{family.path}/child")).body
    assert not child["metadata"].get("ownerReferences")


async def test_a_namespace_goes_when_its_content_has(server: Server, family: Family) -> None:
    await family.make("plain")
    await family.make("held", finalizers=["a.b/held"])
    path = family.path.removesuffix("/configmaps")
    assert (await server.delete(path)).code == 200
    assert await family.being_deleted("held")
    assert await family.become("held")
    assert (await server.get(path)).body["status"]["phase"] == "Terminating"
    await server.patch("merge", f"{family.path}/held", {"metadata": {"finalizers": None}})

    async def gone() -> bool:
        return (await server.get(path)).code == 404

    assert await eventually(gone)
