"""Whatever is in the way, every command says it in words and leaves with its exit code: no traceback, ever.

The commands are found by asking the program, so that a new one is tried as well.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import click
import pytest
import yaml

from sickbay.apiserver.app import ApiServer
from sickbay.apiserver.kubeconfig import write_kubeconfig
from sickbay.apiserver.rbac import Rbac
from sickbay.apiserver.serve import serve
from sickbay.apiserver.store import Store
from sickbay.apiserver.writes import Caller
from sickbay.cli.docgen.commands import commands
from sickbay.clock import Randomness, SystemClock
from tests.cli.conftest import Answer, Cluster, command
from tests.support.ports import free_ports

WORDS: dict[str, list[str]] = {
    "approve": ["n1", "Drain"],
    "clear": ["n1", "NvidiaXID79Error", "--reason", "why"],
    "deny": ["n1", "Drain"],
    "explain": ["n1"],
    "history": ["n1"],
    "hold": ["x", "--node", "n1", "--reason", "why"],
    "impact": [],
    "queue": [],
    "release": ["x"],
    "repair": ["n1", "--remedy", "RebootNode", "--reason", "why"],
    "resolve": ["n1", "--outcome", "Repaired"],
    "status": [],
    "stop": ["--reason", "why"],
    "validate": ["n1"],
}
LONG_RUNNING = {"agent", "controller"}
"""They retry a server that is away instead of giving up."""
EMPTY_IS_FINE = {"hold", "impact", "queue", "status", "stop"}


def lines() -> list[list[str]]:
    """A sensible call of every command that talks to a cluster, and of `explain` for a job too."""
    found = []
    for name, each in commands():
        talks = any("--kubeconfig" in option.opts for option in each.params)
        if talks and name not in LONG_RUNNING and name != "demo" and not isinstance(each, click.Group):
            assert name in WORDS, f"say in WORDS how {name} is called"
            found.append([*name.split(), *WORDS[name]])
    return [*found, ["explain", "job/llm"]]


def in_words(answer: Answer) -> str:
    """Checks the manners; returns what was said."""
    assert answer.code == 1, (answer.out, answer.err)
    assert "Traceback" not in answer.err + answer.out
    assert answer.err.startswith("Error: ")
    assert len(answer.err.splitlines()) <= 2, answer.err
    return answer.err


FEW = ("approve", "explain", "hold", "queue")
"""One of each sort, for each change; the slow tier tries all the others."""
every_line = pytest.mark.parametrize(
    "words",
    [pytest.param(words, marks=[] if words[0] in FEW else [pytest.mark.slow]) for words in lines()],
    ids=lambda words: " ".join(words),
)


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Path]:
    """A cluster in which Sickbay was never installed."""
    app = ApiServer(Store(SystemClock(), Randomness(1)), anonymous=Caller("jo", ("system:masters",)))
    async with await serve(app) as server:
        write_kubeconfig(tmp_path / "bare", server.url, user="jo")
        yield tmp_path / "bare"


@pytest.fixture
async def shut(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Path]:
    """The cluster as a user without any role meets it."""
    app = ApiServer(cluster.store, anonymous=Caller("nobody"), authorizer=Rbac(cluster.store))
    async with await serve(app) as server:
        write_kubeconfig(tmp_path / "shut", server.url, user="nobody")
        yield tmp_path / "shut"


@every_line
async def test_an_api_server_that_is_away_is_named(words: list[str], tmp_path: Path) -> None:
    (port,) = free_ports(1)
    write_kubeconfig(tmp_path / "away", f"http://127.0.0.1:{port}", user="jo")
    said = in_words(await command(*words, "--kubeconfig", str(tmp_path / "away")))
    assert f"the API server http://127.0.0.1:{port} cannot be reached" in said


@every_line
async def test_a_missing_right_is_named(words: list[str], cluster: Cluster, shut: Path) -> None:
    cluster.node("n1")
    said = in_words(await command(*words, "--kubeconfig", str(shut)))
    assert "not permitted" in said
    assert "cannot" in said


@every_line
async def test_a_cluster_without_our_kinds_says_how_to_install_them(words: list[str], bare: Path) -> None:
    said = in_words(await command(*words, "--kubeconfig", str(bare)))
    assert "sickbay crds | kubectl apply" in said or 'nodes "n1" not found' in said


@every_line
async def test_an_empty_cluster_is_no_error_where_nothing_was_named(words: list[str], cluster: Cluster) -> None:
    answer = await cluster.run(*words)
    if words[0] in EMPTY_IS_FINE:
        assert answer.code == 0
        assert all(line.startswith("note: ") for line in answer.err.splitlines()), answer.err
        assert answer.out.strip()
    else:
        in_words(answer)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="no file"),
        pytest.param("", id="empty"),
        pytest.param("{not yaml", id="no YAML"),
        pytest.param("a: b", id="something else"),
        pytest.param(yaml.safe_dump({"current-context": "x", "contexts": []}), id="no context"),
    ],
)
@pytest.mark.parametrize(
    "words", [["queue"], ["explain", "n1"], ["hold", "x", "--node", "n", "--reason", "y"]], ids=str
)
async def test_a_kubeconfig_that_cannot_be_used_is_named(words: list[str], content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "config"
    if content is not None:
        file.write_text(content)
    said = in_words(await command(*words, "--kubeconfig", str(file)))
    assert "config" in said


async def test_no_kubeconfig_anywhere_is_said_with_the_places_that_were_tried() -> None:
    assert "kubeconfig" in in_words(await command("queue")).lower()


@pytest.mark.parametrize("words", [w for w in lines() if w[0] in EMPTY_IS_FINE - {"hold", "stop"}], ids=" ".join)
async def test_json_is_json_also_when_there_is_nothing(words: list[str], cluster: Cluster) -> None:
    answer = await cluster.run(*words, "-o", "json")
    assert answer.code == 0, answer.err
    json.loads(answer.out)


async def test_a_reader_who_leaves_early_is_no_error(cluster: Cluster) -> None:
    """`sickbay catalogue | head -1`"""
    from tests.cli.piping import first_line_of

    code, err = await first_line_of("catalogue")
    assert (code in (0, 1, 141, -13), "Traceback" in err) == (True, False)


@pytest.mark.parametrize(("name", "each"), [pytest.param(n, c, id=n) for n, c in commands()])
def test_every_command_has_a_help_with_an_example(name: str, each: click.Command) -> None:
    example = (each.help or "").partition("Example: ")[2]
    assert f"sickbay {name.split()[0]}" in example, "an example a user can type"
