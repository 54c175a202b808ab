"""Reviews: questions about rights and identities."""

from __future__ import annotations

from typing import Any

import pytest

from sickbay.apiserver.auth import Authenticator
from sickbay.apiserver.errors import StatusError
from sickbay.apiserver.rbac import AllowAll, Rbac
from sickbay.apiserver.reviews import Reviewer
from sickbay.apiserver.store import Store
from sickbay.apiserver.writes import Caller

AUTHORIZATION, AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"
AGENT = Caller(
    "system:serviceaccount:sickbay-system:sickbay-agent",
    ("system:serviceaccounts",),
    extra={"authentication.kubernetes.io/node-name": ("n1",)},
    uid="u",
)


@pytest.fixture
def reviewer(store: Store) -> Reviewer:
    return Reviewer(Rbac(store), Authenticator({"t": AGENT}))


def ask(reviewer: Reviewer, plural: str, spec: dict[str, Any], group: str = AUTHORIZATION) -> dict[str, Any]:
    status: dict[str, Any] = reviewer.answer(group, plural, AGENT, {"spec": spec})["status"]
    return status


def test_access_is_judged_for_the_caller_and_for_others(reviewer: Reviewer) -> None:
    spec: dict[str, Any] = {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}
    assert ask(reviewer, "selfsubjectaccessreviews", spec) == {"allowed": False}
    master = spec | {"user": "root", "groups": ["system:masters"]}
    assert ask(reviewer, "subjectaccessreviews", master)["allowed"] is True
    path = {"nonResourceAttributes": {"verb": "get", "path": "/secret"}}
    assert ask(reviewer, "selfsubjectaccessreviews", path)["allowed"] is False


def test_a_question_about_nothing_is_a_bad_request(reviewer: Reviewer) -> None:
    with pytest.raises(StatusError, match="nonResourceAttributes or resourceAttributes"):
        ask(reviewer, "selfsubjectaccessreviews", {})
    with pytest.raises(StatusError, match="no namespace on request"):
        ask(reviewer, "selfsubjectrulesreviews", {})


def test_rules_are_listed_apart() -> None:
    reviewer = Reviewer(AllowAll(), Authenticator({}))
    status = ask(reviewer, "selfsubjectrulesreviews", {"namespace": "default"})
    assert [rule["resources"] for rule in status["resourceRules"]] == [["*"]]
    assert [rule["nonResourceURLs"] for rule in status["nonResourceRules"]] == [["*"]]
    assert status["incomplete"] is False


def test_callers_learn_who_they_are(reviewer: Reviewer) -> None:
    info = ask(reviewer, "selfsubjectreviews", {}, AUTHENTICATION)["userInfo"]
    assert info == {
        "username": AGENT.user,
        "uid": "u",
        "groups": ["system:serviceaccounts"],
        "extra": {"authentication.kubernetes.io/node-name": ["n1"]},
    }


def test_tokens_are_reviewed(reviewer: Reviewer) -> None:
    known = ask(reviewer, "tokenreviews", {"token": "t"}, AUTHENTICATION)
    assert (known["authenticated"], known["user"]["username"]) == (True, AGENT.user)
    assert "system:authenticated" in known["user"]["groups"]
    unknown = ask(reviewer, "tokenreviews", {"token": "x"}, AUTHENTICATION)
    assert (unknown["authenticated"], bool(unknown["error"])) == (False, True)


def test_other_questions_are_not_found(reviewer: Reviewer) -> None:
    with pytest.raises(StatusError) as refused:
        ask(reviewer, "riddles", {})
    assert refused.value.code == 404
