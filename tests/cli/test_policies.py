"""Approval labels of one's own: the file that describes them, and the policies that guard them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sickbay.api.repair_plan import ApprovalForm
from sickbay.cli.approvalforms import FormError, read
from sickbay.cli.policies import rendered

DEPLOY = Path(__file__).parents[2] / "deploy"
FORM = ApprovalForm(key="acme.example/{step}", inquiring="asked", approved=["go"], denied=["stop"])


def file(tmp_path: Path, text: str) -> str:
    path = tmp_path / "forms.yaml"
    path.write_text(text)
    return str(path)


def test_words_are_words_also_where_yaml_sees_booleans(tmp_path: Path) -> None:
    text = "forms: [{name: acme, key: 'acme.example/{step}', inquiring: asked, approved: [yes], denied: [no]}]"
    form = read(file(tmp_path, text))["acme"]
    assert (form.approved, form.denied, form.deletion_approves) == (["yes"], ["no"], False)
    assert form.key_of("Drain") == "acme.example/drain"


BAD = {
    "built-in name": ("{name: ack, key: a.example/x}", "the name is taken"),
    "no label key": ("{name: a, key: 'a b'}", "no label key of yours"),
    "one of ours": ("{name: a, key: sickbay.dev/x}", "no label key of yours"),
    "no label value": ("{name: a, key: a.example/x, approved: ['a b']}", "no label value"),
    "one word twice": ("{name: a, key: a.example/x, inquiring: Approved}", "must differ"),
    "nothing says yes": ("{name: a, key: a.example/x, approved: []}", "nothing says yes"),
    "unknown key": ("{name: a, key: a.example/x, values: []}", "values"),
}


@pytest.mark.parametrize(("entry", "said"), BAD.values(), ids=BAD)
def test_a_form_that_cannot_work_is_refused_with_its_remedy(tmp_path: Path, entry: str, said: str) -> None:
    with pytest.raises(FormError, match=said):
        read(file(tmp_path, f"forms: [{entry}]"))


@pytest.mark.parametrize("name", ["admission.yaml", "admission-stamp.yaml"])
def test_without_further_labels_the_policies_are_as_they_ship(name: str) -> None:
    text = (DEPLOY / name).read_text()
    assert list(yaml.safe_load_all(rendered(text, {}, {}))) == list(yaml.safe_load_all(text))


@pytest.mark.parametrize("name", ["admission.yaml", "admission-stamp.yaml"])
def test_every_list_of_labels_gets_the_further_ones(name: str) -> None:
    text = (DEPLOY / name).read_text()
    made = rendered(text, {"other": "approve.other.example"}, {"acme": FORM})
    in_comments = text.count("['intervention.sickbay.dev/', ...]")
    assert made.count("'approve.other.example/'") == text.count("'intervention.sickbay.dev/'") - in_comments
    assert made.count("'acme.example/drain'") >= made.count("'approve.other.example/'")
    assert list(yaml.safe_load_all(made))


def test_values_of_ones_own_are_answers_to_the_policy() -> None:
    made = rendered((DEPLOY / "admission.yaml").read_text(), {}, {"acme": FORM})
    assert "in ['approved', 'denied', 'go', 'stop']" in made
    assert "in ['inquiring', 'asked', 'approved', 'denied', 'go', 'stop']" in made
    assert "variables.labels[k].lowerAscii() in ['inquiring', 'asked']" in made


def test_another_file_is_refused() -> None:
    with pytest.raises(ValueError, match="approval prefixes"):
        rendered("kind: Role", {}, {})
