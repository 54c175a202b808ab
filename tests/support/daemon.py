"""One child process that serves: started, waited for, stopped by its process id, never left behind.

The child gets a session of its own, so that ctrl-C reaches only the test run, which then stops its children in order.
Should the test run itself be killed, nobody is left to do that: a guard, a shell that reads a pipe of ours, sees the
pipe close and kills the child. The guard is told when the child ended in the regular way.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sickbay.clock import SystemClock

POLL_SECONDS = 0.05
TAIL_LINES = 25
GUARD = 'read -r regular || kill -KILL "$1" 2>/dev/null'


class DaemonFailed(Exception):
    """The process did not come up; the text holds the end of its log."""


class Daemon:
    """A serving process with its log in a file, which is kept and grows over restarts."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        ready: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._command = list(command)
        self._ready = ready
        self._environment = None if environment is None else dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the running child; 0 when there is none."""
        return 0 if self._process is None else self._process.pid

    def start(self, timeout: float = 60.0) -> None:
        """Start and return once it is ready. Raises DaemonFailed when it ends or is not ready within `timeout` s."""
        if self._process is not None:
            raise RuntimeError(f"{self.name} is running already (process {self.pid})")
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=self._environment,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "guard", str(self.pid)], stdin=subprocess.PIPE, start_new_session=True
        )
        try:
            self._wait_until_ready(timeout)
        except BaseException:
            self.kill()
            raise

    def stop(self, grace: float = 10.0) -> None:
        """Ask it to end, and kill it after `grace` seconds. Does nothing when it is not running."""
        self._end(signal.SIGTERM, grace)

    def kill(self) -> None:
        """End it without warning, as a crash would. Does nothing when it is not running."""
        self._end(signal.SIGKILL, 10.0)

    def tail(self) -> str:
        """The last lines it logged."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]) if self.log.exists() else ""

    def _wait_until_ready(self, timeout: float) -> None:
        assert self._process is not None
        clock = SystemClock()
        deadline = clock.monotonic() + timeout
        while not self._ready():
            if _ended(self._process, POLL_SECONDS):
                raise DaemonFailed(f"{self.name} ended with {self._process.returncode}; {self.log}:\n{self.tail()}")
            if clock.monotonic() > deadline:
                raise DaemonFailed(f"{self.name} is not ready after {timeout:.0f} s; {self.log}:\n{self.tail()}")

    def _end(self, how: signal.Signals, grace: float) -> None:
        process, self._process = self._process, None
        guard, self._guard = self._guard, None
        if process is not None:
            if process.poll() is None:
                os.kill(process.pid, how)
            if not _ended(process, grace):
                process.kill()
                process.wait()
        if guard is not None:
            guard.communicate(b"regular\n")


def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether it ends within so many seconds; waiting on the child is also how a poll pauses."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
