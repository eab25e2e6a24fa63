# SPDX-License-Identifier: Apache-2.0
"""Accounts and their policies at brokers with `authenticationEnabled` (ACL 2).

Brokers do not share them, and slaves do not get them from their master: what is changed is changed
at all brokers of a cluster, one by one.

Java: CreateUserSubCommand, UpdateUserSubCommand, CopyUsersSubCommand, CreateAclSubCommand and
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from txrocketmq.client.admin.destinations import Destinations
from txrocketmq.client.admin.results import BrokerInfo
from txrocketmq.client.base.errors import AccountNotFound, AdminRefused
from txrocketmq.remoting.call import Call
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.protocol.body.auth import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from txrocketmq.remoting.protocol.operations import auth
from txrocketmq.remoting.serialize.json import decode_body

ACTIONS: Final = ("Pub", "Sub", "Create", "Update", "Delete", "Get", "List", "All")
"""What a policy may be about; the last one stands for all others."""
_ACTIONS: Final = {each.lower(): each for each in ACTIONS}
_SUBJECT: Final = "User:"
_NO_SUCH_ACCOUNT: Final = "The subject is not exist."
"""The remark of a broker that is asked for the policies of an account that it does not have."""
_CUSTOM: Final = "Custom"
_DEFAULT: Final = "Default"
_TYPES: Final = {True: "Super", False: "Normal", None: None}
_STATES: Final = {True: "enable", False: "disable", None: None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account of a broker; `password` is None if the broker does not tell it."""

    name: str
    is_super: bool = False
    """Whether it may do everything, without any policy."""
    is_enabled: bool = True
    password: str | None = field(default=None, repr=False)
    """The secret key by which the account signs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What an account may do, or may not do, with some topics or groups, or with the cluster."""

    account: str
    resource: str
    """Such as "Topic:Orders", "Topic:Orders*", "Group:*", "Cluster:DefaultCluster", or "*"."""
    actions: Sequence[str]
    """Some of ACTIONS."""
    allows: bool = True
    addresses: Sequence[str] = ()
    """The addresses or networks of clients for which it counts; empty for all."""
    is_default: bool = False
    """Whether it counts only if none of the others is about the resource."""


class Accounts:
    """The part of the admin client for accounts and policies."""

    def __init__(self, destinations: Destinations) -> None:
        self._servers = destinations

    async def accounts(
        self, containing: str = "", *, cluster: str | None = None, broker: str | None = None
    ) -> dict[BrokerInfo, list[Account]]:
        """Returns the accounts of each broker whose names contain a text.

        Passwords are told to accounts of the type Super only. Raises AdminRefused, PartlyFailed,
        BrokerNotExist and NoNameServer.
        """

        async def ask(server: BrokerInfo) -> tuple[BrokerInfo, list[Account]]:
            header = auth.ListUsersRequestHeader(filter=containing or None)
            body = await self._ask(server, auth.AUTH_LIST_USER, header, b"", "asking for accounts")
            return server, sorted(
                (account_of(UserInfo.from_json(each)) for each in _several(body)),
                key=lambda account: account.name,
            )

        servers = await self._servers.everyone(cluster, broker)
        return dict(await self._servers.each(servers, "asking for accounts", ask))

    async def account(
        self, name: str, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[BrokerInfo, Account]:
        """Returns the account of this name of each broker that has one.

        Raises AccountNotFound, AdminRefused, PartlyFailed, BrokerNotExist and NoNameServer.
        """
        doing = f"asking for account {name}"

        async def ask(server: BrokerInfo) -> tuple[BrokerInfo, bytes]:
            header = auth.GetUserRequestHeader(username=name)
            return server, await self._ask(server, auth.AUTH_GET_USER, header, b"", doing)

        servers = await self._servers.everyone(cluster, broker)
        answers = await self._servers.each(servers, doing, ask)
        found = {server: account_of(UserInfo.decode(body)) for server, body in answers if body}
        if not found:
            raise AccountNotFound(name)
        return found

    async def create_account(
        self,
        name: str,
        password: str,
        *,
        is_super: bool = False,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> None:
        """Creates an account at all brokers of a cluster, or at one broker.

        Raises AdminRefused if a broker has it already, or if an account that is not Super creates
        one that is; PartlyFailed, BrokerNotExist, NoNameServer, and ValueError if there are several
        clusters and you name none of them.
        """
        its = UserInfo(username=name, password=password, user_type=_TYPES[is_super])
        header = auth.CreateUserRequestHeader(username=name)
        doing = f"creating account {name}"
        await self._change(auth.AUTH_CREATE_USER, header, its.encode(), doing, cluster, broker)

    async def update_account(
        self,
        name: str,
        *,
        password: str | None = None,
        is_super: bool | None = None,
        is_enabled: bool | None = None,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> None:
        """Changes an account; what is not given stays as it is.

        Raises ValueError if nothing is given, and the errors of `create_account`.
        """
        if password is None and is_super is None and is_enabled is None:
            raise ValueError("say what to change: password, is_super or is_enabled")
        its = UserInfo(
            username=name,
            password=password,
            user_type=_TYPES[is_super],
            user_status=_STATES[is_enabled],
        )
        header = auth.UpdateUserRequestHeader(username=name)
        doing = f"changing account {name}"
        await self._change(auth.AUTH_UPDATE_USER, header, its.encode(), doing, cluster, broker)

    async def delete_account(
        self, name: str, *, cluster: str | None = None, broker: str | None = None
    ) -> None:
        """Deletes an account and its policies; a broker that does not have it is content.

        Raises AdminRefused, PartlyFailed, BrokerNotExist, NoNameServer and ValueError.
        """
        header = auth.DeleteUserRequestHeader(username=name)
        doing = f"deleting account {name}"
        await self._change(auth.AUTH_DELETE_USER, header, b"", doing, cluster, broker)

    async def policies(
        self,
        account: str | None = None,
        *,
        resource: str = "",
        cluster: str | None = None,
        broker: str | None = None,
    ) -> dict[BrokerInfo, list[Policy]]:
        """Returns the policies of each broker, or of one account at each broker that has it.

        With `resource`, those whose resources contain this text. Raises AccountNotFound,
        AdminRefused, PartlyFailed, BrokerNotExist and NoNameServer.
        """
        servers = await self._servers.everyone(cluster, broker)

        async def ask(server: BrokerInfo) -> list[tuple[BrokerInfo, list[Policy]]]:
            try:
                found = await self._policies(server, account)
            except AdminRefused as error:
                if account is None or error.remark != _NO_SUCH_ACCOUNT:
                    raise
                return []
            return [(server, [each for each in found if resource in each.resource])]

        answers = await self._servers.each(servers, "asking for policies", ask)
        result = {server: its for each in answers for server, its in each}
        if account is not None and not result:
            raise AccountNotFound(account)
        return result

    async def set_policies(
        self,
        policies: Iterable[Policy],
        *,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> None:
        """Adds policies; one for the same account and resource is replaced by the new one.

        Raises AdminRefused if a broker does not have the account, PartlyFailed, BrokerNotExist,
        NoNameServer, and ValueError for an action that does not exist, and if there are several
        clusters and you name none of them.
        """
        for account, its in _by_account(policies).items():
            header = auth.CreateAclRequestHeader(subject=_SUBJECT + account)
            doing = f"adding policies of account {account}"
            body = acl_info(account, its).encode()
            await self._change(auth.AUTH_CREATE_ACL, header, body, doing, cluster, broker)

    async def delete_policies(
        self,
        account: str,
        resource: str | None = None,
        *,
        is_default: bool = False,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> None:
        """Deletes the policy of an account for a resource, or all policies of the account.

        Raises AdminRefused if a broker does not have it, PartlyFailed, BrokerNotExist, NoNameServer
        and ValueError.
        """
        header = auth.DeleteAclRequestHeader(
            subject=_SUBJECT + account,
            policy_type=None if resource is None else _DEFAULT if is_default else _CUSTOM,
            resource=resource,
        )
        doing = f"deleting policies of account {account}"
        await self._change(auth.AUTH_DELETE_ACL, header, b"", doing, cluster, broker)

    async def copy_accounts(
        self, names: Sequence[str] = (), *, source: str, target: str
    ) -> dict[str, int]:
        """Copies accounts with their policies from one broker to another; returns how many of each.

        Without names, all of them are copied. Accounts that the other broker has already get the
        password, the type and the state that they have here, and keep policies for other resources.
        The brokers are given by names or addresses. Raises AccountNotFound, AdminRefused,
        BrokerNotExist, and ValueError if the source does not tell passwords to the account that
        asks, as it is not Super.
        """
        (accounts,) = (await self.accounts(broker=source)).values()
        known = {each.name: each for each in accounts}
        for name in names:
            if name not in known:
                raise AccountNotFound(name)
        chosen = [known[name] for name in names or sorted(known)]
        for each in chosen:
            if not each.password:
                raise ValueError(
                    f"broker {source} tells the passwords of its accounts to accounts of the type"
                    " Super only: copy with such an account"
                )
        (others,) = (await self.accounts(broker=target)).values()
        there = {each.name for each in others}
        (policies,) = (await self.policies(broker=source)).values()
        done: dict[str, int] = {}
        for account in chosen:
            its = [each for each in policies if each.account == account.name]
            await self.put_account(account, its, exists=account.name in there, broker=target)
            done[account.name] = len(its)
        return done

    async def put_account(
        self,
        account: Account,
        policies: Sequence[Policy] = (),
        *,
        exists: bool,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> None:
        """Creates an account as it is given, or changes the one that exists; adds its policies.

        Raises AdminRefused, PartlyFailed, BrokerNotExist, NoNameServer and ValueError.
        """
        its = UserInfo(
            username=account.name,
            password=account.password,
            user_type=_TYPES[account.is_super],
            user_status=_STATES[account.is_enabled],
        )
        name = account.name
        call: Call[Any, Any] = auth.AUTH_UPDATE_USER if exists else auth.AUTH_CREATE_USER
        header = (
            auth.UpdateUserRequestHeader(username=name)
            if exists
            else auth.CreateUserRequestHeader(username=name)
        )
        await self._change(call, header, its.encode(), f"copying account {name}", cluster, broker)
        await self.set_policies(policies, cluster=cluster, broker=broker)

    # ------------------------------------------------------------------ ask

    async def _policies(self, server: BrokerInfo, account: str | None) -> list[Policy]:
        """Asks one broker for the policies of an account, or for all."""
        if account is None:
            call, doing = auth.AUTH_LIST_ACL, "asking for policies"
            body = await self._ask(server, call, auth.ListAclsRequestHeader(), b"", doing)
            found = [AclInfo.from_json(each) for each in _several(body)]
        else:
            doing = f"asking for the policies of account {account}"
            header = auth.GetAclRequestHeader(subject=_SUBJECT + account)
            body = await self._ask(server, auth.AUTH_GET_ACL, header, b"", doing)
            found = [AclInfo.decode(body)] if body else []
        return [policy for each in found for policy in policies_of(each)]

    async def _ask(
        self, server: BrokerInfo, call: Call[Any, Any], header: Header, body: bytes, doing: str
    ) -> bytes:
        reply = await self._servers.ask(server.address, call, header, body, doing=doing)
        return reply.body_bytes

    async def _change(
        self,
        call: Call[Any, Any],
        header: Header,
        body: bytes,
        doing: str,
        cluster: str | None,
        broker: str | None,
    ) -> None:
        servers = await self._servers.everyone_to_change(cluster, broker)
        await self._servers.each(
            servers, doing, lambda server: self._ask(server, call, header, body, doing)
        )


def _several(body: bytes) -> Sequence[Any]:
    """Returns the items of an answer; one without a body has none."""
    found: Any = decode_body(body) if body else []
    return found if isinstance(found, list) else [found]


def account_of(its: UserInfo) -> Account:
    """Returns an account as answers have it."""
    return Account(
        name=its.username or "",
        is_super=(its.user_type or "").lower() == "super",
        is_enabled=(its.user_status or "enable").lower() == "enable",
        password=its.password,
    )


def policies_of(its: AclInfo) -> list[Policy]:
    """Returns the policies of one account as answers have them."""
    account = (its.subject or "").removeprefix(_SUBJECT)
    return [
        Policy(
            account=account,
            resource=entry.resource or "",
            actions=tuple(entry.actions or ()),
            allows=(entry.decision or "").lower() == "allow",
            addresses=tuple(entry.source_ips or ()),
            is_default=(policy.policy_type or "").lower() == "default",
        )
        for policy in its.policies or ()
        for entry in policy.entries or ()
    ]


def acl_info(account: str, policies: Sequence[Policy]) -> AclInfo:
    """Returns policies of an account as requests have them. Raises ValueError."""
    kinds: dict[str, list[PolicyEntryInfo]] = {}
    for each in policies:
        entry = PolicyEntryInfo(
            resource=each.resource,
            actions=_checked(each.actions),
            source_ips=list(each.addresses) or None,
            decision="Allow" if each.allows else "Deny",
        )
        kinds.setdefault(_DEFAULT if each.is_default else _CUSTOM, []).append(entry)
    its = [PolicyInfo(policy_type=kind, entries=entries) for kind, entries in kinds.items()]
    return AclInfo(subject=_SUBJECT + account, policies=its)


def _checked(actions: Sequence[str]) -> list[str]:
    """Returns actions as brokers write them: these leave out in silence what they do not know."""
    for each in actions or [""]:
        if each.strip().lower() not in _ACTIONS:
            said = f"{each!r} is not an action" if each else "a policy needs an action"
            raise ValueError(f"{said}; there are {', '.join(ACTIONS)}")
    return [_ACTIONS[each.strip().lower()] for each in actions]


def _by_account(policies: Iterable[Policy]) -> Mapping[str, list[Policy]]:
    found: dict[str, list[Policy]] = {}
    for each in policies:
        found.setdefault(each.account, []).append(each)
    return found
