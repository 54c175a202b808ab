"""LIST: selectors, pages of one moment, revisions."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.conformance.server import NODES, Server


class Shelf:
    """Ten config maps c0 to c9 in a namespace of their own."""

    def __init__(self, server: Server, path: str) -> None:
        self.server = server
        self.path = path

    async def names(self, query: str = "") -> list[str]:
        answer = await self.server.get(f"{self.path}?{query}")
        assert answer.code == 200, answer.body
        return answer.names


@pytest.fixture
async def shelf(server: Server) -> Shelf:
    path = f"/api/v1/namespaces/{await server.namespace()}/configmaps"
    for n in range(10):
        labels = {"parity": "odd" if n % 2 else "even", "size": str(n)}
        await server.made(path, {"metadata": {"name": f"c{n}", "labels": labels if n < 9 else {}}})
    return Shelf(server, path)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("parity=odd", "1357"),
        ("parity==odd", "1357"),
        ("parity!=odd", "024689"),
        ("parity in (odd)", "1357"),
        ("parity in (odd,even)", "012345678"),
        ("parity notin (odd)", "024689"),
        ("parity notin (odd, even)", "9"),
        ("parity", "012345678"),
        ("!parity", "9"),
        ("parity=odd,size=3", "3"),
        ("parity=odd,size!=3", "157"),
        ("size>5", "678"),
        ("size<2", "01"),
        ("parity=", ""),
        (" parity = odd , size = 1 ", "1"),
        ("", "0123456789"),
    ],
)
async def test_label_selectors(shelf: Shelf, selector: str, expected: str) -> None:
    assert await shelf.names(f"labelSelector={quote(selector)}") == [f"c{digit}" for digit in expected]


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("a=b,,c=d", "found ',', expected: identifier after ','"),
        ("a=b c=d", "found 'c', expected: ',' or 'end of string'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("/a", 'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty'),
    ],
)
async def test_what_is_wrong_with_a_label_selector_is_said(shelf: Shelf, selector: str, message: str) -> None:
    for method in ("GET", "DELETE"):
        answer = await shelf.server.call(method, f"{shelf.path}?labelSelector={quote(selector)}")
        assert (answer.code, answer.message) == (400, message)
    assert len(await shelf.names()) == 10


@pytest.mark.parametrize("selector", ["a%", "x" * 64, "size>99999999999999999999", "a in ('b')"])
async def test_a_label_selector_of_what_no_label_can_be_is_refused(shelf: Shelf, selector: str) -> None:
    assert (await shelf.server.get(f"{shelf.path}?labelSelector={quote(selector)}")).code == 400


@pytest.mark.parametrize(
    ("selector", "code"), [("metadata.name=c\\,1", 200), ("metadata.name=c1=c2", 400), ("metadata.name=c\\x", 400)]
)
async def test_a_backslash_keeps_what_would_end_a_field(shelf: Shelf, selector: str, code: int) -> None:
    assert (await shelf.server.get(f"{shelf.path}?fieldSelector={quote(selector)}")).code == code


@pytest.mark.parametrize("selector", ["a===b", "a in b", "a=b c", "=", "a in (b", "a notin", "a=-b", "size>x"])
async def test_a_label_selector_that_cannot_be_read_is_a_bad_request(shelf: Shelf, selector: str) -> None:
    answer = await shelf.server.get(f"{shelf.path}?labelSelector={quote(selector)}")
    assert (answer.code, answer.reason) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=c3", "3"),
        ("metadata.name!=c3", "012456789"),
        ("metadata.name=c3,metadata.name=c4", ""),
    ],
)
async def test_field_selectors(shelf: Shelf, selector: str, expected: str) -> None:
    assert await shelf.names(f"fieldSelector={quote(selector)}") == [f"c{digit}" for digit in expected]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (NODES, "field label not supported: spec.colour"),
        ("/api/v1/pods", "field label not supported: spec.colour"),
        (
            "/api/v1/configmaps",
            '"spec.colour" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
async def test_a_field_nobody_can_select_by_is_a_bad_request(server: Server, path: str, message: str) -> None:
    answer = await server.get(f"{path}?fieldSelector=spec.colour%3Dred")
    assert (answer.code, answer.message) == (400, message)


async def test_pods_are_found_by_node_and_phase(server: Server) -> None:
    namespace = await server.namespace()
    path = f"/api/v1/namespaces/{namespace}/pods"
    for name, node in (("a", "n1"), ("b", "n2"), ("c", "")):
        spec = {"automountServiceAccountToken": False, "containers": [{"name": "c", "image": "i"}]}
        await server.made(path, {"metadata": {"name": name}, "spec": spec | ({"nodeName": node} if node else {})})
    await server.patch("merge", f"{path}/b/status", {"status": {"phase": "Running"}})
    queries = {
        "spec.nodeName=n1": ["a"],
        "spec.nodeName=": ["c"],
        "spec.nodeName!=n1": ["b", "c"],
        "status.phase=Running": ["b"],
        "status.phase!=Running,spec.nodeName=n1": ["a"],
    }
    for query, expected in queries.items():
        assert (await server.get(f"{path}?fieldSelector={quote(query)}")).names == expected, query
    everywhere = await server.get(f"/api/v1/pods?fieldSelector=metadata.namespace%3D{namespace}")
    assert everywhere.names == ["a", "b", "c"]


async def test_cordoned_nodes_are_found(server: Server) -> None:
    label = server.unique("mark")
    paths = [await server.node(labels={"mark": label}, spec=spec) for spec in ({}, {"unschedulable": True})]
    for value, path in (("true", paths[1]), ("false", paths[0])):
        found = await server.get(f"{NODES}?labelSelector=mark%3D{label}&fieldSelector=spec.unschedulable%3D{value}")
        assert found.names == [path.rpartition("/")[2]]


async def test_items_of_a_built_in_list_carry_no_kind(shelf: Shelf) -> None:
    body = (await shelf.server.get(shelf.path)).body
    assert (body["kind"], body["apiVersion"]) == ("ConfigMapList", "v1")
    assert int(body["metadata"]["resourceVersion"]) > 0
    assert all("kind" not in item and "apiVersion" not in item for item in body["items"])


async def test_pages_show_one_moment_whatever_is_written_between(shelf: Shelf) -> None:
    server = shelf.server
    first = await server.get(f"{shelf.path}?limit=4")
    assert first.names == ["c0", "c1", "c2", "c3"]
    assert first.body["metadata"]["remainingItemCount"] == 6
    await server.delete(f"{shelf.path}/c5")
    await server.made(shelf.path, {"metadata": {"name": "c55"}})
    await server.patch("merge", f"{shelf.path}/c6", {"data": {"a": "later"}})
    token = first.body["metadata"]["continue"]
    second = await server.get(f"{shelf.path}?limit=4&continue={token}")
    assert second.names == ["c4", "c5", "c6", "c7"]
    assert "data" not in second.body["items"][2]
    assert second.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]
    last = await server.get(f"{shelf.path}?limit=4&continue={second.body['metadata']['continue']}")
    assert last.names == ["c8", "c9"]
    assert "continue" not in last.body["metadata"]
    assert await shelf.names() == ["c0", "c1", "c2", "c3", "c4", "c55", "c6", "c7", "c8", "c9"]


async def test_pages_of_a_selection_do_not_count_what_remains(shelf: Shelf) -> None:
    first = await shelf.server.get(f"{shelf.path}?limit=3&labelSelector=parity%3Deven")
    assert first.names == ["c0", "c2", "c4"]
    assert "remainingItemCount" not in first.body["metadata"]
    token = first.body["metadata"]["continue"]
    rest = await shelf.server.get(f"{shelf.path}?limit=3&labelSelector=parity%3Deven&continue={token}")
    assert rest.names == ["c6", "c8"]


async def test_a_page_that_holds_all_has_no_continuation(shelf: Shelf) -> None:
    answer = await shelf.server.get(f"{shelf.path}?limit=10")
    assert (len(answer.names), "continue" in answer.body["metadata"]) == (10, False)


async def test_a_list_of_an_exact_revision(shelf: Shelf) -> None:
    server = shelf.server
    then = (await server.get(shelf.path)).body["metadata"]["resourceVersion"]
    await server.delete(f"{shelf.path}/c0")
    query = f"resourceVersion={then}&resourceVersionMatch"
    exact = await server.get(f"{shelf.path}?{query}=Exact")
    assert exact.names[0] == "c0"
    assert exact.body["metadata"]["resourceVersion"] == then
    fresh = await server.get(f"{shelf.path}?{query}=NotOlderThan")
    assert fresh.names[0] == "c1"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("continue=nonsense", 400),
        ("limit=x", 400),
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersionMatch=Exact&resourceVersion=0", 422),
        ("resourceVersionMatch=Sideways&resourceVersion=1", 422),
        ("resourceVersion=99999999", 504),
        ("resourceVersion=abc", 400),
        ("limit=", 400),
        ("limit=99999999999999999999", 400),
        ("timeoutSeconds=x", 400),
        ("sendInitialEvents=false", 422),
        ("continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIuLi8uLi94In0", 400),
        ("continue=eyJ2IjoieCIsInJ2Ijo1LCJzdGFydCI6ImEifQ", 400),
        ("watch=1&continue=x", 422),
        ("watch=1&sendInitialEvents=false", 422),
        ("watch=1&resourceVersionMatch=Exact&resourceVersion=1", 422),
    ],
)
async def test_options_that_make_no_sense_are_refused(shelf: Shelf, query: str, code: int) -> None:
    answer = await shelf.server.get(f"{shelf.path}?{query}")
    assert (answer.code, answer.body["status"]) == (code, "Failure")


async def test_a_version_that_lies_ahead_asks_to_come_again(shelf: Shelf) -> None:
    answer = await shelf.server.get(f"{shelf.path}/c1?resourceVersion=99999999")
    assert (answer.code, answer.reason) == (504, "Timeout")
    assert answer.body["details"]["retryAfterSeconds"] == 1
    assert {cause[0] for cause in answer.causes} == {"ResourceVersionTooLarge"}


async def test_of_an_option_given_twice_the_first_counts(shelf: Shelf) -> None:
    assert await shelf.names("limit=2&limit=3") == ["c0", "c1"]


@pytest.mark.parametrize(("query", "code"), [("resourceVersion=x", 500), ("export=1", 400)])
async def test_options_of_a_get_that_make_no_sense_are_refused(shelf: Shelf, query: str, code: int) -> None:
    assert (await shelf.server.get(f"{shelf.path}/c1?{query}")).code == code


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", "/api/v1/configmaps", 405),
        ("GET", "/api/v1/configmaps/x", 404),
        ("DELETE", "/api/v1/configmaps", 405),
        ("GET", f"{NODES}/x/status/deeper", 404),
        ("POST", "/version", 405),
    ],
)
async def test_paths_at_which_nothing_is_served(server: Server, method: str, path: str, code: int) -> None:
    assert (await server.call(method, path, {} if method == "POST" else None)).code == code
