"""One verdict from all evidence, and what is done about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from sickbay.api.core import Node
from sickbay.api.job_recovery import JobAttempt
from sickbay.api.recovery_policy import RecoveryBudget
from sickbay.clock import rfc3339
from sickbay.recover.choose import choose, spent
from sickbay.recover.classify import GAP, classify, fingerprint
from sickbay.recover.ends import End
from sickbay.recover.evidence import Evidence, Onset, Verdict
from sickbay.recover.job import JobId
from sickbay.recover.logs import read
from sickbay.recover.root import root_of
from sickbay.recover.signs import Sign
from sickbay.recover.view import View, Work
from tests.recover.records import record

AT = datetime(2027, 3, 1, 8, tzinfo=UTC)


def node(name, ready="True", since=AT):
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": rfc3339(since)}
    return msgspec.convert(
        {"metadata": {"name": name, "uid": f"u-{name}"}, "status": {"conditions": [condition]}}, Node
    )


def end(rank=0, on="n0", code=0, signal=0, after=0.0, how="Exited", reason="", log=""):
    at = AT + timedelta(seconds=after)
    return End(str(rank), on, f"llm-{rank}", f"p-{rank}", at, code=code, signal=signal, how=how, reason=reason, log=log)


def evidence(*ends, nodes=(), signs=None, attempts=(), others=(), ranks=4, **more):
    readings = {e.uid: read(e.log) for e in ends}
    placement = {str(rank): f"n{rank}" for rank in range(ranks)}
    known = {name: node(name) for name in placement.values()} | {n.name: n for n in nodes}
    return Evidence(
        at=min((e.at for e in ends), default=AT),
        root=root_of(ends, readings),
        ends=tuple(ends),
        readings=readings,
        placement=placement,
        nodes=known,
        signs=signs or {},
        attempts=tuple(attempts),
        others=tuple(others),
        **more,
    )


def sign(fault="gpu.xid.79", after=0.0, decisive=True):
    return (Sign(fault, AT + timedelta(seconds=after), decisive),)


def attempt(n=1, verdict="Unknown", mark="", rank="0", on="n0", ago=600.0, step=None):
    ended = rfc3339(AT - timedelta(seconds=ago))
    return JobAttempt(
        n=n, verdict=verdict, fingerprint=mark, root_rank=rank, root_node=on, ended=ended, step=step, action="Retry"
    )


ECC, TRACE, NCCL = "uncorrectable ECC error", "ValueError: shapes", "Watchdog caught collective operation timeout"
CASES = [
    ("a fault on the node of the root", evidence(end(code=1), signs={"n0": sign()}), "Hardware"),
    ("a fault on another node of the gang", evidence(end(signal=6, log=NCCL), signs={"n2": sign()}), "Hardware"),
    ("a fault that came four minutes later", evidence(end(code=1), signs={"n0": sign(after=240)}), "Hardware"),
    ("a fault that came six minutes later", evidence(end(code=1), signs={"n0": sign(after=360)}), "Unknown"),
    (
        "a fault that convicts nobody",
        evidence(end(code=1), signs={"n0": sign("gpu.xid.45", decisive=False)}),
        "Unknown",
    ),
    ("a lost node", evidence(end(how="NodeLost"), nodes=[node("n0", "Unknown")]), "Hardware"),
    ("a machine that went down with its containers", evidence(end(how="NodeLost")), "Hardware"),
    ("a log that speaks of the GPU", evidence(end(code=1, log=ECC)), "Hardware"),
    ("a rank that its node does not bring up", evidence(end(how="Missing", reason="not started")), "Hardware"),
    (
        "ranks that half of the nodes do not bring up",
        evidence(*(end(rank=r, on=f"n{r}", how="Missing") for r in range(2))),
        "Transient",
    ),
    ("a rank whose image cannot be had", evidence(end(how="Refused", reason="ErrImagePull")), "Transient"),
    ("a traceback", evidence(end(code=1, log=TRACE)), "Workload"),
    ("no memory", evidence(end(signal=9, how="OutOfMemory")), "Workload"),
    ("a command that is not there", evidence(end(code=127)), "Workload"),
    ("a kill by nobody known", evidence(end(signal=9)), "Transient"),
    ("a collective that timed out", evidence(end(signal=6, log=NCCL)), "Transient"),
    ("the code for trying again", evidence(end(code=75)), "Transient"),
    ("a crash", evidence(end(signal=11)), "Unknown"),
    ("exit code 1 without a word", evidence(end(code=1)), "Unknown"),
    ("nothing to be seen", evidence(), "Unknown"),
    ("an eviction", evidence(end(how="Disrupted", reason="EvictionByEvictionAPI")), "Policy"),
    ("an eviction from a sick node", evidence(end(how="Disrupted", reason="x"), signs={"n0": sign()}), "Hardware"),
    ("a deleted pod", evidence(end(how="Deleted")), "Policy"),
    ("the time limit", evidence(reason="DeadlineExceeded"), "Policy"),
    ("a stall", evidence(stalled="no step for 15m"), "Transient"),
    ("a rule of the owner", evidence(end(code=42), reason="PodFailurePolicy"), "Workload"),
]


@pytest.mark.parametrize(("known", "verdict"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_verdict(known, verdict):
    found = classify(known)
    assert found.verdict == verdict
    assert found.reasons, "a verdict says why"


def test_only_hardware_names_suspects():
    for _, known, verdict in CASES:
        assert bool(classify(known).suspects) == (verdict == "Hardware")


@pytest.mark.case("P134")
@pytest.mark.parametrize(
    ("offered", "quarantined", "sick", "verdict"),
    [("0", True, True, "Transient"), ("0", False, False, "Transient"), ("7", False, True, "Hardware"),
     ("8", True, True, "Hardware")],
    ids=["under repair", "booted by itself", "a GPU is sick and kept back", "everything is offered"],
)  # fmt: skip
def test_a_pod_refused_before_the_plug_in_is_back_is_not_held_against_the_node(offered, quarantined, sick, verdict):
    raw = msgspec.to_builtins(node("n0"))
    raw["metadata"]["annotations"] = {"sickbay.dev/quarantine": "{}"} if quarantined else {}
    raw["status"] |= {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": offered}}
    refused = end(how="Refused", reason="UnexpectedAdmissionError")
    found = classify(evidence(refused, nodes=[msgspec.convert(raw, Node)], signs={"n0": sign()} if sick else None))
    assert (found.verdict, bool(found.suspects)) == (verdict, verdict == "Hardware")


@pytest.mark.case("P134")
def test_refusals_in_the_gap_make_no_history_of_a_node():
    gaps = [attempt(n, "Transient", GAP, rank=str(n)) for n in (1, 2, 3)]
    assert not classify(evidence(end(code=1), attempts=gaps)).suspects


@pytest.mark.case("P154")
def test_the_first_to_fail_is_the_root_not_the_one_that_printed_the_error():
    killed = end(2, "n2", signal=9, after=0.0)
    complains = end(1, "n1", signal=6, after=8.1, log="ProcessGroupNCCL Collective WorkNCCL ran into error")
    assert evidence(complains, killed).root.node == "n2"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (end(1, "n1", code=1), end(0, "n0", signal=6)),
        (end(1, "n1", code=1, log=TRACE), end(0, "n0", code=1)),
        (end(1, "n1", signal=6), end(0, "n0", signal=15)),
        (end(1, "n1", signal=9, how="OutOfMemory"), end(0, "n0", code=1)),
        (end(1, "n1", how="Disrupted"), end(0, "n0", how="Deleted")),
    ],
    ids=["abort", "cause", "terminated", "memory", "deleted"],
)
def test_within_one_second_a_cause_comes_before_a_symptom(one, other):
    assert root_of([other, one], {e.uid: read(e.log) for e in (one, other)}) is one


def test_ends_in_any_order_have_the_same_root():
    ends = [end(r, f"n{r}", signal=6, after=r * 3.0) for r in range(4)]
    assert {root_of(list(order), {}).rank for order in (ends, ends[::-1], ends[2:] + ends[:2])} == {"0"}


def test_many_nodes_at_once_are_one_cause_and_none_of_them_is_suspected():
    onsets = tuple(Onset(f"n{k}", "gpu.fabric-state", AT + timedelta(seconds=k)) for k in range(5))
    known = evidence(end(signal=6), signs={"n0": sign("gpu.fabric-state")}, onsets=onsets, ranks=8)
    found = classify(known)
    assert (found.verdict, found.suspects) == ("SharedCause", ())


def test_many_nodes_that_failed_at_another_time_excuse_no_node_that_fails_now():
    others = [Onset(f"m{k}", "gpu.fabric-state", AT - timedelta(seconds=120 - k)) for k in range(5)]
    onsets = (*others, Onset("n0", "gpu.fabric-state", AT))
    found = classify(evidence(end(signal=6), signs={"n0": sign("gpu.fabric-state")}, onsets=onsets, ranks=8))
    assert (found.verdict, [s.node for s in found.suspects]) == ("Hardware", ["n0"])


def test_four_nodes_of_a_large_gang_are_four_faults():
    onsets = tuple(Onset(f"n{k}", "gpu.fabric-state", AT) for k in range(4))
    signs = {f"n{k}": sign("gpu.fabric-state") for k in range(4)}
    found = classify(evidence(end(signal=6), signs=signs, onsets=onsets, ranks=8))
    assert (found.verdict, len(found.suspects)) == ("Hardware", 4)


@pytest.mark.parametrize("hosts", [1, 2, 3, 4])
def test_ranks_that_cannot_write_on_three_nodes_have_one_storage(hosts):
    ends = [end(k, f"n{k}", code=1, log="OSError: Stale file handle") for k in range(hosts)]
    assert (classify(evidence(*ends)).verdict == "SharedCause") == (hosts >= 3)


@pytest.mark.case("P159")
def test_a_port_error_beside_a_stall_names_its_node():
    known = evidence(stalled="no step for 15m", signs={"n2": sign("nic.ib.link-down", decisive=False)})
    assert [s.node for s in classify(known).suspects] == ["n2"]


def test_a_port_error_beside_a_crash_names_nobody():
    known = evidence(end(code=1), signs={"n2": sign("nic.ib.link-down", decisive=False)})
    assert classify(known).verdict == "Unknown"


# --- history


@pytest.mark.case("P079")
@pytest.mark.parametrize(("failures", "suspected"), [(1, False), (2, False), (3, True)])
def test_a_node_on_which_the_job_fails_three_times_is_suspect(failures, suspected):
    known = evidence(end(code=1), attempts=[attempt(n) for n in range(1, failures)])
    assert bool(classify(known).suspects) == suspected


def test_different_ranks_on_one_node_make_it_suspect_at_once():
    found = classify(evidence(end(0, "n0", code=1), attempts=[attempt(rank="3", on="n0")]))
    assert [s.node for s in found.suspects] == ["n0"]


def test_failures_of_other_peoples_jobs_count_against_a_node():
    assert classify(evidence(end(code=1), others=[attempt(on="n0")])).verdict == "Hardware"


def test_what_was_decided_by_somebody_counts_against_no_node():
    past = [attempt(n, verdict="Policy") for n in (1, 2, 3)]
    assert classify(evidence(end(code=1), attempts=past)).verdict == "Unknown"


def test_complaints_about_a_peer_count_against_no_node():
    past = [attempt(n, verdict="Transient") for n in (1, 2, 3)]
    assert classify(evidence(end(signal=6, log=NCCL), attempts=past)).verdict == "Transient"


def test_the_same_failure_on_another_node_travels_with_the_program():
    now = evidence(end(0, "n0", signal=11))
    found = classify(evidence(end(0, "n0", signal=11), attempts=[attempt(mark=fingerprint(now), on="n9")]))
    assert (found.verdict, found.established) == ("Workload", True)


def test_unless_the_job_came_further_in_between():
    mark = fingerprint(evidence(end(0, "n0", signal=11)))
    past = [attempt(mark=mark, on="n9", step=100)]
    assert classify(evidence(end(0, "n0", signal=11), attempts=past, step=200)).verdict == "Unknown"


def test_a_fingerprint_knows_no_node_rank_or_gpu():
    one = evidence(end(0, "n0", code=1, log="rank 0 on n0: RuntimeError: GPU 3 bad"))
    other = evidence(end(3, "n3", code=1, log="rank 3 on n3: RuntimeError: GPU 5 bad"))
    assert fingerprint(one) == fingerprint(other)


# --- what is done


def chosen(verdict, attempts=(), step=None, **facts):
    made = Verdict(verdict, ("why",), **facts)
    return choose(made, list(attempts), step, RecoveryBudget(), AT).action


@pytest.mark.parametrize(
    ("verdict", "budget", "action"),
    [
        ("Transient", 3, "RestartInPlace"),
        ("Hardware", 10, "Reschedule"),
        ("Unknown", 2, "Retry"),
        ("SharedCause", 3, "Hold"),
    ],
)
def test_a_budget_counts_retries(verdict, budget, action):
    for used in range(budget + 2):
        past = [attempt(n, verdict=verdict) for n in range(used)]
        assert chosen(verdict, past) == (action if used < budget else "Escalate"), used


@pytest.mark.case("P145")
def test_a_decision_of_somebody_costs_nothing():
    past = [attempt(n, verdict="Policy") for n in range(30)]
    assert chosen("Policy", past) == "RestartInPlace"
    assert spent(past, ("Transient", "Hardware", "Unknown"), None, timedelta(days=1), AT) == 0


def test_a_bug_is_confirmed_once_and_then_stopped():
    assert chosen("Workload") == "Retry"
    assert chosen("Workload", established=True) == "Stop"
    assert chosen("Workload", final=True) == "Stop"


def test_a_time_limit_is_respected():
    assert chosen("Policy", final=True) == "None"


def test_progress_restores_the_budget():
    past = [attempt(1, step=100), attempt(2, step=200)]
    assert chosen("Unknown", past, step=200) == "Retry"
    assert chosen("Unknown", [attempt(1, step=200), attempt(2, step=200)], step=200) == "Escalate"
    assert chosen("Unknown", [attempt(1), attempt(2)], step=None) == "Escalate", "unknown progress is none"


def test_what_is_older_than_the_window_does_not_count():
    assert chosen("Unknown", [attempt(n, ago=25 * 3600) for n in (1, 2)]) == "Retry"


def test_a_budget_larger_than_the_record_ends_all_the_same():
    """The record holds the last 32 attempts; of those before them it is known how many there were."""
    budget, made = RecoveryBudget(transient=50), Verdict("Transient", ("why",))

    def chosen_after(forgotten, past):
        return choose(made, past, None, budget, AT, forgotten).action

    past = [attempt(n, verdict="Transient", ago=60.0) for n in range(31)]
    assert chosen_after(0, past) == "RestartInPlace"
    assert chosen_after(18, past) == "RestartInPlace"
    assert chosen_after(19, past) == "Escalate"
    for broken in (attempt(0, verdict="Transient", ago=25 * 3600), attempt(0, verdict="Transient", step=9)):
        assert chosen_after(1000, [broken, *past[1:-1], attempt(30, step=10)]) == "RestartInPlace"


@pytest.mark.parametrize(
    ("ago", "others", "used"),
    [(24 * 3600, 0, 31), (12 * 3600, 0, 62), (3600, 0, 131), (12 * 3600, 10, 42)],
    ids=["fills-the-window", "twice-as-often", "as-many-as-there-were", "mixed"],
)
def test_what_is_on_record_no_longer_counts_by_the_rate_of_what_is(ago, others, used):
    """`others`: how many of the kept 31 have another verdict."""
    past = [attempt(n, verdict="Transient", ago=ago * (31 - n) / 31) for n in range(31)]
    for each in past[10 : 10 + others]:
        each.verdict = "Hardware"
    assert spent(past, ("Transient",), None, timedelta(days=1), AT, 100) == used


@pytest.mark.parametrize(
    ("numbers", "counted_from", "forgotten"),
    [
        (range(1, 33), 0, 0),
        (range(2, 34), 0, 1),
        (range(70, 102), 0, 69),
        (range(70, 102), 60, 10),
        (range(70, 102), 80, 0),
        (range(5, 8), 0, 0),
    ],
    ids=["full", "one-over", "long", "counted-anew", "counted-anew-since", "found-late"],
)
def test_how_many_attempts_are_on_record_no_longer(numbers, counted_from, forgotten):
    made = record("Running", attempts=[{"n": n} for n in numbers], countedFrom=counted_from)
    assert Work(made, View(now=AT, id=JobId("Job", "default", "llm"))).forgotten == forgotten
