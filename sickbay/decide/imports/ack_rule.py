"""An AutoRepairPolicy as a RepairRule.

    rules[]                               entries, in their order
    rules[].incidents[]                   the entry's faults: by condition where one is named, else by a label
    rules[].repair_procedure[]            steps; Drain brings its Quarantine along, because ACK cordons before it drains
    rules[].repair_procedure[].intervention   a gate by People

Only two step names and one incident name are public, so all others are either named on the command line (`Words`) or
left out and told. What an incident stands for is never guessed: an entry that matches too much would act on nodes that
ACK leaves alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sickbay.api import names, objectnames
from sickbay.api.words import Step
from sickbay.decide.catalogue import Catalogue
from sickbay.decide.imports.told import Ledger, RefusedError, Setting, contradiction

ORDER = tuple(str(step) for step in Step)
INCIDENT_LABEL = "ack-incident"
"""Label of a FaultType that stands for an incident of ACK; its value is the incident's name."""
ISOLATE = "QuarantineGPU"
KNOWN_STEPS = {"Drain": ("Drain", "")}
POLICY_KEYS = (
    "name", "id", "policy_id", "rules", "resource_type", "resource_sub_type", "resource_ids", "request_id",
    "cluster_id", "create_time", "created_time", "modified_time", "updated_time",
)  # fmt: skip
LEGACY = "alibabacloud.com/node-needrepair"


@dataclass(frozen=True)
class Words:
    """What names mean that ACK does not document, as the user says."""

    incidents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Fault types by the name of an incident."""
    steps: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Step, and for Repair the action or "", by the name of a step."""


@dataclass
class Policy:
    """A policy as it was read."""

    setting: Setting
    id: str
    name: str
    pools: list[str]
    """Ids of the node pools it is said to be for."""
    entries: list[dict[str, Any]] = field(default_factory=list)
    isolates: list[str] = field(default_factory=list)
    """Fault types whose card alone is taken out of service."""
    reboots: Setting | None = None
    """A step that restarts the machine."""
    ungated: Setting | None = None
    """A procedure that says in all its steps that nobody is asked: its first `enable: false`."""


def read(setting: Setting, words: Words, catalogue: Catalogue, ledger: Ledger) -> Policy:
    """Raises RefusedError for contradictions, and for what is no policy."""
    ledger.strangers(setting, POLICY_KEYS)
    ident = setting.get("policy_id").text() or setting.get("id").text()
    name = setting.get("name").text() or ident
    if not name:
        raise RefusedError(f"{setting.where}: name: missing; give the policy a name")
    policy = Policy(
        setting, ident, objectnames.dns_label(name), [p.text() for p in setting.get("resource_ids").items()]
    )
    _about_resource(setting, ledger)
    for i, rule in enumerate(setting.get("rules").items()):
        _Entry(policy, rule.mapping(), f"rule-{i + 1}", words, catalogue, ledger).read()
    if not policy.entries:
        raise RefusedError(
            f"{setting.get('rules').where}: nothing of it can be written as a RepairRule; say what its steps are with "
            "--step NAME=STEP"
        )
    return policy


def manifest(policy: Policy, asks: bool) -> dict[str, Any]:
    """The RepairRule. `asks`: the node pool wants a person's word before each repair."""
    entries = [_asking(entry) for entry in policy.entries] if asks else policy.entries
    name = f"{policy.name}-approval" if asks else policy.name
    return {
        "apiVersion": names.API_VERSION,
        "kind": "RepairRule",
        "metadata": {"name": objectnames.dns_label(name)},
        "spec": {"approvalPrefix": "ack", "rules": entries},
    }


def _asking(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry with a gate before the first step that disturbs anybody; the cordon disturbs nobody."""
    steps = [dict(step) for step in entry["procedure"]]
    if not any("approval" in step for step in steps):
        first = next((s for s in steps if s["step"] != Step.QUARANTINE), steps[0])
        first["approval"] = {"by": "People"}
    return {**entry, "procedure": steps}


def _about_resource(setting: Setting, ledger: Ledger) -> None:
    kind = setting.get("resource_type")
    if kind.given and kind.text() != "nodepool":
        ledger.note(kind, "no counterpart; only node pools become pools")
    sub = setting.get("resource_sub_type")
    if sub.given and sub.text() not in ("ess", "lingjun"):
        ledger.note(sub, "no counterpart; the selector of the RepairPool says which nodes it is for")


@dataclass
class _Entry:
    """One sub-rule on its way to an entry."""

    policy: Policy
    rule: Setting
    name: str
    words: Words
    catalogue: Catalogue
    ledger: Ledger
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    isolates: bool = False

    def read(self) -> None:
        self.ledger.strangers(self.rule, ("incidents", "repair_procedure", "name"))
        procedure = self.rule.get("repair_procedure").items()
        for step in procedure:
            self._step(step.mapping())
        self._ungated(procedure)
        faults, incidents = self._faults()
        if self.isolates:
            self.policy.isolates += [name for name in faults if name not in self.policy.isolates]
        steps = self._procedure()
        if not steps:
            if not self.isolates:
                where = self.rule.get("repair_procedure").place
                self.ledger.note(where, "none of its steps is known: no entry is written")
            return
        self._add(faults, incidents, steps)

    def _add(self, faults: list[str], incidents: list[str], steps: list[dict[str, Any]]) -> None:
        if faults:
            self.policy.entries.append({"name": self.name, "faults": {"names": faults}, "procedure": steps})
        for incident in incidents:
            labels = {INCIDENT_LABEL: objectnames.label_value(incident)}
            name = objectnames.dns_label(f"{self.name}-{incident.replace('.', '-').lower()}")
            self.policy.entries.append({"name": name, "faults": {"labels": labels}, "procedure": steps})
        if not faults and not incidents:
            self.ledger.note(self.rule.get("incidents"), "no incident is named: no entry is written")

    def _faults(self) -> tuple[list[str], list[str]]:
        """Fault types by name, and incidents that no fault type stands for."""
        faults: list[str] = []
        unknown: list[str] = []
        for incident in self.rule.get("incidents").items():
            name = incident.mapping().get("name").text()
            found = list(self.words.incidents.get(name, ())) or self._by_condition(incident, name)
            faults += [fault for fault in found if fault not in faults]
            self.ledger.strangers(incident, ("name", "type", "conditions", "events"))
            if incident.get("events").items():
                self.ledger.note(
                    incident.get("events"), "Events are not decided on; write a FaultType with match.event"
                )
            if found or not name:
                continue
            unknown.append(name)
            self.ledger.note(
                incident.get("name"),
                "no fault type of the catalogue is known to be this; its entry matches FaultTypes with "
                f"spec.labels {INCIDENT_LABEL}: {objectnames.label_value(name)}, or name faults with "
                f"--incident {name}=FAULT",
            )
        return faults, unknown

    def _by_condition(self, incident: Setting, name: str) -> list[str]:
        """Fault types that read the conditions of an incident, or the condition that it is named after."""
        found = self._reading(name, "True", "")
        for condition in incident.get("conditions").items():
            kind, status = condition.get("type").text(), condition.get("status").text() or "True"
            reading = self._reading(kind, status, condition.get("reason").text())
            if not reading:
                self.ledger.note(condition, "no fault type of the catalogue reads this condition; write a FaultType")
            found += reading
        return list(dict.fromkeys(found))

    def _reading(self, kind: str, status: str, reason: str) -> list[str]:
        return [fault for fault, test in self.catalogue.by_condition.get(kind, ()) if test.holds(status, reason)]

    def _step(self, step: Setting) -> None:
        self.ledger.strangers(step, ("name", "config", "intervention"))
        for key in step.get("config").mapping().names():
            self.ledger.note(step.get("config").get(key), "no counterpart is known, left out")
        name = step.get("name").text()
        if name == ISOLATE and name not in self.words.steps:
            self._isolate(step)
            return
        known = self.words.steps.get(name) or KNOWN_STEPS.get(name)
        if known is None:
            hint = f"say what it is with --step {name or 'NAME'}=STEP or --step {name or 'NAME'}=Repair:ACTION"
            self.ledger.note(step.get("name"), f"unknown step, left out together with its approval; {hint}")
            return
        ours, action = known
        if ours in self.steps:
            self.ledger.note(step.get("name"), f"a second {ours}, left out; a procedure has each step once")
            return
        if self.steps and ORDER.index(ours) < max(ORDER.index(s) for s in self.steps):
            self.ledger.note(step.get("name"), f"{ours} comes earlier here: the order of the steps is fixed")
        self.steps[ours] = {"step": ours, **({"action": action} if action else {}), **self._gate(step, ours)}
        if action in ("RebootNode", "PowerCycle"):
            self.policy.reboots = self.policy.reboots or step.get("name")

    def _isolate(self, step: Setting) -> None:
        self.isolates = True
        self.ledger.note(
            step.get("name"),
            "becomes deviceIsolation of the pool; this version does not isolate cards yet, so nothing is done",
        )
        if step.get("intervention").get("enable").truth(False):
            self.ledger.note(step.get("intervention").get("enable"), "isolating a card has no gate, left out")

    def _gate(self, step: Setting, ours: str) -> dict[str, Any]:
        intervention = step.get("intervention").mapping()
        self.ledger.strangers(intervention, ("enable", "type", "inquiring_label", "approved_label"))
        if not intervention.get("enable").truth(False):
            return {}
        if ours == Step.VALIDATE:
            self.ledger.note(intervention, "Validate takes no approval, left out")
            return {}
        self._labels(intervention, ours)
        kind = intervention.get("type")
        if kind.given and kind.text() != "label":
            self.ledger.note(kind, "no counterpart; approval is asked by a label")
        return {"approval": {"by": "People"}}

    def _labels(self, intervention: Setting, ours: str) -> None:
        """The labels that the question and the answer would have had."""
        asked, answered = intervention.get("inquiring_label"), intervention.get("approved_label")
        pairs = [_pair(asked), _pair(answered)]
        if pairs[0] == pairs[1] != ("", ""):
            raise contradiction(asked, answered, "the question would be its own answer; give the answer another value")
        label = names.approval_label(names.APPROVAL_PREFIXES["ack"], ours)
        wanted = ((label, "inquiring"), (label, "approved"))
        for setting, (key, value), (ours_key, ours_value) in zip((asked, answered), pairs, wanted, strict=True):
            if not setting.given or (key == ours_key and value.lower() == ours_value):
                continue
            legacy = "; that deleting the label approves is not taken over" if key == LEGACY else ""
            self.ledger.note(
                setting,
                f"no counterpart; here it is {ours_key}={ours_value}: tell those who ask or answer by the old "
                f"one{legacy}",
            )
        self.ledger.note(
            Setting(self.policy.setting.file, "rules", None),
            "ACK waits for an approval without an end; here people are reminded, and called after 24h",
        )

    def _procedure(self) -> list[dict[str, Any]]:
        """The steps in their order, with the Quarantine that a Drain of ACK contains."""
        steps = self.steps
        if Step.DRAIN in steps and Step.QUARANTINE not in steps:
            steps = {"Quarantine": {"step": "Quarantine"}, **steps}
            if "approval" in steps["Drain"]:
                self.ledger.note(
                    self.rule.get("repair_procedure").place,
                    "Drain asks first: the node is cordoned before the question, so that nothing new starts on it",
                )
        if steps and not steps.keys() & {"Unquarantine"} and steps.keys() & {"Quarantine"}:
            self.ledger.note(
                self.rule.get("repair_procedure").place,
                "no step returns the node: it stays in quarantine until a person uncordons it; add Unquarantine to the "
                "rule where Sickbay shall do that",
            )
        return [steps[name] for name in ORDER if name in steps]

    def _ungated(self, procedure: list[Setting]) -> None:
        enables = [step.get("intervention").get("enable") for step in procedure]
        if enables and all(e.given and not e.truth(False) for e in enables):
            self.policy.ungated = self.policy.ungated or enables[0]


def _pair(label: Setting) -> tuple[str, str]:
    return label.mapping().get("key").text(), label.get("value").text()
