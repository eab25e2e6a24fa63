# SPDX-License-Identifier: Apache-2.0
"""Settings of a client and of its producers.

Defaults are the Java client's; times are in milliseconds. Counterpart of ClientConfig and of the
fields of DefaultMQProducer.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from txrocketmq.remoting.message.compression import DEFAULT_LEVEL, CompressionType
from txrocketmq.remoting.protocol.send import RETRY_RESPONSE_CODES

ADDRESS_SEPARATOR = ";"
DEFAULT_INSTANCE = "DEFAULT"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
CREATE_TOPIC_KEY = "TBW102"
"""The topic whose route tells which brokers create topics (AUTO_CREATE_TOPIC_KEY_TOPIC)."""


def namesrv_addr_of_environment() -> str:
    """What $NAMESRV_ADDR says; empty when it is not set."""
    return os.environ.get("NAMESRV_ADDR", "")


def _of_environment(name: str) -> Any:
    return field(default_factory=lambda: os.environ.get(name, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """One client: where the name servers are, who it is, how often it looks around."""

    namesrv_addr: str = field(default_factory=namesrv_addr_of_environment)
    """Name servers, "host:port" separated by semicolons; by default $NAMESRV_ADDR."""
    client_ip: str = ""
    """Address in the client's id; empty: this machine's, as seen by the name server."""
    instance_name: str = DEFAULT_INSTANCE
    """Second part of the client's id; DEFAULT becomes process id and time, which is unique."""
    keep_default_instance_name: bool = False
    """Whether DEFAULT stays as it is, as for consumers whose offsets are kept in files by id."""
    unit_name: str = ""
    """Third part of the client's id, if not empty."""
    poll_name_server_interval_ms: int = 30_000
    """How often the routes of all known topics are asked for."""
    heartbeat_broker_interval_ms: int = 30_000
    """How often brokers hear of this client."""
    api_timeout_ms: int = 3_000
    """How long name servers and brokers may take to answer all but sends and pulls."""
    namesrv_domain: str = ""
    """Host and port of an HTTP server that tells the name servers when `namesrv_addr` is empty
    (rocketmq.namesrv.domain)."""
    namesrv_domain_subgroup: str = "nsaddr"
    """The last part of its path (rocketmq.namesrv.domain.subgroup)."""
    namespace: str = ""
    """Names of topics and groups are sent with this before them (version 1)."""
    namespace_v2: str = ""
    """A namespace that travels beside the names instead, which 5.x brokers understand."""
    unit_mode: bool = False
    """Told to brokers with each message."""
    vip_channel_enabled: bool = False
    """Whether messages are sent to the port two below the broker's own."""
    use_heartbeat_v2: bool = False
    """Whether brokers that can are told the subscriptions only when these have changed."""
    access_key: str = _of_environment("ROCKETMQ_ACCESS_KEY")
    """The name of the account that signs requests (ACL); by default $ROCKETMQ_ACCESS_KEY."""
    secret_key: str = _of_environment("ROCKETMQ_SECRET_KEY")
    """Its secret; by default $ROCKETMQ_SECRET_KEY."""
    security_token: str = ""
    """A token that goes with temporary keys."""
    use_tls: bool = False
    """Whether connections are encrypted; needs the extra `txrocketmq[tls]`."""
    tls_trust_cert_path: str = ""
    """Certificates in PEM that servers are checked by; empty: servers are not checked."""
    tls_cert_path: str = ""
    """This client's own certificate in PEM, for servers that want one."""
    tls_key_path: str = ""
    """Its private key in PEM."""

    def __repr__(self) -> str:
        """Without the secrets: this is what reaches a log."""
        return f"ClientConfig(namesrv_addr={self.namesrv_addr!r})"

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
    send_max_timeout_per_request_ms: int = -1
    """For one attempt, where that is less; -1: as long as the whole send may take."""
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
    topics: tuple[str, ...] = ()
    """Topics whose routes are asked for at the start, so that the first send finds them."""
    send_latency_fault_enable: bool = False
    """Whether brokers that were slow or failed are passed over for a while."""
    start_detector_enable: bool = False
    """Whether a broker that failed is looked at until it can be reached again."""
    detect_timeout_ms: int = 200
    """How long a broker may take to answer that."""
    detect_interval_ms: int = 2_000
    """How often one broker is looked at, at most."""
    backpressure_enable: bool = False
    """Whether `send_async` waits while too much is on its way."""
    backpressure_send_num: int = 1_024
    """How many messages may be on their way then; at least 10."""
    backpressure_send_size: int = 100 * 1024 * 1024
    """How many bytes of bodies; at least 1 MiB."""
    enable_trace: bool = False
    """Whether each message leaves a trace."""
    trace_topic: str = TRACE_TOPIC
    """The topic of the traces."""
