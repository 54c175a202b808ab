"""Who calls: bearer tokens to identities. Impersonation headers are honoured for members of system:masters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sickbay.apiserver.errors import forbidden, unauthorized
from sickbay.apiserver.writes import Caller

ANONYMOUS = Caller("system:anonymous", ("system:unauthenticated",))
MASTERS = "system:masters"
MAX_KNOWN = 4096
"""Callers remembered; more than the components of a large cluster."""
Headers = Mapping[bytes, bytes]


class Authenticator:
    """A fixed table of tokens."""

    def __init__(self, tokens: Mapping[str, Caller], anonymous: Caller | None = None) -> None:
        self._tokens = dict(tokens)
        self._anonymous = anonymous
        self._known: dict[tuple[str, str], Caller] = {}
        """Callers by token and agent, as they were worked out before."""

    def add(self, token: str, caller: Caller) -> None:
        self._tokens[token] = caller
        self._known.clear()

    def by_token(self, token: str) -> Caller | None:
        """Who a token stands for."""
        known = self._tokens.get(token)
        return None if known is None else _authenticated(known)

    def caller(self, headers: Headers) -> Caller:
        """Raises StatusError(401) for an unknown token, and for none where nobody may be anonymous."""
        agent = headers.get(b"user-agent", b"").decode("latin-1")
        credentials = headers.get(b"authorization", b"").decode("latin-1")
        caller = self._known.get((credentials, agent))
        if caller is None:
            caller = _with_agent(self._identified(credentials), agent)
            if len(self._known) < MAX_KNOWN:
                self._known[credentials, agent] = caller
        return self._impersonated(caller, headers)

    def _identified(self, credentials: str) -> Caller:
        scheme, _, token = credentials.partition(" ")
        bearer = scheme.lower() == "bearer"
        known = self.by_token(token.strip()) if bearer else self._anonymous
        if known is None:
            raise unauthorized()
        return known

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
