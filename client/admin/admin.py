# SPDX-License-Identifier: Apache-2.0
"""The admin client: what mqadmin does, as methods.

It is put together of its parts, one noun a module: topics, groups, connected clients, offsets,
messages; servers; and accounts. Java: DefaultMQAdminExt.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from txrocketmq.client.admin.accounts import Accounts
from txrocketmq.client.admin.clients import Clients
from txrocketmq.client.admin.config import AdminConfig
from txrocketmq.client.admin.destinations import Destinations
from txrocketmq.client.admin.groups import Groups
from txrocketmq.client.admin.messages import Messages
from txrocketmq.client.admin.offsets import Offsets
from txrocketmq.client.admin.plain_accounts import PlainAccounts
from txrocketmq.client.admin.servers import Servers
from txrocketmq.client.admin.topics import Topics
from txrocketmq.client.core.instance import ClientInstance

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def _of(
    part: type[T], method: Callable[Concatenate[T, P], Coroutine[Any, Any, R]]
) -> Callable[Concatenate[Admin, P], Coroutine[Any, Any, R]]:
    """Makes a method of a part a method of the admin client."""

    async def forwarded(admin: Admin, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await method(admin._parts[part], *args, **kwargs)  # noqa: SLF001

    functools.update_wrapper(forwarded, method)
    return forwarded


class Admin:
    """Administers clusters: topics, groups, offsets, messages, clients, servers and accounts.

    Topics and groups have the names that they have at the brokers. A server's refusal raises
    AdminRefused, whose text says what was refused, which server refused it, and what to do. A
    request for several servers is sent to all of them, even if some fail; PartlyFailed then says
    which ones failed. NoNameServer says that no name server can be asked, BrokerNotExist that no
    broker is registered under the given name or in the given cluster, and ValueError that arguments
    contradict each other or that one of several clusters has to be named. Connections that fail
    raise a RemotingError.
    """

    def __init__(self, instance: ClientInstance, *, config: AdminConfig | None = None) -> None:
        self.config = config or AdminConfig()
        destinations = Destinations(instance, self.config)
        topics = Topics(destinations)
        groups = Groups(destinations, topics)
        clients = Clients(destinations)
        offsets = Offsets(destinations, groups, clients)
        messages = Messages(destinations, topics, groups, clients, offsets)
        servers = Servers(destinations)
        accounts, plain_accounts = Accounts(destinations), PlainAccounts(destinations)
        parts = topics, groups, clients, offsets, messages, servers, accounts, plain_accounts
        self._parts: dict[type, Any] = {type(part): part for part in parts}

    async def start(self) -> None:
        """Starts without any request; requests are sent when they are needed."""

    async def shutdown(self) -> None:
        """Connections are closed by the client instance."""

    topics = _of(Topics, Topics.topics)
    topic_route = _of(Topics, Topics.topic_route)
    topic_configs = _of(Topics, Topics.topic_configs)
    topic_stats = _of(Topics, Topics.topic_stats)
    topic_groups = _of(Topics, Topics.topic_groups)
    create_topic = _of(Topics, Topics.create_topic)
    update_topic = _of(Topics, Topics.update_topic)
    delete_topic = _of(Topics, Topics.delete_topic)

    groups = _of(Groups, Groups.groups)
    group_configs = _of(Groups, Groups.group_configs)
    create_group = _of(Groups, Groups.create_group)  # type: ignore[arg-type] # a setting might be named self
    update_group = _of(Groups, Groups.update_group)  # type: ignore[arg-type] # a setting might be named self
    delete_group = _of(Groups, Groups.delete_group)
    progress = _of(Groups, Groups.progress)
    time_spans = _of(Groups, Groups.time_spans)
    set_request_mode = _of(Groups, Groups.set_request_mode)

    consumer_connections = _of(Clients, Clients.consumer_connections)
    producer_connections = _of(Clients, Clients.producer_connections)
    producers = _of(Clients, Clients.producers)
    consumer_running_info = _of(Clients, Clients.consumer_running_info)
    consumer_status = _of(Clients, Clients.consumer_status)

    min_offset = _of(Offsets, Offsets.min_offset)
    max_offset = _of(Offsets, Offsets.max_offset)
    search_offset = _of(Offsets, Offsets.search_offset)
    consumer_offset = _of(Offsets, Offsets.consumer_offset)
    set_offset = _of(Offsets, Offsets.set_offset)
    reset_offsets = _of(Offsets, Offsets.reset_offsets)
    clone_offsets = _of(Offsets, Offsets.clone_offsets)

    message = _of(Messages, Messages.message)
    message_at = _of(Messages, Messages.message_at)
    messages_by_key = _of(Messages, Messages.messages_by_key)
    messages_between = _of(Messages, Messages.messages_between)
    message_tracks = _of(Messages, Messages.message_tracks)
    message_trace = _of(Messages, Messages.message_trace)
    consume_directly = _of(Messages, Messages.consume_directly)
    resend = _of(Messages, Messages.resend)

    brokers = _of(Servers, Servers.brokers)
    clusters = _of(Servers, Servers.clusters)
    broker_stats = _of(Servers, Servers.broker_stats)
    broker_counter = _of(Servers, Servers.broker_counter)
    broker_config = _of(Servers, Servers.broker_config)
    update_broker_config = _of(Servers, Servers.update_broker_config)
    replication = _of(Servers, Servers.replication)
    timer_stats = _of(Servers, Servers.timer_stats)
    wipe_write_perm = _of(Servers, Servers.wipe_write_perm)
    add_write_perm = _of(Servers, Servers.add_write_perm)
    clean_unused_topics = _of(Servers, Servers.clean_unused_topics)
    clean_expired_queues = _of(Servers, Servers.clean_expired_queues)
    delete_expired_commit_log = _of(Servers, Servers.delete_expired_commit_log)
    namesrv_config = _of(Servers, Servers.namesrv_config)
    update_namesrv_config = _of(Servers, Servers.update_namesrv_config)
    kv_config = _of(Servers, Servers.kv_config)
    kv_configs = _of(Servers, Servers.kv_configs)
    put_kv_config = _of(Servers, Servers.put_kv_config)
    delete_kv_config = _of(Servers, Servers.delete_kv_config)

    accounts = _of(Accounts, Accounts.accounts)
    account = _of(Accounts, Accounts.account)
    create_account = _of(Accounts, Accounts.create_account)
    update_account = _of(Accounts, Accounts.update_account)
    put_account = _of(Accounts, Accounts.put_account)
    delete_account = _of(Accounts, Accounts.delete_account)
    copy_accounts = _of(Accounts, Accounts.copy_accounts)
    policies = _of(Accounts, Accounts.policies)
    set_policies = _of(Accounts, Accounts.set_policies)
    delete_policies = _of(Accounts, Accounts.delete_policies)

    plain_accounts = _of(PlainAccounts, PlainAccounts.plain_accounts)
    set_plain_account = _of(PlainAccounts, PlainAccounts.set_plain_account)
    delete_plain_account = _of(PlainAccounts, PlainAccounts.delete_plain_account)
    set_white_addresses = _of(PlainAccounts, PlainAccounts.set_white_addresses)
    plain_account_versions = _of(PlainAccounts, PlainAccounts.plain_account_versions)
