"""What a quiet cluster costs in the simulator: CPU time for an hour in which nothing happens.

    python benchmarks/quiet.py [--nodes 100] [--minutes 60]

Three runs, each a scenario of its own: the simulated cluster alone, with our controllers, with an agent on each node
beside. Figures are CPU seconds of this process, without its start, and their ratio to a bare loop of 1,000,000 steps
measured before and after each run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import bare_loop, cpu
from sickbay.sim.scenario.runner import run
from sickbay.sim.scenario.spec import read

CONTROLLERS = "decide, execute, recover, notify"
RUNS = {"the cluster alone": "", "with controllers": CONTROLLERS, "with agents": f"agent, {CONTROLLERS}"}

SCENARIO = """
apiVersion: test.sickbay.dev/v1alpha1
kind: Scenario
metadata: {{name: quiet}}
spec:
  until: {minutes}m
  components: [{components}]
  fleet: [{{pool: train, nodes: {nodes}, gpus: 8}}]
  expect: [{{at: {minutes}m, that: "healthy('train-0')"}}]
"""


def hour(components: str, nodes: int, minutes: int) -> float:
    """CPU seconds of one run."""
    (scenario,) = read("quiet.yaml", SCENARIO.format(components=components, nodes=nodes, minutes=minutes))

    def whole() -> None:
        result = run(scenario)
        assert result.ok, result.outcomes

    return cpu(whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--minutes", type=int, default=60)
    options = parser.parse_args()
    hour(RUNS["with agents"], 1, 1)
    for name, components in RUNS.items():
        before = cpu(bare_loop)
        taken = hour(components, options.nodes, options.minutes)
        loop = (before + cpu(bare_loop)) / 2
        print(f"{name:20} {taken:7.2f} s  {taken / loop:7.0f} bare loops", flush=True)


if __name__ == "__main__":
    main()
