"""From lists to InfraEvents: what is kept, what moves, and what no replay can change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sickbay.api.infra_event import InfraEvent
from sickbay.api.objectnames import infra_event_name
from sickbay.convert import folding
from sickbay.convert.clouds import VOCABULARIES, vocabulary
from sickbay.convert.folding import fold, missing
from sickbay.convert.kinds import EventKind
from tests.convert.made import at, event, node, notice, stamp

PHASES = [
    # source, the provider's word, ours
    *[("alibaba-ecs", word, ours) for word, ours in (
        ("Inquiring", "Inquiring"), ("Scheduled", "Scheduled"), ("Executing", "Executing"), ("Executed", "Completed"),
        ("Avoided", "Avoided"), ("Canceled", "Cancelled"), ("Failed", "Failed"))],
    *[("alibaba-lingjun", word, ours) for word, ours in (
        ("ClusterNodeRepairPendingApproval", "Inquiring"), ("ClusterNodeApprovalPendingRenew", "Inquiring"),
        ("PreparationForRepairingClusterNode", "Executing"), ("ClusterNodeRepairingPendingRenew", "Executing"),
        ("RecoveringClusterNode", "Executing"), ("Replacing", "Executing"), ("UnusedNodeRebooting", "Executing"),
        ("Using", "Completed"), ("FaultConfirmed", "Executing"), ("FaultFinish", "Completed"),
        ("execution_fail", "Failed"))],
    ("aws", "active", "Scheduled"), ("aws", "completed", "Completed"), ("aws", "canceled", "Cancelled"),
    ("aws", "upcoming", "Scheduled"), ("aws", "open", "Executing"), ("aws", "closed", "Completed"),
    ("gcp", "PENDING", "Scheduled"), ("gcp", "PENDING canReschedule", "Inquiring"), ("gcp", "ONGOING", "Executing"),
    ("azure", "Scheduled", "Scheduled"), ("azure", "Started", "Executing"),
    ("oci", "SCHEDULED", "Scheduled"), ("oci", "PROCESSING", "Executing"), ("oci", "SUCCEEDED", "Completed"),
    ("oci", "CANCELED", "Cancelled"), ("oci", "FAILED", "Failed"),
    ("a-cloud-nobody-knows", "Cancelled", "Cancelled"),
]  # fmt: skip
KINDS = [
    ("alibaba-ecs", "SystemMaintenance.Reboot", EventKind.REBOOT),
    ("alibaba-ecs", "SystemFailure.Reboot", EventKind.FAILURE_REBOOT),
    ("alibaba-ecs", "SystemMaintenance.RebootAndReInitErrorDisk", EventKind.DISK_REPAIR),
    ("alibaba-ecs", "SystemMaintenance.PerformanceImpact", EventKind.FREEZE),
    ("alibaba-ecs", "InstanceExpiration.Delete", EventKind.ACCOUNT),
    ("alibaba-lingjun", "RepairMachine", EventKind.HARDWARE),
    ("aws", "system-reboot", EventKind.REBOOT),
    ("aws", "instance-retirement", EventKind.RETIREMENT),
    ("aws", "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED", EventKind.RETIREMENT),
    ("azure", "Freeze", EventKind.FREEZE),
    ("azure", "Preempt", EventKind.PREEMPT),
    ("azure", "Terminate", EventKind.TERMINATE),
    ("gcp", "TERMINATE_ON_HOST_MAINTENANCE", EventKind.REBOOT),
    ("gcp", "MIGRATE_ON_HOST_MAINTENANCE", EventKind.FREEZE),
    ("gcp", "FAILURE_GPU_XID", EventKind.HARDWARE),
    ("oci", "REBOOT_MIGRATION", EventKind.REBOOT),
]


@pytest.mark.parametrize(("source", "word", "ours"), PHASES)
def test_a_providers_word_is_one_of_our_phases(source: str, word: str, ours: str) -> None:
    assert vocabulary(source).phase(word) == ours


@pytest.mark.case("P046")
@pytest.mark.parametrize(("source", "type_", "kind"), KINDS)
def test_a_providers_type_is_one_of_our_kinds_and_each_has_a_condition_of_its_own(
    source: str, type_: str, kind: EventKind
) -> None:
    assert vocabulary(source).kind(type_) == kind


def test_no_two_kinds_share_a_condition() -> None:
    conditions = [kind.condition for kind in EventKind if kind.condition]
    assert len(conditions) == len(set(conditions)) == len(EventKind) - 1


@pytest.mark.parametrize("word", ["ClusterNodeRecovering", "Recovering", "Using2", "Repairing", "Pondering", ""])
def test_lingjuns_states_are_whole_names(word: str) -> None:
    """`ClusterNodeRecovering` is billing, `RecoveringClusterNode` the end of a repair."""
    assert vocabulary("alibaba-lingjun").phase(word) is None


def seen(found: InfraEvent | None) -> tuple[str, str, bool]:
    assert found is not None
    return found.status.phase, found.status.upstream_phase, found.status.terminal


@pytest.mark.parametrize(
    ("phases", "more", "ends"),
    [
        pytest.param(["Inquiring", "Executed"], {}, ("Completed", "Executed", True), id="skipped phases"),
        pytest.param(["Executing", "Scheduled"], {}, ("Executing", "Executing", False), id="no way back on ECS"),
        pytest.param(["open", "upcoming"], {"source": "aws"}, ("Scheduled", "upcoming", False), id="a moved time"),
        pytest.param(["Scheduled", "Canceled", "Scheduled"], {}, ("Cancelled", "Canceled", True), id="replay"),
        pytest.param(["Executing", "Failed", "Executing"], {}, ("Failed", "Failed", True), id="replay after Failed"),
        pytest.param(["Scheduled", "Pondering"], {}, ("Scheduled", "Pondering", False), id="an unknown word"),
        pytest.param(["Scheduled"] * 20, {}, ("Scheduled", "Scheduled", False), id="twenty times the same"),
    ],
)
def test_where_an_event_stands_after_a_history(phases: list[str], more: dict[str, Any], ends: Any) -> None:
    assert seen(event(*phases, **more)) == ends


def test_the_phase_keeps_the_moment_it_began() -> None:
    """NVSentinel#333: actual times set to now on every poll."""
    found = event("Scheduled", "Scheduled", "Scheduled")
    assert found is not None and found.status.since == stamp(0)


@pytest.mark.parametrize("phase", ["Executed", "Avoided", "Canceled", "Failed"])
def test_what_was_over_before_we_saw_it_is_not_kept(phase: str) -> None:
    """Providers list ended events for weeks (dtan4/ec2-event-slack-notifier#6)."""
    assert event(phase) is None


def test_an_event_about_no_node_of_ours_is_not_kept() -> None:
    assert fold(None, [notice("Scheduled")], None, vocabulary("alibaba-ecs"), at(0)) is None


def test_an_id_that_is_used_again_is_a_new_occurrence_when_it_was_published_later() -> None:
    old = event("Scheduled", "Executed", published=stamp(-100))
    words, replay = vocabulary("alibaba-ecs"), [notice("Scheduled", published=stamp(-100))]
    assert seen(fold(old, replay, node(), words, at(200))) == ("Completed", "Executed", True)
    again = fold(old, [notice("Scheduled", published=stamp(150))], node(), words, at(200))
    assert seen(again) == ("Scheduled", "Scheduled", False)
    assert again is not None and again.status.since == stamp(200)


def test_what_vanishes_is_gone_and_may_come_back() -> None:
    listed = event("Scheduled", source="azure", type_="Reboot")
    assert listed is not None
    gone = missing(listed, at(300))
    assert seen(gone) == ("Gone", "Scheduled", False)
    assert missing(gone, at(600)) == gone
    back = fold(gone, [notice("Started", source="azure", type_="Reboot")], node(), vocabulary("azure"), at(700))
    assert seen(back) == ("Executing", "Started", False)


def test_an_ended_event_that_is_no_longer_listed_stays_ended() -> None:
    over = event("Scheduled", "Executed")
    assert over is not None and missing(over, at(999)) == over


def test_names_are_legal_deterministic_and_different() -> None:
    odd = ["e/1", "E-1", "e-1", "ARN:aws:health::x/y_z", "é" * 400, "-", "e-1 "]
    found = {infra_event_name(source, id_) for source in VOCABULARIES for id_ in odd}
    assert len(found) == len(VOCABULARIES) * len(odd)
    assert all(len(name) <= 63 and name[0].isalnum() and name.lower() == name for name in found)
    assert infra_event_name("aws", "e-1") == infra_event_name("aws", "e-1")


KNOWN = ["Inquiring", "Scheduled", "Executing", "Executed", "Canceled", "Avoided", "Failed"]
WORDS = st.sampled_from([*KNOWN, "Pondering"])
PUBLISHED = st.none() | st.sampled_from([stamp(-9), stamp(9)])
NOTICES = st.lists(st.builds(notice, WORDS, published=PUBLISHED), min_size=1, max_size=5)


@given(NOTICES, st.randoms(use_true_random=False), st.sampled_from(["Scheduled", "Inquiring"]))
def test_order_and_repetition_within_a_list_change_nothing(entries: Any, random: Any, first: str) -> None:
    before, words = event(first), vocabulary("alibaba-ecs")
    plain = fold(before, entries, node(), words, at(60))
    shuffled = [*entries, *entries]
    random.shuffle(shuffled)
    assert fold(before, shuffled, node(), words, at(60)) == plain
    assert fold(plain, [], node(), words, at(90)) == plain


@given(st.lists(WORDS, max_size=8))
def test_nothing_leaves_a_terminal_phase(history: list[str]) -> None:
    over = event("Scheduled", "Canceled")
    found = over
    for minute, word in enumerate(history):
        found = fold(found, [notice(word)], node(), vocabulary("alibaba-ecs"), at(600 + minute))
    assert found == over


def test_of_two_entries_in_one_list_the_furthest_counts() -> None:
    both = [notice("upcoming", source="aws"), notice("open", source="aws")]
    assert seen(fold(None, both, node(), vocabulary("aws"), at(0))) == ("Executing", "open", False)


def test_an_event_that_was_never_understood_says_so() -> None:
    odd, known = event("Pondering"), event("Pondering", "Scheduled", "Pondering")
    assert odd is not None and folding.never_understood(odd)
    assert known is not None and not folding.never_understood(known)
    assert [c.status for c in known.status.conditions] == ["False"]
