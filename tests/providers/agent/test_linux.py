"""What is asked of a Linux host, and which answers are believed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sickbay.providers.agent import commands
from sickbay.providers.agent.host import HostError
from sickbay.providers.agent.linux import LinuxHost

UUID = "GPU-11111111-2222-3333-4444-555555555555"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands in front of the path; each call is appended to `calls`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return folder


def tool(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "{name} $*" >> "$CALLS"\n{script}\n')
    path.chmod(0o755)


def calls(tools: Path) -> list[str]:
    path = tools.parent / "calls"
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc with one GPU, which a job, its shell and nvidia-persistenced look at."""
    made = tmp_path / "proc"
    (made / "sys/kernel/random").mkdir(parents=True)
    (made / "sys/kernel/random/boot_id").write_text("b00t\n")
    gpu = made / "driver/nvidia/gpus/0000:3b:00.0"
    gpu.mkdir(parents=True)
    (gpu / "information").write_text(f"Model: \t\t NVIDIA H100\nGPU UUID: \t {UUID}\nDevice Minor: \t 5\n")
    for pid, comm, target in (
        ("77", "python3", "/dev/nvidia5"),
        ("78", "sh", "/dev/null"),
        ("79", "python3", "/dev/nvidia50"),
        ("80", "nvidia-persiste", "/dev/nvidia5"),
    ):
        (made / pid / "fd").mkdir(parents=True)
        (made / pid / "comm").write_text(f"{comm}\n")
        (made / pid / "fd" / "3").symlink_to(target)
    return made


SYSTEMCTL = """
case "$1" in
show) printf 'ActiveState=%s\\nMainPID=1\\nInvocationID=%s\\n' "$(cat "$CALLS.state")" "$(cat "$CALLS.id")";;
restart) echo new > "$CALLS.id";;
esac
"""


def systemctl(tools: Path, state: str = "active", script: str = SYSTEMCTL) -> None:
    tool(tools, "systemctl", script)
    (tools.parent / "calls.state").write_text(state)
    (tools.parent / "calls.id").write_text("old\n")


def test_the_boot_id_is_the_kernels(proc: Path) -> None:
    assert LinuxHost(proc=proc).boot_id() == "b00t"


async def test_a_reboot_is_asked_for_and_not_waited_for(real_loop: None, tools: Path) -> None:
    tool(tools, "systemctl", "")
    await LinuxHost().reboot()
    assert calls(tools) == ["systemctl --no-block reboot"]


async def test_a_restart_is_proven_by_a_new_invocation(real_loop: None, tools: Path) -> None:
    systemctl(tools)
    proof = await LinuxHost().restart_service("kubelet")
    assert proof == {"service": "kubelet", "invocationID": "new", "state": "active"}
    assert calls(tools)[1] == "systemctl restart kubelet"


@pytest.mark.parametrize(
    ("state", "script", "message"),
    [
        ("failed", SYSTEMCTL, "kubelet is failed after its restart"),
        ("active", SYSTEMCTL.replace("echo new", "echo old"), "still shows the same invocation"),
        ("active", SYSTEMCTL.replace("echo new >", "echo masked; exit 1; echo"), "exit code 1: masked"),
    ],
)
async def test_a_restart_without_proof_has_failed(
    real_loop: None, tools: Path, state: str, script: str, message: str
) -> None:
    systemctl(tools, state, script)
    with pytest.raises(HostError, match=message):
        await LinuxHost().restart_service("kubelet")


@pytest.mark.parametrize("name", ["sshd", "kubelet;reboot", "--now", "", "../kubelet"])
async def test_only_listed_services_are_restarted(tools: Path, name: str) -> None:
    with pytest.raises(HostError, match="is not on this agent's list"):
        await LinuxHost().restart_service(name)
    assert calls(tools) == []


async def test_holders_are_processes_that_have_this_very_gpu_open(proc: Path) -> None:
    assert await LinuxHost(proc=proc).holders(UUID) == ["pid 77 (python3)"]
    assert await LinuxHost(proc=proc).holders(UUID.upper().replace("GPU", "GPU")) == ["pid 77 (python3)"]


async def test_a_gpu_that_the_driver_does_not_show_has_unknown_holders(proc: Path) -> None:
    with pytest.raises(HostError, match="the driver shows no GPU"):
        await LinuxHost(proc=proc).holders("GPU-99999999-2222-3333-4444-555555555555")


RESET = 'echo "GPU 00000000:3B:00.0 was successfully reset."'
IN_USE = 'echo "GPU 00000000:3B:00.0 is currently in use by another process"; exit 1'


def holds(proc: Path, pid: str, comm: str, cgroup: str) -> None:
    (proc / pid / "fd").mkdir(parents=True)
    (proc / pid / "fd" / "5").symlink_to("/dev/nvidia5")
    (proc / pid / "comm").write_text(f"{comm}\n")
    (proc / pid / "cgroup").write_text(f"0::{cgroup}\n")


@pytest.fixture
def host(proc: Path, tmp_path: Path) -> LinuxHost:
    return LinuxHost(proc=proc, state=tmp_path / "state")


async def test_a_reset_names_one_gpu_and_must_be_confirmed(real_loop: None, tools: Path, host: LinuxHost) -> None:
    tool(tools, "nvidia-smi", RESET)
    assert await host.reset_gpu(UUID) == {UUID: "reset"}
    assert calls(tools) == [f"nvidia-smi --gpu-reset --id={UUID}"]
    tool(tools, "nvidia-smi", 'echo "GPU Reset could not be run"')
    with pytest.raises(HostError, match="GPU Reset could not be run"):
        await host.reset_gpu(UUID)


@pytest.mark.case("P119")
@pytest.mark.parametrize("works", [True, False])
async def test_known_holders_stop_for_a_reset_and_run_again_whatever_becomes_of_it(
    real_loop: None, tools: Path, proc: Path, host: LinuxHost, works: bool
) -> None:
    holds(proc, "90", "nvidia-persiste", "/system.slice/nvidia-persistenced.service")
    holds(proc, "91", "nv-hostengine", "/system.slice/nvidia-dcgm.service")
    container = "ab" * 32
    holds(proc, "92", "nvidia-device-p", f"/kubepods.slice/kubepods-pod1.slice/cri-containerd-{container}.scope")
    for name in ("systemctl", "crictl"):
        tool(tools, name, "")
    tool(tools, "nvidia-smi", RESET if works else IN_USE)
    if works:
        proof = await host.reset_gpu(UUID)
        assert proof == {UUID: "reset", "startedAgain": "nvidia-dcgm.service,nvidia-persistenced.service"}
    else:
        with pytest.raises(HostError, match=r"in use by another process; it is open in pid 77 \(python3\), pid 80"):
            await host.reset_gpu(UUID)
    assert calls(tools) == [
        "systemctl stop nvidia-dcgm.service",
        "systemctl stop nvidia-persistenced.service",
        f"crictl stop --timeout=10 {container}",
        f"nvidia-smi --gpu-reset --id={UUID}",
        "systemctl start nvidia-dcgm.service",
        "systemctl start nvidia-persistenced.service",
    ]


@pytest.mark.case("P119")
async def test_who_has_another_gpu_open_is_not_stopped(
    real_loop: None, tools: Path, proc: Path, host: LinuxHost
) -> None:
    holds(proc, "91", "nv-hostengine", "/system.slice/nvidia-dcgm.service")
    (proc / "91" / "fd" / "5").unlink()
    (proc / "91" / "fd" / "5").symlink_to("/dev/nvidia4")
    tool(tools, "nvidia-smi", RESET)
    await host.reset_gpu(UUID)
    assert calls(tools) == [f"nvidia-smi --gpu-reset --id={UUID}"]


@pytest.mark.case("P119")
async def test_who_is_not_known_is_named_by_its_number_and_left_alone(proc: Path, host: LinuxHost) -> None:
    holds(proc, "91", "nv-hostengine", "/system.slice/nvidia-dcgm.service")
    holds(proc, "93", "my-exporter", "/system.slice/my-exporter.service")
    assert await host.holders(UUID) == ["pid 77 (python3)", "pid 93 (my-exporter)"]
    assert "pid 93 (my-exporter)" in await host.gpu_users()


@pytest.mark.case("P119")
async def test_an_agent_that_died_in_a_reset_starts_again_what_it_had_stopped(
    real_loop: None, tools: Path, proc: Path, tmp_path: Path, host: LinuxHost
) -> None:
    holds(proc, "91", "nv-hostengine", "/system.slice/nvidia-dcgm.service")
    record, then = tmp_path / "state" / "stopped.json", tmp_path / "then.json"
    tool(tools, "systemctl", f'[ "$1" = stop ] && cp {record} {then}; true')
    tool(tools, "nvidia-smi", RESET)
    await host.reset_gpu(UUID)
    assert not record.exists()
    then.rename(record)  # as it was on the disk when the service was stopped
    (tools.parent / "calls").unlink()
    for _ in range(2):
        await LinuxHost(proc=proc, state=tmp_path / "state").resume()
    assert calls(tools) == ["systemctl start nvidia-dcgm.service"]


@pytest.mark.case("P119")
async def test_a_service_that_does_not_start_again_is_a_failure_that_names_it(
    real_loop: None, tools: Path, proc: Path, host: LinuxHost
) -> None:
    holds(proc, "91", "nv-hostengine", "/system.slice/nvidia-dcgm.service")
    tool(tools, "systemctl", '[ "$1" = start ] && { echo "Job failed."; exit 1; }; true')
    tool(tools, "nvidia-smi", RESET)
    with pytest.raises(HostError, match=r"not started again: systemctl start nvidia-dcgm\.service: .*Job failed"):
        await host.reset_gpu(UUID)


@pytest.mark.parametrize("device", ["", "0", "0000:3b:00.0", f"{UUID},{UUID}", f"{UUID} --help"])
async def test_what_is_no_uuid_is_not_reset(tools: Path, device: str) -> None:
    with pytest.raises(HostError, match="is no GPU UUID"):
        await LinuxHost().reset_gpu(device)
    assert calls(tools) == []


async def test_the_device_plug_in_is_restarted_by_stopping_its_containers(real_loop: None, tools: Path) -> None:
    tool(tools, "crictl", '[ "$1" = ps ] && echo 0123456789abcdef; true')
    assert await LinuxHost().restart_device_plugin() == {"containers": "0123456789abc"}
    assert calls(tools)[1] == "crictl stop --timeout=30 0123456789abcdef"
    tool(tools, "crictl", "")
    with pytest.raises(HostError, match="no container named nvidia-device-plugin"):
        await LinuxHost().restart_device_plugin()


# --- commands


async def test_a_command_in_a_container_runs_in_the_hosts_namespaces(real_loop: None, tools: Path) -> None:
    tool(tools, "nsenter", 'shift 8; exec "$@"')
    tool(tools, "systemctl", "")
    await LinuxHost(in_container=True).reboot()
    assert calls(tools)[0] == "nsenter --target 1 --mount --uts --ipc --net --pid -- systemctl --no-block reboot"


async def test_a_command_that_does_not_end_is_killed_and_named(real_loop: None) -> None:
    with pytest.raises(HostError, match=r"sleep 1000: no end after 0\.2 s"):
        await commands.run(["sleep", "1000"], 0.2)


async def test_a_command_that_is_missing_is_named(real_loop: None) -> None:
    with pytest.raises(HostError, match="no-such-tool: No such file"):
        await commands.run(["no-such-tool"])


async def test_long_output_is_cut_to_its_end(real_loop: None) -> None:
    text = await commands.run(["sh", "-c", "seq 1 100000"])
    assert len(text) == commands.OUTPUT
    assert text.endswith("100000\n")
