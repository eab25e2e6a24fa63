# SPDX-License-Identifier: Apache-2.0
"""The admin client: what mqadmin does, as methods.

It is put together of its parts, one noun a module: topics, groups, connected clients, offsets,
messages; and servers. Java: DefaultMQAdminExt.
"""

from __future__ import annotations

from txrocketmq.client.admin.config import AdminConfig
from txrocketmq.client.admin.messages import Messages
from txrocketmq.client.admin.servers import Servers
from txrocketmq.client.instance import ClientInstance


class Admin(Messages, Servers):
    """Administrates clusters: topics, groups, offsets, messages, clients and servers.

    Names of topics and groups are those that brokers know. Each refusal is an AdminRefused that
    says what was refused, by whom, and what to do; what goes to several servers goes to all of
    them, and PartlyFailed says who failed. Errors of the connection are RemotingErrors.
    """

    def __init__(self, instance: ClientInstance, *, config: AdminConfig | None = None) -> None:
        super().__init__(instance, config=config)

    async def start(self) -> None:
        """Nothing is asked before it is needed."""

    async def shutdown(self) -> None:
        """Connections are closed by the client instance."""
