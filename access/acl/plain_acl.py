# SPDX-License-Identifier: Apache-2.0
"""ACL 1: decides about requests as the accounts of RocketMQ 4.x demand.

The order is that of the original, and so are the texts, which tools search:

1. from a global white address: allowed, whatever else there is;
2. no key, or an unknown one: refused;
3. from a white address of the account: allowed, without a signature;
4. a wrong signature: refused;
5. traces of messages are written: allowed;
6. only administrators may do this, and the account is none: refused;
7. an administrator without entries of its own: allowed;
8. one of the topics and groups is not permitted: refused.

Decisions are kept until the accounts change, by all that they depend on; signatures are checked
each time. Java: PlainAccessValidator and PlainPermissionManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from txrocketmq.access.acl.accounts import Account
from txrocketmq.access.acl.address_patterns import plain
from txrocketmq.access.acl.files import AclFiles
from txrocketmq.access.acl.permissions import PUB, SUB, is_enough
from txrocketmq.access.acl.plain_needs import PLAIN_NEEDS, PlainNeed, PlainNeeds
from txrocketmq.access.authority import Refusal
from txrocketmq.access.known import KnownRequests
from txrocketmq.access.needs import Action, Need, ResourceType, UnclearNeed
from txrocketmq.remoting.call import CALLS
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.signer import ACCESS_KEY, SIGNATURE, Signer
from txrocketmq.remoting.message.topics import RETRY_PREFIX, TRACE_TOPIC

EXCEPTION: Final = "org.apache.rocketmq.acl.common.AclException"
"""With this class the remarks of refusals begin, and tools know them by it."""
UNSIGNED_FIELD: Final = "_UNIQUE_KEY_QUERY"
LAST_UNSIGNED: Final = 399
"""Clients up to this version (4.9.3) do not sign UNSIGNED_FIELD."""
MOST_DECISIONS: Final = 4_096
_MOST_KEPT_TEXT: Final = 1_024
"""Decisions about longer names are not kept."""
_NO_FIELDS: Final[Mapping[str, str]] = {}
_NEW: Final = Refusal("", "")

_Key = tuple[object, ...]


class PlainAcl:
    """An authority of the accounts that `hold` was given last; before that it refuses all."""

    code: int = ResponseCode.SYSTEM_ERROR

    def __init__(self) -> None:
        self.files = AclFiles()
        """The files whose accounts count."""
        self._accounts: Mapping[str, Account] = {}
        self._signers: dict[str, Signer] = {}
        self._white: dict[str, bool] = {}
        self._decisions: dict[_Key, Refusal | None] = {}
        self.known = KnownRequests(lambda code: PLAIN_NEEDS[code].fields)
        """Requests like those that were allowed."""

    def hold(self, files: AclFiles) -> None:
        """Takes these accounts and addresses instead of all others."""
        self.files = files
        self._accounts = files.accounts
        self._signers = {}
        self._white = {}
        self._decisions = {}
        self.known.clear()

    def refusal(self, command: RemotingCommand, host: str) -> Refusal | None:
        """Returns why this request from this address is refused, or None if it is allowed."""
        is_white = self._white.get(host)
        if is_white or (is_white is None and self._is_white(host)):
            return None
        fields = command.ext_fields
        if fields is None:
            fields = _NO_FIELDS
        key = fields.get(ACCESS_KEY)
        account = None if key is None else self._accounts.get(key)
        if account is None:
            return _nobody(key)
        if account.has_white and account.white.matches(plain(host)):
            return None
        if not self._is_signed(account, command, fields):
            text = f"Check signature failed for accessKey={key}"
            return _refused(text, "wrong signature", account.access_key)
        needs = PLAIN_NEEDS.get(command.code)
        if needs is None:
            return self._unknown(account, command.code)
        if needs.is_free:
            return None
        if needs.reads_body:
            return self._decision(account, command, needs)
        place = (key, command.code, *map(fields.get, needs.fields))
        refusal = self._decisions.get(place, _NEW)
        if refusal is _NEW:
            refusal = self._decision(account, command, needs)
            self._keep(place, refusal)
        if refusal is None and not needs.is_admin and UNSIGNED_FIELD not in fields:
            self.known.learn(command, host, self._signers[account.access_key])
        return refusal

    def _keep(self, place: _Key, refusal: Refusal | None) -> None:
        if sum(len(each) for each in place if isinstance(each, str)) <= _MOST_KEPT_TEXT:
            if len(self._decisions) >= MOST_DECISIONS:
                self._decisions.clear()
            self._decisions[place] = refusal

    def refusal_of_found(self, command: RemotingCommand, host: str, need: Need) -> Refusal | None:
        """Returns why this need is refused, which came out while an allowed request was served.

        The original does not ask: by its id every message could be read, and every transaction
        ended. To see a message needs SUB.
        """
        if self.files.white.matches(plain(host)):
            return None
        key = (command.ext_fields or _NO_FIELDS).get(ACCESS_KEY)
        account = None if key is None else self._accounts.get(key)
        if account is None:  # it was deleted while the message was read from the disk
            return _nobody(key)
        if account.may_all or account.white.matches(plain(host)):
            return None
        name = need.name or ""
        resource = RETRY_PREFIX + name if need.type == ResourceType.GROUP else name
        found = PlainNeed(resource, PUB if Action.PUB in need.actions else SUB)
        return _first_refused(account, [found])

    def _is_white(self, host: str) -> bool:
        if len(self._white) >= MOST_DECISIONS:
            self._white.clear()
        is_white = self._white[host] = self.files.white.matches(plain(host))
        return is_white

    def _is_signed(
        self, account: Account, command: RemotingCommand, fields: Mapping[str, str]
    ) -> bool:
        signer = self._signers.get(account.access_key)
        if signer is None:
            signer = self._signers[account.access_key] = Signer(account.secret_key)
        if UNSIGNED_FIELD in fields and command.version <= LAST_UNSIGNED:
            fields = {name: text for name, text in fields.items() if name != UNSIGNED_FIELD}
        return signer.accepts(fields, command.body, fields.get(SIGNATURE) or "")

    def _unknown(self, account: Account, code: int) -> Refusal | None:
        """A request that is served, and of which nothing is known, is for administrators; one that
        is not served gets the answer that says so.
        """
        if account.is_admin or code not in CALLS:
            return None
        return _need_admin(account, code)

    def _decision(
        self, account: Account, command: RemotingCommand, needs: PlainNeeds
    ) -> Refusal | None:
        if needs.is_admin:
            return None if account.is_admin else _need_admin(account, command.code)
        if account.may_all:
            return None
        try:
            needed = needs.of(command.ext_fields or _NO_FIELDS, command.body)
        except UnclearNeed as error:
            return _refused(str(error), "unclear needs", account.access_key)
        if (TRACE_TOPIC, PUB) in needed:
            return None
        return _first_refused(account, needed)


def _first_refused(account: Account, needed: Iterable[PlainNeed]) -> Refusal | None:
    for need in needed:
        if not is_enough(account.owned(need.resource), need.permission):
            return Refusal(
                _remark(f"No default permission for {need.text}"),
                "no permission",
                account.access_key,
                need.text,
                "PUB" if need.permission == PUB else "SUB",
            )
    return None


def _nobody(key: str | None) -> Refusal:
    if key is None:
        return _refused("No accessKey is configured", "no account")
    return _refused(f"No acl config for {key}", "unknown account", key)


def _need_admin(account: Account, code: int) -> Refusal:
    key = account.access_key
    return _refused(
        f"Need admin permission for request code={code}, but accessKey={key} is not",
        "no administrator",
        key,
    )


def _refused(text: str, reason: str, key: str = "") -> Refusal:
    return Refusal(_remark(text), reason, key)


def _remark(text: str) -> str:
    return f"{EXCEPTION}: {text}"
