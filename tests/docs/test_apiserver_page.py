"""The page about our API server can be followed: its programs run as they are written, and so do its command lines."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
import yaml

from tests.docs.blocks import ROOT, blocks

BLOCKS = list(blocks(ROOT / "docs" / "apiserver.md"))
SERVING, IN_PROCESS = [block.text for block in BLOCKS if block.kind == "python"]
(LINES,) = [block.text for block in BLOCKS if block.kind == "shell"]


async def started(text: str, folder: Path) -> asyncio.subprocess.Process:
    """A program of the page, saved to a file and run there, as a reader would."""
    (folder / "page.py").write_text(text)
    return await asyncio.create_subprocess_exec(
        sys.executable, "page.py", cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


@pytest.fixture
async def serving(tmp_path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """The page's server, once it has said that it serves."""
    process = await started(SERVING, tmp_path)
    assert process.stdout is not None and process.stderr is not None
    line = (await process.stdout.readline()).decode()
    assert line.startswith("serving on http://127.0.0.1:"), (await process.stderr.read()).decode()
    yield process
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


async def test_the_server_of_the_page_answers_where_its_kubeconfig_says(
    serving: asyncio.subprocess.Process, tmp_path: Path
) -> None:
    config = yaml.safe_load((tmp_path / "sickbay.kubeconfig").read_text())
    async with httpx2.AsyncClient(base_url=config["clusters"][0]["cluster"]["server"], trust_env=False) as client:
        nodes = (await client.get("/api/v1/nodes")).json()["items"]
        pools = (await client.get("/apis/sickbay.dev/v1alpha1/repairpools")).json()
    assert [node["metadata"]["name"] for node in nodes] == ["gpu-1"]
    assert pools["items"] == []


async def test_the_server_of_the_page_ends_without_a_traceback_when_it_is_interrupted(
    serving: asyncio.subprocess.Process,
) -> None:
    serving.send_signal(signal.SIGINT)
    _, err = await serving.communicate()
    assert (serving.returncode, err) == (0, b"")


async def test_the_program_without_a_socket_prints_the_node_it_made(tmp_path: Path) -> None:
    process = await started(IN_PROCESS, tmp_path)
    out, err = await process.communicate()
    assert (process.returncode, out.decode()) == (0, "gpu-1\n"), err.decode()


@pytest.mark.controlplane
async def test_the_command_lines_of_the_page_work_with_the_real_kubectl(
    serving: asyncio.subprocess.Process, control_plane_binaries: Path, tmp_path: Path
) -> None:
    (tmp_path / "sickbay").write_text(f'#!/bin/sh\nexec {sys.executable} -m sickbay "$@"\n')
    (tmp_path / "sickbay").chmod(0o755)
    path = f"{tmp_path}:{control_plane_binaries}:{os.environ.get('PATH', '')}"
    process = await asyncio.create_subprocess_exec(
        "sh", "-ec", LINES, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={"PATH": path, "HOME": str(tmp_path), "NO_PROXY": "127.0.0.1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    said = out.decode()
    assert "gpu-1" in said and "node/gpu-1 labeled" in said and "namespace/team-a created" in said
    assert "gpu-1: nothing is wrong" in said
