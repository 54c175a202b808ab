"""Alibaba Lingjun: states of nodes, and fault reports.

A node has no events but a state, so an event here is a chain of states (repair, reboot, upgrade) of one node. States
are matched as whole names: `ClusterNodeRecovering` (billing) and `RecoveringClusterNode` (repair) differ in the order
of their words only. `FaultConfirmed` is no end.
"""

from __future__ import annotations

from sickbay.api.words import InfraPhase
from sickbay.convert import payload
from sickbay.convert.kinds import EventKind, plain
from sickbay.convert.notice import Notice, moment
from sickbay.convert.vocabulary import Vocabulary

SOURCE = "alibaba-lingjun"

CHAINS = {
    "RepairMachine": {
        "ClusterNodeRepairPendingApproval": InfraPhase.INQUIRING,
        "UnusedNodeRepairPendingApproval": InfraPhase.INQUIRING,
        "ClusterNodeApprovalPendingRenew": InfraPhase.INQUIRING,
        "PreparationForRepairingClusterNode": InfraPhase.EXECUTING,
        "ClusterNodeRepairing": InfraPhase.EXECUTING,
        "ClusterNodeRepairingPendingRenew": InfraPhase.EXECUTING,
        "RecoveringClusterNode": InfraPhase.EXECUTING,
        "UnusedNodeRepairing": InfraPhase.EXECUTING,
        "RecoveringUnusedNode": InfraPhase.EXECUTING,
        "Replacing": InfraPhase.EXECUTING,
    },
    "RebootMachine": {
        "ClusterNodeRebootPendingApproval": InfraPhase.INQUIRING,
        "UnusedNodeRebootPendingApproval": InfraPhase.INQUIRING,
        "ClusterNodeRebooting": InfraPhase.EXECUTING,
        "UnusedNodeRebooting": InfraPhase.EXECUTING,
    },
    "UpgradeMachine": {
        "ClusterNodeUpgradePendingApproval": InfraPhase.INQUIRING,
        "UnusedNodeUpgradePendingApproval": InfraPhase.INQUIRING,
        "ClusterNodeUpgrading": InfraPhase.EXECUTING,
        "UnusedNodeUpgrading": InfraPhase.EXECUTING,
    },
}
_STATES = {plain(state): phase for chain in CHAINS.values() for state, phase in chain.items()}
_REPORTS = {
    "Processing": InfraPhase.EXECUTING,
    "DiagnosisTerminating": InfraPhase.EXECUTING,
    "FaultConfirmed": InfraPhase.EXECUTING,
    "DiagnosisTerminated": InfraPhase.COMPLETED,
    "DiagnosisPassed": InfraPhase.COMPLETED,
    "FaultFinish": InfraPhase.COMPLETED,
}
USABLE = ("Using", "Unused")

VOCABULARY = Vocabulary(
    SOURCE,
    phases={
        **_STATES,
        **{plain(status): phase for status, phase in _REPORTS.items()},
        **{plain(state): InfraPhase.COMPLETED for state in USABLE},
        "executionrunning": InfraPhase.EXECUTING,
        "executionsuccess": InfraPhase.COMPLETED,
        "executionfail": InfraPhase.FAILED,
    },
    kinds={
        "repairmachine": EventKind.HARDWARE,
        "faultreport": EventKind.HARDWARE,
        "rebootmachine": EventKind.REBOOT,
        "upgrademachine": EventKind.REBOOT,
    },
    says_the_end=True,
)


def nodes(body: bytes) -> list[Notice]:
    """A page of ListClusterNodes: each node in one of the chains, and for each usable node the end of all three.

    Raises Undecodable; an answer without RequestId is no empty cluster.
    """
    answer = payload.mapping(payload.decode(body), "the answer")
    payload.needed(answer, "RequestId", "the answer")
    found = []
    for where, item in payload.entries(answer.get("Nodes"), "Nodes"):
        node, state = payload.needed(item, "NodeId", where), payload.text(item.get("OperatingState"))
        chains = CHAINS if state in USABLE else [chain for chain, states in CHAINS.items() if state in states]
        found += [
            Notice(source=SOURCE, id=f"{node}/{chain}", type=chain, phase=state, resource=node) for chain in chains
        ]
    return found


def reports(body: bytes) -> list[Notice]:
    """A page of ListFaultReports. Raises Undecodable."""
    answer = payload.mapping(payload.decode(body), "the answer")
    payload.needed(answer, "RequestId", "the answer")
    return [
        Notice(
            source=SOURCE,
            id=payload.needed(item, "ReportId", where),
            type="FaultReport",
            phase=payload.text(item.get("Status")),
            resource=payload.text(item.get("NodeId")),
            published=moment(item.get("CreateTime")),
        )
        for where, item in payload.entries(answer.get("Reports"), "Reports")
    ]
