"""A seed as a scenario: the world, what befalls it, and where each of its parts comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import yaml

from sickbay.api.duration import parse_duration
from sickbay.clock import Randomness
from sickbay.sim.chaos import faults, weather, worlds
from sickbay.sim.chaos.dice import Dice, seconds
from sickbay.sim.components import available
from sickbay.sim.scenario.document import Reader, load, read_each
from sickbay.sim.scenario.spec import Scenario, read
from sickbay.sim.scenario.timeline import read_entry

API_VERSION = "test.sickbay.dev/v1alpha1"


@dataclass(frozen=True)
class Drawing:
    """What a seed says."""

    seed: int
    document: dict[str, Any]
    scenario: Scenario
    storm: float
    """Virtual seconds until the weather is over."""
    file: str = ""
    """The scenario file, where the world is not drawn."""


def draw(seed: int) -> Drawing:
    dice = Dice(Randomness(seed))
    world = worlds.draw(dice.fork())
    storm = float(dice.between(240, 600))
    timeline = faults.draw(dice.fork(), world, storm)
    timeline += weather.draw(dice.fork(), world.components, world.nodes, storm)
    timeline.sort(key=lambda entry: parse_duration(entry["at"]))
    document = {
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "metadata": {"name": f"chaos-{seed}"},
        "spec": {
            "seed": seed,
            "until": seconds(storm),
            "components": world.components,
            "replicas": world.replicas,
            "defaults": False,
            "fleet": world.fleet,
            "objects": world.objects,
            "timeline": timeline,
        },
    }
    (scenario,) = read(f"seed {seed}", text_of(document))
    return Drawing(seed, document, scenario, storm)


def under_weather(scenario: Scenario, seed: int) -> Drawing:
    """A run of the user's own under weather that is drawn: two replicas, and crashes, lost leadership, errors."""
    dice = Dice(Randomness(seed))
    components = [name for name in scenario.components if name in available()]
    nodes = [f"{entry.pool}-{k}" for entry in scenario.fleet for k in range(entry.nodes)]
    drawn = weather.draw(dice, components, nodes, scenario.until)
    document = {"spec": {"seed": seed, "replicas": max(2, scenario.replicas), "timeline": drawn}}
    reader = Reader(load(scenario.file, text_of({"timeline": drawn}))[0])
    timeline = (*scenario.timeline, *read_each(reader, "timeline", read_entry))
    changed = replace(scenario, seed=seed, replicas=max(2, scenario.replicas), timeline=timeline)
    return Drawing(seed, document, changed, scenario.until, scenario.file)


def text_of(document: dict[str, Any]) -> str:
    """The scenario as a file."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=160, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Without aliases: each entry of a file stands for itself."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
