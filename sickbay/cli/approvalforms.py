"""The file of approval forms: label keys and values of one's own, by the name that rules use.

    forms:
    - name: acme
      key: acme.example/{step}          # {step} = quarantine, drain, repair, unquarantine
      inquiring: asked
      approved: [yes, go]
      denied: [no]
    - name: legacy-ack                  # ACK's node pools before AutoRepairPolicy
      key: alibabacloud.com/node-needrepair
      inquiring: Inquiring
      approved: [Approved]
      denied: []
      deletionApproves: true            # that the label is deleted says yes

A key without `{step}` is used for all steps: the question that stands says which is meant.
"""

from __future__ import annotations

import re

import msgspec

from sickbay.api import listfile
from sickbay.api.repair_plan import ApprovalForm

_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
OURS = ("sickbay.dev/", "kubernetes.io/", "k8s.io/", "node.kubernetes.io/")


class FormError(ValueError):
    """The file cannot be used; the text names file, form, field and remedy."""


class _Entry(msgspec.Struct, rename="camel"):
    name: str
    key: str
    inquiring: str = "inquiring"
    approved: list[str] = msgspec.field(default_factory=lambda: ["approved"])
    denied: list[str] = msgspec.field(default_factory=lambda: ["denied"])
    deletion_approves: bool = False


def read(path: str) -> dict[str, ApprovalForm]:
    """The forms of a file, by name. Raises FormError."""
    try:
        entries = listfile.entries(path, "forms", _Entry, words=True)
    except listfile.BadFileError as error:
        raise FormError(str(error)) from None
    found: dict[str, ApprovalForm] = {}
    for entry in entries:
        where = f"{path}: form {entry.name}"
        if entry.name in ("", "sickbay", "ack") or entry.name in found:
            raise FormError(f"{where}: the name is taken; give the form one of its own")
        found[entry.name] = _form(where, entry)
    return found


def _form(where: str, entry: _Entry) -> ApprovalForm:
    key = entry.key.replace("{step}", "unquarantine")
    if not _KEY.fullmatch(key) or len(key.rpartition("/")[2]) > 63 or key.startswith(OURS):
        text = "is no label key of yours; write prefix/name, such as acme.example/{step}"
        raise FormError(f"{where}: key {entry.key!r} {text}")
    words = [entry.inquiring, *entry.approved, *entry.denied]
    bad = [word for word in words if not _VALUE.fullmatch(word) or len(word) > 63]
    if bad:
        raise FormError(f"{where}: {bad[0]!r} is no label value; use letters, digits, '-', '_' and '.'")
    lowered = [word.lower() for word in words]
    if len(set(lowered)) != len(lowered):
        raise FormError(f"{where}: inquiring, approved and denied must differ, also in lower case: {', '.join(words)}")
    if not entry.approved and not entry.deletion_approves:
        raise FormError(f"{where}: nothing says yes; give approved, or deletionApproves: true")
    return ApprovalForm(
        key=entry.key,
        inquiring=entry.inquiring,
        approved=entry.approved,
        denied=entry.denied,
        deletion_approves=entry.deletion_approves,
    )
