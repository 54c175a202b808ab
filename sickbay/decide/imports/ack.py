"""`sickbay import ack`: settings of Alibaba ACK's node repair as a RepairRule and a RepairPool.

Documents are answers of ACK's API (or its SDK), as JSON or YAML: an AutoRepairPolicy has `rules`, a node pool has
`management`; a list of either, and an answer wrapped in `body`, are read too.

    policy and node pool     the pool follows the rule of the policy that it binds
    policy alone             a pool for each of its resource_ids, with default limits
    node pool alone          the rule of managed repair

Every pool starts in Observe. What has no counterpart becomes a note, and settings that contradict each other are
refused with both keys named: a policy that cannot be meant is not made to work by choosing one half of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sickbay.api.validate import validate
from sickbay.decide.catalogue import Catalogue
from sickbay.decide.imports import ack_pool, ack_rule
from sickbay.decide.imports.ack_pool import NodePool
from sickbay.decide.imports.ack_rule import Policy, Words
from sickbay.decide.imports.told import Ledger, Note, RefusedError, Setting, contradiction

__all__ = ["Imported", "Note", "RefusedError", "Words", "import_ack"]


@dataclass
class Imported:
    """Manifests to apply, and what they do not say."""

    manifests: list[dict[str, Any]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def import_ack(documents: Iterable[tuple[str, Any]], words: Words, catalogue: Catalogue) -> Imported:
    """Documents with the files they stand in. Raises RefusedError."""
    ledger = Ledger()
    settings = [each for file, document in documents for each in _unwrapped(Setting(file, "", document))]
    policies = [ack_rule.read(s, words, catalogue, ledger) for s in settings if s.get("rules").given]
    pools = [ack_pool.read(s, ledger) for s in settings if not s.get("rules").given]
    pools += list(_named_only(policies, pools, ledger))
    made = _Making(policies, catalogue, ledger)
    for pool in pools:
        made.pool(pool)
    for policy in policies:
        made.rule_of(policy, asks=False, only_if_none=True)
    _sound(made.manifests)
    return Imported(made.manifests, ledger.notes)


def _unwrapped(setting: Setting) -> Iterator[Setting]:
    """Policies and node pools, out of whatever the answer wraps them in."""
    if not isinstance(setting.value, Mapping):
        raise RefusedError(f"{setting.where}: not a mapping; give an answer of ACK's API as JSON or YAML")
    if setting.get("rules").given or setting.get("management").given:
        yield setting
        return
    if setting.get("body").given:
        yield from _unwrapped(setting.get("body"))
        return
    for key in ("items", "policies", "nodepools"):
        if setting.get(key).given:
            for each in setting.get(key).items():
                yield from _unwrapped(each)
            return
    raise RefusedError(
        f"{setting.where}: neither an AutoRepairPolicy (rules) nor a node pool (management); give an answer of "
        "DescribeAutoRepairPolicy or DescribeClusterNodePoolDetail"
    )


def _named_only(policies: list[Policy], pools: list[NodePool], ledger: Ledger) -> Iterator[NodePool]:
    """Node pools that only the policies name: they get default limits."""
    known = {pool.id for pool in pools}
    for policy in policies:
        for ident in policy.pools:
            if ident in known:
                continue
            known.add(ident)
            none = policy.setting.get("resource_ids").place
            ledger.note(none, f"node pool {ident} is not among the files: its pool has the default limits")
            bound = Setting(policy.setting.file, "policy_id", policy.id or None)
            yield NodePool(policy.setting, ident, ident.lower(), bound, none, none, none, none, named_only=True)


@dataclass
class _Making:
    """Manifests as they are made: each rule once, however many pools follow it."""

    policies: list[Policy]
    catalogue: Catalogue
    ledger: Ledger
    manifests: list[dict[str, Any]] = field(default_factory=list)

    def pool(self, pool: NodePool) -> None:
        policy = self._policy_of(pool)
        if policy is not None:
            _agree(pool, policy)
            rule = self.rule_of(policy, pool.approval)
        elif pool.policy_id.given:
            rule = pool.policy_id.text()
            self.ledger.note(pool.policy_id, "this policy is not among the files: its rule is missing; import it too")
        else:
            made = ack_pool.managed_rule(pool, self.catalogue, self.ledger)
            self.manifests.append(made)
            rule = made["metadata"]["name"]
        self.manifests.append(ack_pool.manifest(pool, rule, policy, self.ledger))

    def rule_of(self, policy: Policy, asks: bool, only_if_none: bool = False) -> str:
        """The name of the policy's rule, which is written where it is not yet."""
        made = ack_rule.manifest(policy, asks)
        name: str = made["metadata"]["name"]
        written = {m["metadata"]["name"] for m in self.manifests if m["kind"] == "RepairRule"}
        any_of_it = written & {name, ack_rule.manifest(policy, True)["metadata"]["name"]}
        if name not in written and not (only_if_none and any_of_it):
            self.manifests.append(made)
        return name

    def _policy_of(self, pool: NodePool) -> Policy | None:
        bound = pool.policy_id.text()
        named = next((p for p in self.policies if pool.id in p.pools), None)
        if not bound:
            return named
        if named is not None and named.id and named.id != bound:
            raise contradiction(
                pool.policy_id, named.setting.get("resource_ids"), f"node pool {pool.id} follows one policy; keep one"
            )
        found = next((p for p in self.policies if p.id == bound), None)
        return found or (named if named is not None and not named.id else None)


def _agree(pool: NodePool, policy: Policy) -> None:
    """The switches of the pool against the steps of its policy."""
    if pool.approval and policy.ungated is not None:
        raise contradiction(
            pool.asks, policy.ungated, "a person is to be asked before each repair, and nobody is asked; change one"
        )
    if pool.restarts.given and not pool.restarts.truth(True) and policy.reboots is not None:
        raise contradiction(pool.restarts, policy.reboots, "this step restarts the machine; change one of them")


def _sound(manifests: list[dict[str, Any]]) -> None:
    """What the API server would refuse is refused here, in the words of the settings' owner."""
    seen: set[tuple[str, str]] = set()
    for made in manifests:
        identity = made["kind"], made["metadata"]["name"]
        if identity in seen:
            raise RefusedError(f"two of {identity[0]} {identity[1]}; give the node pools or policies different names")
        seen.add(identity)
        for problem in validate(made["kind"], made):
            raise RefusedError(f"cannot be written as {made['kind']} {made['metadata']['name']}: {problem}")
