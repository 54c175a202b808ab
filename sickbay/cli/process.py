"""What the long-running commands share: logs, signals, the connection."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Coroutine
from typing import Any

import click
import structlog

from sickbay.clock import Clock
from sickbay.kube import config
from sickbay.kube.client import Client
from sickbay.kube.errors import ConfigError

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(level: str) -> None:
    """JSON lines on standard error."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def connect(kubeconfig: str, context: str, user_agent: str, clock: Clock) -> Client:
    """A client, or an error a user can act on."""
    try:
        return config.connect(kubeconfig, context, user_agent, clock)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None


def run_until_signal(work: Coroutine[Any, Any, None]) -> None:
    """Run until it ends, or until SIGTERM or SIGINT asks it to: then it is cancelled and may say goodbye."""
    asyncio.run(_run(work))


async def _run(work: Coroutine[Any, Any, None]) -> None:
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return
    except BaseExceptionGroup as group:
        raise _first(group) from group


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The reason behind a task group's failure, so that an error for users is not buried."""
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
