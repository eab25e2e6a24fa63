# SPDX-License-Identifier: Apache-2.0
"""The settings of the methods, and the limits of what clients make them keep.

Defaults are those of the original where it has the setting; Java: ProxyConfig.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSettings:
    """What the methods allow, and how long they wait. Times are in ms."""

    max_message_size: int = 4 * 1024 * 1024
    """The most bytes of a body (maxMessageSize); 0 means any."""
    user_property_max_num: int = 128
    max_user_property_size: int = 16_384
    """The most bytes of user properties, tag and keys together."""
    max_message_group_size: int = 64
    max_delay_time_ms: int = 24 * HOUR_MS
    """How far ahead a delivery time may be (maxDelayTimeMills); 0 means that the broker decides."""
    max_transaction_recovery_s: int = 3_600
    enable_message_body_empty_check: bool = True
    enable_topic_message_type_check: bool = True
    auto_create_topics: bool = True
    """Whether a topic that nobody knows is made by what is sent to it, at brokers that do this for
    other clients (autoCreateTopicEnable); the original's proxy never makes one."""
    min_polling_ms: int = 5_000
    max_polling_ms: int = 20_000
    max_batch: int = 32
    min_invisible_ms: int = 10_000
    max_invisible_ms: int = 12 * HOUR_MS
    enable_proxy_auto_renew: bool = True
    default_invisible_ms: int = 60_000
    """For how long messages are hidden that the proxy keeps hidden (defaultInvisibleTimeMills)."""
    renew_max_ms: int = 3 * HOUR_MS
    """How long messages are kept hidden in all (renewMaxTimeMillis)."""
    renew_ordered_max_ms: int = HOUR_MS // 4
    """The same for messages in order, as each of them keeps all others of its queue waiting: the
    time that consumers have by default (consumeTimeoutMinute of the official client)."""
    enable_batch_ack: bool = False
    request_timeout_ms: int = 3_000
    """How long brokers and name servers may take to answer."""
    send_timeout_ms: int = 3_000
    max_clients: int = 20_000
    """How many clients may be known at a time."""
    max_clients_of_host: int = 4_000
    """How many of them may come from one address."""
    client_expiry_ms: int = 120_000
    """After which silence a client without a stream of telemetry is forgotten."""
    max_renewals: int = 200_000
    """How many messages are kept hidden for clients at a time; others come again after their
    first invisible time."""
    max_renewals_of_client: int = 20_000
    max_transactions: int = 100_000
    """How many half messages are remembered; the oldest are forgotten."""
    transaction_expiry_ms: int = HOUR_MS // 6
