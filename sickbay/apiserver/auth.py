"""Who calls: bearer tokens to identities. Impersonation headers are honoured for members of system:masters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sickbay.apiserver.errors import forbidden, unauthorized
from sickbay.apiserver.writes import Caller

ANONYMOUS = Caller("system:anonymous", ("system:unauthenticated",))
MASTERS = "system:masters"
Headers = Mapping[bytes, bytes]


class Authenticator:
    """A fixed table of tokens."""

    def __init__(self, tokens: Mapping[str, Caller], anonymous: Caller | None = None) -> None:
        self._tokens = dict(tokens)
        self._anonymous = anonymous

    def add(self, token: str, caller: Caller) -> None:
        self._tokens[token] = caller

    def by_token(self, token: str) -> Caller | None:
        """Who a token stands for."""
        known = self._tokens.get(token)
        return None if known is None else _authenticated(known)

    def caller(self, headers: Headers) -> Caller:
        """Raises StatusError(401) for an unknown token, and for none where nobody may be anonymous."""
        agent = headers.get(b"user-agent", b"").decode("latin-1")
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() == "bearer":
            known = self.by_token(token.strip())
            if known is None:
                raise unauthorized()
            return self._impersonated(_with_agent(known, agent), headers)
        if self._anonymous is None:
            raise unauthorized()
        return self._impersonated(_with_agent(self._anonymous, agent), headers)

    @staticmethod
    def _impersonated(caller: Caller, headers: Headers) -> Caller:
        user = headers.get(b"impersonate-user", b"").decode("latin-1")
        if not user:
            return caller
        if MASTERS not in caller.groups:
            raise forbidden("users", user, f'User "{caller.user}" cannot impersonate resource "users"')
        groups = headers.get(b"impersonate-group", b"").decode("latin-1")
        return Caller(user, (*filter(None, groups.split("\n")), "system:authenticated"), caller.user_agent)


def _authenticated(caller: Caller) -> Caller:
    if "system:authenticated" in caller.groups:
        return caller
    groups = list(caller.groups)
    if caller.user.startswith("system:serviceaccount:"):
        namespace = caller.user.split(":")[2]
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    return replace(caller, groups=(*dict.fromkeys((*groups, "system:authenticated")),))


def _with_agent(caller: Caller, agent: str) -> Caller:
    return replace(caller, user_agent=agent) if agent else caller
