"""What a process asks of things that are no API server: its repair back-ends, and the host it runs on.

Such a call can be struck as a write is (see `wire`): the process dies before it was made, in the middle (it has its
effect, and nobody hears of it), or after the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sickbay.providers.agent.host import Finding, Host, Proof
from sickbay.providers.base import Act, Fences, Observation, Power, Provider, Target
from sickbay.sim.life import Life
from sickbay.sim.wire import CALL, Doom

T = TypeVar("T")


class Calls:
    """The calls of one run of one process. `crash(restart)` ends it."""

    def __init__(self, life: Life, doom: Doom, crash: Callable[[float], None]) -> None:
        self._life, self._doom, self._crash = life, doom, crash

    async def make(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make the call, unless the process dies with it."""
        await self._life.breathe()
        plan = self._doom.due(CALL)
        if plan is not None and plan.phase == "before":
            self._crash(plan.restart)
            await self._life.breathe()
        try:
            answer = await call()
        finally:
            if plan is not None and plan.phase == "lost":
                self._crash(plan.restart)
        if plan is not None and plan.phase == "after":
            asyncio.get_running_loop().call_soon(self._crash, plan.restart)
        await self._life.breathe()
        return answer

    def to_backend(self, backend: Provider) -> Provider:
        return _Backend(backend, self)

    def to_host(self, host: Host) -> Host:
        return _Host(host, self)


class _Backend:
    """`Provider` behind calls that can be struck."""

    def __init__(self, inner: Provider, calls: Calls) -> None:
        self._inner, self._calls = inner, calls

    @property
    def keeps_keys(self) -> bool:
        return self._inner.keeps_keys

    def supports(self, action: str) -> bool:
        return self._inner.supports(action)

    async def submit(self, act: Act) -> None:
        await self._calls.make(lambda: self._inner.submit(act))

    async def observe(self, act: Act) -> Observation:
        return await self._calls.make(lambda: self._inner.observe(act))

    async def power(self, target: Target) -> Power:
        inner = self._inner
        return await inner.power(target) if isinstance(inner, Fences) else Power.UNKNOWN


class _Host:
    """`Host` behind calls that can be struck. Looking at it costs nothing."""

    def __init__(self, inner: Host, calls: Calls) -> None:
        self._inner, self._calls = inner, calls

    def boot_id(self) -> str:
        return self._inner.boot_id()

    async def holders(self, device: str) -> list[str]:
        return await self._inner.holders(device)

    async def gpu_users(self) -> list[str]:
        return await self._inner.gpu_users()

    async def resume(self) -> None:
        await self._inner.resume()

    async def diagnose(self, check: str) -> Finding:
        return await self._calls.make(lambda: self._inner.diagnose(check))

    async def reboot(self) -> None:
        await self._calls.make(self._inner.reboot)

    async def restart_service(self, name: str) -> Proof:
        return await self._calls.make(lambda: self._inner.restart_service(name))

    async def restart_device_plugin(self) -> Proof:
        return await self._calls.make(self._inner.restart_device_plugin)

    async def isolate(self, devices: frozenset[str]) -> None:
        await self._calls.make(lambda: self._inner.isolate(devices))

    async def reset_gpu(self, device: str) -> Proof:
        return await self._calls.make(lambda: self._inner.reset_gpu(device))
