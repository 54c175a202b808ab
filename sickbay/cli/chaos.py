"""`sickbay chaos`: worlds drawn from seeds, with everything going wrong that can, until something breaks.

Exit status: 0 all seeds held, 1 one did not, 2 wrong usage or a wrong file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import click

from sickbay.sim.chaos import report
from sickbay.sim.chaos.plan import Drawing, draw, under_weather
from sickbay.sim.chaos.run import Result, run
from sickbay.sim.scenario.command import BAD_FILE, JUNIT, conclude, read_file, writable
from sickbay.sim.scenario.document import BadFileError
from sickbay.sim.scenario.spec import Scenario

_SEEDS = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?")
MOST = 1_000_000
"""Seeds of one call."""


class Seeds(click.ParamType[range]):
    """`A-B` or a single `N`."""

    name = "A-B"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> range:
        if isinstance(value, range):
            return value
        match = _SEEDS.fullmatch(str(value))
        if match is None:
            self.fail(f"{value!r} is neither a seed such as 7 nor a range such as 1-300", param, ctx)
        first = int(match[1])
        last = int(match[2]) if match[2] is not None else first
        if last < first:
            self.fail(f"{value!r} ends before it begins; write it as {last}-{first}", param, ctx)
        if last - first >= MOST:
            self.fail(f"{value!r} is more than {MOST} seeds; run them in parts", param, ctx)
        return range(first, last + 1)


@click.command("chaos")
@click.option("--seeds", type=Seeds(), default="1-20", show_default=True, help="Seeds to run, or a single one.")
@click.option(
    "--scenario",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Instead of a drawn world: the first run of this scenario file, under drawn weather.",
)
@JUNIT
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--jobs", type=click.IntRange(1, 256), help="Processes side by side.  [default: one per core]")
@click.option("-v", "--verbose", is_flag=True, help="Print each seed's world and timeline as a scenario file.")
@click.pass_context
def chaos(
    context: click.Context,
    seeds: range,
    file: Path | None,
    junit: Path | None,
    output: str,
    jobs: int | None,
    verbose: bool,
) -> None:
    """Draw small worlds from seeds, let everything go wrong in them, and check that what must hold holds.

    Each has machines, pools, rules, limits and workloads of its own, faults, people, and Sickbay's processes dying at
    any write or call. After the storm all must settle. A seed gives the same run, bit for bit.

    Example: sickbay chaos --seeds 1-300 --junit chaos.xml
    """
    writable(junit)
    try:
        scenario = read_file(file)[0] if file is not None else None
        results = _told(_run(seeds, scenario, jobs or os.cpu_count() or 1), output, verbose)
    except BadFileError as error:
        click.echo(str(error), err=True)
        context.exit(BAD_FILE)
    summary = report.as_json(results) if output == "json" else report.summary(results)
    conclude(context, summary, all(result.ok for result in results), junit, lambda: report.as_junit(results))


def _told(runs: Iterator[tuple[str, Result]], output: str, verbose: bool) -> list[Result]:
    """Tell of each run as it ends."""
    results = []
    for text, result in runs:
        results.append(result)
        if verbose:
            click.echo(text, nl=False, err=output == "json")
        if output == "text":
            for line in report.lines(result):
                click.echo(line)
    return results


def _run(seeds: range, scenario: Scenario | None, jobs: int) -> Iterator[tuple[str, Result]]:
    one = partial(_one, scenario.file if scenario is not None else "")
    if jobs == 1 or len(seeds) == 1:
        yield from map(one, seeds)
        return
    with ProcessPoolExecutor(max_workers=min(jobs, len(seeds))) as pool:
        yield from pool.map(one, seeds)


def _one(file: str, seed: int) -> tuple[str, Result]:
    """One seed, in whatever process this is: its story and what came of it."""
    drawing: Drawing = under_weather(read_file(Path(file))[0], seed) if file else draw(seed)
    result = run(drawing)
    return report.story(drawing, result), result
