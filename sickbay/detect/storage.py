"""Disks, file systems and network storage.

The same message weighs differently by the role of its device: a file system of the node that turns read-only takes the
node out, one on an attached volume concerns the pod that mounts it. A line only has the device's name, so the role is
read from it: `sdb` and after, `rbd`, `nbd`, `drbd`, `vdb` and after count as attached volumes; `sda`, `vda`, `nvme`,
`dm`, `md` as the node's own.
"""

from __future__ import annotations

import re

from sickbay.detect.finding import (
    DRAIN,
    DUPLICATE,
    HW_REPAIR,
    IGNORE,
    NODE_DRAIN,
    NODE_DRAIN_HW,
    NODE_HW,
    OBSERVE,
    PLAN_REPAIR,
    REBOOT,
    Cure,
    Finding,
    Judge,
    Writer,
    rule,
    says,
)

_ATTACHED = re.compile(
    r"(?:sd(?:[b-z]|[a-z]{2})\d{0,3}|vd[b-z]\d{0,3}|xvd[b-z]\d{0,3}|[nd]?r?bd\d{1,4}(?:p\d{1,3})?)\Z"
)
_UNREADABLE = re.compile(r"Cannot read|[Uu]nable to read|[Ee]rror -5\b|I/O error|[Rr]eading (?:directory|inode|block)")


def attached(device: str | None) -> bool:
    """True when the device's name is that of a volume attached from outside the node."""
    return bool(device) and _ATTACHED.match(device or "") is not None


def _by_role(fault: str, verdict: str) -> Judge:
    def judge(match: re.Match[str], booting: bool) -> Finding:
        device = match.groupdict().get("device")
        return Finding(fault, OBSERVE if attached(device) else verdict, device)

    return judge


def _ext4_error(match: re.Match[str], booting: bool) -> Finding:
    device, text = match["device"], match["text"]
    if attached(device):
        return Finding("fs.ext4-error", OBSERVE, device)
    if _UNREADABLE.search(text):
        return Finding("fs.ext4-error", HW_REPAIR, device)
    return Finding("fs.ext4-error", NODE_DRAIN, device)


def _raid(match: re.Match[str], booting: bool) -> Finding:
    if match["outcome"].startswith("detected"):
        return Finding("disk.raid-failed", NODE_HW, match["device"])
    return Finding("disk.raid-degraded", PLAN_REPAIR, match["device"])


def _nfs(match: re.Match[str], booting: bool) -> Finding:
    server = match["device"]
    if match["state"] == "OK":
        return Finding(None, IGNORE, server, cure=Cure("storage.nfs-unresponsive", server))
    return Finding("storage.nfs-unresponsive", OBSERVE, server)


_DEV = r"(?P<device>[\w./-]{1,64}?)"
_FS = r"(?:EXT[234]-fs|XFS|BTRFS(?: \w{1,10})?|F2FS-fs|JFS)"

_FS_RULES = (
    rule(
        rf"(?:{_FS}(?: \((?:device )?{_DEV}\))?:? )?(?:state \w{{1,8}}: )?Remounting filesystem read-only",
        "Remounting filesystem",
        _by_role("fs.readonly", NODE_DRAIN_HW),
    ),
    rule(
        rf"BTRFS(?: \w{{1,10}})? \(device {_DEV}:?(?: state \w{{1,8}})?\):? .{{0,200}}forced readonly",
        "BTRFS",
        _by_role("fs.readonly", NODE_DRAIN_HW),
    ),
    rule(
        rf"BTRFS (?:error|critical) \(device {_DEV}:?(?: state \w{{1,8}})?\): ",
        "BTRFS",
        says("fs.btrfs-error", OBSERVE),
    ),
    rule(rf"EXT[234]-fs error \(device {_DEV}\)(?P<text>.*)", "-fs error", _ext4_error),
    rule(rf"EXT[234]-fs warning \(device {_DEV}\)", "-fs warning", says("fs.ext4-warning", OBSERVE)),
    rule(
        rf"(?:{_FS}(?: \((?:device )?{_DEV}\))?:? )?I/O error while writing superblock",
        "I/O error while",
        says("fs.superblock-io-error", OBSERVE),
    ),
    rule(
        rf"(?:JBD2: .{{0,200}}(?:[Ee]rror|I/O).{{0,80}} (?:for|on)|Aborting journal on device) "
        rf"{_DEV}(?:-\d{{1,4}})?\.?\s*\Z",
        ("JBD2: ", "Aborting journal"),
        says("fs.journal-error", OBSERVE),
    ),
    rule(
        rf"XFS \({_DEV}\): .{{0,200}}Shutting down filesystem",
        "XFS",
        _by_role("fs.xfs-shutdown", NODE_DRAIN_HW),
    ),
    rule(
        rf"XFS \({_DEV}\): (?:xfs_do_force_shutdown|Please (?:un|u)mount the filesystem|Filesystem has been shut down)",
        "XFS",
        says("fs.xfs-shutdown", DUPLICATE, alone=NODE_DRAIN_HW),
    ),
    rule(
        rf"XFS(?: \({_DEV}\))?: (?:Metadata corruption detected|Internal error |Corruption (?:detected|warning|of))",
        "XFS",
        says("fs.xfs-corruption", DRAIN),
    ),
    rule(
        rf"XFS \({_DEV}\): (?:Unmount and run xfs_repair|First \d{{1,4}} bytes of corrupted)",
        "XFS",
        says("fs.xfs-corruption", DUPLICATE, alone=DRAIN),
    ),
    rule(
        rf"XFS \({_DEV}\): (?:metadata I/O error|log I/O error|log mount/recovery failed)",
        "XFS",
        says("fs.xfs-io-error", OBSERVE),
    ),
)

_DISK_RULES = (
    rule(
        r"(?:(?:blk_update_request|print_req_error|end_request): )?"
        r"(?:I/O|critical (?:medium|target|nexus|space allocation)|recoverable transport|timeout|protection) "
        rf"error, dev {_DEV},? ",
        ", dev ",
        says("disk.io-error", OBSERVE),
    ),
    rule(
        rf"Buffer I/O error on dev(?:ice)? {_DEV},? logical block",
        "Buffer I/O error",
        says("disk.io-error", OBSERVE),
    ),
    rule(
        rf"sd \S{{1,32}}: \[{_DEV}\] .{{0,40}}Sense Key : (?:Medium|Hardware) Error",
        "Sense Key",
        says("disk.medium-error", OBSERVE),
    ),
    rule(
        r"(?P<device>ata\d{1,3}(?:\.\d{1,3})?): (?:exception Emask|failed command: |SError:)",
        ("Emask", "failed command: ", "SError"),
        says("disk.ata-error", OBSERVE),
    ),
    rule(
        r"nvme (?P<device>nvme\d{1,4}): controller is down; will reset",
        "vme",
        says("disk.nvme-down", REBOOT, family="disk"),
    ),
    rule(
        r"nvme (?P<device>nvme\d{1,4}): (?:Device not ready|frozen state error detected)",
        "vme",
        says("disk.nvme-down", REBOOT, family="disk"),
    ),
    rule(
        r"nvme (?P<device>nvme\d{1,4}): I/O (?:tag )?\d{1,6} .{0,80}?\btimeout,",
        "vme",
        says("disk.nvme-timeout", OBSERVE),
    ),
    rule(
        r"nvme (?P<device>nvme\d{1,4}): (?:Disabling device after reset failure|Removing after probe failure)",
        "vme",
        says("disk.nvme-disabled", NODE_HW, family="disk"),
    ),
    rule(
        r"block (?P<device>nvme\S{1,16}): no available path - failing I/O",
        "vme",
        says("disk.nvme-no-path", NODE_DRAIN),
    ),
    rule(
        r"md/raid\S{0,16}: Disk failure on (?P<device>[\w-]{1,32}) ?"
        r"(?P<outcome>detected, failing array|, disabling device)",
        "Disk failure on",
        _raid,
    ),
    rule(
        r"md/raid\w{0,3}:(?P<device>[\w-]{1,32}): (?:not enough operational|Cannot continue operation)",
        "md/raid",
        says("disk.raid-failed", NODE_HW),
    ),
    rule(
        r"(?:.{1,64}?: )?attempt to access beyond end of device",
        "beyond end of device",
        says("disk.beyond-end", OBSERVE),
    ),
    rule(
        r".{0,200}\bNo space left on device\s*\Z",
        "No space left on device",
        says("disk.no-space", OBSERVE),
        writer=Writer.TOOL,
    ),
)

_NETWORK_RULES = (
    rule(
        r"nfs: server (?P<device>\S{1,255}) (?P<state>not responding|OK)\b",
        "fs: server",
        _nfs,
    ),
    rule(
        r"(?:NFS: )?nfs4_reclaim_open_state: (?:\S{1,64}: )?Lock reclaim failed",
        "Lock reclaim failed",
        says("storage.nfs-lock-reclaim", OBSERVE),
    ),
)

RULES = _FS_RULES + _DISK_RULES + _NETWORK_RULES
