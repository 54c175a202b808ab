"""What simulated days cost: CPU time for an hour of virtual time in scenarios that mostly wait.

    python benchmarks/long.py [--days 3] [--nodes 20] [--only quiet,waiting] [--profile FILE]

Scenarios of all components with an agent on each node. `quiet`: nothing happens. `waiting`: one repair waits for a
maintenance window at the end, one for approval, one for a slot, one is with people, one node comes back. Figures are
CPU seconds of this process without its start, for the run and for an hour of it, and their ratio to a bare loop of
1,000,000 steps. `--profile` writes what cProfile saw, for `python -m pstats`.
"""

from __future__ import annotations

import argparse
import cProfile
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import bare_loop, cpu
from sickbay.sim.scenario.runner import run
from sickbay.sim.scenario.spec import read

HEAD = """
apiVersion: test.sickbay.dev/v1alpha1
kind: Scenario
metadata: {{name: long}}
spec:
  until: {hours}h
  fleet:
  - {{pool: train, nodes: {nodes}, gpus: 8}}
  - {{pool: serve, nodes: 4, gpus: 8}}
"""

QUIET = (
    HEAD
    + """
  expect:
  - {{at: {hours}h, that: "nodes().all(n, healthy(n.metadata.name)) && size(repairs()) == 0"}}
"""
)

WAITING = (
    HEAD
    + """
  objects:
  - apiVersion: sickbay.dev/v1alpha1
    kind: FaultType
    metadata: {{name: test.reboot}}
    spec:
      class: Node
      severity: Critical
      scope: Node
      match: [{{condition: {{type: RebootMe, status: "True"}}}}]
      remedy: [{{action: RebootNode, timeout: 15m}}]
      clearsBy: condition
  - apiVersion: sickbay.dev/v1alpha1
    kind: RepairPool
    metadata: {{name: train}}
    spec: {{maxUnavailable: 2, rule: asks, breaker: {{threshold: 5, maxNodes: 5}}, maxParallelRepairs: 2}}
  - apiVersion: sickbay.dev/v1alpha1
    kind: RepairPool
    metadata: {{name: serve}}
    spec: {{windows: [{{cron: "0 2 * * sun", duration: 4h, zone: UTC, kind: Allow}}]}}
  - apiVersion: sickbay.dev/v1alpha1
    kind: RepairRule
    metadata: {{name: asks}}
    spec:
      rules:
      - name: all
        faults: {{}}
        procedure:
        - {{step: Quarantine}}
        - {{step: Drain, approval: {{timeout: 14d, reminders: [15m, 1h, 4h]}}}}
        - {{step: Repair}}
        - {{step: Validate}}
        - {{step: Unquarantine}}
  timeline:
  - {{at: 1h, do: condition, node: serve-1, type: RebootMe, status: "True"}}
  - {{at: 2h, do: condition, node: train-1, type: RebootMe, status: "True"}}
  - {{at: 3h, do: condition, node: train-2, type: RebootMe, status: "True"}}
  - {{at: 4h, do: deny, node: train-2, step: Drain}}
  - {{at: 5h, do: diagnostics, node: train-3, level: 1, result: fail}}
  - {{at: 5h, do: kmsg, node: train-3, line: "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."}}
  - {{at: 6h, do: approve, node: train-3, step: Drain}}
  - {{at: 20h, do: condition, node: train-4, type: RebootMe, status: "True"}}
  expect:
  - {{at: {hours}h, that: "repair('serve-1').status.current.waitsFor == 'Window'"}}
  - {{at: {hours}h, that: "repair('train-1').status.phase == 'WaitingApproval'"}}
  - {{at: {hours}h, that: "repair('train-3').status.phase == 'NeedsHuman'"}}
  - {{at: {hours}h, that: "repair('train-4').status.phase == 'WaitingSlot'"}}
"""
)

SCENARIOS = {"quiet": QUIET, "waiting": WAITING}


def days(name: str, nodes: int, hours: int) -> float:
    """CPU seconds of one run."""
    (scenario,) = read("long.yaml", SCENARIOS[name].format(hours=hours, nodes=nodes))

    def whole() -> None:
        result = run(scenario)
        bad = [outcome for outcome in result.outcomes if not outcome.ok]
        assert not bad, bad

    return cpu(whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--days", type=float, default=3.0)
    parser.add_argument("--only", default=",".join(SCENARIOS))
    parser.add_argument("--profile", default="")
    options = parser.parse_args()
    hours = round(24 * options.days)
    days("quiet", 1, 1)
    for name in options.only.split(","):
        profiler = cProfile.Profile()
        before = cpu(bare_loop)
        if options.profile:
            profiler.enable()
        taken = days(name, options.nodes, hours)
        profiler.disable()
        loop = (before + cpu(bare_loop)) / 2
        print(f"{name:8} {taken:7.2f} s  {taken / hours:7.4f} s an hour  {taken / loop:7.0f} bare loops", flush=True)
        if options.profile:
            profiler.dump_stats(f"{options.profile}.{name}")


if __name__ == "__main__":
    main()
