# SPDX-License-Identifier: Apache-2.0
"""Settings of a client and of its producers.

Defaults are the Java client's; times are in milliseconds. Counterpart of ClientConfig and of the
fields of DefaultMQProducer.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.compression import DEFAULT_LEVEL, CompressionType

ADDRESS_SEPARATOR = ";"
DEFAULT_INSTANCE = "DEFAULT"
CREATE_TOPIC_KEY = "TBW102"
"""The topic whose route tells which brokers create topics (AUTO_CREATE_TOPIC_KEY_TOPIC)."""

RETRY_RESPONSE_CODES: frozenset[int] = frozenset(
    {
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
        ResponseCode.GO_AWAY,
    }
)
"""Answers after which a send is tried at another broker."""


def namesrv_addr_of_environment() -> str:
    """What $NAMESRV_ADDR says; empty when it is not set."""
    return os.environ.get("NAMESRV_ADDR", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """One client: where the name servers are, who it is, how often it looks around."""

    namesrv_addr: str = field(default_factory=namesrv_addr_of_environment)
    """Name servers, "host:port" separated by semicolons; by default $NAMESRV_ADDR."""
    client_ip: str = ""
    """Address in the client's id; empty: this machine's, as seen by the name server."""
    instance_name: str = DEFAULT_INSTANCE
    """Second part of the client's id; DEFAULT becomes process id and time, which is unique."""
    unit_name: str = ""
    """Third part of the client's id, if not empty."""
    poll_name_server_interval_ms: int = 30_000
    """How often the routes of all known topics are asked for."""
    heartbeat_broker_interval_ms: int = 30_000
    """How often brokers hear of this client."""
    api_timeout_ms: int = 3_000
    """How long name servers and brokers may take to answer all but sends and pulls."""

    @property
    def name_servers(self) -> tuple[str, ...]:
        """The addresses one by one."""
        parts = (part.strip() for part in self.namesrv_addr.split(ADDRESS_SEPARATOR))
        return tuple(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """How a producer sends. Sizes are in bytes."""

    send_timeout_ms: int = 3_000
    """For a whole send, all its attempts together."""
    retry_times: int = 2
    """Attempts after the first one."""
    retry_another_broker_when_not_store_ok: bool = False
    """Whether a message that was stored, but not flushed or replicated in time, is sent again."""
    retry_response_codes: frozenset[int] = RETRY_RESPONSE_CODES
    """Answers after which another broker is tried."""
    max_message_bytes: int = 4 * 1024 * 1024
    """The largest body, before compression."""
    compress_body_over_bytes: int = 4 * 1024
    """Bodies of this size and more are compressed."""
    compression: CompressionType = CompressionType.ZLIB
    """How."""
    compression_level: int = DEFAULT_LEVEL
    """0 to 9."""
    create_topic_key: str = CREATE_TOPIC_KEY
    """Topic after whose pattern brokers create a new one."""
    default_topic_queue_nums: int = 4
    """Queues of a topic that a send creates, at most."""
