"""Injections into machines: kernel, driver, services, power."""

from __future__ import annotations

from typing import Any

from sickbay.detect.nvml_child import FABRIC_STATES
from sickbay.sim.agent import RECOVERY_ACTIONS
from sickbay.sim.cloud import ScriptLine
from sickbay.sim.machine import Diagnostic, GpuState
from sickbay.sim.scenario.backend import read_script_line
from sickbay.sim.scenario.document import Reader, read_each
from sickbay.sim.scenario.injections.registry import Act, injection
from sickbay.sim.world import World

_GPU = {
    "recoveryAction": "recovery_action",
    "rowRemapPending": "row_remap_pending",
    "rowRemapFailure": "row_remap_failure",
    "eccVolatileUncorrectable": "ecc_volatile_uncorrectable",
    "sramThresholdExceeded": "sram_threshold_exceeded",
    "pcieWidth": "pcie_width",
    "nvlinkDown": "nvlink_down",
    "fabricState": "fabric_state",
    "temperatureMargin": "temperature_margin",
    "hang": "hang",
    "lost": "lost",
}
_ON_OFF = ("on", "off")


@injection("kmsg")
def kmsg(args: Reader) -> Act:
    nodes = args.names("node")
    if args.has("line") == args.has("lines"):
        raise args.error("line", "give either line or lines")
    lines = args.texts("lines") if args.has("lines") else (args.text("line"),)

    def act(world: World) -> None:
        for node in nodes:
            for line in lines:
                world.machine(node).print_kernel(line)

    return act


@injection("nvml")
def nvml(args: Reader) -> Act:
    nodes, gpu = args.names("node"), args.integer("gpu")
    settings = args.nested("set")
    if settings is None:
        raise args.error("set", "is missing")
    changes = {field: _gpu_value(settings, key, field) for key, field in _GPU.items() if settings.has(key)}
    settings.done()

    def act(world: World) -> None:
        for node in nodes:
            world.machine(node).set_gpu(gpu, **changes)

    return act


def _gpu_value(settings: Reader, key: str, field: str) -> Any:
    if field == "recovery_action":
        return _recovery_action(settings)
    if field == "fabric_state":
        return _fabric_state(settings)
    usual = getattr(GpuState(), field)
    if isinstance(usual, bool):
        return settings.boolean(key, usual)
    if isinstance(usual, int):
        value = settings.raw(key)
        # `nvlinkDown: true` says that a link is down without saying how many.
        return int(value) if isinstance(value, bool) else settings.integer(key, least=-100)
    return settings.text(key)


def _fabric_state(settings: Reader) -> str:
    """NVML's name in any spelling: InProgress, "In Progress", IN_PROGRESS."""
    value = settings.text("fabricState")
    word = "".join(letter for letter in value.lower() if letter.isalnum())
    found = next((state for state in FABRIC_STATES.values() if state.lower() == word), None)
    if found is None:
        raise settings.error("fabricState", f"must be one of {', '.join(FABRIC_STATES.values())}, not {value!r}")
    return found


def _recovery_action(settings: Reader) -> str:
    """By NVML's number, or by its name in any spelling: None, GPU_RESET, nodeReboot, DrainAndReset."""
    value = settings.raw("recoveryAction", "None")
    word = "".join(letter for letter in str(value).lower() if letter.isalnum())
    if not word.isdigit() and word not in RECOVERY_ACTIONS:
        known = ", ".join(RECOVERY_ACTIONS)
        raise settings.error("recoveryAction", f"must be NVML's number or one of {known}, not {value!r}")
    return str(value)


@injection("allocatable")
def allocatable(args: Reader) -> Act:
    nodes, resource, value = args.names("node"), args.text("resource"), args.text("value")

    def act(world: World) -> None:
        for node in nodes:
            world.machine(node).set_allocatable(resource, value)

    return act


@injection("diagnostics")
def diagnostics(args: Reader) -> Act:
    nodes, level = args.names("node"), args.integer("level", least=1)
    result, message = args.choice("result", ("pass", "fail", "error", "hang")), args.text("message", "")

    def act(world: World) -> None:
        for node in nodes:
            world.machine(node).diagnostics[level] = Diagnostic(result, message)

    return act


@injection("service")
def service(args: Reader) -> Act:
    nodes, name = args.names("node"), args.text("name")
    state = args.choice("state", ("active", "inactive", "hung"))

    def act(world: World) -> None:
        for node in nodes:
            world.machine(node).set_service(name, state)

    return act


@injection("heartbeat")
def heartbeat(args: Reader) -> Act:
    nodes, state = args.names("node"), args.choice("state", ("stop", "resume"))

    def act(world: World) -> None:
        for node in nodes:
            world.machine(node).set_heartbeat(state == "resume")

    return act


@injection("power")
def power(args: Reader) -> Act:
    nodes, state = args.names("node"), args.choice("state", _ON_OFF)

    def act(world: World) -> None:
        for node in nodes:
            machine = world.machine(node)
            machine.power_on() if state == "on" else machine.power_off()

    return act


@injection("reboot")
def reboot(args: Reader) -> Act:
    nodes = args.names("node")

    def act(world: World) -> None:
        for node in nodes:
            world.machine(node).reboot()

    return act


@injection("provider")
def provider(args: Reader) -> Act:
    if args.has("pool") == args.has("node"):
        raise args.error("pool", "give either pool or node")
    names = args.names("pool") if args.has("pool") else args.names("node")
    is_pool = args.has("pool")
    args.need("script")
    script = read_each(args, "script", read_script_line)

    def act(world: World) -> None:
        for name in names:
            fresh = [ScriptLine(line.call, line.answer, line.message, line.times) for line in script]
            world.set_script(name, fresh, pool=is_pool)

    return act
