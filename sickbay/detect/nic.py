"""Network cards: mlx5, mlx4, bonds, ENA, EFA, and what the network core says of any of them.

A link that is down is a fault only where the port is expected to be up, which a line cannot know; so these lines are
observed, and their "up" twins clear them.
"""

from __future__ import annotations

import re

from sickbay.detect.finding import (
    DUPLICATE,
    HW_REPAIR,
    IGNORE,
    ISOLATE_HW,
    ISOLATE_REBOOT,
    OBSERVE,
    Cure,
    Finding,
    rule,
    says,
)

_MLX5 = r"mlx5_core(?: (?P<device><bdf>))?:? "
_EFA = r"(?:efa (?P<device><bdf>)|infiniband (?:rdmap\w{1,16}|efa_\d{1,3})):\s*.{0,80}?"
_ENA = r"ena (?P<device><bdf>)(?: \S{1,16})?: "


def _port_state(match: re.Match[str], booting: bool) -> Finding:
    state = match["state"].upper()
    if state == "ACTIVE":
        return Finding(None, IGNORE, match["device"], cure=Cure("nic.ib.link-", match["device"] or ""))
    if state == "INIT":
        return Finding("nic.ib.link-init", OBSERVE, match["device"])
    return Finding("nic.ib.link-down", OBSERVE, match["device"])


def _link(match: re.Match[str], booting: bool) -> Finding:
    device = match.groupdict().get("device") or match.groupdict().get("name")
    if match["state"].lower() == "up":
        return Finding(None, IGNORE, device, cure=Cure("nic.link-down", device or ""))
    return Finding("nic.link-down", OBSERVE, device)


def _syndrome(match: re.Match[str], booting: bool) -> Finding:
    if "unrecoverable hardware error" in match["text"]:
        return Finding("nic.mlx5.unrecoverable", ISOLATE_HW, match["device"], family="nic")
    return Finding("nic.mlx5.health-lost", DUPLICATE, match["device"], family="nic", alone=ISOLATE_REBOOT)


_MLX5_RULES = (
    rule(
        rf"{_MLX5}.{{0,120}}timeout\. Will cause a leak of a command resource",
        "mlx5_",
        says("nic.mlx5.cmd-timeout", ISOLATE_REBOOT, family="nic"),
    ),
    rule(
        rf"{_MLX5}.{{0,120}}No done completion",
        "mlx5_",
        says("nic.mlx5.cmd-timeout", DUPLICATE, family="nic", alone=ISOLATE_REBOOT),
    ),
    rule(
        rf"{_MLX5}.{{0,120}}(?:device's health compromised|Fatal error \d{{1,4}} detected|device is in error state"
        r"|Driver is in error state|handling bad device|health recovery (?:flow aborted|failed))",
        "mlx5_",
        says("nic.mlx5.health-lost", ISOLATE_REBOOT, family="nic"),
    ),
    rule(rf"{_MLX5}.{{0,120}}\bsynd 0x[0-9a-f]{{1,4}}: (?P<text>.*)", "mlx5_", _syndrome),
    rule(
        rf"(?:{_MLX5}.{{0,120}})?mlx5_cmd_out_err:\d{{1,6}}.{{0,80}}ACCESS_REG.{{0,40}}failed",
        "ACCESS_REG",
        says("nic.mlx5.access-reg-denied", IGNORE),
    ),
    rule(
        r"mlx5_core\s?(?P<device><bdf>)?\s?:? .{0,120}Detected insufficient power on the PCIe slot",
        "mlx5_",
        says("nic.mlx5.pcie-power", IGNORE),
    ),
    rule(
        rf"(?:{_MLX5}.{{0,120}})?(?:mlx5_port_module_event:\d{{1,6}}:\(pid \d{{1,10}}\): )?Port module event\S{{0,16}} "
        r"module \d{1,3}, .{0,60}High Temperature",
        "Port module",
        says("nic.module.high-temp", OBSERVE),
    ),
    rule(
        rf"(?:{_MLX5}.{{0,120}})?Port module event\S{{0,16}} module \d{{1,3}}, Cable unplugged",
        "Port module",
        says("nic.module.unplugged", OBSERVE),
    ),
    rule(
        rf"(?:{_MLX5}.{{0,120}})?Port module event\S{{0,16}} module \d{{1,3}}, Cable plugged",
        "Port module",
        says(None, IGNORE, cure="nic.module.unplugged"),
    ),
    rule(
        rf"(?:{_MLX5}.{{0,120}})?Port module event\[error\]\S{{0,3}} module \d{{1,3}}, Cable error",
        "Port module",
        says("nic.module.error", OBSERVE),
    ),
    rule(
        r"mlx[45]_(?:core|ib) (?P<device><bdf>):? mlx[45]_\d{1,3}: Port: \d{1,3} "
        r"Link (?P<state>ACTIVE|INIT|DOWN|ARMED)",
        ": Port: ",
        _port_state,
    ),
    rule(
        rf"{_MLX5}.{{0,60}}High temperature on sensors",
        "High temperature on",
        says("nic.mlx5.high-temp", OBSERVE),
    ),
    rule(rf"{_MLX5}.{{0,60}}TX timeout", "mlx5_", says("nic.tx-timeout", OBSERVE)),
    rule(rf"{_MLX5}.{{0,60}}RX timeout on channel", "mlx5_", says("nic.rx-timeout", OBSERVE)),
)

_LINK_RULES = (
    rule(
        r"(?!(?:pcieport|ata\d|nvidia))[\w-]{1,32} (?P<device><bdf>)(?:,? [\w.@-]{1,32})?:? (?:\S{1,32}: )?"
        r"(?:NIC )?Link (?:is )?(?P<state>[Uu]p|[Dd]own)\b",
        ("Link up", "Link down", "Link is Up", "Link is Down", "Link Up", "Link Down", "Link is up", "Link is down"),
        _link,
    ),
    rule(
        r"mlx4_en: (?:[\w.-]{1,32}: )?(?P<name>[\w.-]{1,32}): Link (?P<state>Up|Down)\b",
        ("Link Up", "Link Down"),
        _link,
    ),
    rule(
        r"NETDEV WATCHDOG: (?:CPU: \d{1,5}: )?(?P<device>\S{1,32}) \([\w-]{1,32}\): transmit queue \d{1,5} timed out",
        "NETDEV WATCHDOG",
        says("nic.tx-timeout", OBSERVE),
    ),
    rule(
        r"[\w-]{1,32} (?P<device><bdf>) \S{1,32}: NETDEV WATCHDOG: .{0,40}transmit queue \d{1,5} timed out",
        "NETDEV WATCHDOG",
        says("nic.tx-timeout", OBSERVE),
    ),
    rule(
        r"(?P<device>ib[\w.-]{1,15}): transmit timeout: latency \d{1,9} msecs",
        "transmit timeout: latency",
        says("nic.tx-timeout", OBSERVE),
    ),
    rule(
        r"(?:bonding: )?(?P<device>[\w.-]{1,16}): now running without any active interface",
        "without any active interface",
        says("nic.bond.no-active", HW_REPAIR),
    ),
    rule(
        r"(?P<device>[\w.-]{1,16}): (?:\(slave \S{1,32}\): )?link status definitely down",
        "finitely down",
        says("nic.bond.slave-down", OBSERVE),
    ),
)

_AWS_RULES = (
    rule(
        rf"{_ENA}(?:Keep alive watchdog timeout|The number of lost tx completions is above|Potential MSIX issue"
        r"|Resetting device|ENA device reset)",
        ("Keep alive watchdog", "The number of lost", "Potential MSIX", "Resetting device", "ENA device reset"),
        says("nic.ena.reset", OBSERVE),
    ),
    rule(
        rf"{_ENA}(?:Trigger reset is on|Found a Tx that wasn't completed on time)",
        ("Trigger reset is on", "Found a Tx"),
        says("nic.ena.reset", DUPLICATE, alone=OBSERVE),
    ),
    rule(
        rf"{_ENA}Device reset completed successfully",
        "Device reset completed",
        says(None, IGNORE, cure="nic.ena.reset"),
    ),
    rule(
        rf"{_ENA}(?:Reset indication didn't turn|Device isn't ready|Failed to reset|Reset attempt failed)",
        ("Reset indication", "Device isn't ready", "Failed to reset", "Reset attempt failed"),
        says("nic.ena.reset-failed", ISOLATE_REBOOT, family="nic"),
    ),
    rule(
        rf"{_EFA}(?:Wait for completion \(polling\) timeout|The device didn't send any completion for admin cmd)",
        ("Wait for completion", "The device didn't"),
        says("nic.efa.cmd-timeout", ISOLATE_REBOOT, family="nic"),
    ),
    rule(
        rf"{_EFA}Admin queue is closed",
        "Admin queue is closed",
        says("nic.efa.queue-closed", ISOLATE_REBOOT, family="nic"),
    ),
    rule(
        rf"{_EFA}Failed to (?:process|submit) command",
        ("Failed to process command", "Failed to submit command"),
        says("nic.efa.cmd-failed", OBSERVE),
    ),
    rule(
        rf"{_EFA}(?:Reset indication didn't turn o|Device isn't ready, can't reset)",
        ("Reset indication", "Device isn't ready"),
        says("nic.efa.reset-failed", ISOLATE_REBOOT, family="nic"),
    ),
    rule(
        rf"{_EFA}Device isn't ready, abort com init",
        "Device isn't ready",
        says("nic.efa.not-ready", ISOLATE_REBOOT, family="nic"),
    ),
)

RULES = _MLX5_RULES + _LINK_RULES + _AWS_RULES
