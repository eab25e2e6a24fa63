# SPDX-License-Identifier: Apache-2.0
"""The admin client: what mqadmin does, as methods.

It is put together of its parts, one noun a module: topics, groups, connected clients, offsets,
messages; and servers. Java: DefaultMQAdminExt.
"""

from __future__ import annotations

from txrocketmq.client.admin.config import AdminConfig
from txrocketmq.client.admin.messages import Messages
from txrocketmq.client.admin.servers import Servers
from txrocketmq.client.core.instance import ClientInstance


class Admin(Messages, Servers):
    """Administers clusters: topics, groups, offsets, messages, clients and servers.

    Topics and groups have the names under which the brokers know them. A server's refusal raises
    AdminRefused, whose text says what was refused, which server refused it, and what to do. A
    request for several servers is sent to all of them, even if some fail; PartlyFailed then says
    which ones failed. NoNameServer says that no name server can be asked, BrokerNotExist that no
    broker is registered under the given name or in the given cluster, and ValueError that arguments
    contradict each other or that one of several clusters has to be named. Connections that fail
    raise a RemotingError.
    """

    def __init__(self, instance: ClientInstance, *, config: AdminConfig | None = None) -> None:
        super().__init__(instance, config=config)

    async def start(self) -> None:
        """Starts without any request; requests are sent when they are needed."""

    async def shutdown(self) -> None:
        """Connections are closed by the client instance."""
