"""From a rank's end to the new attempt released with its exclusion, for a gang of 64 pods.

    python benchmarks/jobrelease.py [--failures 30] [--ranks 64] [--real]

A JobSet of 64 ranks on 80 hollow nodes. One rank ends and its node shows a fault at the same moment; the job loop holds
the gang, sees it torn down, and lets it go again with an affinity that keeps it off the node. Beside it the same JobSet
without a RecoveryPolicy: the JobSet controller restarts the gang itself, with no look at any node.

    ours      `recover` on our own API server, all in one process; CPU seconds for each failure
    --real    etcd, kube-apiserver, controller-manager, scheduler and the JobSet controller on this machine (needs Go);
              wall time from the end of the rank to the first pod of the new attempt, ours and JobSet's own

On our server time is virtual: what is printed as virtual seconds is what the protocol waits for (evidence, isolation,
containers that stop), whatever the machine. The CPU time is what the machine pays.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sickbay.clock import parse_time  # noqa: E402
from sickbay.sim.hand import RECOVERIES, labels_of  # noqa: E402
from sickbay.sim.loop import VirtualLoop, run_virtual  # noqa: E402
from tests.recover.fleet import WIDE, Fleet, fleet, job_set, policy  # noqa: E402

SPARE = 16
RESTART = "jobset.sigs.k8s.io/restart-attempt"


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def told(name: str, values: list[float], unit: str) -> None:
    p50, p99 = statistics.median(values), quantile(values, 0.99)
    print(f"{name:<44} P50 {p50:8.3f} {unit}   P99 {p99:8.3f} {unit}   most {max(values):8.3f} {unit}")


async def world(loop: VirtualLoop, ranks: int, acting: bool) -> Fleet:
    made = fleet(loop, ranks + SPARE, slow=0.5, lag=0.0)
    if acting:
        made.world.apply(policy(budget=WIDE, exclusions={"maxNodes": 64}), "owner")
    made.world.apply(job_set("llm", ranks // 8, 8, restarts=100000), "owner")
    made.world.settle()
    made.world.start()
    made.world.start_components(("recover",))
    while len(made.running("llm")) < ranks:
        await made.world.clock.sleep(1)
    await made.world.clock.sleep(5)
    return made


def attempts(made: Fleet) -> list[dict]:
    (record,) = made.world.store.list(RECOVERIES, "default")
    return (record.get("status") or {}).get("attempts") or []


async def ours(loop: VirtualLoop, ranks: int, failures: int) -> None:
    """Virtual seconds and CPU seconds for each failure, from the failure to the release, and until all ranks run."""
    made = await world(loop, ranks, acting=True)
    released, whole, cpu = [], [], []
    for _ in range(failures):
        before = time.process_time()
        pod = made.running("llm")[made.randomness.below(ranks)]
        known = len(attempts(made))
        made.break_gpu(pod)
        while len(attempts(made)) == known or len(made.running("llm")) < ranks or not attempts(made)[-1].get("started"):
            await made.world.clock.sleep(0.5)
        cpu.append(time.process_time() - before)
        times = attempts(made)[-2]["times"]
        fault = parse_time(times["fault"])
        released.append((parse_time(times["queued"]) - fault).total_seconds())
        whole.append((parse_time(times["started"]) - fault).total_seconds())
        await made.world.clock.sleep(90)
    await made.world.stop()
    told("ours: failure to release, virtual", released, "s")
    told("ours: failure to all ranks running, virtual", whole, "s")
    told("ours: CPU for a failure, whole world", cpu, "s")


async def bare(loop: VirtualLoop, ranks: int, failures: int) -> None:
    """JobSet's own restart in the same world."""
    made = await world(loop, ranks, acting=False)
    whole, cpu = [], []
    for number in range(1, failures + 1):
        before, begun = time.process_time(), loop.time()
        made._kill(made.running("llm")[made.randomness.below(ranks)])
        while True:
            pods = [p for p in made.running("llm") if labels_of(p).get(RESTART) == str(number)]
            if len(pods) == ranks:
                break
            await made.world.clock.sleep(0.5)
        cpu.append(time.process_time() - before)
        whole.append(loop.time() - begun)
        await made.world.clock.sleep(90)
    await made.world.stop()
    told("JobSet alone: failure to all ranks running", whole, "s")
    told("JobSet alone: CPU for a failure", cpu, "s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--failures", type=int, default=30)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--real", action="store_true", help="on the real control plane instead")
    chosen = parser.parse_args()
    if chosen.real:
        from jobrelease_real import measure

        asyncio.run(measure(chosen.ranks, chosen.failures, told))
        return
    run_virtual(lambda loop: ours(loop, chosen.ranks, chosen.failures))
    run_virtual(lambda loop: bare(loop, chosen.ranks, chosen.failures))


if __name__ == "__main__":
    main()
