"""What a provider's event means for a node: one kind per sort of event, whatever the cloud calls it.

Each kind is a fault type of the catalogue (`infra.<kind>`) and with that a Node condition of its own, so that a freeze
of seconds is never taken for the end of the machine. A planned act and a failure are kinds apart although both end in
a reboot: the one can wait for the job's end, the other is happening.
"""

from __future__ import annotations

import re
from enum import StrEnum

from sickbay.api.names import condition_type


class EventKind(StrEnum):
    """The last part of the fault type's name."""

    FREEZE = "freeze"
    """A pause of seconds, or jitter: nothing is lost."""
    REBOOT = "reboot"
    """A planned reboot on the same or another host; the instance and its disks stay."""
    REDEPLOY = "redeploy"
    """A planned move to another host: local disks are lost."""
    STOP = "stop"
    """A planned stop; the instance can be started again elsewhere."""
    RETIREMENT = "retirement"
    """The machine under the instance is given up at a date."""
    TERMINATE = "terminate"
    """The instance is about to be deleted."""
    PREEMPT = "preempt"
    """The instance is taken back at very short notice."""
    DISK_REPAIR = "disk-repair"
    """A local disk is isolated or swapped."""
    HARDWARE = "hardware"
    """The provider found the hardware broken, or asks to repair it."""
    FAILURE_REBOOT = "failure-reboot"
    """The host or the guest crashed and is being booted."""
    FAILURE_REDEPLOY = "failure-redeploy"
    """The host is lost; the instance has to move."""
    FAILURE_STOP = "failure-stop"
    """The instance was stopped by a failure."""
    IMPAIRED = "impaired"
    """Something is wrong with the instance; nothing is announced to be done about it."""
    ACCOUNT = "account"
    """Billing, expiry or security: no matter of hardware, and no condition."""

    @property
    def condition(self) -> str:
        """The Node condition; empty where there is none."""
        return "" if self is EventKind.ACCOUNT else condition_type(f"infra.{self.value}")


CONDITIONS = frozenset(kind.condition for kind in EventKind if kind.condition)

HARMLESS = frozenset({EventKind.FREEZE, EventKind.IMPAIRED})
"""Kinds that leave nothing behind when the provider no longer lists them."""


def plain(word: str) -> str:
    """A provider's word without case and punctuation: `RebootAndReInit`, `reboot_and_reinit` are the same."""
    return re.sub(r"[^a-z0-9]", "", word.lower())
