"""`sickbay demo`: both loops in under a minute, without a cluster."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import click
from rich.console import Console
from rich.live import Live

from sickbay.apiserver.serve import CannotServe
from sickbay.cli.process import configure_logs
from sickbay.sim.demo import screen, tell
from sickbay.sim.demo.record import Record
from sickbay.sim.paced import PacedLoop

WIDTH = 120
"""Columns where nobody says how wide the output is."""


@click.command(name="demo")
@click.option("--factor", default=15.0, show_default=True, type=click.FloatRange(1, 60), help="Simulated to real time.")
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--kubeconfig", default=".demo/kubeconfig", show_default=True, type=click.Path(path_type=Path))
@click.option("--plain", is_flag=True, help="Plain lines also in a terminal.")
@click.option("--keep", is_flag=True, help="Leave it running at the end, until interrupted.")
def demo(factor: float, port: int, kubeconfig: Path, plain: bool, keep: bool) -> None:
    """Three situations: a GPU fails under a job, a connection breaks, a GPU asks for a reset soon.

    Machines and Kubernetes are simulated; agent, decide, execute and recover are the real ones. kubectl works on it.

    Example: sickbay demo --keep
    """
    configure_logs("error")
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    settings = tell.Settings(port=port, kubeconfig=kubeconfig, keep=keep)
    try:
        with asyncio.Runner(loop_factory=lambda: PacedLoop(factor)) as runner:
            runner.run(_run(console, settings, plain or not console.is_terminal, factor))
    except (CannotServe, tell.Failed) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot write {kubeconfig}: {error.strerror}; choose with --kubeconfig") from None


async def _run(console: Console, settings: tell.Settings, plain: bool, factor: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PacedLoop)
    with contextlib.ExitStack() as stack:
        told: tell.Screen
        if plain:
            told = screen.Lines(console)
        else:
            told = screen.View(console, stack.enter_context(Live(console=console, auto_refresh=False)))
        await tell.tell(loop, settings, told, lambda record: _finish(console, record, factor))


def _finish(console: Console, record: Record, factor: float) -> None:
    console.print(f"The simulated clock ran {factor:g} times faster.\n")
    console.print(screen.job_table(record, factor))
    console.print(screen.hardware_table(record, factor))
    console.print(screen.summary(record), soft_wrap=True)
