"""What a person sees: a live view in a terminal, plain lines elsewhere, and the table at the end."""

from __future__ import annotations

from collections import deque
from typing import Any

from rich.box import SIMPLE
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sickbay.sim.demo.record import Record
from sickbay.sim.hand import NODES
from sickbay.sim.world import World

PARTS = ("detect", "decide", "wait", "drain", "repair", "validate", "total")


def clock(moment: float) -> str:
    return f"{int(moment) // 60:02d}:{int(moment) % 60:02d}"


class Lines:
    """One line for each thing that happens."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, moment: float, node: str, text: str) -> None:
        self._console.print(Text(f"[{clock(moment)}] {node:<8} {text}"), soft_wrap=True)

    def show(self, world: World, record: Record) -> None:
        """Lines show nothing between two things that happen."""

    def commands(self, lines: list[str]) -> None:
        self._console.print(Text("Look at it from another terminal:"))
        for line in lines:
            self._console.print(Text(f"  {line}"), soft_wrap=True)

    def kept(self, url: str) -> None:
        self._console.print(Text(f"Still running on {url}; Ctrl-C ends it."))


class View:
    """The fleet and the last lines, redrawn in place."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console, self._live = console, live
        self._last: deque[str] = deque(maxlen=12)
        self._commands: list[str] = []

    def say(self, moment: float, node: str, text: str) -> None:
        self._last.append(f"[{clock(moment)}] {node:<8} {text}")

    def show(self, world: World, record: Record) -> None:
        parts: list[Any] = [Text(line, style="dim") for line in self._commands]
        parts.append(self._nodes(world, record))
        width = self._console.width
        parts += [Text(line[:width]) for line in self._last]
        self._live.update(Group(*parts), refresh=True)

    def commands(self, lines: list[str]) -> None:
        self._commands = lines

    def kept(self, url: str) -> None:
        self._console.print(Text(f"Still running on {url}; Ctrl-C ends it."))

    def _nodes(self, world: World, record: Record) -> Table:
        table = Table(box=None, pad_edge=False)
        for heading in ("node", "in service", "repair", "message"):
            table.add_column(heading, no_wrap=True)
        stories = {story.node: story for story in record.stories}
        for node in world.store.list(NODES):
            name, story = node["metadata"]["name"], stories.get(node["metadata"]["name"])
            cordoned = bool((node.get("spec") or {}).get("unschedulable"))
            phase = (story.outcome or story.phase) if story is not None else ""
            message = story.message if story is not None and story.ended is None else ""
            style = "yellow" if cordoned else ""
            table.add_row(name, "cordoned" if cordoned else "yes", phase, message, style=style)
        return table


def final_table(record: Record, factor: float) -> Table:
    """Where the time went, for each fault in simulated and in real seconds."""
    table = Table(
        title=f"Where the time went, in seconds (the simulated clock ran {factor:g} times faster)",
        box=SIMPLE,
        title_justify="left",
    )
    table.add_column("node", no_wrap=True)
    table.add_column("fault", no_wrap=True)
    table.add_column("clock", no_wrap=True)
    for part in PARTS:
        table.add_column(part, justify="right", no_wrap=True)
    for story in record.stories:
        spent = story.spent()
        table.add_row(story.node, story.fault, "simulated", *(f"{spent[p]:.1f}" for p in PARTS))
        table.add_row("", "", "real", *(f"{spent[p] / factor:.1f}" for p in PARTS))
    return table
