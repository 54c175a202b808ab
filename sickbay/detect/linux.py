"""The parts of a real host: what `sickbay agent` is made of where nothing else is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sickbay.clock import Clock
from sickbay.detect.agent import Parts
from sickbay.detect.kmsg import KmsgSource
from sickbay.detect.nvml import NvmlProbe, has_nvswitch
from sickbay.detect.saved import FileStore
from sickbay.detect.source import Source
from sickbay.detect.systemd import SystemdProbe
from sickbay.detect.tail import FileSource, StdinSource
from sickbay.providers.agent.diagnosing import DEFAULT_CHECKS, Check
from sickbay.providers.agent.journal import FileJournal
from sickbay.providers.agent.linux import LinuxHost

STATE = Path("/var/lib/sickbay")
KMSG = "/dev/kmsg"


@dataclass(frozen=True)
class HostOptions:
    """What of the host is watched, and how it is reached."""

    state: Path = STATE
    """Directory on the host's disk, kept over restarts and boots."""
    kmsg: str = KMSG
    """"" = the kernel log is not read."""
    logs: Sequence[Path] = ()
    stdin: bool = False
    gpus: bool = True
    services: bool = True
    in_container: bool = False
    """True where the host's commands are reached through the namespaces of its process 1."""
    checks: Mapping[str, Check] = field(default_factory=dict)
    """Active diagnostics by level (`1`, `2`, `3`) or name, beside or in place of the defaults."""
    card_list: Path | None = None
    """Where the device plug-in reads which cards not to offer; None = cards are not isolated here."""
    card_list_command: Sequence[str] = ()


def parts(options: HostOptions, clock: Clock) -> Parts:
    """Raises ValueError for a task journal that cannot be read: acting without it could repeat an act."""
    sources: list[Source] = [KmsgSource(options.kmsg)] if options.kmsg else []
    sources += [FileSource(path, clock) for path in options.logs]
    sources += [StdinSource()] if options.stdin else []
    return Parts(
        host=LinuxHost(
            in_container=options.in_container,
            checks={**DEFAULT_CHECKS, **options.checks},
            cards=options.card_list,
            cards_command=options.card_list_command,
            state=options.state,
        ),
        journal=FileJournal(options.state / "tasks.json"),
        store=FileStore(options.state / "agent.json"),
        sources=sources,
        gpus=NvmlProbe() if options.gpus else None,
        services=SystemdProbe(in_container=options.in_container) if options.services else None,
        has_nvswitch=has_nvswitch(),
        uptime=uptime,
    )


def uptime() -> float:
    """Seconds since boot (proc(5): /proc/uptime); infinity where that cannot be read."""
    try:
        return float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return float("inf")
