"""Requests as they leave: the same as httpx2's own client would build them, only cheaper."""

from __future__ import annotations

import httpx2
import pytest

from sickbay.kube.outgoing import Outgoing


@pytest.mark.parametrize(
    "base", ["http://api", "http://api/", "https://proxy.example:8443/clusters/a", "http://[::1]:80/x/"]
)
@pytest.mark.parametrize(
    "params", [None, {"limit": "500", "continue": "a/b=="}, {"labelSelector": "a=b,c!=d", "watch": "1"}]
)
def test_a_request_is_what_httpx2_would_have_built(base: str, params: dict[str, str] | None) -> None:
    http = httpx2.AsyncClient(base_url=base, headers={"authorization": "Bearer t"}, timeout=7)
    headers = {"user-agent": "sickbay-test", "accept": "application/json", "content-type": "application/json"}
    theirs = http.build_request("POST", "/api/v1/nodes/a-1/status", params=params, headers=headers, content=b"{}")
    ours = Outgoing(http, "sickbay-test").request(
        "POST", "/api/v1/nodes/a-1/status", params=params, content=b"{}", content_type="application/json"
    )
    assert ours.url == theirs.url
    assert ours.headers == theirs.headers
    assert ours.extensions == theirs.extensions
    assert ours.content == theirs.content


@pytest.mark.parametrize("path", ["/api/v1/nodes/a", "/apis/x.dev/v1/namespaces/a/things/b:c"])
def test_the_same_path_asked_twice_gives_two_requests_of_one_url(path: str) -> None:
    outgoing = Outgoing(httpx2.AsyncClient(base_url="http://api"), "sickbay-test")
    first, second = outgoing.request("GET", path), outgoing.request("GET", path)
    first.extensions["sni_hostname"] = "x"
    first.headers["x"] = "y"
    assert second.url == first.url
    assert "sni_hostname" not in second.extensions
    assert "x" not in second.headers


@pytest.mark.parametrize("name", ["a?b=c", "a#b", "a b", "knöten", "50%"])
def test_a_mistyped_name_stays_in_the_path(name: str) -> None:
    outgoing = Outgoing(httpx2.AsyncClient(base_url="http://api"), "sickbay-test")
    url = outgoing.request("GET", f"/api/v1/nodes/{name}").url
    assert url.path == f"/api/v1/nodes/{name}"
    assert url.query == b""
    assert url.fragment == ""


def test_a_watch_has_a_patience_of_its_own() -> None:
    outgoing = Outgoing(httpx2.AsyncClient(base_url="http://api", timeout=7), "sickbay-test")
    assert outgoing.request("GET", "/x", silence=20).extensions == {"timeout": httpx2.Timeout(20).as_dict()}
    assert outgoing.request("GET", "/x").extensions == {"timeout": httpx2.Timeout(7).as_dict()}
