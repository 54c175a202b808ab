"""What a command reaches beyond its arguments: the API server, the clock, lots, and the loop its requests run on.

Commands ask for the one in force. A caller that runs them elsewhere (the generator of the pages: in a simulated
cluster) hands in its own as the context's object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import click

from sickbay.cli.process import connect
from sickbay.clock import Clock, Randomness, SystemClock, rfc3339
from sickbay.kube.client import Client

USER_AGENT = "sickbay-cli"


@dataclass(frozen=True)
class Session:
    """See the module."""

    clock: Clock = field(default_factory=SystemClock)
    randomness: Randomness = field(default_factory=Randomness)
    run: Callable[[Coroutine[Any, Any, Any]], Any] = asyncio.run

    def connect(self, kubeconfig: str, context: str) -> Client:
        """A client that acts as the person of that kubeconfig. Raises ClickException where there is none."""
        return connect(kubeconfig, context, USER_AGENT, self.clock)


def current() -> Session:
    """The one of the command that runs."""
    return click.get_current_context().ensure_object(Session)


def now() -> str:
    """This moment, as it stands in objects."""
    return rfc3339(current().clock.now())
