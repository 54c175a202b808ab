"""Enumerations are what the contract says, and every table that speaks of their words speaks of all."""

from enum import StrEnum

import pytest

from sickbay.api import words
from sickbay.api.actions import ACTIONS

ENUMS = [value for value in vars(words).values() if isinstance(value, type) and issubclass(value, StrEnum)]

GOLDEN = {
    words.Step: "Quarantine Drain Repair Validate Unquarantine",
    words.Phase: "Pending WaitingApproval WaitingSlot WaitingJob Running Parked NeedsHuman Cancelling Succeeded "
    "Cancelled Failed WouldAct",
    words.Outcome: "Repaired Replaced LeftQuarantined SelfRecovered CancelledByPerson Denied NodeGone GaveUp Observed",
    words.WaitsFor: "Approval Slot Job ClearProof Window Hold Breaker Storm OtherOwner Provider Pods Checks People",
    words.Needs: "ApprovalTimeout DrainBlocked RepairFailed ValidationFailed BudgetSpent ClearProofMissing "
    "GroupCannotFit UnknownResult ContactSupport",
    words.ReportState: "Claimed InProgress Done Failed Unknown",
    words.StepState: "Waiting Running Done Skipped Cancelled Failed",
    words.TaskPhase: "Pending Accepted Running Done Failed Refused Expired",
    words.HoldLevel: "NewRepairs NextStep EveryAct",
    words.ClearsBy: "condition silence probe reset reboot replacement",
    words.FaultClass: "Node GPU System",
    words.Severity: "Info Warning Error Critical",
}


@pytest.mark.parametrize(("enum", "golden"), GOLDEN.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_an_enumeration_has_the_words_of_the_contract_in_their_order(enum, golden):
    assert [word for word in golden.split() if word not in set(enum)] == []
    assert [str(word) for word in enum][: len(golden.split())] == golden.split()


@pytest.mark.parametrize("enum", ENUMS, ids=lambda enum: enum.__name__)
def test_a_word_compares_and_reads_as_the_text_in_the_object(enum):
    for word in enum:
        assert word == word.value and str(word) == word.value and f"{word}" == word.value


def test_every_action_is_described_and_every_description_is_of_an_action():
    assert set(ACTIONS) == {str(action) for action in words.Action}
