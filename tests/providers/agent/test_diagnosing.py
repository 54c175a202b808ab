"""What active diagnostics find: pass, fail, or nothing."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from sickbay.providers.agent.diagnosing import DEFAULT_CHECKS, Check, parse_check, read_dcgm
from sickbay.providers.agent.host import HostError


def printing(code: int, text: str = "") -> Check:
    return Check((sys.executable, "-c", f"print({text!r}); raise SystemExit({code})"), 20.0)


@pytest.mark.parametrize(("code", "passed"), [(0, True), (1, False)])
def test_the_exit_code_says_pass_or_fail(code: int, passed: bool) -> None:
    found = asyncio.run(printing(code, "12 GB/s").run("2"))
    assert found.passed is passed
    assert "12 GB/s" in found.message


@pytest.mark.parametrize("code", [2, 3, 127, 255])
@pytest.mark.case("P132")
def test_any_other_exit_code_has_found_nothing(code: int) -> None:
    with pytest.raises(HostError, match=f"found nothing: exit code {code}"):
        asyncio.run(printing(code).run("2"))


def test_a_command_that_is_not_there_has_found_nothing() -> None:
    with pytest.raises(HostError, match="No such file"):
        asyncio.run(Check(("/nowhere/dcgmi",), 5.0).run("1"))


def test_a_command_that_does_not_end_is_ended() -> None:
    hang = Check((sys.executable, "-c", "import threading; threading.Event().wait()"), 0.2)
    with pytest.raises(HostError, match="no end after"):
        asyncio.run(hang.run("3"))


def report(*statuses: str) -> str:
    tests = [{"name": f"test {k}", "results": [{"gpu_id": "0", "status": s}]} for k, s in enumerate(statuses)]
    categories = [{"category": "Hardware", "tests": tests}]
    return "warming up\n" + json.dumps({"DCGM GPU Diagnostic": {"test_categories": categories}})


@pytest.mark.parametrize(
    ("statuses", "code", "passed"),
    [
        pytest.param(("Pass", "Pass"), 0, True, id="all pass"),
        pytest.param(("Pass", "Skip"), 0, True, id="one does not apply"),
        pytest.param(("Pass", "Fail"), 0, False, id="one fails"),
        pytest.param(("Fail", "Skip"), 226, False, id="fails, with an exit code of its own"),
    ],
)
def test_one_failed_test_fails_the_level(statuses: tuple[str, ...], code: int, passed: bool) -> None:
    found = read_dcgm("2", code, report(*statuses))
    assert found.passed is passed
    assert passed or "test " in found.message


@pytest.mark.parametrize(
    ("output", "code"),
    [
        pytest.param(report("Skip", "Skip"), 0, id="everything skipped"),
        pytest.param(report(), 0, id="nothing"),
        pytest.param(report("Pass"), 1, id="it broke off"),
        pytest.param("Error: unable to establish a connection to the host engine", 1, id="no host engine"),
        pytest.param("{", 0, id="cut off"),
    ],
)
@pytest.mark.case("P132")
def test_what_was_left_out_has_not_passed(output: str, code: int) -> None:
    with pytest.raises(HostError):
        read_dcgm("2", code, output)


def test_the_levels_have_dcgm_by_default_and_any_command_by_choice() -> None:
    assert DEFAULT_CHECKS["2"].command == ("dcgmi", "diag", "-r", "2", "-j")
    assert parse_check("2=/opt/check --quick 'a b'") == ("2", Check(("/opt/check", "--quick", "a b"), 1200.0))
    assert parse_check("nccl=/opt/nccl")[0] == "nccl"
    assert parse_check("3=/usr/bin/dcgmi diag -r 4 -j")[1].dcgm


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("4=/bin/true", "level 1, 2 or 3"),
        ("2", "write LEVEL=COMMAND"),
        ("2=", "the command is empty"),
        ("2='x", "cannot be split"),
        ("NCCL=/x", "write LEVEL=COMMAND"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_check(text)
