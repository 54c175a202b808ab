"""When a fault of an open incident counts as over: every `clearsBy`, with and without its proof."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sickbay.clock import rfc3339
from sickbay.decide.faults import Evidence, Proofs, active_faults, evidence
from tests.decide.made import at, catalogue, fault_type, node, typed

CLEAR, PRESENT, UNPROVEN = Evidence.CLEAR, Evidence.PRESENT, Evidence.UNPROVEN
OWN = Proofs(boot_id="boot-1", provider_id="fake:///n1/1", serial="", reset_since=None, acted_since=None, own=True)
FOREIGN = replace(OWN, own=False)


def judge(clears_by, the_node, *, gone=None, last_seen=0.0, now=100.0, proofs=OWN, **spec):
    """The fault `test.it`, last known to be bad and first seen gone at these seconds."""
    obj = fault_type("test.it", clears_by=clears_by, **spec)
    active = next((a for a in active_faults(the_node, catalogue(obj)) if a.name == "test.it"), None)
    gone_at = at(gone) if gone is not None else None
    return evidence(typed(obj), at(last_seen), gone_at, the_node, active, proofs, at(now))


BAD, GOOD, HIDDEN = {"test.it": ("True", 0)}, {"test.it": ("False", 50)}, {"test.it": ("Unknown", 50)}
EVERY = ("condition", "silence", "probe", "reset", "reboot", "replacement", "a-later-version's-word")


@pytest.mark.parametrize("clears_by", EVERY)
def test_a_fault_that_still_matches_is_present(clears_by):
    assert judge(clears_by, node(faults=BAD)) is PRESENT


@pytest.mark.parametrize("clears_by", EVERY)
def test_a_condition_that_reads_unknown_proves_nothing_however_long_it_lasts(clears_by):
    proofs = replace(OWN, reset_since=at(20), acted_since=at(20))
    for gone in (None, 50):
        assert judge(clears_by, node(faults=HIDDEN), gone=gone, now=1e6, proofs=proofs) is UNPROVEN


def test_an_unknown_way_to_clear_is_never_met():
    rebooted = node(faults=GOOD, boot="boot-2", provider_id="fake:///n1/2")
    assert judge("a-later-version's-word", rebooted, gone=50, now=1e6) is UNPROVEN


@pytest.mark.parametrize(
    ("for_", "now", "verdict"),
    [
        pytest.param("0s", 50, CLEAR, id="no-for-clears-at-once"),
        pytest.param("10m", 649, UNPROVEN, id="a-second-short-of-for"),
        pytest.param("10m", 650, CLEAR, id="for-is-over"),
    ],
)
def test_condition_clears_when_it_has_not_matched_for_so_long(for_, now, verdict):
    assert judge("condition", node(faults=GOOD), gone=50, now=now, for_=for_) is verdict


@pytest.mark.parametrize(
    ("agent", "soak", "now", "verdict"),
    [
        pytest.param(True, None, 349, UNPROVEN, id="a-second-short-of-the-default"),
        pytest.param(True, None, 350, CLEAR, id="silent-for-the-default-of-5m"),
        pytest.param(True, "20m", 350, UNPROVEN, id="the-type-says-longer"),
        pytest.param(True, "20m", 1250, CLEAR, id="silent-for-the-soak-of-the-type"),
        pytest.param("Unknown", None, 1e6, UNPROVEN, id="a-blind-agent-hears-silence-from-everything"),
        pytest.param(None, None, 350, CLEAR, id="without-an-agent-the-detector-is-trusted"),
    ],
)
def test_silence_clears_after_the_soak_while_somebody_listens(agent, soak, now, verdict):
    validation = {"validation": {"soak": soak}} if soak else {}
    assert judge("silence", node(faults=GOOD, agent=agent), gone=50, now=now, **validation) is verdict


@pytest.mark.parametrize(
    ("proofs", "the_node", "verdict"),
    [
        pytest.param(OWN, node(faults=GOOD), CLEAR, id="the-agent-that-reported-it-looked-again"),
        pytest.param(OWN, node(faults=GOOD, agent="Unknown"), UNPROVEN, id="a-blind-agent-checks-nothing"),
        pytest.param(OWN, node(faults=GOOD, agent=None), UNPROVEN, id="without-an-agent-nobody-checked"),
        pytest.param(FOREIGN, node(faults=GOOD), UNPROVEN, id="our-agent-does-not-check-what-others-report"),
        pytest.param(
            replace(FOREIGN, acted_since=at(20)), node(faults=GOOD), CLEAR, id="an-act-since-and-a-seeing-agent"
        ),
        pytest.param(
            replace(FOREIGN, acted_since=at(-20)), node(faults=GOOD), UNPROVEN, id="the-act-was-before-the-fault"
        ),
        pytest.param(FOREIGN, node(faults=GOOD, boot="boot-2", agent=None), CLEAR, id="another-boot-without-an-agent"),
        pytest.param(
            FOREIGN, node(faults=GOOD, boot="boot-2", agent="Unknown"), UNPROVEN, id="another-boot-and-a-blind-agent"
        ),
    ],
)
def test_probe_clears_by_a_check_of_our_own(proofs, the_node, verdict):
    assert judge("probe", the_node, gone=50, proofs=proofs) is verdict


@pytest.mark.parametrize(
    ("reset", "the_node", "verdict"),
    [
        pytest.param(None, node(faults=GOOD), UNPROVEN, id="nothing-was-done"),
        pytest.param(-10, node(faults=GOOD), UNPROVEN, id="reset-before-the-last-evidence"),
        pytest.param(10, node(faults=GOOD), CLEAR, id="reset-after-the-last-evidence"),
        pytest.param(10, node(faults=GOOD, agent="Unknown"), UNPROVEN, id="reset-but-nobody-sees"),
        pytest.param(None, node(faults=GOOD, boot="boot-2"), CLEAR, id="a-reboot-resets-too"),
        pytest.param(None, node(faults=GOOD, boot="boot-2", agent="Unknown"), UNPROVEN, id="reboot-but-nobody-sees"),
    ],
)
def test_reset_clears_by_a_reset_or_reboot_and_a_clean_look(reset, the_node, verdict):
    proofs = replace(OWN, reset_since=at(reset) if reset is not None else None)
    assert judge("reset", the_node, gone=50, proofs=proofs) is verdict


@pytest.mark.parametrize(
    ("the_node", "verdict"),
    [
        pytest.param(node(faults=GOOD), UNPROVEN, id="the-same-boot"),
        pytest.param(node(faults=GOOD, boot="boot-2"), CLEAR, id="another-boot"),
        pytest.param(node(faults=GOOD, boot="boot-2", agent=None), CLEAR, id="another-boot-without-an-agent"),
        pytest.param(node(faults=GOOD, boot="boot-2", agent="Unknown"), UNPROVEN, id="another-boot-but-nobody-sees"),
        pytest.param(node(faults=GOOD, boot=""), UNPROVEN, id="a-boot-that-cannot-be-read"),
        pytest.param(node(faults={}, boot="boot-2"), CLEAR, id="the-condition-is-not-there-any-more"),
    ],
)
def test_reboot_clears_by_another_boot_and_a_clean_look(the_node, verdict):
    assert judge("reboot", the_node, gone=50) is verdict


def test_a_boot_that_was_never_recorded_proves_no_reboot():
    assert judge("reboot", node(faults=GOOD, boot="boot-2"), gone=50, proofs=replace(OWN, boot_id="")) is UNPROVEN


def test_a_reset_does_not_do_where_a_reboot_is_asked_for():
    assert judge("reboot", node(faults=GOOD), gone=50, proofs=replace(OWN, reset_since=at(20))) is UNPROVEN


@pytest.mark.parametrize(
    ("provider_id", "verdict"),
    [
        pytest.param("fake:///n1/1", UNPROVEN, id="the-same-machine"),
        pytest.param("fake:///n1/2", CLEAR, id="another-machine"),
        pytest.param("", UNPROVEN, id="an-id-that-cannot-be-read"),
    ],
)
def test_replacement_clears_by_another_machine(provider_id, verdict):
    assert judge("replacement", node(faults=GOOD, boot="boot-2", provider_id=provider_id), gone=50) is verdict


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        pytest.param("board-1", "board-2", CLEAR, id="another-board"),
        pytest.param("board-1", "board-1", UNPROVEN, id="the-same-board"),
        pytest.param("", "board-2", UNPROVEN, id="not-known-before"),
        pytest.param("board-1", "", UNPROVEN, id="not-known-now"),
    ],
)
def test_replacement_clears_by_another_identity_of_the_machine(before, now, verdict):
    proofs = replace(OWN, serial=before)
    assert judge("replacement", node(faults=GOOD, serial=now), gone=50, proofs=proofs) is verdict


@pytest.mark.case("R18")
@pytest.mark.parametrize(
    ("clears_by", "the_node", "verdict"),
    [
        pytest.param("reboot", node(faults=BAD, boot="boot-2", ready=(True, 60)), CLEAR, id="b-log-based-never-clears"),
        pytest.param("reset", node(faults=BAD, boot="boot-2", ready=(True, 60)), CLEAR, id="b-reset-type"),
        pytest.param(
            "reboot", node(faults=BAD, boot="boot-2", ready=(True, 60), agent="Unknown"), PRESENT, id="b-nobody-sees"
        ),
        pytest.param("reboot", node(faults=BAD, boot="boot-2", ready=(True, 60), agent=None), PRESENT, id="b-no-agent"),
        pytest.param("reboot", node(faults=BAD, boot="boot-1", ready=(True, 60)), PRESENT, id="b-no-reboot"),
        pytest.param(
            "reboot",
            node(faults={"test.it": ("True", 70)}, boot="boot-2", ready=(True, 60)),
            PRESENT,
            id="reported-anew-since-the-boot",
        ),
        pytest.param("reboot", node(faults=BAD, boot="boot-2", ready=(False, 60)), PRESENT, id="b-not-back-yet"),
        pytest.param("probe", node(faults=BAD, boot="boot-2", ready=(True, 60)), PRESENT, id="b-not-for-a-probe"),
    ],
)
def test_a_log_based_condition_from_before_the_reboot_is_stale_once_our_agent_sees(clears_by, the_node, verdict):
    assert judge(clears_by, the_node, proofs=FOREIGN) is verdict


@pytest.mark.case("P030")
@pytest.mark.parametrize(
    ("reason", "verdict"),
    [
        pytest.param("TestIt", PRESENT, id="in our agent's form"),
        pytest.param("XID79", PRESENT, id="with our agent's code"),
        pytest.param("DockerHung", CLEAR, id="in another detector's form"),
    ],
)
def test_a_stale_condition_of_our_own_agent_is_believed(reason, verdict):
    """Our agent renews its conditions after a boot; one of its own that still says True is meant. Another detector may
    write the same type and never take it back (node-problem-detector#215)."""
    bad = {"type": "TestIt", "status": "True", "reason": reason, "lastTransitionTime": rfc3339(at(0))}
    the_node = node(conditions=[bad], boot="boot-2", ready=(True, 60))
    assert judge("reboot", the_node, proofs=OWN) is verdict


ANNOUNCED = {"labels": {"origin": "provider"}}


@pytest.mark.parametrize(
    ("boot", "acted", "labels", "verdict"),
    [
        pytest.param("boot-2", 20, ANNOUNCED, CLEAR, id="our act booted it"),
        pytest.param("boot-2", None, ANNOUNCED, PRESENT, id="booted by somebody else"),
        pytest.param("boot-1", 20, ANNOUNCED, PRESENT, id="acted without a boot"),
        pytest.param("boot-2", -5, ANNOUNCED, PRESENT, id="announced after the act"),
        pytest.param("boot-2", 20, {}, PRESENT, id="a finding is none"),
    ],
)
def test_what_a_provider_announced_is_answered_by_our_act_while_it_is_still_listed(boot, acted, labels, verdict):
    proofs = replace(OWN, acted_since=at(acted) if acted is not None else None)
    assert judge("condition", node(faults=BAD, boot=boot), proofs=proofs, **labels) is verdict


def test_a_blind_agent_delays_that_answer():
    proofs = replace(OWN, acted_since=at(20))
    assert judge("condition", node(faults=BAD, boot="boot-2", agent="Unknown"), proofs=proofs, **ANNOUNCED) is UNPROVEN
