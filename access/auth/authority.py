# SPDX-License-Identifier: Apache-2.0
"""Decides about requests as ACL 2 does: first who sends them, then whether that user may.

The order is that of the original, since remarks follow from it: the name, the user, its status, the
signature; then the needs of the request and the policies of the user. Every request is checked,
whatever `authenticationStrategy` says: with the original's Stateful strategies, a connection that
was once allowed something may send what it likes in the name of its user.

The signature of each message is another one, so nothing of that can be remembered. A decision about
the same user, request and resources is the same until accounts change, and is; most requests need
no more than what is known of the one before (access/known.py).
Counterpart of DefaultAuthenticationHandler, UserAuthorizationHandler and AclAuthorizationHandler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Final

from txrocketmq.access.auth.accounts import Accounts
from txrocketmq.access.auth.policies import Decision, decision
from txrocketmq.access.auth.settings import AuthConfig
from txrocketmq.access.auth.users import User, UserStatus
from txrocketmq.access.authority import Refusal
from txrocketmq.access.known import KnownRequests
from txrocketmq.access.needs import NOTHING_KNOWN, Need, UnclearNeed
from txrocketmq.access.request_needs import NEEDS
from txrocketmq.remoting.codes import MQVersion, RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.signer import ACCESS_KEY, SIGNATURE
from txrocketmq.remoting.protocol.body.base import MOST_BYTES

MOST_DECISIONS: Final = 4_096
"""How many decisions are remembered; then all are forgotten, and made again when they are needed.
"""
_LONGEST_KEY: Final = 1_024
"""Decisions about names that are longer together, in characters, are not remembered."""
_UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
_KNOWN_CODES: Final = frozenset(RequestCode)
_LOOKED_AT: Final = {int(code): (needs.fields, needs.reads_body) for code, needs in NEEDS.items()}
_RECUR: Final = frozenset(
    code
    for code, needs in NEEDS.items()
    if not needs.is_for_operators and code != RequestCode.QUERY_MESSAGE
)
"""What may be known of requests: they change no accounts, and all that is signed is checked."""
_NEW: Final = Refusal("", "")
_NO_FIELDS: Final[Mapping[str, str]] = {}
_NOTHING: Final[tuple[tuple[str, ...], bool]] = ((), False)
# Members of enums are plain numbers here, since these are looked at for each message.
_QUERY: Final = int(RequestCode.QUERY_MESSAGE)
_SIGNS_LESS: Final = int(MQVersion.V4_9_3)
_Known = tuple[User, Callable[[Mapping[str, str], bytes, str | None], bool], bool]
"""A user, what checks its signatures, and whether it may do everything."""

WITHOUT_ACCOUNT: Final = "no account is named"
UNKNOWN_USER: Final = "there is no such user"
DISABLED_USER: Final = "the user is disabled"
WRONG_SIGNATURE: Final = "wrong signature"
NO_POLICY: Final = "no policy allows it"
DENIED: Final = "a policy denies it"
UNCLEAR: Final = "what it needs cannot be told"


class UserAuthority:
    """Decides with these accounts and settings; `cluster` is the resource of what operators do."""

    code = ResponseCode.NO_PERMISSION

    def __init__(self, accounts: Accounts, config: AuthConfig, cluster: str) -> None:
        self._accounts = accounts
        self._cluster = cluster
        self._authorizes = config.authorization_enabled
        self._unauthorized = config.open_codes(authorization=True)
        unsigned = config.open_codes(authorization=False)
        self._unsigned = unsigned & self._unauthorized if self._authorizes else unsigned
        self._users: dict[str, _Known] = {}
        """Those users who have asked, as long as no user changes."""
        self._decisions: dict[tuple[object, ...], Refusal | None] = {}
        self.known = KnownRequests(lambda code: _LOOKED_AT.get(code, _NOTHING)[0])
        """Requests like those that were allowed."""
        accounts.on_users += [self._users.clear, self._decisions.clear, self.known.clear]
        accounts.on_acls += [self._decisions.clear, self.known.clear]

    def refusal(self, command: RemotingCommand, host: str) -> Refusal | None:
        """Returns why this request from this address is refused, or None if it is allowed."""
        code = command.code
        if code in self._unsigned:
            return None
        fields = command.ext_fields or _NO_FIELDS
        name = fields.get(ACCESS_KEY) or ""
        known = self._users.get(name)
        if known is None:
            found = self._look_up(name)
            if isinstance(found, Refusal):
                return found
            known = found
        user, accepts, may_all = known
        if code == _QUERY and command.version <= _SIGNS_LESS:
            # These clients do not sign this field, and later ones do.
            fields = {key: text for key, text in fields.items() if key != _UNIQUE_KEY_QUERY}
        if not accepts(fields, command.body, fields.get(SIGNATURE)):
            return Refusal("check signature failed.", WRONG_SIGNATURE, name)
        if may_all or code in self._unauthorized:
            if code in _RECUR:
                self.known.learn(command, host, user.signer)
            return None
        names, reads_body = _LOOKED_AT.get(code, _NOTHING)
        key: tuple[object, ...] = (name, code, host, *map(fields.get, names))
        if reads_body and len(command.body) <= MOST_BYTES:
            key = (*key, sha256(command.body).digest())  # longer ones are refused, one like another
        refusal = self._decisions.get(key, _NEW)
        if refusal is _NEW:
            refusal = self._decide(user, command, host, key)
        if refusal is None and code in _RECUR and not reads_body:
            self.known.learn(command, host, user.signer)
        return refusal

    def refusal_of_found(self, command: RemotingCommand, host: str, need: Need) -> Refusal | None:
        """Returns why this need is refused, which came out while an allowed request was served."""
        if command.code in self._unsigned or command.code in self._unauthorized:
            return None
        known = self._look_up((command.ext_fields or _NO_FIELDS).get(ACCESS_KEY) or "")
        if isinstance(known, Refusal):
            return known
        user, _, may_all = known
        if may_all:
            return None
        found = decision(self._accounts.acl(user.name), need, host)
        return None if found is Decision.ALLOW else denial(user.name, need, host, found)

    def _look_up(self, name: str) -> _Known | Refusal:
        user = self._accounts.users.get(name) if name else None
        if user is None or user.status is UserStatus.DISABLE:
            return no_user(name, user)
        known = user, user.signer.accepts, user.is_super or not self._authorizes
        self._users[name] = known
        return known

    def _decide(
        self, user: User, command: RemotingCommand, host: str, key: tuple[object, ...]
    ) -> Refusal | None:
        refusal = self._unauthorized_part(user, command, host)
        if sum(len(each) for each in key if isinstance(each, str)) <= _LONGEST_KEY:
            if len(self._decisions) >= MOST_DECISIONS:
                self._decisions.clear()
            self._decisions[key] = refusal
        return refusal

    def _unauthorized_part(self, user: User, command: RemotingCommand, host: str) -> Refusal | None:
        """Returns the refusal for the first need that the user's policies do not allow."""
        known = NEEDS.get(command.code)
        if known is None:
            # A number that is no request is answered as such, by whoever serves all others.
            if command.code not in _KNOWN_CODES:
                return None
            return Refusal(NOTHING_KNOWN, UNCLEAR, user.name)
        try:
            needs = known.of(command.ext_fields or {}, command.body, self._cluster)
        except UnclearNeed as error:
            return Refusal(str(error), UNCLEAR, user.name)
        acl = self._accounts.acl(user.name)
        for need in needs:
            found = decision(acl, need, host)
            if found is not Decision.ALLOW:
                return denial(user.name, need, host, found)
        return None


def denial(name: str, need: Need, host: str, found: Decision | None) -> Refusal:
    """Returns the refusal of a need that no policy of a user allows, or that one denies."""
    why = "no matched policies." if found is None else "the decision is deny."
    return Refusal(
        f"User:{name} has no permission to access {need.resource} from {host}, {why}",
        NO_POLICY if found is None else DENIED,
        name,
        need.resource,
        " or ".join(action.text for action in need.actions),
    )


def no_user(name: str, user: User | None) -> Refusal:
    """Returns the refusal for an account that there is not, or that is disabled."""
    if not name:
        return Refusal("username cannot be null.", WITHOUT_ACCOUNT)
    if user is None:
        return Refusal(f"User:{name} is not found.", UNKNOWN_USER, name)
    return Refusal(f"User:{name} is disabled.", DISABLED_USER, name)
