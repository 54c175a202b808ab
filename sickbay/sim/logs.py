"""What components log in a simulated run.

Controllers survive their own mistakes: a worker that raises is logged and its key tried again. In a simulation such a
mistake must not hide, so every logged exception that is no answer of the API server is a finding of the run.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from sickbay.kube.errors import ApiError
from sickbay.kube.leadership import NotLeading

EXPECTED = (ApiError, NotLeading, TimeoutError)
"""What a controller must live with; everything else is a mistake of its own."""


@contextmanager
def listening(found: Callable[[str], None], verbose: bool = False) -> Iterator[None]:
    """Tell `found` of each logged mistake; `verbose` also prints everything on standard error."""
    before = structlog.get_config()
    processors: list[Any] = [structlog.processors.add_log_level, _Listener(found)]
    if verbose:
        processors += [structlog.processors.format_exc_info, structlog.dev.ConsoleRenderer(colors=False)]
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr) if verbose else _Nowhere,
        processors=processors if verbose else [*processors, _drop],
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)


class _Listener:
    """A processor that looks for exceptions."""

    def __init__(self, found: Callable[[str], None]) -> None:
        self._found = found

    def __call__(self, logger: Any, method: str, event: Any) -> Any:
        error = event.get("exc_info")
        if error is True:
            error = sys.exc_info()[1]
        if isinstance(error, BaseException) and not _expected(error):
            text = "".join(traceback.format_exception(error))
            self._found(f"{event.get('event', 'an error was logged')}: {error!r}\n{text}")
        return event


def _expected(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_expected, error.exceptions))
    return isinstance(error, EXPECTED)


def _drop(logger: Any, method: str, event: Any) -> Any:
    raise structlog.DropEvent


class _Nowhere:
    """A logger that drops what it is told."""

    def __init__(self, *names: Any) -> None: ...

    def msg(self, message: str) -> None: ...

    debug = info = warning = error = critical = exception = failure = fatal = log = msg
