"""What starts, watches and ends the processes of the control plane, tried with small shell programs."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import ports
from tests.support.daemon import Daemon, DaemonFailed
from tests.support.ports import free_ports

Make = Callable[[str], Daemon]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes daemons out of shell scripts, ready once they have written the file `up`."""
    made: list[Daemon] = []

    def daemon(script: str) -> Daemon:
        command = ["/bin/sh", "-c", f"cd {tmp_path}; {script}"]
        made.append(Daemon("thing", command, tmp_path / "log", (tmp_path / "up").exists))
        return made[-1]

    yield daemon
    for one in made:
        one.kill()


def test_start_returns_once_it_is_ready(make: Make, tmp_path: Path) -> None:
    thing = make("echo hello; touch up; sleep 60")
    thing.start()
    os.kill(thing.pid, 0)
    assert (tmp_path / "log").read_text() == "hello\n"


def test_one_that_ends_while_starting_is_reported_with_its_code_and_log(make: Make) -> None:
    thing = make("echo no disk >&2; exit 7")
    with pytest.raises(DaemonFailed, match=r"(?s)thing ended with 7; .*/log:\nno disk"):
        thing.start()
    assert thing.pid == 0


def test_one_that_never_gets_ready_is_ended(make: Make, tmp_path: Path) -> None:
    thing = make("echo $$ >pid; exec sleep 60")
    with pytest.raises(DaemonFailed, match="thing is not ready after 0 s"):
        thing.start(timeout=0.2)
    assert thing.pid == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_it_cannot_be_started_twice(make: Make) -> None:
    thing = make("touch up; exec sleep 60")
    thing.start()
    with pytest.raises(RuntimeError, match="thing is running already"):
        thing.start()


def test_stop_lets_it_put_things_in_order_and_kill_does_not(make: Make, tmp_path: Path) -> None:
    script = "trap 'echo orderly >>ended; exit' TERM; touch up; while :; do sleep 0.05; done"
    stopped, killed = make(script), make(script)
    stopped.start()
    stopped.stop()
    assert (tmp_path / "ended").read_text() == "orderly\n"
    killed.start()
    killed.kill()
    assert (tmp_path / "ended").read_text() == "orderly\n"


def test_one_that_ignores_the_request_is_killed(make: Make) -> None:
    thing = make("trap '' TERM; touch up; while :; do sleep 0.05; done")
    thing.start()
    pid = thing.pid
    thing.stop(grace=0.2)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_it_can_be_started_again_and_the_log_goes_on(make: Make, tmp_path: Path) -> None:
    thing = make("echo run; touch up; exec sleep 60")
    for _ in range(2):
        thing.start()
        thing.stop()
        (tmp_path / "up").unlink()
    assert (tmp_path / "log").read_text() == "run\nrun\n"


def test_stopping_what_does_not_run_is_nothing(make: Make) -> None:
    thing = make("exit")
    thing.stop()
    thing.kill()
    assert thing.pid == 0


def test_it_does_not_hear_the_ctrl_c_of_the_test_run(make: Make) -> None:
    thing = make("touch up; exec sleep 60")
    thing.start()
    assert os.getsid(thing.pid) != os.getsid(0)


def test_ports_are_different_and_free() -> None:
    found = free_ports(5)
    assert len(set(found)) == 5
    for port in found:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", port))


def test_a_port_in_use_is_passed_over() -> None:
    (taken,) = free_ports(1)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", taken))
        listener.listen()
        assert taken not in free_ports(3)


def test_more_ports_than_there_are_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "HIGHEST", ports.LOWEST + 4)
    with pytest.raises(RuntimeError, match="fewer than 5 free loopback ports"):
        free_ports(5)


def test_the_guard_is_gone_when_the_daemon_was_stopped(make: Make) -> None:
    thing = make("touch up; exec sleep 60")
    thing.start()
    guard = thing._guard
    assert isinstance(guard, subprocess.Popen)
    thing.stop()
    assert guard.returncode == 0
