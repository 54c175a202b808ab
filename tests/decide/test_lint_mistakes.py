"""Mistakes that owners of rules, pools and fault types make, and what `sickbay check` says of each."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from sickbay.api import entries
from sickbay.decide.lint import Finding, lint

NOW = datetime(2027, 3, 1, 8, tzinfo=UTC)
HEAD = "apiVersion: sickbay.dev/v1alpha1\nkind: {}\nmetadata: {{name: x}}\nspec:\n"
Q, R, U = "{step: Quarantine}", "{step: Repair}", "{step: Unquarantine}"


def rule(*steps: str, faults: str = "{}", more: str = "") -> str:
    procedure = "".join(f"    - {step}\n" for step in steps)
    return f"{HEAD.format('RepairRule')}{more}  rules:\n  - name: a\n    faults: {faults}\n    procedure:\n{procedure}"


def pool(*lines: str, selector: str = "{matchLabels: {pool: p}}") -> str:
    return HEAD.format("RepairPool") + f"  nodeSelector: {selector}\n" + "".join(f"  {line}\n" for line in lines)


def fault(*lines: str, scope: str = "Node", clears: str = "condition") -> str:
    head = f"  class: Node\n  severity: Error\n  scope: {scope}\n  clearsBy: {clears}\n"
    return HEAD.format("FaultType") + head + "".join(f"  {line}\n" for line in lines)


def other(kind: str, *lines: str) -> str:
    head = HEAD.format(kind).replace(
        "name: x", "name: x, namespace: default" if kind == "RecoveryPolicy" else "name: x"
    )
    return head + "".join(f"  {line}\n" for line in lines)


SEEN = "match: [{condition: {type: AcmeFan, status: 'True'}}]"
REBOOT = "remedy: [{action: RebootNode}]"
MISTAKES = [
    # What a rule says of time.
    ("no time to answer", rule(Q, "{step: Drain, approval: {timeout: 0s}}", R, U), 10,
     "error", "procedure[1].approval.timeout", "0s: nobody can answer in no time"),
    ("no time to drain", rule(Q, "{step: Drain, timeout: 0s}", R, U), 10,
     "error", "procedure[1].timeout", "0s: no pod can leave in no time"),
    ("no time for a hook", rule("{step: Quarantine, before: [{name: h, call: {endpoint: e}, timeout: 0m}]}", R, U), 9,
     "error", "procedure[0].before[0].timeout", "0m: no hook can be done in no time"),
    ("no time to validate", rule(Q, R, "{step: Validate, ceiling: 0s}", U), 11,
     "error", "procedure[2].ceiling", "0s: no validation can pass in no time"),
    ("no grace", rule(Q, "{step: Drain, options: {grace: {min: 0s, max: 0s}}}", R, U), 10,
     "error", "options.grace.max", "0s: every pod would be killed at once"),
    ("pods not waited for", rule(Q, "{step: Drain, options: {waitFor: [{selector: {matchLabels: {a: b}}, "
         "timeout: 0s}]}}", R, U), 10,
     "warning", "waitFor[0].timeout", "0s: these pods are not waited for"),
    ("waits longer than the drain", rule(Q, "{step: Drain, timeout: 10m, options: {waitFor: [{selector: {matchLabels: "
                                            "{a: b}}, timeout: 1h}]}}", R, U), 10,
     "warning", "waitFor[0].timeout", "1h can never be waited out: Drain's timeout 10m ends it"),
    ("grace beyond the drain", rule(Q, "{step: Drain, timeout: 5m, options: {grace: {max: 20m}}}", R, U), 10,
     "warning", "options.grace.max", "20m can never be used up"),
    ("a reminder after the end", rule(Q, "{step: Drain, approval: {timeout: 10m, reminders: [1h]}}", R, U), 10,
     "warning", "approval.reminders[0]", "1h is never sent: the gate's timeout 10m is over by then"),
    ("a soak beyond the act's ceiling", rule(Q, "{step: Drain}", R, "{step: Validate, soak: 10h}", U,
                                             faults="{names: [gpu.xid.79]}"), 12,
     "error", "procedure[3].soak", "10h is above the ceiling after PowerCycle, 40m: no validation can pass"),
    # Steps that are missing.
    ("never given back", rule(Q, "{step: Drain}", R), 8,
     "warning", "spec.rules[0].procedure", "no Unquarantine: the node stays out until a person uncordons it"),
    ("nothing to give back", rule(R, U, faults="{names: [service.kubelet]}"), 8,
     "warning", "procedure", "Unquarantine without Quarantine takes nothing back"),
    ("drained and filled again", rule("{step: Drain}", R), 8,
     "warning", "procedure", "Drain without Quarantine: new pods come to the node meanwhile"),
    ("a reboot under running pods", rule(R, faults="{names: [gpu.xid.79]}"), 8,
     "warning", "procedure", "RebootNode without Drain waits 30m for an empty node"),
    # Entries that nothing comes to.
    ("asks for nothing", rule(Q, U, faults="{names: [gpu.xid.97]}"), 7,
     "warning", "faults.names", "gpu.xid.97 asks for no repair of the node: the entry does nothing for it"),
    ("keys that exclude each other", rule(Q, U, faults="{names: [gpu.xid.79], severities: [Info]}"), 7,
     "warning", "spec.rules[0].faults", "gpu.xid.79 is left out by the other keys"),
    ("a prefix of nobody", rule("{step: Quarantine, approval: {}}", U, more="  approvalPrefix: acme\n"), 5,
     "warning", "spec.approvalPrefix", "acme is none of sickbay, ack: the controller has to be told"),
    # Pools.
    ("Spread over nothing", pool("domains:", "- {key: sickbay.dev/rack, size: 4, pacing: Spread}"), 7,
     "warning", "spec.domains[0].pacing", "Spread counts in steps of maxUnavailable, which is not given"),
    ("Act without a rule", pool("mode: Act"), 6,
     "warning", "spec.mode", "has no effect: a pool without a rule is an envelope"),
    ("overrides of an envelope", pool("overrides: [{faults: {classes: [GPU]}, mode: Act}]"), 6,
     "warning", "spec.overrides", "has no effect: a pool without a rule is an envelope"),
    ("every fault a storm", pool("rule: r", "storm: {nodes: 1}"), 7,
     "warning", "spec.storm.nodes", "1: every fault is a storm, and none is repaired"),
    ("no storm in no time", pool("rule: r", "storm: {window: 0s}"), 7,
     "warning", "spec.storm.window", "0s: no storm is ever seen"),
    ("a breaker that is open for no time", pool("rule: r", "breaker: {cooldown: 0s}"), 7,
     "warning", "spec.breaker.cooldown", "0s: the breaker is half open as soon as it opens"),
    ("a budget of nothing", pool("rule: r", "budgets: {perNode: {repairs: 0}}"), 7,
     "warning", "spec.budgets.perNode.repairs", "0: no remedy is ever tried, each fault goes to RepairHardware"),
    ("a budget over no time", pool("rule: r", "budgets: {perNode: {window: 0s}}"), 7,
     "warning", "spec.budgets.perNode.window", "0s: no repair falls into it, so the budget never binds"),
    ("a cancel that holds for no time", pool("rule: r", "cancelHold: 0s"), 7,
     "warning", "spec.cancelHold", "0s: a person's cancel is followed by the next repair at once"),
    ("a back-end of nobody", pool("rule: r", "provider: {name: redfsh}"), 7,
     "warning", "spec.provider.name", "redfsh is no back-end of this version"),
    ("no card may be isolated", pool("rule: r", "deviceIsolation: {faults: [gpu.xid.94], maxNodes: 0}"), 7,
     "warning", "spec.deviceIsolation.maxNodes", "0: no card is ever isolated"),
    ("an override behind a wider one", pool("rule: r", "overrides:", "- {faults: {classes: [GPU]}, mode: Act}",
                                            "- {faults: {names: [a], classes: [GPU]}, mode: Observe}"), 9,
     "warning", "spec.overrides[1]", "is never reached: overrides[0] matches all of it"),
    ("an override that changes nothing", pool("rule: r", "mode: Act", "overrides:",
                                              "- {faults: {classes: [GPU]}, mode: Act}"), 9,
     "warning", "spec.overrides[0].mode", "Act is the pool's mode already"),
    ("control plane nodes", pool("rule: r", selector="{matchLabels: {node-role.kubernetes.io/control-plane: ''}}"), 5,
     "warning", "spec.nodeSelector", "are left alone unless allowControlPlane is true"),
    # Fault types.
    ("CEL of a number", fault('match: [{cel: "size(node.metadata.labels)"}]', REBOOT), 9,
     "error", "spec.match[0].cel", "its value is of type int, never bool"),
    ("CEL of a text", fault("match: [{object: {apiVersion: v1, kind: Pod, cel: \"'a'\", node: object.spec.nodeName}}]",
                            REBOOT), 9, "error", "spec.match[0].object.cel", "its value is of type string, never bool"),
    ("a node that is a condition", fault('match: [{object: {apiVersion: v1, kind: Pod, cel: object.a, node: "1 > 0"}}]',
                                         REBOOT), 9,
     "error", "spec.match[0].object.node", "its value is of type bool, never string"),
    ("CEL of no node", fault('match: [{cel: "true"}]', REBOOT), 9,
     "warning", "spec.match[0].cel", "does not look at the node: it says the same of each"),
    ("Events in no time", fault("match: [{event: {reason: R, count: 3, window: 0s}}]", REBOOT), 9,
     "error", "spec.match[0].event.window", "0s: no two events fall into it"),
    ("an act in no time", fault(SEEN, "remedy: [{action: RebootNode, timeout: 0s}]"), 10,
     "error", "spec.remedy[0].timeout", "0s: no act can be done in no time"),
    ("the same rung again", fault(SEEN, "remedy: [{action: RebootNode}, {action: RebootNode}]"), 10,
     "warning", "spec.remedy[1].action", "RebootNode stands in the ladder already; use attempts"),
    ("a ladder that has no end", fault(SEEN, "remedy: [" + ", ".join(
        f"{{action: {a}, attempts: 5}}" for a in ("RestartService", "ResetGPU", "RebootNode", "PowerCycle")) + "]"), 10,
     "warning", "spec.remedy", "20 attempts in all, and one repair makes 16 at most"),
    ("a ladder that falls", fault(SEEN, "remedy: [{action: PowerCycle}, {action: RebootNode}]"), 10,
     "warning", "spec.remedy[1].action", "RebootNode does less than a rung before it"),
    ("a proof that nothing brings", fault(SEEN, "remedy: [{action: RestartService}]", clears="reboot"), 8,
     "warning", "spec.clearsBy", "reboot needs a reboot, and RestartService is none: it is never proven gone"),
    ("a soak beyond the ceiling", fault(SEEN, REBOOT, "validation: {soak: 2h, ceiling: 10m}"), 11,
     "error", "spec.validation.soak", "2h is above the ceiling, 10m: no validation can pass"),
    ("an urgency that is over", fault(SEEN, REBOOT, "urgency: AtJobEnd", "ceiling: 0s"), 12,
     "warning", "spec.ceiling", "0s: the urgency is over at once"),
    ("a ceiling of Now", fault(SEEN, REBOOT, "ceiling: 4h"), 11,
     "warning", "spec.ceiling", "4h has no effect: urgency Now waits for nothing"),
    # The rest.
    ("a hold that is over", other("Hold", "scope: {all: true}", "until: 2020-01-01T00:00:00Z"), 6,
     "warning", "spec.until", "2020-01-01T00:00:00Z is over already: it holds nothing"),
    ("a hold of all and of some", other("Hold", "scope: {all: true, pools: [train]}"), 5,
     "warning", "spec.scope.all", "true holds everything, whatever pools says"),
    ("every job stalls", other("RecoveryPolicy", "jobSelector: {}", "hang: {stall: 0s}"), 6,
     "error", "spec.hang.stall", "0s: every job would count as stalled"),
    ("no time for a checkpoint", other("RecoveryPolicy", "jobSelector: {}", "checkpoint: {window: 0s}"), 6,
     "error", "spec.checkpoint.window", "0s: no checkpoint can be written in no time"),
]  # fmt: skip


def findings(tmp_path: Path, text: str) -> list[Finding]:
    file = tmp_path / "file.yaml"
    file.write_text(text)
    return lint([file], NOW)


@pytest.mark.parametrize(
    ("text", "line", "severity", "field", "says"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES]
)
def test_a_mistake_is_named_with_its_line_and_field(
    tmp_path: Path, text: str, line: int, severity: str, field: str, says: str
) -> None:
    found = findings(tmp_path, text)
    (about,) = (finding for finding in found if says in finding.message)
    assert (about.severity, about.line) == (severity, line), about
    assert field in about.message.partition(": ")[0]


SOUND = [
    rule(Q, "{step: Drain, approval: {timeout: 2h}}", "{step: Repair, action: RebootNode}", U),
    rule("{step: Repair}", faults="{names: [service.kubelet]}"),
    pool("rule: r", "domains:", "- {key: sickbay.dev/rack, size: 4}"),
    pool("rule: r", "overrides:", "- {faults: {names: [gpu.xid.79]}, mode: Observe}",
         "- {faults: {classes: [GPU]}, mode: Act}"),
    fault(SEEN, "remedy: [{action: RestartService}, {action: RebootNode}]", clears="reboot"),
    fault("match: [{cel: node.spec.unschedulable}, {cel: \"node.metadata.labels[?'x'].orValue('') == 'bad'\"}]",
          REBOOT),
    other("Hold", "scope: {pools: [train]}", "until: 2028-01-01T00:00:00Z"),
]  # fmt: skip


@pytest.mark.parametrize("text", SOUND)
def test_what_is_sound_is_not_found_fault_with(tmp_path: Path, text: str) -> None:
    # That the rule is not in the same file has to be said, and is no mistake.
    assert [f for f in findings(tmp_path, text) if "is not in these files" not in f.message] == []


def test_the_built_in_catalogue_has_none_of_these_mistakes(tmp_path: Path) -> None:
    documents = list(entries.builtin()[1].values())
    assert findings(tmp_path, yaml.safe_dump_all(documents)) == []
