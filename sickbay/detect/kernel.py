"""The kernel itself: hung tasks, lock-ups, stalls, oopses, panics, out of memory, and crashes of programs.

A bare word ("BUG", "segfault") is never enough: each form is the message as the kernel prints it, because program names
and quoted text carry the same words.
"""

from __future__ import annotations

import re

from sickbay.detect.finding import (
    DUPLICATE,
    IGNORE,
    OBSERVE,
    REBOOT,
    RESTART_APP,
    Finding,
    rule,
    says,
)

_WATCHDOG = r"(?:NMI )?(?:watchdog: )?"


def _oom_kill(match: re.Match[str], booting: bool) -> Finding:
    """`constraint=` tells a container's limit from the node's memory."""
    if match["constraint"] == "CONSTRAINT_MEMCG":
        return Finding("oom.cgroup", RESTART_APP, family="oom")
    return Finding("oom.system", OBSERVE, family="oom")


def _segfault(match: re.Match[str], booting: bool) -> Finding:
    if "libnccl" in (match["library"] or ""):
        return Finding("app.segfault.libnccl", RESTART_APP)
    return Finding("app.segfault", IGNORE)


_STALL_RULES = (
    rule(
        r"(?:INFO: )?task .{1,64}?:\d{1,10} blocked (?:in I/O wait )?for more than \d{1,9} seconds",
        ("blocked for more than", "blocked in I/O"),
        says("kernel.hung-task", OBSERVE),
    ),
    rule(
        rf"{_WATCHDOG}BUG: soft lockup - CPU#\d{{1,5}} stuck for \d{{1,9}}s!",
        "BUG: ",
        says("kernel.soft-lockup", OBSERVE),
    ),
    rule(
        rf"{_WATCHDOG}(?:BUG: hard lockup|Watchdog detected hard LOCKUP)",
        ("BUG: ", "LOCKUP"),
        says("kernel.hard-lockup", REBOOT, family="kernel"),
    ),
    rule(
        r"(?:rcu: )?INFO: \w{1,32} (?:self-)?detected (?:expedited )?stalls? on CPU",
        "INFO: ",
        says("kernel.rcu-stall", OBSERVE),
    ),
    rule(
        r"(?:rcu: )?\w{1,32} kthread (?:starved for \d|timer wakeup didn't happen)",
        ("kthread starved", "kthread timer"),
        says("kernel.rcu-stall", DUPLICATE, alone=OBSERVE),
    ),
)

_OOPS = says("kernel.oops", REBOOT, family="kernel")

_OOPS_RULES = (
    rule(
        r"BUG: (?:unable to handle (?:kernel )?(?:NULL pointer|paging request|page fault)"
        r"|kernel NULL pointer dereference)",
        "BUG: ",
        _OOPS,
    ),
    rule(r"Unable to handle kernel (?:NULL pointer|paging request|access)", "Unable to handle kernel", _OOPS),
    rule(r"(?:Internal error: )?Oops: ", "Oops: ", _OOPS),
    rule(
        r"(?:divide error|general protection fault|invalid opcode|stack segment|double fault|int3|alignment check)"
        r"(?:, [^:\n]{1,120})?(?: 0x[0-9a-f]{1,16})?: [0-9a-f]{4} \[#\d{1,4}\]",
        "[#",
        _OOPS,
    ),
    rule(r"kernel BUG at \S", "BUG at", _OOPS),
    rule(
        r"Kernel [Pp]anic - not syncing",
        ("Kernel panic", "Kernel Panic"),
        says("kernel.panic", REBOOT, family="kernel"),
    ),
    rule(
        r"---\[ end Kernel panic",
        "Kernel panic",
        says("kernel.panic", DUPLICATE, family="kernel", alone=REBOOT),
    ),
)

_OOM_RULES = (
    rule(
        r"Memory cgroup out of memory: Kill(?:ed)? process",
        "Memory cgroup out",
        says("oom.cgroup", RESTART_APP, family="oom"),
    ),
    rule(r"oom-kill:constraint=(?P<constraint>\w{1,40})", "-kill:constraint", _oom_kill),
    rule(
        r"Task in \S{1,500} killed as a result of limit of",
        "killed as a result of limit",
        says("oom.cgroup", RESTART_APP, family="oom"),
    ),
    rule(r"[Oo]ut of memory: Kill(?:ed)? process", "f memory: Kill", says("oom.system", OBSERVE, family="oom")),
    rule(r".{1,64}? invoked oom-killer:", "-killer:", says("oom.start", IGNORE)),
    rule(r"Killed process \d{1,10} \(", "Killed process", says("oom.kill", DUPLICATE, family="oom", alone=OBSERVE)),
)

_OTHER_RULES = (
    rule(r"VFS: file-max limit \d{1,20} reached", "VFS: file-max", says("kernel.file-max", OBSERVE)),
    rule(
        r"unregister_netdevice: waiting for \S{1,32} to become free",
        "_netdevice: ",
        says("kernel.unregister-netdevice", OBSERVE),
    ),
    rule(r"nf_conntrack: .{0,60}table full, dropping packet", "f_conntrack: ", says("kernel.conntrack-full", OBSERVE)),
    rule(
        r".{1,64}?\[\d{1,10}\]: segfault at .{0,200}?(?: in (?P<library>[^\s\[]{1,200})(?:\[[^\]]{0,60}\])?.{0,80})?\Z",
        "]: segfault at",
        _segfault,
    ),
    rule(
        r"traps: .{1,64}?\[\d{1,10}\] (?:general protection(?: fault)?|trap [a-z ]{1,32}) ip:.{0,120}? in libnccl",
        "traps: ",
        says("app.segfault.libnccl", RESTART_APP),
    ),
)

RULES = _STALL_RULES + _OOPS_RULES + _OOM_RULES + _OTHER_RULES
