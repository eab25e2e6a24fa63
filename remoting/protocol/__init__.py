# SPDX-License-Identifier: Apache-2.0
"""All calls of the protocol by family; after importing this, `call.CALLS` is complete."""

from txrocketmq.remoting.protocol import (
    heartbeat,
    offset,
    pop,
    pull,
    query,
    route,
    send,
    topic,
    transaction,
)
from txrocketmq.remoting.protocol.operations import admin, auth, ha

__all__ = [
    "admin",
    "auth",
    "ha",
    "heartbeat",
    "offset",
    "pop",
    "pull",
    "query",
    "route",
    "send",
    "topic",
    "transaction",
]
