# SPDX-License-Identifier: Apache-2.0
"""Where the proxy gets users and policies: from the brokers, or from the broker in its process.

Brokers do not share accounts, so it is always the same broker that is asked, the first one by its
name, as long as that answers; the original asks any, so that an account that is missing at one of
them is refused now and then. A user that there is not is remembered for a second, lest strangers
have brokers asked for each of their calls.

Counterpart of ProxyAuthenticationMetadataProvider, ProxyAuthorizationMetadataProvider and the
caches of ClusterMetadataService.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from twisted.logger import Logger

from txrocketmq.access.auth.accounts import Accounts
from txrocketmq.access.auth.policies import SUBJECT_PREFIX, Acl, acl_of
from txrocketmq.access.auth.users import User, UserStatus
from txrocketmq.client.base.errors import MQBrokerError, MQClientError
from txrocketmq.proxy.accounts.config import AccountsConfig
from txrocketmq.proxy.base.cache import Cache
from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.cluster.cluster import TIMEOUT_MS, Cluster
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.remoting.call import Call
from txrocketmq.remoting.errors import RemotingError, ResponseError
from txrocketmq.remoting.frame.signer import ACCESS_KEY, SIGNATURE
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.protocol.body.auth import AclInfo
from txrocketmq.remoting.protocol.operations import auth

MISSING_MS: Final = 1_000
"""For how long it is remembered that there is no user of a name."""
MOST_MISSING: Final = 4_096
MOST_ASKED: Final = 64
"""For how many users brokers are asked at a time; more calls of users who are not known are
refused, since strangers can take any name."""
LONGEST_NAME: Final = 255
_BROKERS: Final = 3
"""How many brokers are asked until one answers."""

log = Logger()


class Known(NamedTuple):
    """A user and its policies; no user if there is none of the name."""

    user: User | None
    acl: Acl | None = None


NOBODY: Final = Known(None)


class AccountSource(Protocol):
    """Knows users by their names."""

    on_change: list[Callable[[], object]]
    """Called when something that was known may be something else."""

    def known(self, name: str) -> Known | None:
        """Returns a user, or None if it has to be asked for."""

    async def ask(self, name: str) -> Known:
        """Returns a user. Raises Refused, MQClientError and RemotingError."""


class AccountsHere:
    """The accounts of the broker in the same process, of which every change counts at once."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self.on_change: list[Callable[[], object]] = []
        self._signing: User | None = None
        accounts.on_users.append(self._changed)
        accounts.on_acls.append(self._changed)

    def known(self, name: str) -> Known:
        """Returns a user."""
        user = self._accounts.users.get(name)
        return NOBODY if user is None else Known(user, self._accounts.acl(name))

    async def ask(self, name: str) -> Known:
        """Returns a user."""
        return self.known(name)

    def seal(self, fields: dict[str, str], body: bytes) -> None:
        """Signs a request to the broker in the name of a Super user of its, if it has one."""
        user = self._signing
        if user is None:
            users = self._accounts.users.all().values()
            able = (each for each in users if each.is_super and each.status is UserStatus.ENABLE)
            user = self._signing = next(able, None)
        if user is not None:
            fields[ACCESS_KEY] = user.name
            fields[SIGNATURE] = user.signer.signature(fields, body)

    def _changed(self) -> None:
        self._signing = None
        for listener in self.on_change:
            listener()


class AccountsOfBrokers:
    """The accounts of the brokers, kept for a while."""

    def __init__(self, cluster: Cluster, cluster_name: str, config: AccountsConfig) -> None:
        self._cluster = cluster
        self._cluster_name = cluster_name
        self._authorizes = config.authorization_enabled
        self.on_change: list[Callable[[], object]] = []
        self._users: Cache[str, User] = Cache(
            cluster.clock,
            self._ask_user,
            1_000 * config.user_cache_refresh_seconds,
            1_000 * config.user_cache_expired_seconds,
        )
        self._acls: Cache[str, Acl] = Cache(
            cluster.clock,
            self._ask_acl,
            1_000 * config.acl_cache_refresh_seconds,
            1_000 * config.acl_cache_expired_seconds,
        )
        self._missing: dict[str, int] = {}
        """By name: until when it is remembered that there is no such user."""
        self._asked = 0

    def known(self, name: str) -> Known | None:
        """Returns a user, or None if brokers have to be asked."""
        if not 0 < len(name) <= LONGEST_NAME:
            return NOBODY
        user = self._users.known(name)
        if user is None:
            is_missing = self._missing.get(name, 0) > self._cluster.clock.steady_ms()
            return NOBODY if is_missing else None
        if not self._needs_policies(user):
            return Known(user)
        acl = self._acls.known(name)
        return None if acl is None else Known(user, acl)

    async def ask(self, name: str) -> Known:
        """Returns a user. Raises Refused, MQClientError and RemotingError."""
        if self._asked >= MOST_ASKED:
            raise Refused(Code.TOO_MANY_REQUESTS, "too many users are asked for: try again")
        self._asked += 1
        try:
            user = await self._users.get(name)
            if user is None:
                if len(self._missing) >= MOST_MISSING:
                    self._missing.clear()
                self._missing[name] = self._cluster.clock.steady_ms() + MISSING_MS
                return NOBODY
            return Known(user, await self._acls.get(name) if self._needs_policies(user) else None)
        finally:
            self._asked -= 1

    def _needs_policies(self, user: User) -> bool:
        return self._authorizes and not user.is_super

    async def _ask_user(self, name: str) -> User | None:
        header = auth.GetUserRequestHeader(username=name)
        body = await self._ask_brokers(auth.AUTH_GET_USER, header)
        if not body:
            return None
        try:
            content: Any = json.loads(body)
            return User.stored(name, content)
        except (ValueError, RecursionError) as error:
            raise MQClientError(
                f"the broker's answer about the user {name} cannot be used: {error}; it tells"
                " passwords to Super users only, which the account in"
                " innerClientAuthenticationCredentials has to be"
            ) from None

    async def _ask_acl(self, name: str) -> Acl:
        header = auth.GetAclRequestHeader(subject=SUBJECT_PREFIX + name)
        body = await self._ask_brokers(auth.AUTH_GET_ACL, header)
        if not body:
            return Acl(name, {})
        try:
            return acl_of(name, AclInfo.decode(body))
        except ResponseError as error:
            raise MQClientError(
                f"the policies of the user {name} cannot be read: {error.remark}"
            ) from None

    async def _ask_brokers(self, call: Call[Any, Any], header: Header) -> bytes:
        """Returns the answer of the first broker that gives one."""
        cluster = self._cluster
        route = await cluster.routes.get(self._cluster_name)
        addresses = sorted(cluster.masters(route), key=lambda each: cluster.name_of(each) or each)
        failure: Exception = Refused(
            Code.PROXY_TIMEOUT, f"no broker of {self._cluster_name} could be asked for accounts"
        )
        for address in addresses[:_BROKERS]:
            try:
                reply = await cluster.api.ask(address, call, header, b"", TIMEOUT_MS)
            except MQBrokerError:
                raise
            except (MQClientError, RemotingError) as error:
                failure = error
            else:
                return reply.body_bytes
        raise failure
