"""The handshake on the node: which label is an answer to which question."""

from __future__ import annotations

import json

import msgspec
import pytest

from sickbay.api.markers import leaving_by
from sickbay.api.nodemarks import Inquiry
from sickbay.api.repair_plan import ApprovalForm
from sickbay.decide.approval import Answer, answer, ask_ops, withdraw_ops
from tests.decide.made import PREFIX, apply_node_ops, node

ACK = "intervention.autorepair.node.k8s.aliyun.com"
ASKED = Inquiry(repair="n1-1", uid="u1", step="Drain", attempt=3, node_uid="uid-n1", by="People")
BINDING = {"repair": "n1-1", "uid": "u1", "step": "Drain", "attempt": 3, "nodeUID": "uid-n1"}
BINDING |= {"groups": [], "by": "People"}


def standing(value="inquiring", *, prefix=PREFIX, step="drain", binding=BINDING, **changes):
    """A node on which our question stands, with this value under its label."""
    labels = {f"{prefix}/{step}-node": value} if value is not None else {}
    annotations = {"sickbay.dev/inquiry": json.dumps({**binding, **changes})} if binding is not None else {}
    return node(labels=labels, annotations=annotations)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("inquiring", Answer.WAITING, id="nobody-answered"),
        pytest.param("approved", Answer.APPROVED, id="approved"),
        pytest.param("Approved", Answer.APPROVED, id="as-ack-spells-it"),
        pytest.param("APPROVED", Answer.APPROVED, id="in-any-case"),
        pytest.param("denied", Answer.DENIED, id="denied"),
        pytest.param("Denied", Answer.DENIED, id="denied-in-any-case"),
        pytest.param(None, Answer.NOT_ASKED, id="the-label-was-removed"),
        pytest.param("", Answer.NOT_ASKED, id="the-label-is-empty"),
        pytest.param("yes", Answer.NOT_ASKED, id="another-word-is-no-answer"),
        pytest.param("approved ", Answer.NOT_ASKED, id="nearly-a-word-is-no-answer"),
    ],
)
def test_the_value_of_the_label_is_the_answer(value, expected):
    assert answer(standing(value), ASKED, PREFIX) is expected


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"uid": "u0"}, id="another-incident"),
        pytest.param({"step": "Repair"}, id="another-step"),
        pytest.param({"attempt": 2}, id="an-earlier-attempt"),
        pytest.param({"nodeUID": "uid-old"}, id="a-node-that-had-the-name-before"),
    ],
)
def test_an_approval_that_is_bound_to_another_question_is_none(changes):
    assert answer(standing("approved", **changes), ASKED, PREFIX) is Answer.NOT_ASKED


@pytest.mark.parametrize(
    "the_node",
    [
        pytest.param(standing("approved", binding=None), id="put-there-before-we-asked"),
        pytest.param(
            node(labels={f"{PREFIX}/drain-node": "approved"}, annotations={"sickbay.dev/inquiry": "{"}),
            id="the-binding-cannot-be-read",
        ),
        pytest.param(
            node(labels={f"{PREFIX}/drain-node": "approved"}, annotations={"sickbay.dev/inquiry": '{"attempt": "3"}'}),
            id="the-binding-is-of-another-form",
        ),
        pytest.param(standing("approved", step="repair"), id="under-the-label-of-another-step"),
        pytest.param(standing("approved", prefix=ACK), id="under-another-prefix"),
    ],
)
def test_an_approval_without_our_binding_is_none(the_node):
    assert answer(the_node, ASKED, PREFIX) is Answer.NOT_ASKED


def test_under_the_prefix_of_ack_the_same_handshake_runs():
    assert answer(standing("Approved", prefix=ACK), ASKED, ACK) is Answer.APPROVED


def test_fields_of_a_later_version_in_the_binding_do_no_harm():
    assert answer(standing("approved", checksum="x"), ASKED, PREFIX) is Answer.APPROVED


def applied(the_node, ops):
    labels, annotations = dict(the_node.labels), dict(the_node.annotations)
    apply_node_ops({"labels": labels, "annotations": annotations}, ops)
    return labels, annotations


@pytest.mark.parametrize("before", [None, "approved", "denied", "inquiring"])
def test_a_question_is_label_and_binding_in_one_patch_whatever_stood_there(before):
    the_node = standing(before, binding=None)
    labels, annotations = applied(the_node, ask_ops(the_node, ASKED, PREFIX))
    assert labels[f"{PREFIX}/drain-node"] == "inquiring"
    assert json.loads(annotations["sickbay.dev/inquiry"]) == BINDING


def test_what_is_asked_can_be_answered():
    the_node = standing("approved", uid="u0")
    labels, annotations = applied(the_node, ask_ops(the_node, ASKED, PREFIX))
    assert answer(node(labels=labels, annotations=annotations), ASKED, PREFIX) is Answer.WAITING


def test_the_next_question_takes_the_label_of_the_last_one_away():
    the_node = standing("approved", step="quarantine", binding={**BINDING, "step": "Quarantine"})
    labels, _ = applied(the_node, ask_ops(the_node, ASKED, PREFIX))
    assert f"{PREFIX}/quarantine-node" not in labels
    assert labels[f"{PREFIX}/drain-node"] == "inquiring"


def test_the_question_of_another_incident_keeps_its_label():
    the_node = standing("approved", binding={**BINDING, "uid": "u0", "step": "Repair"}, step="repair")
    labels, _ = applied(the_node, ask_ops(the_node, ASKED, PREFIX))
    assert labels[f"{PREFIX}/repair-node"] == "approved"


def test_a_question_is_taken_back_with_all_that_hangs_on_it():
    the_node = standing("approved")
    stamped = node(
        labels={**the_node.labels, "keep": "me"},
        annotations={**the_node.annotations, "sickbay.dev/changed-by": "{}", "keep": "me"},
    )
    labels, annotations = applied(stamped, withdraw_ops(stamped, "u1", PREFIX))
    assert labels == {"pool": "train", "keep": "me"}
    assert annotations == {"keep": "me"}


@pytest.mark.parametrize(
    "the_node",
    [
        pytest.param(standing("approved", uid="u0"), id="the-question-of-another-incident"),
        pytest.param(node(), id="no-question"),
        pytest.param(standing("approved", binding=None), id="a-label-that-is-not-ours"),
    ],
)
def test_what_is_not_ours_is_left_alone(the_node):
    assert withdraw_ops(the_node, "u1", PREFIX) == []


def test_a_question_whose_label_is_gone_is_taken_back_too():
    the_node = standing(None)
    assert applied(the_node, withdraw_ops(the_node, "u1", PREFIX)) == ({"pool": "train"}, {})


# --- forms of one's own

OWN = ApprovalForm(key="acme.example/{step}", inquiring="asked", approved=["go", "Yes"], denied=["stop"])
LEGACY = ApprovalForm(
    key="alibabacloud.com/node-needrepair",
    inquiring="Inquiring",
    approved=["Approved"],
    denied=[],
    deletion_approves=True,
)


def written(label: str | None, value: str | None = None, **changes):
    labels = {label: value} if label and value is not None else {}
    return node(labels=labels, annotations={"sickbay.dev/inquiry": json.dumps({**BINDING, **changes})})


@pytest.mark.parametrize(
    ("value", "expected"),
    [("asked", Answer.WAITING), ("GO", Answer.APPROVED), ("yes", Answer.APPROVED), ("Stop", Answer.DENIED),
     ("approved", Answer.NOT_ASKED), (None, Answer.NOT_ASKED)],
)  # fmt: skip
def test_a_form_of_ones_own_has_its_own_words(value, expected):
    assert answer(written("acme.example/drain", value), ASKED, OWN) is expected


def test_a_question_in_a_form_of_ones_own_is_asked_and_taken_back_under_its_key():
    labels, annotations = {}, {}
    made = {"labels": labels, "annotations": annotations}
    apply_node_ops(made, ask_ops(node(), ASKED, OWN))
    assert made["labels"] == {"acme.example/drain": "asked"}
    apply_node_ops(made, withdraw_ops(node(labels=labels, annotations=annotations), "u1", OWN))
    assert made == {"labels": {}, "annotations": {}}


@pytest.mark.parametrize(
    ("form", "changes", "expected"),
    [
        pytest.param(LEGACY, {}, Answer.APPROVED, id="switched on, for its own key"),
        pytest.param(LEGACY, {"groups": ["oncall"]}, Answer.NOT_ASKED, id="only some may answer"),
        pytest.param(LEGACY, {"attempt": 2}, Answer.NOT_ASKED, id="an old question"),
        pytest.param(OWN, {}, Answer.NOT_ASKED, id="not switched on"),
        pytest.param(ACK, {}, Answer.NOT_ASKED, id="never for our own forms"),
    ],
)
def test_that_the_label_is_gone_is_a_yes_only_where_the_form_says_so(form, changes, expected):
    asked = msgspec.structs.replace(ASKED, groups=changes.get("groups", []))
    assert answer(written(None, **changes), asked, form) is expected


def test_one_key_for_all_steps_is_asked_again_for_the_next_step_and_not_removed():
    standing_ = written("alibabacloud.com/node-needrepair", "Approved")
    asked = msgspec.structs.replace(ASKED, step="Repair")
    made = {"labels": dict(standing_.labels), "annotations": dict(standing_.annotations)}
    apply_node_ops(made, ask_ops(standing_, asked, LEGACY))
    assert made["labels"]["alibabacloud.com/node-needrepair"] == "Inquiring"


def test_a_question_of_ours_under_acks_key_is_no_maintenance_of_acks():
    assert leaving_by(written("alibabacloud.com/node-needrepair", "Inquiring")) == ""
    assert "ACK" in leaving_by(node(labels={"alibabacloud.com/node-needrepair": "Inquiring"}))
