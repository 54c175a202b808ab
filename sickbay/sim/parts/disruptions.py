"""How fast the node lifecycle controller may give up nodes: few at a time, and none while the fault may be its own.

After nodelifecycle's handleDisruption. A NoExecute taint ends the pods of a node, so one zone gets one in 10 seconds.
Where more than half of a zone (0.55, and more than two nodes) is not ready, it gets none, or one in 100 s if the zone
is large. When no node of the cluster is ready, none gets any, and those that had one lose it: then it is more likely
that the controller cannot see.
"""

from __future__ import annotations

from sickbay.apiserver.errors import Obj
from sickbay.sim.hand import condition_of, labels_of

SECONDS_BETWEEN = 10.0
"""--node-eviction-rate is 0.1 a second."""
SECONDS_BETWEEN_WHEN_PARTIAL = 100.0
"""--secondary-node-eviction-rate is 0.01 a second."""
UNHEALTHY_SHARE = 0.55
"""--unhealthy-zone-threshold."""
LARGE_ZONE = 50
"""--large-cluster-size-threshold: in smaller zones nobody is given up while the disruption is partial."""


def zone_of(node: Obj) -> str:
    labels = labels_of(node)
    return f"{labels.get('topology.kubernetes.io/region', '')}/{labels.get('topology.kubernetes.io/zone', '')}"


def is_ready(node: Obj) -> bool:
    return bool(condition_of(node, "Ready").get("status") == "True")


class Disruptions:
    """Counts nodes by zone, and says when one more may be given up."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[str, bool]] = {}
        self._zones: dict[str, dict[bool, int]] = {}
        self._next: dict[str, float] = {}

    def note(self, name: str, node: Obj | None) -> bool:
        """Take a node as it is now (None: gone). True when that changes what others may expect."""
        old, new = self._nodes.get(name), None if node is None else (zone_of(node), is_ready(node))
        if old == new:
            return False
        if old is not None:
            self._zones[old[0]][old[1]] -= 1
            del self._nodes[name]
        if new is not None:
            self._nodes[name] = new
            self._zones.setdefault(new[0], {True: 0, False: 0})[new[1]] += 1
        return True

    def unready(self) -> list[str]:
        return [name for name, (_, ready) in self._nodes.items() if not ready]

    @property
    def total(self) -> bool:
        """No node at all is ready."""
        return not any(zone[True] for zone in self._zones.values())

    def wait(self, name: str, now: float) -> float | None:
        """Seconds until this node may be given up; None = not as things stand."""
        zone = self._nodes[name][0]
        if self.total or self._between(zone) is None:
            return None
        return max(0.0, self._next.get(zone, 0.0) - now)

    def given_up(self, name: str, now: float) -> None:
        """It has its taint: the next one of the zone waits."""
        zone = self._nodes[name][0]
        self._next[zone] = now + (self._between(zone) or 0.0)

    def _between(self, zone: str) -> float | None:
        ready, not_ready = self._zones[zone][True], self._zones[zone][False]
        size = ready + not_ready
        if not ready or not_ready <= 2 or not_ready / size < UNHEALTHY_SHARE:
            return SECONDS_BETWEEN
        return SECONDS_BETWEEN_WHEN_PARTIAL if size > LARGE_ZONE else None
