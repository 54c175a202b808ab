"""A node pool's `management` as a RepairPool, and as the rule of managed repair where it binds no policy.

Managed repair (the pool's own switch, without an AutoRepairPolicy): a component is restarted; a node with a hardware
fault is cordoned, drained within 30 minutes, restarted or repaired, and uncordoned. One failed repair stops the pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sickbay.api import names, objectnames
from sickbay.api.actions import ACTIONS
from sickbay.api.quantity import percent
from sickbay.decide.actionable import wants_repair
from sickbay.decide.catalogue import Catalogue
from sickbay.decide.imports.ack_rule import Policy
from sickbay.decide.imports.told import Ledger, RefusedError, Setting, contradiction

NODEPOOL_LABEL = "alibabacloud.com/nodepool-id"
"""Label by which the nodes of an ACK node pool are told apart."""
COMPONENTS = ("KubeletNotReady", "RuntimeOffline", "NTPProblem", "SystemdOffline", "ReadonlyFilesystem")
HARDWARE = (
    "NvidiaXID74Error", "NvidiaXID79Error", "NvidiaRemappingRowsFailed", "NvidiaDeviceLost", "NvidiaInfoRomCorrupted",
    "NvidiaPowerCableErr", "NvidiaXID44Error", "NvidiaXID48Error", "NvidiaXID61Error", "NvidiaXID62Error",
    "NvidiaXID69Error", "NvidiaXID95Error", "NvidiaXID119Error", "NvidiaXID120Error", "NvidiaXID140Error",
    "NvidiaPendingRetiredPages", "NvidiaRemappingRowsRequireReset",
)  # fmt: skip
"""Node conditions that managed repair acts on (ACK documentation, "Enable auto repair for nodes")."""
POLICY_KEYS = (
    "restart_node", "approval_required", "auto_repair_policy_id", "max_parallel_repairing_nodes",
    "max_unhealthy_nodes_threshold",
)  # fmt: skip
SWITCHES = ("auto_fault_diagnosis", "auto_upgrade", "auto_vul_fix", "drift_enabled")


@dataclass
class NodePool:
    """A node pool as it was read."""

    setting: Setting
    id: str
    name: str
    policy_id: Setting
    asks: Setting
    restarts: Setting
    parallel: Setting
    threshold: Setting
    named_only: bool = False
    """Only a policy names it; its own settings are not among the files."""

    @property
    def approval(self) -> bool:
        return self.asks.truth(False)


def read(setting: Setting, ledger: Ledger) -> NodePool:
    """Raises RefusedError for contradictions, and where the pool cannot be told apart."""
    info, management = setting.get("nodepool_info").mapping(), setting.get("management").mapping()
    ident = info.get("nodepool_id").text() or setting.get("nodepool_id").text()
    if not ident:
        raise RefusedError(
            f"{setting.where}: nodepool_info.nodepool_id: missing; a RepairPool selects its nodes by label "
            f"{NODEPOOL_LABEL}: add nodepool_info: {{nodepool_id: np...}}"
        )
    policy = management.get("auto_repair_policy").mapping()
    ledger.strangers(
        management, ("enable", "auto_repair", "auto_repair_policy", *SWITCHES, "auto_upgrade_policy",
                     "auto_vul_fix_policy", "auto_fault_diagnosis_policy", "upgrade_config"),
    )  # fmt: skip
    ledger.strangers(policy, POLICY_KEYS)
    _switches(management, ledger)
    name = objectnames.dns_label(info.get("name").text() or setting.get("name").text() or ident)
    pool = NodePool(
        setting=setting,
        id=ident,
        name=name,
        policy_id=policy.get("auto_repair_policy_id"),
        asks=policy.get("approval_required"),
        restarts=policy.get("restart_node"),
        parallel=policy.get("max_parallel_repairing_nodes"),
        threshold=policy.get("max_unhealthy_nodes_threshold"),
    )
    _interlock(pool)
    return pool


def _switches(management: Setting, ledger: Ledger) -> None:
    enable, repair = management.get("enable"), management.get("auto_repair")
    if enable.given and not enable.truth(False) and repair.truth(False):
        raise contradiction(enable, repair, "without management nothing is repaired; change one of them")
    for off in (enable, repair):
        if off.given and not off.truth(True):
            ledger.note(off, "nothing is repaired there now; the pool starts in Observe, as every imported one")
    for key in (*SWITCHES, "upgrade_config"):
        switch = management.get(key)
        if switch.given and switch.value not in (False, "false", {}):
            ledger.note(switch, "no counterpart: not a setting of node repair")


def _interlock(pool: NodePool) -> None:
    parallel, threshold = limit(pool.parallel), limit(pool.threshold)
    if parallel is None or threshold is None or isinstance(parallel, int) != isinstance(threshold, int):
        return
    if _size(parallel) > _size(threshold):
        raise contradiction(
            pool.parallel, pool.threshold, "repairs alone could open the breaker; raise the threshold or repair fewer"
        )


def _size(limit: int | str) -> int:
    return limit if isinstance(limit, int) else percent(limit)


def limit(setting: Setting) -> int | str | None:
    """ "5" is a count, "10%" a share. None where nothing is given. Raises RefusedError for what is neither."""
    text = setting.text()
    if not text:
        return None
    try:
        if text.isdigit():
            return int(text)
        return f"{percent(text)}%"
    except ValueError:
        raise RefusedError(f"{setting.shown}: neither a count nor a percentage; write one such as 5 or 10%") from None


def manifest(pool: NodePool, rule: str, policy: Policy | None, ledger: Ledger) -> dict[str, Any]:
    """The RepairPool, in Observe."""
    spec: dict[str, Any] = {
        "nodeSelector": {"matchLabels": {NODEPOOL_LABEL: pool.id}},
        "mode": "Observe",
        "rule": rule,
        "freezeOnFailure": True,
    }
    parallel, threshold = limit(pool.parallel), limit(pool.threshold)
    if parallel is not None:
        spec["maxParallelRepairs"] = parallel
    if threshold is not None:
        spec["breaker"] = {"threshold": threshold, "maxNodes": threshold}
    elif parallel is not None:
        spec["breaker"] = _room(parallel, pool, ledger)
    else:
        ledger.note(
            pool.threshold, "not given, and so no breaker in ACK; here the defaults hold: 20%, at most 10 nodes"
        )
    if parallel is not None and threshold is not None and isinstance(parallel, int) != isinstance(threshold, int):
        ledger.note(pool.parallel, f"beside a threshold of {threshold}: units differ, condition LimitsFit judges them")
    if policy is not None and policy.isolates:
        spec["deviceIsolation"] = {"faults": policy.isolates}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "RepairPool",
        "metadata": {"name": pool.name},
        "spec": spec,
    }


def _room(parallel: int | str, pool: NodePool, ledger: Ledger) -> dict[str, Any]:
    """A breaker at its defaults, or just wide enough for the repairs that may run at once."""
    ledger.note(pool.threshold, "not given, and so no breaker in ACK; here it opens above 20% or what may be repaired")
    if isinstance(parallel, int):
        return {"maxNodes": max(10, parallel)}
    return {"threshold": f"{max(20, percent(parallel))}%"}


def managed_rule(pool: NodePool, catalogue: Catalogue, ledger: Ledger) -> dict[str, Any]:
    """The rule of managed repair for a pool that binds no policy."""
    ask = {"approval": {"by": "People"}} if pool.approval else {}
    drain = {"step": "Drain", "timeout": "30m", "onTimeout": "Continue", **ask}
    loop = [{"step": "Quarantine"}, drain, {"step": "Repair"}, {"step": "Unquarantine"}]
    faults = _faults(pool, catalogue, ledger)
    components = [name for name in faults if not _disturbs(name, catalogue)]
    _about_managed(pool, ledger)
    return {
        "apiVersion": names.API_VERSION,
        "kind": "RepairRule",
        "metadata": {"name": objectnames.dns_label(f"{pool.name}-managed")},
        "spec": {
            "approvalPrefix": "ack",
            "rules": [
                {"name": "components", "faults": {"names": components}, "procedure": [{"step": "Repair", **ask}]},
                {
                    "name": "machine",
                    "faults": {"names": [name for name in faults if name not in components]},
                    "procedure": loop,
                },
            ],
        },
    }


def _about_managed(pool: NodePool, ledger: Ledger) -> None:
    restarts = "ACK restarts the machine" if pool.restarts.truth(True) else "ACK restarts no machine"
    ledger.note(
        pool.restarts,
        f"{restarts} when a component cannot be restarted; here a reboot follows only behind a gate by People",
    )
    where = Setting(pool.setting.file, "management.auto_repair", None)
    ledger.note(where, "managed repair goes on after a drain that failed, and so does the rule: onTimeout Continue")
    ledger.note(where, "which remedy a fault gets is the catalogue's to say, not ACK's: sickbay catalogue FAULT")


def _faults(pool: NodePool, catalogue: Catalogue, ledger: Ledger) -> list[str]:
    """The fault types that read the conditions of managed repair, those first that ask for something."""
    found: list[str] = []
    for kind in (*COMPONENTS, *HARDWARE):
        treated = [name for name, _ in catalogue.by_condition.get(kind, ()) if wants_repair(catalogue.types[name])]
        found += [name for name in treated if name not in found]
        if not treated:
            where = Setting(pool.setting.file, "management.auto_repair", None)
            ledger.note(where, f"ACK repairs on {kind}; the catalogue only records it, and so nothing is done")
    return found


def _disturbs(name: str, catalogue: Catalogue) -> bool:
    """Workloads on the node, or on one of its cards, do not survive its first remedy."""
    first = next(iter(catalogue.types[name].spec.remedy or ()), None)
    return first is None or ACTIONS[first.action].disruptive
