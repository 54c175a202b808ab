"""Reviews: questions to the server that are created, answered and never stored.

SelfSubjectAccessReview is what `kubectl auth can-i` asks, SelfSubjectRulesReview its `--list`, SelfSubjectReview its
`whoami`; SubjectAccessReview and TokenReview are for other servers that leave the judgement to this one.
"""

from __future__ import annotations

from sickbay.apiserver.attributes import Attributes
from sickbay.apiserver.auth import Authenticator
from sickbay.apiserver.errors import Obj, bad_request, no_such_path
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
        spec = review.get("spec") or {}
        match kind:
            case "SelfSubjectAccessReview":
                status = self._access(caller, spec)
            case "SubjectAccessReview":
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


def wanted_by(spec: Obj) -> Attributes:
    """What an access review asks about. Raises StatusError(400) when it asks about nothing."""
    path, resource = spec.get("nonResourceAttributes"), spec.get("resourceAttributes")
    if path is not None:
        return Attributes(path.get("verb", ""), path=path.get("path", ""))
    if resource is None:
        raise bad_request("exactly one of nonResourceAttributes or resourceAttributes must be specified")
    return Attributes(
        resource.get("verb", ""),
        resource.get("group", ""),
        resource.get("resource", ""),
        resource.get("subresource", ""),
        resource.get("namespace", ""),
        resource.get("name", ""),
    )
