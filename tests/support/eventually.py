"""Bounded waiting on a real clock: what must become true is asked again and again, and named when it does not."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from sickbay.clock import SystemClock
from sickbay.kube.errors import ApiError

PAUSE = 0.05


async def eventually(check: Callable[[], Any], seconds: float, what: str | Callable[[], str] = "") -> Any:
    """The first truthy answer of `check`, which may be async. Fails, with `what`, when there is none in time.

    An assertion or a lookup that fails in `check`, and an API server that does not answer, mean "not yet".
    """
    clock = SystemClock()
    until = clock.monotonic() + seconds
    while True:
        seen: object
        try:
            answer = check()
            found = await answer if inspect.isawaitable(answer) else answer
            if found:
                return found
            seen = found
        except (AssertionError, LookupError, ApiError) as error:
            seen = error
        if clock.monotonic() >= until:
            text = what() if callable(what) else what
            raise AssertionError(
                f"not within {seconds:g} s: {text or inspect.getsource(check).strip()} (last: {seen!r})"
            )
        await clock.sleep(PAUSE)
