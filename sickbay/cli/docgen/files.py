"""The files that the commands of docs/commands.md are given, and the objects of the cluster they are typed in."""

from __future__ import annotations

FALLEN = "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
"""A line of the kernel."""
CLUSTER = """\
apiVersion: sickbay.dev/v1alpha1
kind: FaultType
metadata: {name: rack.fabric}
spec:
  class: GPU
  severity: Critical
  scope: Domain
  domain: sickbay.dev/rack
  match: [{condition: {type: RackFabric, status: "True"}}]
  remedy: [{action: RecoverDomain}]
  clearsBy: condition
---
apiVersion: sickbay.dev/v1alpha1
kind: RepairRule
metadata: {name: gated}
spec:
  rules:
  - name: severe
    faults: {severities: [Critical]}
    procedure:
    - {step: Quarantine}
    - {step: Drain, approval: {by: People, timeout: 4h}}
    - {step: Repair}
    - {step: Unquarantine}
  - name: the-rest
    procedure: [{step: Quarantine}, {step: Drain}, {step: Repair}, {step: Unquarantine}]
---
apiVersion: sickbay.dev/v1alpha1
kind: RepairPool
metadata: {name: train}
spec:
  nodeSelector: {matchLabels: {pool: train}}
  mode: Act
  rule: gated
  maxUnavailable: 3
  maxParallelRepairs: 2
---
apiVersion: sickbay.dev/v1alpha1
kind: RepairPool
metadata: {name: nvl}
spec:
  nodeSelector: {matchLabels: {pool: nvl}}
  mode: Act
  rule: gated
  maxUnavailable: 3
  provider: {name: fake}
---
apiVersion: sickbay.dev/v1alpha1
kind: RepairPool
metadata: {name: lab}
spec: {nodeSelector: {matchLabels: {pool: lab}}, rule: gated}
---
apiVersion: sickbay.dev/v1alpha1
kind: RecoveryPolicy
metadata: {name: training, namespace: default}
spec: {jobSelector: {}, mode: Act}
---
apiVersion: batch/v1
kind: Job
metadata: {name: llm, namespace: default, labels: {app: llm}}
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  template:
    metadata: {labels: {app: llm}}
    spec:
      restartPolicy: Never
      nodeSelector: {pool: train}
      containers: [{name: main, image: "example.com/train:1", resources: {limits: {nvidia.com/gpu: "8"}}}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: eval, namespace: default, labels: {app: eval}}
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  template:
    metadata: {labels: {app: eval}}
    spec:
      restartPolicy: Never
      nodeSelector: {pool: train}
      containers: [{name: main, image: "example.com/train:1", resources: {limits: {nvidia.com/gpu: "8"}}}]
"""
"""What a platform team has applied, and two jobs."""

_RULES = """\
apiVersion: sickbay.dev/v1alpha1
kind: RepairRule
metadata: {name: tidy}
spec:
  rules:
  - name: everything
    procedure:
    - step: Quarantine
    - step: Drain
      onTimeout: Continue
    - step: Repair
    - step: Unquarantine
  - name: bus
    faults: {names: [gpu.xid.97]}
    procedure: [{step: Repair}]
---
apiVersion: sickbay.dev/v1alpha1
kind: RepairPool
metadata: {name: train}
spec:
  nodeSelector: {matchLabels: {pool: train}}
  rule: tidy
  maxUnavailable: 2
  maxParallelRepairs: 4
"""
_FAULTS = """\
apiVersion: sickbay.dev/v1alpha1
kind: FaultType
metadata: {name: gpu.xid.94}
spec:
  severity: Critical
  remedy: [{action: RebootNode}]
"""
_SMALLEST = """\
apiVersion: test.sickbay.dev/v1alpha1
kind: Scenario
metadata: {name: smallest}
spec:
  until: 5m
  components: [decide, execute]
  fleet: [{pool: train, nodes: 3, gpus: 8}]
  timeline:
  - {at: 10s, do: condition, node: train-1, type: NvidiaXID79Error, status: "True"}
  expect:
  - {by: 1m, that: "cordoned('train-1')"}
  - {never: true, that: "cordoned('train-0')"}
"""
_POLICY = """\
{
  "policy_id": "r-1", "name": "gpu-repair", "resource_type": "nodepool", "resource_ids": ["np1"],
  "rules": [{
    "incidents": [{"name": "NvidiaXID79Error", "type": "gpu"}],
    "repair_procedure": [{"name": "Drain"}, {"name": "RebootNode"}]
  }]
}
"""
FILES = {
    "rules.yaml": _RULES,
    "my-faults.yaml": _FAULTS,
    "smallest.yaml": _SMALLEST,
    "policy.json": _POLICY,
    "kernel.log": f"[ 8123.4] {FALLEN}\n",
}
"""By name."""


def fenced(name: str) -> str:
    """A file as the page shows it; as text, since the pages' YAML is in good order and this need not be."""
    return f"```text\n{FILES[name]}```"
