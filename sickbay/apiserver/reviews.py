"""Reviews: questions to the server that are created, answered and never stored.

SelfSubjectAccessReview is what `kubectl auth can-i` asks, SelfSubjectRulesReview its `--list`, SelfSubjectReview its
`whoami`; SubjectAccessReview and TokenReview are for other servers that leave the judgement to this one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sickbay.apiserver.attributes import Attributes
from sickbay.apiserver.auth import Authenticator
from sickbay.apiserver.bodies import typed
from sickbay.apiserver.errors import Cause, Obj, bad_request, invalid, no_such_path
from sickbay.apiserver.metadata import as_json, invalid_value
from sickbay.apiserver.rbac import Authorizer
from sickbay.apiserver.writes import Caller

KINDS = {
    ("authorization.k8s.io", "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    ("authorization.k8s.io", "selfsubjectrulesreviews"): "SelfSubjectRulesReview",
    ("authorization.k8s.io", "subjectaccessreviews"): "SubjectAccessReview",
    ("authentication.k8s.io", "selfsubjectreviews"): "SelfSubjectReview",
    ("authentication.k8s.io", "tokenreviews"): "TokenReview",
}


class Reviewer:
    """Answers reviews for an app."""

    def __init__(self, authorizer: Authorizer, authenticator: Authenticator) -> None:
        self._authorizer = authorizer
        self._authenticator = authenticator

    def answer(self, group: str, plural: str, caller: Caller, review: Obj) -> Obj:
        """The review with its status. Raises StatusError(400 or 404)."""
        kind = KINDS.get((group, plural))
        if kind is None:
            raise no_such_path()
        review = typed(review, group, "v1", kind)
        spec = review.get("spec") or {}
        match kind:
            case "SelfSubjectAccessReview":
                _check_access(spec)
                status = self._access(caller, spec)
            case "SubjectAccessReview":
                _check_access(spec, _nobody(spec))
                subject = Caller(spec.get("user", ""), tuple(spec.get("groups") or ()))
                status = self._access(subject, spec)
            case "SelfSubjectRulesReview":
                status = self._rules(caller, spec.get("namespace", ""))
            case "SelfSubjectReview":
                status = {"userInfo": user_info(caller)}
            case _:
                status = self._token(spec.get("token", ""))
        return {
            "kind": kind,
            "apiVersion": f"{group}/v1",
            "metadata": review.get("metadata") or {},
            "spec": spec,
            "status": status,
        }

    def _access(self, caller: Caller, spec: Obj) -> Obj:
        decision = self._authorizer.decide(caller, wanted_by(spec))
        status: Obj = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return status

    def _rules(self, caller: Caller, namespace: str) -> Obj:
        if not namespace:
            raise bad_request("no namespace on request")
        rules = self._authorizer.rules(caller, namespace)
        return {
            "resourceRules": [rule for rule in rules if rule.get("resources")],
            "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        }

    def _token(self, token: str) -> Obj:
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        caller = self._authenticator.by_token(token)
        if caller is None:
            return {"authenticated": False, "error": "the token is not known"}
        return {"authenticated": True, "user": user_info(caller)}


def user_info(caller: Caller) -> Obj:
    info: Obj = {"username": caller.user, "groups": list(caller.groups)}
    if caller.uid:
        info["uid"] = caller.uid
    if caller.extra:
        info["extra"] = {key: list(values) for key, values in caller.extra.items()}
    return info


def _nobody(spec: Obj) -> list[Cause]:
    if spec.get("user") or spec.get("groups"):
        return []
    return [invalid_value("spec.user", "", "at least one of user or group must be specified")]


def _check_access(spec: Obj, others: Sequence[Cause] = ()) -> None:
    """Raises StatusError(422) for a review that asks about nothing, about two things, or for nobody."""
    path, resource = spec.get("nonResourceAttributes"), spec.get("resourceAttributes")
    causes: list[Cause] = []
    if path is not None and resource is not None:
        why = "cannot be specified in combination with resourceAttributes"
        shown = as_json({"Path": path.get("path", ""), "Verb": path.get("verb", "")})
        causes.append(invalid_value("spec.nonResourceAttributes", shown, why))
    if path is None and resource is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(invalid_value("spec.resourceAttributes", None, why))
    if causes := [*causes, *others]:
        # Upstream names no kind here.
        raise invalid("", "authorization.k8s.io", "", causes)


def wanted_by(spec: Obj) -> Attributes:
    """What an access review, which has been checked, asks about."""
    path, resource = spec.get("nonResourceAttributes"), spec.get("resourceAttributes") or {}
    if path is not None:
        return Attributes(path.get("verb", ""), path=path.get("path", ""))
    return Attributes(
        resource.get("verb", ""),
        resource.get("group", ""),
        resource.get("resource", ""),
        resource.get("subresource", ""),
        resource.get("namespace", ""),
        resource.get("name", ""),
    )
