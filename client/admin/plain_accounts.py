# SPDX-License-Identifier: Apache-2.0
"""Accounts of brokers with `aclEnable` (ACL 1), which they keep in plain_acl.yml.

Java: UpdateAccessConfigSubCommand, DeleteAccessConfigSubCommand, UpdateGlobalWhiteAddrSubCommand,
GetAccessConfigSubCommand, ClusterAclConfigVersionListSubCommand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from txrocketmq.client.admin.destinations import Destinations
from txrocketmq.client.admin.results import BrokerInfo
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.body.auth import AclConfig, PlainAccessConfig
from txrocketmq.remoting.protocol.body.route import DataVersion
from txrocketmq.remoting.protocol.operations import auth
from txrocketmq.remoting.serialize.json import decode_body


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainAccount:
    """An account of ACL 1. Permissions are DENY, PUB, SUB or "PUB|SUB"; an empty text is none."""

    access_key: str
    secret_key: str = field(default="", repr=False)
    is_admin: bool = False
    white_address: str = ""
    """From these addresses, the account need not sign."""
    default_topic_perm: str = ""
    default_group_perm: str = ""
    topic_perms: Mapping[str, str] = field(default_factory=dict)
    """The permissions by topic."""
    group_perms: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainAccountList:
    """The accounts of a broker, and the addresses from which nobody needs one."""

    white_addresses: Sequence[str] = ()
    accounts: Sequence[PlainAccount] = ()


class PlainAccounts:
    """The part of the admin client for accounts of ACL 1."""

    def __init__(self, destinations: Destinations) -> None:
        self._servers = destinations

    async def plain_accounts(self, broker: str) -> PlainAccountList:
        """Returns the accounts of a broker, with their secret keys if it tells them.

        Raises BrokerNotExist and AdminRefused. A broker of 4.9 without `aclEnable` does not answer.
        """
        (server,) = await self._servers.masters(broker=broker)
        doing = f"asking broker {broker} for accounts"
        call = auth.GET_BROKER_CLUSTER_ACL_CONFIG
        reply = await self._servers.ask(server.address, call, NoHeader(), doing=doing)
        its = AclConfig.decode(reply.body_bytes)
        return PlainAccountList(
            white_addresses=tuple(its.global_white_addrs or ()),
            accounts=tuple(map(_account, its.plain_access_configs or ())),
        )

    async def set_plain_account(
        self,
        account: PlainAccount,
        *,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> None:
        """Creates an account at all brokers of a cluster or at one, or changes it.

        Empty fields leave what the account has, except for `is_admin`. Raises AdminRefused,
        PartlyFailed, BrokerNotExist, NoNameServer and ValueError.
        """
        header = auth.CreateAccessConfigRequestHeader(
            access_key=account.access_key,
            secret_key=account.secret_key or None,
            white_remote_address=account.white_address or None,
            admin=account.is_admin,
            default_topic_perm=account.default_topic_perm or None,
            default_group_perm=account.default_group_perm or None,
            topic_perms=_text(account.topic_perms),
            group_perms=_text(account.group_perms),
        )
        doing = f"changing account {account.access_key}"
        await self._change(auth.UPDATE_AND_CREATE_ACL_CONFIG, header, doing, cluster, broker)

    async def delete_plain_account(
        self, access_key: str, *, cluster: str | None = None, broker: str | None = None
    ) -> None:
        """Deletes an account at all brokers of a cluster, or at one broker.

        Raises AdminRefused, PartlyFailed, BrokerNotExist, NoNameServer and ValueError.
        """
        header = auth.DeleteAccessConfigRequestHeader(access_key=access_key)
        doing = f"deleting account {access_key}"
        await self._change(auth.DELETE_ACL_CONFIG, header, doing, cluster, broker)

    async def set_white_addresses(
        self,
        addresses: Sequence[str],
        *,
        file: str | None = None,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> None:
        """Sets the addresses from which nobody needs an account, in one of the broker's files.

        Without `file` it is plain_acl.yml. Raises AdminRefused, PartlyFailed, BrokerNotExist,
        NoNameServer and ValueError.
        """
        header = auth.UpdateGlobalWhiteAddrsConfigRequestHeader(
            global_white_addrs=",".join(addresses), acl_file_full_path=file
        )
        doing = "setting the white addresses"
        await self._change(auth.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, header, doing, cluster, broker)

    async def plain_account_versions(self, broker: str) -> dict[str, DataVersion]:
        """Returns the version of each file of accounts of a broker, by its path.

        Raises BrokerNotExist and AdminRefused.
        """
        (server,) = await self._servers.masters(broker=broker)
        call = auth.GET_BROKER_CLUSTER_ACL_INFO
        doing = f"asking broker {broker} for the versions of its accounts"
        reply = await self._servers.ask(server.address, call, NoHeader(), doing=doing)
        text = reply.header.all_acl_file_version if reply.header is not None else None
        told: Any = decode_body(text.encode()) if text else {}
        return {str(path): DataVersion.from_json(its) for path, its in sorted(told.items())}

    async def _change(
        self, call: Any, header: Any, doing: str, cluster: str | None, broker: str | None
    ) -> None:
        async def ask(server: BrokerInfo) -> None:
            await self._servers.ask(server.address, call, header, doing=doing)

        servers = await self._servers.everyone_to_change(cluster, broker)
        await self._servers.each(servers, doing, ask)


def _account(its: PlainAccessConfig) -> PlainAccount:
    return PlainAccount(
        access_key=its.access_key or "",
        secret_key=its.secret_key or "",
        is_admin=its.admin,
        white_address=its.white_remote_address or "",
        default_topic_perm=its.default_topic_perm or "",
        default_group_perm=its.default_group_perm or "",
        topic_perms=_perms(its.topic_perms),
        group_perms=_perms(its.group_perms),
    )


def _perms(lines: Sequence[str] | None) -> dict[str, str]:
    return {
        name.strip(): perm.strip()
        for name, _, perm in (each.partition("=") for each in lines or ())
    }


def _text(perms: Mapping[str, str]) -> str | None:
    return ",".join(f"{name}={perm}" for name, perm in perms.items()) or None
