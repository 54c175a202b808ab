"""What a person sees: a live view in a terminal, plain lines elsewhere, and the table at the end."""

from __future__ import annotations

from collections import deque
from typing import Any

from rich.box import SIMPLE
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sickbay.sim.demo.record import JOB_PARTS, Record
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


def job_table(record: Record, factor: float) -> Table:
    """The job loop: how long after each failure it had come how far."""
    heads = {"tornDown": "torn down", "queued": "released"}
    table = Table(title="The job loop, seconds after the failure", box=SIMPLE, title_justify="left")
    for head in ("job", "verdict", "first to fail", "clock"):
        table.add_column(head, no_wrap=True)
    for part in JOB_PARTS:
        table.add_column(heads.get(part, part), justify="right", no_wrap=True)
    for failure in record.failures:
        cells = [failure.moments.get(part) for part in JOB_PARTS]
        simulated = ("" if value is None else f"{value:.1f}" for value in cells)
        real = ("" if value is None else f"{value / factor:.1f}" for value in cells)
        table.add_row(failure.job, failure.verdict, failure.root, "simulated", *simulated)
        table.add_row("", "", "", "real", *real)
    return table


def hardware_table(record: Record, factor: float) -> Table:
    """The hardware loop: how long each part of a repair took."""
    table = Table(title="The hardware loop, seconds spent", box=SIMPLE, title_justify="left")
    for head in ("node", "fault", "clock"):
        table.add_column(head, no_wrap=True)
    for part in PARTS:
        table.add_column(part, justify="right", no_wrap=True)
    for story in record.stories:
        spent = story.spent()
        table.add_row(story.node, story.fault, "simulated", *(f"{spent[p]:.1f}" for p in PARTS))
        table.add_row("", "", "real", *(f"{spent[p] / factor:.1f}" for p in PARTS))
    return table


def summary(record: Record) -> str:
    """What the two tables say, read together."""
    lines = []
    for story in record.stories:
        failure = next((f for f in record.failures if f.root == story.node and f.verdict == "Hardware"), None)
        if failure is not None and failure.over and story.ended is not None:
            back = story.ended - story.broke
            lines.append(
                f"{failure.job} ran again {failure.moments['started']:.0f} s after it had failed on {story.node}, "
                f"and {story.node} was back after {back:.0f} s: neither waited for the other."
            )
    return "\n".join(lines)
