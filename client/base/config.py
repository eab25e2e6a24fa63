# SPDX-License-Identifier: Apache-2.0
"""Settings of a client and of its producers.

Defaults are the Java client's; times are in milliseconds. Counterpart of ClientConfig and of the
fields of DefaultMQProducer.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from txrocketmq.remoting.arguments.arguments import checked_settings, within
from txrocketmq.remoting.message.compression import DEFAULT_LEVEL, CompressionType
from txrocketmq.remoting.protocol.send import RETRY_RESPONSE_CODES

ADDRESS_SEPARATOR = ";"
DEFAULT_INSTANCE = "DEFAULT"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
MAX_MS = 2**53
"""For times that have no other limit."""
CREATE_TOPIC_KEY = "TBW102"
"""The topic whose route tells which brokers create topics (AUTO_CREATE_TOPIC_KEY_TOPIC)."""


def namesrv_addr_of_environment() -> str:
    """What $NAMESRV_ADDR says; empty when it is not set."""
    return os.environ.get("NAMESRV_ADDR", "")


def _of_environment(name: str) -> Any:
    return field(default_factory=lambda: os.environ.get(name, ""))


@within(
    poll_name_server_interval_ms=(1, MAX_MS),
    heartbeat_broker_interval_ms=(1, MAX_MS),
    api_timeout_ms=(1, MAX_MS),
)
@checked_settings
@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """One client: where the name servers are, who it is, how often it looks around."""

    namesrv_addr: str = field(default_factory=namesrv_addr_of_environment)
    """Addresses of name servers as HOST:PORT, separated by semicolons; by default $NAMESRV_ADDR."""
    client_ip: str = ""
    """The address in the client's id; empty means this machine's, as it faces the name server."""
    instance_name: str = DEFAULT_INSTANCE
    """The second part of the client's id. DEFAULT is replaced by the process id and the time."""
    keep_default_instance_name: bool = False
    """Whether DEFAULT is kept as it is, for files of offsets that are named after the client's id.
    """
    unit_name: str = ""
    """The third part of the client's id, if it is not empty."""
    poll_name_server_interval_ms: int = 30_000
    """The period in which the client asks for the routes of all topics that it uses."""
    heartbeat_broker_interval_ms: int = 30_000
    """The period in which the client sends heartbeats to the brokers."""
    api_timeout_ms: int = 3_000
    """How long name servers and brokers may take to answer requests other than sends and pulls."""
    namesrv_domain: str = ""
    """The host and port of an HTTP server that returns the addresses of name servers; it is asked
    when `namesrv_addr` is empty (rocketmq.namesrv.domain)."""
    namesrv_domain_subgroup: str = "nsaddr"
    """The last part of the path on that server (rocketmq.namesrv.domain.subgroup)."""
    namespace: str = ""
    """A prefix with which the names of topics and groups are sent (version 1 of namespaces)."""
    namespace_v2: str = ""
    """A namespace that is sent beside the names instead, which 5.x brokers understand."""
    unit_mode: bool = False
    """A mark that brokers receive with each message."""
    vip_channel_enabled: bool = False
    """Whether messages are sent to the port two below that of the broker."""
    use_heartbeat_v2: bool = False
    """Whether heartbeats contain the subscriptions only when changed, if the broker supports it."""
    access_key: str = _of_environment("ROCKETMQ_ACCESS_KEY")
    """The name of the account that signs requests (ACL); by default $ROCKETMQ_ACCESS_KEY."""
    secret_key: str = _of_environment("ROCKETMQ_SECRET_KEY")
    """The secret of that account; by default $ROCKETMQ_SECRET_KEY."""
    security_token: str = ""
    """The token that belongs to temporary keys."""
    use_tls: bool = False
    """Whether connections are encrypted."""
    tls_trust_cert_path: str | os.PathLike[str] = ""
    """A file of certificates in PEM by which servers are checked; empty: they are not checked."""
    tls_check_name: bool = False
    """Whether the certificate of a server must also be for the name or address in its address; this
    checks servers by the certificates of the system if no file of them is given."""
    tls_cert_path: str | os.PathLike[str] = ""
    """A file with the client's own certificate in PEM, for servers that ask for one."""
    tls_key_path: str | os.PathLike[str] = ""
    """A file with the private key of that certificate in PEM."""
    tls_key_password: str = _of_environment("ROCKETMQ_TLS_KEY_PASSWORD")
    """The password of that key, if it is encrypted; by default $ROCKETMQ_TLS_KEY_PASSWORD."""

    def __repr__(self) -> str:
        """Without the secrets: this is what reaches a log."""
        return f"ClientConfig(namesrv_addr={self.namesrv_addr!r})"

    @property
    def name_servers(self) -> tuple[str, ...]:
        """The addresses one by one."""
        parts = (part.strip() for part in self.namesrv_addr.split(ADDRESS_SEPARATOR))
        return tuple(part for part in parts if part)


@within(
    send_timeout_ms=(1, MAX_MS),
    retry_times=(0, 2**31 - 2),
    max_message_bytes=(1, 2**31 - 1),
    compress_body_over_bytes=(0, 2**31 - 1),
    compression_level=(0, 9),
    default_topic_queue_nums=(1, 2**31 - 1),
    detect_timeout_ms=(1, MAX_MS),
    detect_interval_ms=(1, MAX_MS),
)
@checked_settings
@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """How a producer sends. Sizes are in bytes."""

    send_timeout_ms: int = 3_000
    """How long a send may take, all its attempts together, from when it is taken up."""
    max_in_flight: int = 1_024
    """How many messages may be on their way, without an answer yet; while there are as many,
    further sends wait, in their order. While brokers answer late, it may be fewer."""
    max_in_flight_bytes: int = 32 * 1024 * 1024
    """The same limit in bytes of bodies."""
    max_block_ms: int = 60_000
    """How long a send may wait to be taken up because of these limits."""
    send_max_timeout_per_request_ms: int = -1
    """How long one attempt may take; -1 means as long as the whole send."""
    retry_times: int = 2
    """How often a failed send is repeated."""
    retry_another_broker_when_not_store_ok: bool = False
    """Whether a message that was stored, but not flushed or replicated in time, is sent again."""
    retry_response_codes: frozenset[int] = RETRY_RESPONSE_CODES
    """The answers after which another broker is tried."""
    max_message_bytes: int = 4 * 1024 * 1024
    """The size of the largest body, before compression."""
    compress_body_over_bytes: int = 4 * 1024
    """The size from which on bodies are compressed."""
    compression: CompressionType = CompressionType.ZLIB
    """The algorithm of the compression."""
    compression_level: int = DEFAULT_LEVEL
    """The level of the compression, from 0 to 9."""
    create_topic_key: str = CREATE_TOPIC_KEY
    """The topic that brokers use as a pattern when they create a topic."""
    default_topic_queue_nums: int = 4
    """How many queues a topic gets at most when a send creates it."""
    topics: tuple[str, ...] = ()
    """Topics whose routes are fetched at the start, so that the first send need not wait."""
    send_latency_fault_enable: bool = False
    """Whether brokers that were slow or failed are passed over for a while."""
    start_detector_enable: bool = False
    """Whether the client tries to connect to a broker that failed until it can be reached again."""
    detect_timeout_ms: int = 200
    """How long such an attempt may take."""
    detect_interval_ms: int = 2_000
    """The shortest period between two such attempts at one broker."""
    backpressure_enable: bool = False
    """Whether the call of `send_async` itself waits while too many messages are on their way,
    within the timeout of the send (enableBackpressureForAsyncMode)."""
    backpressure_send_num: int = 1_024
    """How many messages may be on their way then, instead of `max_in_flight`; at least 10."""
    backpressure_send_size: int = 100 * 1024 * 1024
    """How many bytes may be on their way then, instead of `max_in_flight_bytes`; at least 1 MiB."""
    enable_trace: bool = False
    """Whether each message leaves a trace."""
    trace_topic: str = TRACE_TOPIC
    """The topic to which traces are written."""

    def __post_init__(self) -> None:
        for name in ("max_in_flight", "max_in_flight_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.max_block_ms < 0:
            raise ValueError(f"max_block_ms must not be negative, as {self.max_block_ms} is")
