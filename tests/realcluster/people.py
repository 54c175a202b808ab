"""What people do, by kubectl, under their own names."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from sickbay.api import names
from tests.support.controlplane import ControlPlane

PREFIX = names.APPROVAL_PREFIXES["sickbay"]


class Person:
    """One of the static users `alice`, `dev` and `admin`."""

    def __init__(self, plane: ControlPlane, user: str) -> None:
        self._plane = plane
        self.user = user

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints. Raises AssertionError with its complaint when it fails."""
        done = await asyncio.to_thread(self._plane.kubectl, *arguments, user=self.user, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    async def refused(self, *arguments: str) -> str:
        """What kubectl complains when the server refuses."""
        done = await asyncio.to_thread(self._plane.kubectl, *arguments, user=self.user)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)} was not refused"
        return done.stderr

    async def apply(self, *objects: dict[str, Any]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        await self.kubectl("apply", "-f", "-", stdin=json.dumps(listed))

    async def answer(self, node: str, step: str, word: str) -> None:
        await self.kubectl("label", "node", node, f"{names.approval_label(PREFIX, step)}={word}", "--overwrite")

    async def cordon(self, node: str) -> None:
        await self.kubectl("cordon", node)

    async def uncordon(self, node: str) -> None:
        await self.kubectl("uncordon", node)
