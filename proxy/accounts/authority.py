# SPDX-License-Identifier: Apache-2.0
"""Decides about calls: first who calls, then whether that user may.

The order is that of the original, since remarks follow from it: the headers, the name, the user,
its status, the signature; then what the call needs, and the policies of the user.

Clients sign the second, so that all calls of a client in one second have the same headers. What
was found right is remembered until the next look, which is a second away at most, and decisions
until an account has changed. Counterpart of AuthenticationPipeline and AuthorizationPipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from txrocketmq.access.auth.authority import (
    UNCLEAR,
    WRONG_SIGNATURE,
    denial,
    no_user,
)
from txrocketmq.access.auth.policies import Decision, decision
from txrocketmq.access.auth.users import User, UserStatus
from txrocketmq.access.authority import Refusal
from txrocketmq.access.known import host_of
from txrocketmq.access.needs import NOTHING_KNOWN, Action, UnclearNeed, need_of_topic
from txrocketmq.proxy.accounts.config import AccountsConfig
from txrocketmq.proxy.accounts.signature import (
    AUTHORIZATION,
    DATE_TIME,
    CallSignature,
    UnreadableSignature,
)
from txrocketmq.proxy.accounts.sources import AccountSource, Known
from txrocketmq.proxy.base.rights import Names
from txrocketmq.proxy.grpc.call import Texts
from txrocketmq.proxy.grpc.service import Rpc

MOST_KEPT: Final = 4_096
"""How many signatures, decisions and hosts are remembered; then all of them are forgotten."""
_LONGEST_KEY: Final = 1_024
"""Decisions about names that are longer together, in characters, are not remembered."""
_LONGEST_HEADERS: Final = 512
UNREADABLE: Final = "the signature cannot be read"
_NEW: Final = Refusal("", "")
_NO_FIELDS: Final[Mapping[str, str]] = {}


class Caller:
    """A user who has proven to be it, with its policies."""

    __slots__ = ("known", "may_all", "name")

    def __init__(self, name: str, known: Known, *, may_all: bool) -> None:
        self.name = name
        self.known = known
        self.may_all = may_all

    def may_send(self, topic: str, peer: str) -> bool:
        """Returns whether it may send to a topic from the address of a peer."""
        need = need_of_topic(topic, Action.PUB)
        return self.may_all or decision(self.known.acl, need, host_of(peer)) is Decision.ALLOW


class CallAuthority:
    """Decides with the accounts of a source."""

    def __init__(self, source: AccountSource, config: AccountsConfig) -> None:
        self._source = source
        self._authorizes = config.authorization_enabled
        self._unauthorized = config.open_calls(authorization=True)
        unsigned = config.open_calls(authorization=False)
        self.unsigned = unsigned & self._unauthorized if self._authorizes else unsigned
        """The names of requests that need no account."""
        self._signed: dict[tuple[str, str], Caller] = {}
        """By the two headers of a signature: who has signed it."""
        self._callers: dict[str, Caller] = {}
        self._decisions: dict[tuple[str, ...], Refusal | None] = {}
        self._hosts: dict[str, str] = {}
        source.on_change.append(self.forget)

    def forget(self) -> None:
        """Forgets whose signatures were right, so that they are looked at again."""
        self._signed.clear()

    def caller(self, headers: Texts) -> Caller | Refusal | None:
        """Returns who calls, or why it is refused; None if the user has to be asked for."""
        key = headers.get(AUTHORIZATION, ""), headers.get(DATE_TIME, "")
        caller = self._signed.get(key)
        return self._proven(headers, self._source.known) if caller is None else caller

    async def asked_caller(self, headers: Texts) -> Caller | Refusal:
        """Returns who calls, or why it is refused; asks for the user.

        Raises Refused, MQClientError and RemotingError.
        """
        name = CallSignature.read(headers).user
        known = await self._source.ask(name)
        caller = self._proven(headers, lambda _: known)
        assert caller is not None
        return caller

    def refusal(self, caller: Caller, its: Rpc, request: Any, peer: str) -> Refusal | None:
        """Returns why a request of this caller is refused, or None if it is allowed."""
        if caller.may_all or its.request_name in self._unauthorized:
            return None
        rights = its.rights
        if rights is None:
            return Refusal(NOTHING_KNOWN, UNCLEAR, caller.name)
        host = self.host(peer)
        try:
            names: Names = rights.names(request)
            key = (caller.name, its.name, host, *names)
            refusal = self._decisions.get(key, _NEW)
            if refusal is not _NEW:
                return refusal
            refusal = self._denial(caller, rights.needs(names), host)
        except UnclearNeed as error:
            return Refusal(str(error), UNCLEAR, caller.name)
        if sum(map(len, key)) <= _LONGEST_KEY:
            if len(self._decisions) >= MOST_KEPT:
                self._decisions.clear()
            self._decisions[key] = refusal
        return refusal

    def host(self, peer: str) -> str:
        """Returns the host of the address of a peer, which recurs with each of its calls."""
        host = self._hosts.get(peer)
        if host is None:
            if len(self._hosts) >= MOST_KEPT:
                self._hosts.clear()
            host = self._hosts[peer] = host_of(peer)
        return host

    def _denial(self, caller: Caller, needs: Any, host: str) -> Refusal | None:
        for need in needs:
            found = decision(caller.known.acl, need, host)
            if found is not Decision.ALLOW:
                return denial(caller.name, need, host, found)
        return None

    def _proven(
        self, headers: Texts, known_of: Callable[[str], Known | None]
    ) -> Caller | Refusal | None:
        try:
            name, content, signature = CallSignature.read(headers)
        except UnreadableSignature as error:
            return Refusal(str(error), UNREADABLE)
        if not name:
            return no_user("", None)
        known = known_of(name)
        if known is None:
            return None
        user = known.user
        if user is None or user.status is UserStatus.DISABLE:
            return no_user(name, user)
        if not user.signer.accepts(_NO_FIELDS, content, signature):
            return Refusal("check signature failed.", WRONG_SIGNATURE, name)
        caller = self._caller(user, known)
        key = headers.get(AUTHORIZATION, ""), headers.get(DATE_TIME, "")
        if sum(map(len, key)) <= _LONGEST_HEADERS:
            if len(self._signed) >= MOST_KEPT:
                self._signed.clear()
            self._signed[key] = caller
        return caller

    def _caller(self, user: User, known: Known) -> Caller:
        """Returns the caller of a user; what was decided counts as long as the user is the same."""
        caller = self._callers.get(user.name)
        if caller is not None and caller.known == known:
            return caller
        if caller is not None:
            self._decisions.clear()
        if len(self._callers) >= MOST_KEPT:
            self._callers.clear()
            self._decisions.clear()
        caller = Caller(user.name, known, may_all=user.is_super or not self._authorizes)
        self._callers[user.name] = caller
        return caller
