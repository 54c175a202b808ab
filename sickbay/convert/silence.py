"""Which agents have fallen silent, judged by what we saw ourselves. No I/O.

An agent gives a sign of life whenever its Lease changes, or when it writes what only it can know. The times in a Lease
come from the agent's clock and are never compared with ours: only the moment at which we saw a change counts, on our
monotonic clock. Time in which we could not see the Leases is not silence of theirs, so after a gap the wait of every
agent begins anew: neither our own start nor a broken path to the API server makes an agent look dead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SILENT = 180.0
"""Seconds without a sign of life after which nobody knows what is wrong with the node (the contract's 3 minutes)."""
MANY = 5
"""Agents that fall silent together are told of once, as a suspicion against detector or path, not one by one."""
TOGETHER = 60.0
"""Seconds within which is together: an agent renews every 30 s, so those of one instant fall silent within that."""


@dataclass(slots=True)
class _Sign:
    mark: str
    since: float


class Silence:
    """See the module. All times are monotonic seconds of one clock."""

    def __init__(self, patience: float = SILENT) -> None:
        self._patience = patience
        self._signs: dict[str, _Sign] = {}

    def see(self, agent: str, mark: str, now: float) -> None:
        """Note a look at an agent; a mark other than the last one is a sign of life."""
        known = self._signs.get(agent)
        if known is None or known.mark != mark:
            self._signs[agent] = _Sign(mark, now)

    def expect(self, agent: str, now: float) -> None:
        """There should be an agent, though it has given no sign yet."""
        self._signs.setdefault(agent, _Sign("", now))

    def forget(self, agent: str) -> None:
        """There is no such node any more."""
        self._signs.pop(agent, None)

    def after_gap(self, now: float) -> None:
        """We see again after a time in which we could not."""
        for sign in self._signs.values():
            sign.since = now

    def is_silent(self, agent: str, now: float) -> bool:
        """False for an agent that nobody knows."""
        sign = self._signs.get(agent)
        return sign is not None and now - sign.since >= self._patience

    def silent(self, now: float) -> list[str]:
        return sorted(agent for agent in self._signs if self.is_silent(agent, now))


class Gatherer:
    """Collects who fell silent, until it is known whether that was one agent or many together."""

    def __init__(self) -> None:
        self._waiting: dict[str, float] = {}
        self._told_of: set[str] = set()

    def take(self, silent: Iterable[str], now: float) -> list[list[str]]:
        """The groups to tell of now. An agent is told of once for each silence."""
        silent = set(silent)
        self._told_of &= silent
        self._waiting = {name: at for name, at in self._waiting.items() if name in silent}
        for name in silent - self._told_of - self._waiting.keys():
            self._waiting[name] = now
        if not self._waiting or now - min(self._waiting.values()) < TOGETHER:
            return []
        ripe, self._waiting = sorted(self._waiting), {}
        self._told_of.update(ripe)
        return [ripe] if len(ripe) >= MANY else [[name] for name in ripe]
