# SPDX-License-Identifier: Apache-2.0
"""The proxy's settings, under the names of rmq-proxy.json.

`ProxyConfig` is about the port and the process, `MessagingConfig` about what calls do. Both are in
one file. Counterpart of ProxyConfig.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from txrocketmq.proxy.original_keys import PROXY_KEYS, PROXY_UNSERVED
from txrocketmq.remoting.settings.config_file import LARGEST_PORT, Unserved, setting
from txrocketmq.remoting.settings.peers_config import PortsConfig

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ProxyConfig(PortsConfig):
    """The settings of the port. Times are in milliseconds unless the name says otherwise."""

    IGNORED: ClassVar[Mapping[str, str | None]] = PROXY_KEYS
    UNSERVED: ClassVar[tuple[Unserved, ...]] = PROXY_UNSERVED

    grpc_server_port: int = setting(8081, most=LARGEST_PORT)
    """The port to listen on; 0 means any free port."""
    namesrv_addr: str = setting(lambda: os.environ.get("NAMESRV_ADDR", ""))
    """The name servers, as HOST:PORT, separated by semicolons; by default $NAMESRV_ADDR."""
    rocketmq_cluster_name: str = setting("DefaultCluster", java="rocketMQClusterName")
    """The cluster whose brokers are served."""
    proxy_mode: str = setting("CLUSTER")
    """How brokers are reached: CLUSTER, which is over the network."""
    use_tls: bool = setting(False, java="useTLS")
    """Whether connections to name servers and brokers are encrypted."""
    tls_test_mode_enable: bool = setting(True)
    """Whether encrypted connections get a certificate that is made at the start; otherwise it is
    read from tlsCertPath and tlsKeyPath."""
    tls_cert_path: str = setting("")
    """The file with the certificate, in PEM; it is read again when it has changed."""
    tls_key_path: str = setting("")
    """The file with its private key, in PEM."""
    tls_key_password: str = setting("")
    """The password of the private key, if it has one."""
    grpc_shutdown_time_seconds: int = setting(30)
    """For how many seconds calls may go on while the proxy stops; no new ones are taken."""
    grpc_max_inbound_message_size: int = setting(130 * MIB, least=1)
    """How many bytes one message of gRPC may have, such as a request to send."""
    grpc_client_idle_time_mills: int = setting(120_000, least=1_000)
    """After which time a connection is closed on which no call is open. One with open calls is
    closed if it does not answer for a while."""
    max_connections: int = setting(10_000, least=1)
    """How many connections may be open; more are closed at once."""
    max_concurrent_calls_per_connection: int = setting(1_000, least=1)
    """How many calls may be open on one connection; clients wait before they open more."""


@dataclass(frozen=True, slots=True)
class MessagingConfig:
    """The settings of what calls do. Times are in milliseconds unless the name says otherwise."""

    max_message_size: int = setting(4 * MIB)
    """How many bytes the body of a message may have; 0 means no limit of the proxy."""
    enable_message_body_empty_check: bool = setting(True)
    """Whether messages without a body are refused."""
    max_user_property_size: int = setting(16 * 1024)
    """How many bytes the properties of a message may have together; 0 means no limit."""
    user_property_max_num: int = setting(128)
    """How many properties a message may have."""
    max_message_group_size: int = setting(64)
    """How many characters the group of a FIFO message may have; 0 means no limit."""
    enable_topic_message_type_check: bool = setting(True)
    """Whether the type of a message must be that of its topic."""
    max_delay_time_mills: int = setting(86_400_000)
    """How far ahead the delivery time of a message may be."""
    max_transaction_recovery_second: int = setting(3_600)
    """How many seconds a message may ask to wait before its transaction is checked."""
    default_invisible_time_mills: int = setting(60_000)
    """How long a received message is hidden from others if its consumer renews that."""
    min_invisible_time_mills_for_recv: int = setting(10_000)
    """The shortest time for which a receiver may hide messages."""
    max_invisible_time_mills: int = setting(43_200_000)
    """The longest time for which messages may be hidden."""
    invisible_time_millis_when_clear: int = setting(1_000)
    """After which time others see the messages of a consumer that has gone."""
    grpc_client_producer_max_attempts: int = setting(3)
    """How often producers are told to try."""
    grpc_client_producer_backoff_initial_millis: int = setting(10)
    """How long producers are told to wait before the second try."""
    grpc_client_producer_backoff_max_millis: int = setting(1_000)
    """How long producers are told to wait at most."""
    grpc_client_producer_backoff_multiplier: int = setting(2)
    """By what producers are told to multiply their waits."""
    grpc_client_consumer_min_long_polling_timeout_millis: int = setting(5_000)
    """The shortest time that a receive waits for messages."""
    grpc_client_consumer_max_long_polling_timeout_millis: int = setting(20_000)
    """The longest time that a receive waits for messages."""
    grpc_client_consumer_long_polling_batch_size: int = setting(32)
    """How many messages consumers are told to receive at once."""
    grpc_proxy_relay_request_timeout_in_seconds: int = setting(5, effect=False)
    """Read and shown; clients are asked nothing that they answer."""
    use_endpoint_port_from_request: bool = setting(False, effect=False)
    """Read and shown; routes always have the endpoints by which the client came."""
    topic_route_service_cache_expired_seconds: int = setting(300)
    """After how many seconds without use the route of a topic is forgotten."""
    topic_route_service_cache_refresh_seconds: int = setting(20)
    """After how many seconds the route of a topic is asked for again."""
    topic_config_cache_expired_seconds: int = setting(300)
    """After how many seconds without use the type of a topic is forgotten."""
    topic_config_cache_refresh_seconds: int = setting(20)
    """After how many seconds the type of a topic is asked for again."""
    subscription_group_config_cache_expired_seconds: int = setting(300)
    """After how many seconds without use the settings of a group are forgotten."""
    subscription_group_config_cache_refresh_seconds: int = setting(20)
    """After how many seconds the settings of a group are asked for again."""
    transaction_heartbeat_period_second: int = setting(20, least=1)
    """The period in seconds in which brokers are told of producers with transactions."""
    transaction_heartbeat_batch_num: int = setting(100, least=1)
    """How many groups of producers one such message names at most."""
    transaction_data_expire_millis: int = setting(30_000, effect=False)
    """Read and shown; the id of a transaction says where it was begun, so nothing is forgotten."""
    transaction_data_max_num: int = setting(15, effect=False)
    """Read and shown; likewise."""
    enable_proxy_auto_renew: bool = setting(True)
    """Whether the proxy keeps messages hidden for as long as their consumers work on them."""
    max_renew_retry_times: int = setting(3)
    """After how many failures in a row messages are no longer kept hidden."""
    renew_ahead_time_millis: int = setting(10_000)
    """How long before its end the time of a hidden message is renewed."""
    renew_max_time_millis: int = setting(10_800_000)
    """How long a message may be kept hidden in all."""
    renew_schedule_period_millis: int = setting(5_000, least=100)
    """After which time it is tried again to keep a message hidden that could not be."""
    enable_batch_ack: bool = setting(False)
    """Whether acknowledgements are sent to brokers together."""
    auto_create_topic_enable: bool = setting(False)
    """Whether a topic is created by the first question for its route, if the brokers create topics
    by the first send. The original never does that."""
    region_id: str = setting("", effect=False)
    """Read and shown; clients of gRPC are not told of it."""
    trace_on: bool = setting(False, effect=False)
    """Read and shown; clients of gRPC are not told of it."""
