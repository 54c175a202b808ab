"""The commands that need no cluster, and what happens where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sickbay.cli.main import cli
from tests.cli.conftest import command

GOOD = """\
apiVersion: sickbay.dev/v1alpha1
kind: RepairRule
metadata: {name: default}
spec:
  rules:
  - name: all
    procedure:
    - step: Quarantine
    - step: Drain
    - step: Repair
    - step: Unquarantine
---
apiVersion: sickbay.dev/v1alpha1
kind: RepairPool
metadata: {name: train}
spec:
  nodeSelector: {matchLabels: {pool: train}}
  rule: default
"""


async def test_good_files_pass(tmp_path: Path) -> None:
    file = tmp_path / "good.yaml"
    file.write_text(GOOD)
    answer = await command("check", str(file))
    assert answer.code == 0, answer.out
    assert "1 file, 0 errors" in answer.out


@pytest.mark.parametrize(
    ("replace", "by", "line", "says"),
    [
        pytest.param("step: Drain", "step: Dreyn", 9, "Dreyn", id="an unknown step"),
        pytest.param("kind: RepairPool", "kind: RepairPol", 14, "not a kind of Sickbay", id="an unknown kind"),
        pytest.param("rule: default", "rul: default", 18, "rul", id="an unknown key"),
        pytest.param("rule: default", "rule: yes", 18, 'true: wrong type; write "true", in quotes', id="no quotes"),
        pytest.param("rule: default", "rule: other", 18, "RepairRule other is not in these files", id="a missing rule"),
        pytest.param("rule: default", "windows: [{cron: '0 25 * * *', duration: 1h}]", 18, "hour '25'", id="a window"),
        pytest.param(
            "- name: all\n", "- name: all\n    faults: {names: [gpu.xid.7900]}\n", 7, "never matches", id="a fault"
        ),
        pytest.param("rule: default", "overrides: [{faults: {names: [gpu.xid.7900]}, mode: Observe}]", 18,
                     "gpu.xid.7900 is no fault type", id="an override of a fault that nobody knows"),
        pytest.param("step: Drain", "step: Drain\n      onTimeout: Continue", 8, "dies with it in PowerCycle",
                     id="pods that die with the act"),
        pytest.param("step: Quarantine\n    - step: Drain", "{step: Quarantine, approval: {onTimeout: Skip}}", 8,
                     "would go to PowerCycle", id="a reboot without quarantine"),
        pytest.param("- step: Quarantine", "- step: Quarantine\n    bad: [", 8, "not YAML", id="not YAML"),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_named_with_its_line(
    tmp_path: Path, replace: str, by: str, line: int, says: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(GOOD.replace(replace, by, 1))
    answer = await command("check", str(file), "-o", "json")
    found = json.loads(answer.out)
    assert any(says in f["message"] and abs(f["line"] - line) <= 2 for f in found), found


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        pytest.param(GOOD, 0, "0 errors", id="good"),
        pytest.param(GOOD.replace("step: Drain", "step: Dreyn"), 1, "1 error,", id="an error"),
        pytest.param(GOOD + "---\njust text\n", 1, "20: error: -: is no object", id="text among objects"),
        pytest.param(GOOD + "---\nkind: Pod\n", 1, "apiVersion: required", id="no version"),
        pytest.param(GOOD + "---\napiVersion: v1\n", 1, "kind: required", id="no kind"),
        pytest.param(GOOD.replace("kind: RepairPool", "kind: RepairPol"), 1, "did you mean RepairPool?", id="misspelt"),
        pytest.param(GOOD.replace("kind: RepairPool", "kind: Pod"), 1, "use one of", id="a kind that is not ours"),
        pytest.param(GOOD + "---\napiVersion: v1\nkind: Pod\n", 0, "not judged", id="another group's kind"),
        pytest.param(GOOD + "---" + GOOD.split("---")[1], 1, "RepairPool/train: metadata.name: is given twice",
                     id="a pool twice"),
        pytest.param(GOOD.replace("train}\nspec", "default}\nspec"), 0, "0 errors", id="one name, two kinds"),
        pytest.param("", 1, "holds no object", id="an empty file"),
        pytest.param("- a\n", 1, "is no object", id="a list"),
    ],
)  # fmt: skip
async def test_the_exit_code_of_check_says_whether_something_is_wrong(
    tmp_path: Path, text: str, code: int, says: str
) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(text)
    answer = await command("check", str(file))
    assert answer.code == code
    assert says in answer.out


@pytest.mark.parametrize(
    ("expectation", "code"),
    [
        pytest.param("size(nodes()) == 1", 0, id="passed"),
        pytest.param("size(nodes()) == 2", 1, id="failed"),
        pytest.param("nodez()", 2, id="a bad file"),
    ],
)
async def test_the_exit_code_of_test_tells_failed_from_bad(tmp_path: Path, expectation: str, code: int) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "apiVersion: test.sickbay.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\n"
        f"spec: {{until: 10s, fleet: [{{pool: a, nodes: 1}}], expect: [{{at: 5s, that: '{expectation}'}}]}}\n"
    )
    assert (await command("test", str(file))).code == code


async def test_a_file_given_twice_is_read_once_and_objects_in_two_files_overwrite_each_other(tmp_path: Path) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(GOOD)
    other.write_text(GOOD)
    assert (await command("check", str(one), str(one))).code == 0
    assert f"is given twice (first in {one}:3)" in (await command("check", str(one), str(other))).out


async def test_an_entry_that_no_fault_can_reach_is_named(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    entry = "  - name: never\n    faults: {names: [gpu.xid.79]}\n    procedure:\n    - step: Quarantine\n---"
    file.write_text(GOOD.replace("---", entry, 1))
    answer = await command("check", str(file))
    assert "entry never is never reached" in answer.out


async def test_a_fault_type_is_shown_with_its_remedies() -> None:
    (found,) = json.loads((await command("catalogue", "gpu.xid.79")).out)
    assert next(rung["action"] for rung in found["spec"]["remedy"]) == "RebootNode"


async def test_an_unknown_fault_type_is_an_error() -> None:
    answer = await command("catalogue", "gpu.xid.7900")
    assert (answer.code, "no such fault type" in answer.err) == (1, True)


@pytest.mark.parametrize("arguments", [["queue"], ["explain", "n1"], ["controller"]])
async def test_without_a_cluster_each_command_says_what_is_missing(arguments: list[str]) -> None:
    answer = await command(*arguments)
    assert answer.code == 1
    assert "no cluster is configured" in answer.err
    assert "Traceback" not in answer.err


async def test_a_server_that_is_away_is_one_line(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}]\nusers: [{name: a, user: {}}]\n"
    )
    answer = await command("queue", env={"KUBECONFIG": str(config)})
    assert answer.code == 1
    assert "the API server http://127.0.0.1:9 cannot be reached" in answer.err
    assert "Traceback" not in answer.err


async def test_help_of_every_command_has_an_example() -> None:
    listed = (await command("--help")).out
    names = [line.split()[0] for line in listed.split("Commands:")[1].splitlines() if line.strip()]
    assert {"approve", "check", "explain", "queue", "stop", "test"} <= set(names)


DEEP = "[" * 20_000
BOMB = "\n".join(
    ["a0: &a0 [x,x,x,x,x,x,x,x,x]"] + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
)
READERS = {"check": 1, "test": 2, "test --check": 2, "catalogue -f": 1, "catalogue diff built-in": 1, "import ack": 1}
"""Commands that read people's YAML, with the exit code of a file that is wrong."""


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        pytest.param(GOOD + "  mode: Observe\n  mode: Act\n", 20, "mode: is given twice (first in line 19)",
                     id="key-twice"),
        pytest.param(DEEP, 1, "nests deeper than 100 levels", id="deep"),
        pytest.param("a: 1\nb: &b [*b]\n", 2, "*b stands inside what it names", id="endless"),
        pytest.param(BOMB, 6, "stand for more than 100000 values", id="bomb"),
    ],
)  # fmt: skip
def test_yaml_that_would_mislead_or_crash_is_an_error_with_its_line(
    tmp_path: Path, reader: str, text: str, line: int, says: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    answer = CliRunner().invoke(cli, [*reader.split(), str(file)])
    assert answer.exit_code == READERS[reader], answer.output
    assert isinstance(answer.exception, SystemExit), "not one that would be a traceback"
    assert f"{file}:{line}: " in answer.output
    assert says in answer.output


async def test_json_that_nests_without_end_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text("[" * 200_000)
    answer = await command("catalogue", "diff", "built-in", str(file))
    assert (answer.code, "nests too deep" in answer.err) == (1, True)
