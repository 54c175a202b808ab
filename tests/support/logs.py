"""What our processes log, as a test sees it: an entry with a traceback is a bug, whatever went on afterwards.

`SICKBAY_TEST_LOG=1` prints everything they log as well.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

PRINTED = os.environ.get("SICKBAY_TEST_LOG", "") != ""


@contextmanager
def tracebacks() -> Iterator[list[str]]:
    """Collects the entries that carry a traceback while the block runs."""
    found: list[str] = []

    def collect(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if event.get("exc_info"):
            found.append(str(structlog.processors.format_exc_info(_logger, _method, dict(event))))
        if not PRINTED:
            raise structlog.DropEvent
        return event

    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG if PRINTED else logging.ERROR),
        processors=[
            collect,
            structlog.processors.TimeStamper(fmt="%H:%M:%S.%f", utc=True),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer(colors=False),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
    )
    try:
        yield found
    finally:
        structlog.configure(**before)
