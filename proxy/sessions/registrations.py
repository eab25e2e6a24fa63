# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of clients, and their leave.

A client that the proxy has forgotten, because it was restarted, is known again by its heartbeat:
that says what it is, and the rest is asked of brokers. The original answers
UNRECOGNIZED_CLIENT_TYPE until the client sends its settings, which it may do minutes later.

Java: ClientActivity.heartbeat and notifyClientTermination.
"""

from __future__ import annotations

from typing import Any

from txrocketmq.proxy.base.names import group_of
from txrocketmq.proxy.base.rights import Names, belonging, consumer_names, stating
from txrocketmq.proxy.base.statuses import Refused, answered, set_status
from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.grpc.service import rpc
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.proxy.sessions.clients import CONSUMERS, PRODUCERS, Clients, kind_name
from txrocketmq.proxy.sessions.metadata import client_id_of


def _names(request: Any) -> Names:
    is_consumer = request.client_type in CONSUMERS
    return consumer_names(request.group.name, ()) if is_consumer else ()


class Registrations:
    """Serves heartbeats and leaves."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    @rpc("Heartbeat", rights=stating(_names))
    @answered("HeartbeatResponse")
    async def heartbeat(self, call: Call, request: Any) -> Any:
        """Notes that a client is alive."""
        client_id = client_id_of(call)
        kind = request.client_type
        if kind in PRODUCERS:
            self._clients.register(client_id, call.peer, kind)
        elif kind in CONSUMERS:
            self._clients.register(client_id, call.peer, kind, group_of(request.group))
        else:
            raise Refused(
                Code.UNRECOGNIZED_CLIENT_TYPE,
                f"clients of type {kind_name(kind)} are not served",
            )
        return set_status(message_type("HeartbeatResponse")(), Code.OK)

    @rpc("NotifyClientTermination", rights=belonging(lambda request: str(request.group.name)))
    @answered("NotifyClientTerminationResponse")
    async def notify_client_termination(self, call: Call, request: Any) -> Any:
        """Forgets a client that goes."""
        if self._clients.remove(client_id_of(call)) is None:
            raise Refused(Code.UNRECOGNIZED_CLIENT_TYPE, "the client is not known")
        return set_status(message_type("NotifyClientTerminationResponse")(), Code.OK)
