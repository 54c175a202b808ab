"""What a timeline can do to the world, by subject. Importing the package fills the table."""

from sickbay.sim.scenario.injections import (  # noqa: F401 - each fills the table
    clouds,
    hosts,
    nodes,
    objects,
    people,
    processes,
    server,
    workloads,
)
from sickbay.sim.scenario.injections.registry import INJECTIONS, Act, InjectionError, NothingThereError

__all__ = ["INJECTIONS", "Act", "InjectionError", "NothingThereError"]
