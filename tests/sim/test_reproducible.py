"""A seed reproduces everything: every write of a run, whatever Python's own hash seed is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib, sys
from sickbay.sim.fleet import PoolSpec
from sickbay.sim.logs import listening
from sickbay.sim.loop import run_virtual
from sickbay.sim.scenario.defaults import objects_of
from sickbay.sim.scenario.spec import read
from sickbay.sim.world import World

(scenario,) = read("s", '''
apiVersion: test.sickbay.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec: {fleet: [{pool: train, nodes: 3}]}
''')
LINE = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python3, GPU has fallen off the bus."
log = []

async def main(loop):
    world = World(loop, int(sys.argv[1]))
    world.fleet.add_pool(PoolSpec("train", nodes=3))
    for manifest in objects_of(scenario):
        world.apply(manifest, "test")
    world.settle()
    world.store.after_write(lambda w: log.append((round(loop.time(), 6), w.verb, w.resource, w.name, w.user_agent)))
    world.start()
    world.start_components(("agent", "decide", "execute"))
    await world.clock.sleep(30)
    world.machine("train-1").print_kernel(LINE)
    await world.clock.sleep(900)
    await world.stop()

with listening(lambda text: log.append(text)):
    run_virtual(main, seed=int(sys.argv[1]))
print(len(log), hashlib.sha256(repr(log).encode()).hexdigest())
"""


def history(seed: int, hash_seed: int) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(seed)], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.slow
def test_the_same_seed_gives_the_same_writes_in_any_process():
    first, *others = [history(seed=7, hash_seed=hash_seed) for hash_seed in (1, 2)]
    assert int(first.split()[0]) > 500
    assert others == [first]


@pytest.mark.slow
def test_another_seed_gives_another_history():
    assert history(seed=7, hash_seed=1) != history(seed=8, hash_seed=1)
