"""Which job a pod is a rank of, by the labels that the controllers of jobs set.

Both loops need it: the one that drains a node asks whether a pod belongs to a gang that moves as a whole, the other one
finds the gang of a job.
"""

from __future__ import annotations

from sickbay.api.core import Pod

JOB_NAME = "batch.kubernetes.io/job-name"
JOB_UID = "batch.kubernetes.io/controller-uid"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_SET_NAME = "jobset.sigs.k8s.io/jobset-name"
JOB_SET_UID = "jobset.sigs.k8s.io/jobset-uid"


def job_of(pod: Pod) -> tuple[str, str]:
    """Kind and name of the job; ("", "") for a pod of none.

    A child Job of a JobSet is no job of its own, and a Job-like label on a pod that something else owns is none either.
    """
    if JOB_SET_NAME in pod.labels:
        return "JobSet", pod.labels[JOB_SET_NAME]
    owner = pod.metadata.controller
    if JOB_NAME not in pod.labels or (owner is not None and owner.kind != "Job"):
        return "", ""
    return "Job", pod.labels[JOB_NAME]
