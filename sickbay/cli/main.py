"""The command `sickbay`.

Subcommands are imported when they are called, so that `sickbay decode` on a host needs no Kubernetes client. An error
that a user can do something about is printed as one line; a traceback is a bug.
"""

from __future__ import annotations

import importlib
import sys

import click

from sickbay import __version__

_LOOK, _STEER, _OFFLINE = "sickbay.cli.ops.look", "sickbay.cli.ops.steer", "sickbay.cli.ops.offline"

INTERRUPTED = 130
"""128 + SIGINT, as shells have it."""

COMMANDS = {
    **{name: (_LOOK, name) for name in ("explain", "history", "queue", "status")},
    **{name: (_STEER, name) for name in ("hold", "release", "stop", "repair", "validate", "resolve", "clear")},
    **{name: ("sickbay.cli.ops.approving", name) for name in ("approve", "deny")},
    "catalogue": ("sickbay.cli.ops.cataloguing", "catalogue_group"),
    "check": (_OFFLINE, "check"),
    "impact": ("sickbay.cli.ops.impacting", "impact_command"),
    "import": ("sickbay.cli.ops.importing", "import_group"),
    "agent": ("sickbay.cli.agent", "agent"),
    "chaos": ("sickbay.cli.chaos", "chaos"),
    "controller": ("sickbay.cli.controller", "controller"),
    "crds": ("sickbay.cli.crds", "crds"),
    "policies": ("sickbay.cli.policies", "policies"),
    "decode": ("sickbay.detect.decode_command", "decode"),
    "demo": ("sickbay.cli.demo", "demo"),
    "test": ("sickbay.sim.scenario.command", "test_command"),
}


class LazyGroup(click.Group):
    """A group that knows the names of its commands and loads one when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sickbay")
def cli() -> None:
    """Self-healing for GPU training clusters."""


def main() -> None:
    """Entry point."""
    sys.exit(run())


def run(arguments: list[str] | None = None, session: object = None) -> int:
    """Run one command (default: as the process was called). The exit code: 0 done, 1 failed, 2 usage, 130 interrupted.

    `session`: what it reaches, where that is not the surroundings of this process (see `ops.session`).
    """
    try:
        # Outside its standalone mode click returns the code of `Exit` instead of raising it.
        code = cli.main(arguments, prog_name="sickbay", standalone_mode=False, obj=session)
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    return code if isinstance(code, int) else 0
