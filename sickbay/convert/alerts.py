"""Alerts, as Alertmanager's webhook (version 4) sends them, and the conditions they are. Pure.

An alert fires until it is resolved, so a condition is True while one that its fault type asks for fires on the node.
Which ones do stands in the condition's message, so that neither a restart of ours nor the hours between two messages
of Alertmanager lose one: `... (alerts 5c1f0a..., 77ab...)`.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sickbay.api.core import Node, NodeCondition
from sickbay.api.fault_type import AlertMatch
from sickbay.convert import payload
from sickbay.convert.asked import Asked
from sickbay.convert.notice import Undecodable
from sickbay.convert.wanted import Wanted

FIRING, RESOLVED = "firing", "resolved"
MOST = 16
"""Alerts of one condition and node that are told apart; further ones of a node already bad add nothing."""
REMEMBERED = 4096
"""Ended alerts kept in mind, so that an older message that arrives late does not raise them again."""
_TAIL = re.compile(r"\(alerts ([0-9a-f, ]+)\)$")


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert. `starts` tells one firing of it from the next."""

    fingerprint: str
    firing: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    summary: str = ""
    starts: str = ""


def decode(body: bytes) -> list[Alert]:
    """A message. Of one alert in it the latest firing counts, and of that its end. Raises Undecodable."""
    message = payload.mapping(payload.decode(body), "the message")
    if payload.text(message.get("version")) != "4":
        raise Undecodable(f'version must be "4" (Alertmanager\'s webhook), not {message.get("version")!r}')
    found: dict[str, Alert] = {}
    for where, item in payload.entries(message.get("alerts"), "alerts"):
        alert = _alert(item, where)
        known = found.get(alert.fingerprint)
        if known is None or (alert.starts, not alert.firing, alert.summary) > (
            known.starts,
            not known.firing,
            known.summary,
        ):
            found[alert.fingerprint] = alert
    return sorted(found.values(), key=lambda alert: alert.fingerprint)


def _alert(item: dict[str, object], where: str) -> Alert:
    status = payload.text(item.get("status"))
    if status not in (FIRING, RESOLVED):
        raise Undecodable(f"{where}.status must be {FIRING} or {RESOLVED}, not {status!r}")
    labels = {str(k)[:317]: payload.text(v) for k, v in payload.mapping(item.get("labels"), f"{where}.labels").items()}
    notes = item.get("annotations")
    summary = payload.text(notes.get("summary")) if isinstance(notes, dict) else ""
    print_ = payload.text(item.get("fingerprint")).lower()
    if not re.fullmatch(r"[0-9a-f]{1,16}", print_):
        print_ = hashlib.sha256(repr(sorted(labels.items())).encode("utf-8", "replace")).hexdigest()[:16]
    return Alert(print_, status == FIRING, labels, summary, payload.text(item.get("startsAt")))


def asks_for(match: AlertMatch, alert: Alert) -> bool:
    wanted = {"alertname": match.name, **match.labels}
    return wanted.items() <= alert.labels.items()


def node_names(match: AlertMatch, alert: Alert) -> list[str]:
    """Names the node may have: the label as it is, and without a port (`instance` of most exporters has one)."""
    value = alert.labels.get(match.node, "")
    return [name for name in dict.fromkeys((value, value.rpartition(":")[0])) if name]


class AlertBook:
    """Which alerts fire, by node UID and condition, as far as this process was told; the rest stands on the Nodes."""

    def __init__(self) -> None:
        self._firing: dict[tuple[str, str], dict[str, Alert]] = {}
        self._ended: OrderedDict[tuple[str, str, str], str] = OrderedDict()

    def take(self, node: Node, one: Asked, alert: Alert) -> None:
        """Note one alert that the type asks for on this node. An older word than the last one is not taken."""
        firing = self._of(node, one.condition)
        known, ended = firing.get(alert.fingerprint), (node.uid, one.condition, alert.fingerprint)
        if alert.firing:
            if self._ended.get(ended, "") >= (alert.starts or "~"):
                return
            if known is not None or len(firing) < MOST:
                firing[alert.fingerprint] = alert
            return
        if known is not None and known.starts > alert.starts:
            return
        firing.pop(alert.fingerprint, None)
        self._ended[ended] = max(alert.starts, self._ended.pop(ended, ""))
        while len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)

    def wanted(self, node: Node, one: Asked) -> Wanted | None:
        """The condition as the alerts say it should be; None where they say nothing of it."""
        old = node.condition(one.condition)
        firing = self._of(node, one.condition)
        if firing:
            told = next((a for a in firing.values() if a.labels), None)
            tail = f"(alerts {', '.join(sorted(firing))})"
            if told is None:  # all of them are known from the Node alone
                kept = _TAIL.sub(tail, old.message) if old is not None else tail
                return Wanted(one.condition, "True", old.reason if old is not None else "Alert", kept)
            text = told.summary or f"alert {told.labels.get('alertname', '')}"
            reason = _word(told.labels.get("alertname", ""))
            return Wanted(one.condition, "True", reason, f"{text[:512]}; fault {one.name} {tail}")
        if old is not None and old.status != "False" and is_from_alerts(old):
            return Wanted(one.condition, "False", "Resolved", f"the alerts are resolved; fault {one.name}")
        return None

    def _of(self, node: Node, type_: str) -> dict[str, Alert]:
        key = (node.uid, type_)
        if key not in self._firing:
            self._firing[key] = {print_: Alert(print_, firing=True) for print_ in standing(node.condition(type_))}
        return self._firing[key]

    def drop(self, node: Node, type_: str) -> None:
        """A person says that it is over: what fires now is known, and only a new firing raises it again."""
        for alert in self._of(node, type_).values():
            self._ended[node.uid, type_, alert.fingerprint] = alert.starts or "~"
        self._firing[node.uid, type_] = {}

    def forget(self, uid: str) -> None:
        for key in [key for key in self._firing if key[0] == uid]:
            del self._firing[key]


def standing(condition: NodeCondition | None) -> list[str]:
    """Fingerprints that a condition names."""
    found = _TAIL.search(condition.message) if condition is not None and condition.status != "False" else None
    return [part.strip() for part in found[1].split(",") if part.strip()] if found is not None else []


def is_from_alerts(condition: NodeCondition) -> bool:
    return _TAIL.search(condition.message) is not None


def matching(alerts: Iterable[Alert], types: Iterable[Asked]) -> Iterable[tuple[Alert, Asked, list[str]]]:
    """Each alert with each type that asks for it, and the names its node may have."""
    types = list(types)
    for alert in alerts:
        for one in types:
            for match in one.alerts:
                if asks_for(match, alert):
                    yield alert, one, node_names(match, alert)
                    break


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "", name)[:128] or "Alert"
