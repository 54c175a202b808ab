"""The runner of the tiers says what failed, and only what makes things ready may fail without a word."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import run as tiers

FAILS = [sys.executable, "-c", "raise SystemExit(1)"]


@pytest.mark.parametrize("which", ["check", "fast", "all"])
def test_every_tier_of_tests_is_counted_and_none_may_fail(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "python313", lambda: "")
    chosen = tiers.tiers(which)
    assert [t.name for t in chosen if t.prepares is not False] == (["build"] if which == "all" else [])
    assert all(isinstance(t.junit, Path) for t in chosen if t.name in ("fast", "slow", "controlplane"))


@pytest.mark.parametrize(("prepares", "failed"), [(False, 1), (True, 0)])
def test_a_tier_that_fails_is_told_unless_it_only_prepares(prepares: bool, failed: int) -> None:
    result = tiers.run(tiers.Tier("t", 1.0, [FAILS], prepares=prepares))
    assert len(result.failed) == failed


def test_a_failing_test_fails_its_tier_and_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_x.py").write_text("def test_good(): pass\ndef test_bad(): assert False\n")
    monkeypatch.setattr(tiers, "RESULTS", tmp_path)
    tier = tiers.pytest("mine", 1.0, "", workers=1)
    tier.commands[0] += [str(tmp_path / "test_x.py"), "-c", "/dev/null", "--rootdir", str(tmp_path)]
    monkeypatch.setattr(tiers, "ROOT", tmp_path)
    result = tiers.run(tier)
    assert (result.passed, result.wrong, len(result.failed)) == (1, 1, 1)
