"""JobSets in few words. Their pods run on the nodes of the cluster under test alone."""

from __future__ import annotations

from typing import Any

from tests.jobsets.cluster import Cluster

Obj = dict[str, Any]


def replicated(name: str, replicas: int, ranks: int, **job: Any) -> Obj:
    """A replicatedJob of Indexed Jobs that may not fail; `annotations` are those of its pods, the rest its Job's."""
    meta = {"annotations": job.pop("annotations")} if "annotations" in job else {}
    container = {"name": "main", "image": "example.com/train:1"}
    template = {"metadata": meta, "spec": {"restartPolicy": "Never", "containers": [container]}}
    child = {"completions": ranks, "parallelism": ranks, "backoffLimit": 0, "template": template, **job}
    return {"name": name, "replicas": replicas, "template": {"spec": child}}


def spec(cluster: Cluster, *jobs: Obj, **more: Any) -> Obj:
    for job in jobs:
        job["template"]["spec"]["template"]["spec"]["nodeSelector"] = {"pool": cluster.pool}
    return {"replicatedJobs": list(jobs), **more}
