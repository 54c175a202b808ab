"""Kinds of jobs: what is read from them, and that they are changed only where their API allows it."""

from __future__ import annotations

from copy import deepcopy

import msgspec
import pytest

from sickbay.api.core import Pod
from sickbay.api.recovery_policy import RecoveryPolicySpec as POLICY
from sickbay.recover.acts import Act, next_act
from sickbay.recover.adapters import ADAPTERS
from sickbay.recover.adapters.base import again, facts, held, released
from sickbay.recover.job import JobId
from sickbay.recover.view import View
from tests.recover.fleet import indexed_job, job_set
from tests.recover.records import record


def served(manifest, **status):
    obj = deepcopy(manifest)
    obj["metadata"] |= {"uid": "u-1", "resourceVersion": "7"}
    obj["status"] = status
    return obj


def condition(type_, reason=""):
    return {"type": type_, "status": "True", "reason": reason}


BOTH = [("Job", indexed_job("llm", 4)), ("JobSet", job_set("llm", 2, 2))]
kinds = pytest.mark.parametrize(("kind", "manifest"), BOTH, ids=["Job", "JobSet"])


def job(kind, obj):
    return facts(ADAPTERS[kind], obj)


def test_ranks_are_named_as_the_pods_are():
    assert job("Job", served(BOTH[0][1])).ranks == ("0", "1", "2", "3")
    assert job("JobSet", served(BOTH[1][1])).ranks == ("w-0-0", "w-0-1", "w-1-0", "w-1-1")


@pytest.mark.parametrize("change", [{"completionMode": "NonIndexed"}, {"parallelism": 2}, {"completions": None}])
def test_a_job_whose_pods_do_not_run_together_is_no_gang(change):
    assert job("Job", served(indexed_job("llm", 4, **change))).ranks == ()


def test_a_child_of_a_jobset_is_no_job_of_its_own():
    child = served(indexed_job("llm-w-0", 4))
    child["metadata"]["labels"] = {"jobset.sigs.k8s.io/jobset-name": "llm"}
    assert job("Job", child).ranks == ()


def test_a_pod_of_a_jobset_knows_its_rank_and_restart():
    prefix = "jobset.sigs.k8s.io"
    labels = {
        f"{prefix}/replicatedjob-name": "w", f"{prefix}/job-index": "1", f"{prefix}/restart-attempt": "3",
        "batch.kubernetes.io/job-completion-index": "0",
    }  # fmt: skip
    pod = msgspec.convert({"metadata": {"labels": labels}}, Pod)
    assert (ADAPTERS["JobSet"].rank(pod), ADAPTERS["JobSet"].restart(pod)) == ("w-1-0", 3)


@pytest.mark.parametrize(
    ("kind", "type_", "expected"),
    [
        ("Job", "Complete", "Complete"),
        ("Job", "SuccessCriteriaMet", "Complete"),
        ("Job", "Failed", "Failed"),
        ("Job", "FailureTarget", "Failed"),
        ("Job", "Suspended", ""),
        ("JobSet", "Completed", "Complete"),
        ("JobSet", "Failed", "Failed"),
        ("JobSet", "Suspended", ""),
    ],
)
def test_how_a_job_ends(kind, type_, expected):
    manifest = dict(BOTH)[kind]
    assert job(kind, served(manifest, conditions=[condition(type_)])).finished == expected


@pytest.mark.parametrize(
    ("meta", "spec", "who"),
    [
        ({"ownerReferences": [{"kind": "Workflow", "name": "w", "controller": True}]}, {}, "Workflow w"),
        ({"labels": {"kueue.x-k8s.io/queue-name": "q"}}, {}, "Kueue"),
        ({}, {"managedBy": "example.com/other"}, "example.com/other"),
        ({"ownerReferences": [{"kind": "ConfigMap", "name": "c"}]}, {}, ""),
        ({}, {}, ""),
    ],
    ids=["owner", "kueue", "managedBy", "no-controller", "nobody"],
)
@kinds
def test_a_job_of_somebody_else_is_not_ours(kind, manifest, meta, spec, who):
    obj = served(manifest)
    obj["metadata"] |= meta
    obj["spec"] |= spec
    found = job(kind, obj).foreign
    assert who in found
    assert bool(found) == bool(who)


@kinds
def test_what_changes_from_attempt_to_attempt_is_no_other_program(kind, manifest):
    first = job(kind, served(manifest))
    later = job(kind, released(ADAPTERS[kind], first, 5, ["n1", "n2"]))
    assert later.template == first.template
    assert job(kind, held(first, 1)).template == first.template


@kinds
def test_another_image_is_another_program(kind, manifest):
    changed = served(manifest)
    for template in ADAPTERS[kind].templates(changed):
        template["spec"]["containers"][0]["image"] = "example.com/train:2"
    assert job(kind, changed).template != job(kind, served(manifest)).template


@kinds
def test_a_release_takes_the_mark_off_and_says_which_attempt_it_is(kind, manifest):
    adapter = ADAPTERS[kind]
    marked = job(kind, held(job(kind, served(manifest)), 1))
    assert (marked.suspended, marked.marked) == (True, True)
    free = job(kind, released(adapter, marked, 2, []))
    assert (free.suspended, free.marked, free.attempt) == (False, False, 2)
    labels = [template["metadata"]["labels"]["sickbay.dev/attempt"] for template in adapter.templates(free.raw)]
    assert set(labels) == {"2"}


def test_a_suspended_jobset_is_changed_only_where_its_webhook_lets_it():
    before = served(BOTH[1][1])
    after = released(ADAPTERS["JobSet"], job("JobSet", before), 2, [])
    for obj in (before, after):
        for template in ADAPTERS["JobSet"].templates(obj):
            template.pop("metadata", None)  # labels and annotations may be changed
            for field in ("nodeSelector", "tolerations", "schedulingGates"):
                template["spec"].pop(field, None)
    assert after["spec"]["replicatedJobs"] == before["spec"]["replicatedJobs"]


def test_a_job_is_made_again_without_what_the_api_server_put_into_it():
    obj = served(indexed_job("llm", 2), failed=3)
    generated = {"controller-uid": "u-1", "job-name": "llm", "batch.kubernetes.io/controller-uid": "u-1", "mine": "x"}
    obj["spec"] |= {"selector": {"matchLabels": {"a": "b"}}}
    obj["spec"]["template"]["metadata"] = {"labels": generated}
    made = again(ADAPTERS["Job"], job("Job", obj), 2, ["n1"])
    assert "status" not in made and "uid" not in made["metadata"] and "selector" not in made["spec"]
    assert made["spec"]["template"]["metadata"]["labels"] == {"mine": "x", "sickbay.dev/attempt": "2"}
    assert made["metadata"]["annotations"]["sickbay.dev/excluded-nodes"] == "n1"


# --- what is done to the object


def act(kind, obj, phase, *, attempt=2, excluded=(), kept=False, uid="u-1", **view):
    adapter = ADAPTERS[kind]
    found = facts(adapter, obj) if obj is not None else None
    annotations = {"sickbay.dev/next-attempt": "{}"} if kept else {}
    looked = View(
        now=None, id=JobId(kind, "default", "llm"), job=found, policy=msgspec.convert({"mode": "Act"}, POLICY),
        excludes_in_place=adapter.excludes_in_place, **view,
    )  # fmt: skip
    return next_act(record(phase, attempt, kind=kind, uid=uid, annotations=annotations), looked, list(excluded))


def suspended(manifest):
    return held(job(manifest["kind"], served(manifest)), 1)


@kinds
@pytest.mark.parametrize("phase", ["Failing", "Isolating", "TearingDown", "Held", "Stopped"])
def test_a_job_that_must_not_run_is_suspended(kind, manifest, phase):
    assert act(kind, served(manifest), phase) is Act.HOLD
    assert act(kind, suspended(manifest), phase) is Act.NOTHING


@kinds
@pytest.mark.parametrize("phase", ["Running", "Recovered", "Placing", "WaitingCapacity"])
def test_a_job_that_runs_is_left_alone(kind, manifest, phase):
    assert act(kind, served(manifest), phase) is Act.NOTHING


@pytest.mark.parametrize(
    ("kind", "facts_", "expected"),
    [
        ("Job", {}, Act.RELEASE),
        ("Job", {"excluded": ["n1"]}, Act.RELEASE),
        ("Job", {"settled": False}, Act.NOTHING),
        ("Job", {"resumes_late": True}, Act.KEEP),
        ("Job", {"blocked_by_lost_pods": True}, Act.KEEP),
        ("JobSet", {}, Act.RELEASE),
        ("JobSet", {"excluded": ["n1"]}, Act.KEEP),
        ("Job", {"kept": True}, Act.DELETE),
        ("Job", {"kept": True, "uid": "another"}, Act.NOTHING),
    ],
)
def test_how_a_job_is_let_go(kind, facts_, expected):
    assert act(kind, suspended(dict(BOTH)[kind]), "Releasing", **facts_) is expected


def test_a_finished_job_is_written_down_deleted_and_made_again():
    over = served(BOTH[0][1], conditions=[condition("Failed", "BackoffLimitExceeded")])
    assert act("Job", over, "Releasing") is Act.KEEP
    assert act("Job", over, "Releasing", kept=True) is Act.DELETE
    assert act("Job", None, "Releasing", kept=True) is Act.CREATE
    assert act("Job", served(BOTH[0][1]), "Placing", kept=True) is Act.FORGET
