"""`sickbay policies`: the admission policies for the approval labels that this controller is configured with.

The files of deploy/ know the built-in prefixes. Further prefixes and forms are put into the same lists, so that what
guards an approval of ours guards theirs too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import click

from sickbay.api.repair_plan import ApprovalForm
from sickbay.cli.approvalforms import FormError
from sickbay.cli.approvalforms import read as read_forms
from sickbay.cli.controller import read_prefixes

STEPS = ("quarantine", "drain", "repair", "unquarantine")
_PREFIXES = re.compile(r"\['intervention\.sickbay\.dev/',\s*'intervention\.autorepair\.node\.k8s\.aliyun\.com/'\]")
_STEP_KEYS = "['quarantine', 'drain', 'repair', 'unquarantine'].exists(s, k.endsWith('/' + s + '-node'))"
_ANSWERS = "in ['approved', 'denied']"
_VALUES = "in ['inquiring', 'approved', 'denied']"
_ASKS = "variables.labels[k] == 'inquiring'"


def rendered(text: str, prefixes: Mapping[str, str], forms: Mapping[str, ApprovalForm]) -> str:
    """A policy file for these prefixes and forms. Raises ValueError where it is none of ours."""
    if not _PREFIXES.search(text):
        raise ValueError("there is no list of approval prefixes in it: give deploy/admission.yaml or its -stamp.yaml")
    if not prefixes and not forms:
        return text
    keys = sorted({form.key_of(step) for form in forms.values() for step in STEPS})
    starts = [f"{prefix}/" for prefix in (*_builtin(), *sorted(prefixes.values()))] + keys
    text = _PREFIXES.sub(lambda _: _listed(starts), text)
    if not forms:
        return text
    yes_no = ["approved", "denied", *_words(forms, lambda f: [*f.approved, *f.denied])]
    asking = ["inquiring", *_words(forms, lambda f: [f.inquiring])]
    text = text.replace(_STEP_KEYS, f"({_STEP_KEYS} || k in {_listed(keys)})")
    text = text.replace(_ANSWERS, f"in {_listed(yes_no)}").replace(_VALUES, f"in {_listed([*asking, *yes_no])}")
    return text.replace(_ASKS, f"variables.labels[k].lowerAscii() in {_listed(asking)}")


def _builtin() -> tuple[str, str]:
    return "intervention.sickbay.dev", "intervention.autorepair.node.k8s.aliyun.com"


def _words(forms: Mapping[str, ApprovalForm], of: object) -> list[str]:
    assert callable(of)
    found = {word.lower() for form in forms.values() for word in of(form)}
    return sorted(found - {"approved", "denied", "inquiring"})


def _listed(words: list[str]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


@click.command(name="policies")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--approval-prefix", "prefixes", multiple=True, callback=read_prefixes, metavar="NAME=PREFIX",
    help="As the controller is given it.",
)  # fmt: skip
@click.option("--approval-forms", "forms", default="", metavar="FILE", help="As the controller is given it.")
def policies(files: tuple[Path, ...], prefixes: dict[str, str], forms: str) -> None:
    """Print the admission policies of FILES for further approval labels.

    Example: sickbay policies deploy/admission.yaml --approval-prefix acme=approve.acme.example | kubectl apply -f -
    """
    try:
        known = read_forms(forms) if forms else {}
        texts = [rendered(file.read_text(encoding="utf-8"), prefixes, known) for file in files]
        click.echo("---\n".join(texts), nl=False)
    except FormError as error:
        raise click.BadParameter(str(error), param_hint="'--approval-forms'") from None
    except ValueError as error:
        raise click.ClickException(str(error)) from None
