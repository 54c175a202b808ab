"""Over HTTP on loopback: real sockets, so these run on a real loop."""

from __future__ import annotations

import asyncio
import json
import ssl
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
import yaml

from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.kubeconfig import kubeconfig, write_kubeconfig
from sickbay.apiserver.serve import CannotServe, Certificate, RunningServer, serve
from sickbay.apiserver.store import Store
from tests.apiserver.conftest import ADMIN
from tests.support.certificates import self_signed

NODES = "/api/v1/nodes"


@pytest.fixture
async def running(real_loop: None, store: Store) -> AsyncIterator[RunningServer]:
    async with await serve(ApiServer(store, {"secret": ADMIN}, anonymous=ADMIN)) as server:
        yield server


def client_of(server: RunningServer) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=server.url, trust_env=False)


async def test_objects_go_in_and_out(running: RunningServer) -> None:
    async with client_of(running) as client:
        made = await client.post(NODES, json={"metadata": {"name": "n"}})
        assert made.status_code == 201
        assert (await client.get(f"{NODES}/n")).json() == made.json()


async def test_a_watch_streams(running: RunningServer, store: Store) -> None:
    async with client_of(running) as client, client.stream("GET", f"{NODES}?watch=1&resourceVersion=4") as stream:
        pieces = stream.aiter_bytes()
        for number in range(3):
            store.create("nodes", {"metadata": {"name": f"n{number}"}})
            event = json.loads(await anext(pieces))
            assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", f"n{number}")


async def test_a_client_that_goes_away_ends_its_watch(running: RunningServer, store: Store) -> None:
    table = store.table("nodes")
    async with client_of(running) as client, client.stream("GET", f"{NODES}?watch=1") as stream:
        assert stream.status_code == 200
        gone = asyncio.Event()
        [watcher] = table.watchers()
        watcher.on_ready = gone.set
    await gone.wait()
    assert table.watchers() == []


async def test_closing_ends_watches_and_frees_the_port(real_loop: None, store: Store) -> None:
    server = await serve(ApiServer(store, anonymous=ADMIN))
    port = int(server.url.rpartition(":")[2])
    async with client_of(server) as client, client.stream("GET", f"{NODES}?watch=1") as stream:
        await server.close()
        assert [line async for line in stream.aiter_lines()] == []
    await server.close()
    again = await serve(ApiServer(store, anonymous=ADMIN), port=port)
    async with client_of(again) as client:
        assert (await client.get("/healthz")).text == "ok"
    await again.close()


async def test_a_port_in_use_is_named_with_a_remedy(running: RunningServer, store: Store) -> None:
    port = int(running.url.rpartition(":")[2])
    with pytest.raises(CannotServe, match=rf"cannot listen on 127.0.0.1:{port}: .*in use.* Choose another port"):
        await serve(ApiServer(store), port=port)


async def test_an_address_that_is_not_ours_is_named(real_loop: None, store: Store) -> None:
    with pytest.raises(CannotServe, match=r"cannot listen on 192\.0\.2\.1:0: "):
        await serve(ApiServer(store), host="192.0.2.1")


async def test_tls_with_a_certificate_and_a_token(real_loop: None, store: Store, tmp_path: Path) -> None:
    certificate = Certificate(*self_signed(tmp_path))
    async with await serve(ApiServer(store, {"secret": ADMIN}), certificate=certificate) as server:
        assert server.url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=str(certificate.certificate))
        headers = {"authorization": "Bearer secret"}
        async with httpx2.AsyncClient(base_url=server.url, verify=trusted, headers=headers, trust_env=False) as client:
            assert (await client.get(NODES)).status_code == 200


def test_a_kubeconfig_holds_the_address_and_the_token() -> None:
    document = yaml.safe_load(kubeconfig("https://127.0.0.1:1", token="t", ca=b"PEM"))
    assert document["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": "UEVN",
    }
    assert document["users"][0]["user"] == {"token": "t"}
    assert document["contexts"][0]["name"] == document["current-context"] == "sickbay"


def test_a_kubeconfig_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("old")
    path.chmod(0o644)
    write_kubeconfig(path, "http://127.0.0.1:1", token="t")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "old" not in path.read_text()


async def test_a_server_that_is_served_keeps_house(running: RunningServer, store: Store) -> None:
    owner = store.create("configmaps", {"metadata": {"name": "owner"}}, "default")["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    store.create("configmaps", {"metadata": {"name": "mine", "ownerReferences": [reference]}}, "default")
    async with client_of(running) as client:
        await client.delete("/api/v1/namespaces/default/configmaps/owner")
        for _ in range(100):
            if (await client.get("/api/v1/namespaces/default/configmaps/mine")).status_code == 404:
                return
    raise AssertionError("what it owned is still there")


async def test_a_mistake_of_the_servers_is_one_failed_request(running: RunningServer, store: Store) -> None:
    def slip(write: object) -> None:
        raise ZeroDivisionError

    store.before_write(slip)
    async with client_of(running) as client:
        answer = await client.post(NODES, json={"metadata": {"name": "n"}})
        assert (answer.status_code, answer.json()["reason"]) == (500, "InternalError")
        assert (await client.get(NODES)).status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"[" * 100_000, 400, id="nested deeply"),
        pytest.param(b'{"metadata":' * 50_000 + b"1" + b"}" * 50_000, 400, id="nested objects"),
        pytest.param(b"x" * (3 * 1024 * 1024 + 1), 413, id="too large"),
        pytest.param(b"\x00\x00", 400, id="null bytes"),
        pytest.param(b"\xff\xfe{", 400, id="no UTF-8"),
    ],
)
async def test_a_body_that_is_meant_to_harm_is_refused(running: RunningServer, body: bytes, code: int) -> None:
    headers = {"content-type": "application/json"}
    async with client_of(running) as client:
        assert (await client.post(NODES, content=body, headers=headers)).status_code == code
        assert (await client.get(NODES)).status_code == 200
