# SPDX-License-Identifier: Apache-2.0
"""The broker's settings, under the names of broker.conf.

Counterpart of BrokerConfig and of the listening half of NettyServerConfig. The store's settings are
in `store/config.py`; both are read from the same file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import ClassVar

from txrocketmq.broker.original_keys import BROKER_KEYS
from txrocketmq.remoting.config_file import ConfigError, setting

_ADDRESS = re.compile(r"(?:[^\s:]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})")


@dataclass
class BrokerConfig:
    """One broker. Times are in milliseconds unless the name says otherwise.

    All parts of a broker hold the same instance, which `become` alone changes: so a setting that
    may change while the broker runs counts at once, everywhere.
    """

    IGNORED: ClassVar[frozenset[str]] = BROKER_KEYS

    broker_name: str = setting("DEFAULT_BROKER")
    """Name of the broker; a master and its slaves share it."""
    broker_cluster_name: str = setting("DefaultCluster")
    """Cluster the broker registers in."""
    broker_id: int = setting(0)
    """0: master."""
    broker_ip1: str = setting("", java="brokerIP1")
    """Address or name that clients are told. Empty: the machine's own, else 127.0.0.1."""
    broker_ip2: str = setting("", java="brokerIP2")
    """Address for replication; empty: as brokerIP1."""
    bind_address: str = setting("0.0.0.0")
    """Address to listen on."""
    listen_port: int = setting(10911)
    """Main port; the VIP port is two below. 0: any free one."""
    namesrv_addr: str = setting("", live=True)
    """Name servers, "host:port" separated by semicolons."""
    rocketmq_home: str = setting("", effect=False)
    """Unused but for GET_BROKER_CONFIG."""
    broker_config_path: str = setting("")
    """The file given with -c; UPDATE_BROKER_CONFIG writes to it."""
    config_black_list: str = setting("configBlackList;brokerConfigPath", live=True)
    """Keys that UPDATE_BROKER_CONFIG refuses, separated by semicolons."""
    broker_permission: int = setting(6, live=True)
    """Permission bits of the broker, applied to every topic: 4 read, 2 write."""
    default_topic_queue_nums: int = setting(8)
    """Queues of the topic that new ones are modelled on (TBW102)."""
    auto_create_topic_enable: bool = setting(True)
    """Whether a send to an unknown topic makes it."""
    auto_create_subscription_group: bool = setting(True, live=True)
    """Whether a heartbeat or pull of an unknown group makes it."""
    cluster_topic_enable: bool = setting(True)
    """Whether the topic named as the cluster may be read and written."""
    broker_topic_enable: bool = setting(True)
    """Whether the topic named as the broker may be read and written."""
    trace_topic_enable: bool = setting(False)
    """Whether the trace topic is made at the start."""
    msg_trace_topic_name: str = setting("RMQ_SYS_TRACE_TOPIC")
    """Name of the trace topic."""
    revive_queue_num: int = setting(8)
    """Queues of the revive topic, which 5.x expects to exist."""
    region_id: str = setting("DefaultRegion")
    """Stored with each message and told to producers (MSG_REGION)."""
    trace_on: bool = setting(True)
    """Whether clients may trace messages of this broker (TRACE_ON)."""
    reject_transaction_message: bool = setting(False, effect=False)
    """Whether half messages are refused; they always are as long as they are not served."""
    start_accept_send_request_time_stamp: int = setting(0, live=True)
    """Time before which sends are refused, in ms since the epoch."""
    long_polling_enable: bool = setting(True, live=True)
    """Whether pulls wait as long as they ask to; else for shortPollingTimeMills."""
    short_polling_time_mills: int = setting(1_000, live=True)
    """How long a pull waits without long polling."""
    lite_pull_message_enable: bool = setting(True, live=True)
    """Whether LITE_PULL_MESSAGE is served."""
    slave_read_enable: bool = setting(False, live=True)
    """Whether consumers that lag are pointed to a slave."""
    notify_consumer_ids_changed_enable: bool = setting(True, live=True)
    """Whether consumers are told when others of their group come and go."""
    real_time_notify_consumer_change: bool = setting(True, live=True)
    """Whether they are told at once."""
    channel_expired_timeout: int = setting(120_000)
    """Age of the last heartbeat at which a client is forgotten."""
    server_channel_max_idle_time_seconds: int = setting(120)
    """Idle time in seconds at which a connection is closed; 0: never."""
    flush_consumer_offset_interval: int = setting(5_000, least=1)
    """How often consumer offsets are written to their file."""
    register_name_server_period: int = setting(30_000)
    """How often the broker registers; kept within 10 to 60 s."""
    register_broker_timeout_mills: int = setting(24_000)
    """How long a name server may take to answer."""
    force_register: bool = setting(True)
    """Whether to register even if no name server misses anything."""
    use_server_side_reset_offset: bool = setting(True, live=True)
    """Whether a reset of offsets is done here (5.x), or by telling the consumers (4.9)."""
    enable_property_filter: bool = setting(False, effect=False)
    """SQL92 filters; not served, so subscriptions that want them are refused."""
    filter_support_retry: bool = setting(False, effect=False)
    """Filters on retry topics; belongs to SQL92."""
    disable_consume_if_consumer_read_slowly: bool = setting(False, effect=False)
    """Whether groups that lag far behind are shut out."""
    enable_split_metadata: bool = setting(True)
    """Whether long lists of topics and groups are sent in pages."""
    split_metadata_size: int = setting(2_000, live=True)
    """Entries of a page."""
    validate_system_topic_when_update_topic: bool = setting(True, live=True)
    """Whether system topics are protected from UPDATE_AND_CREATE_TOPIC."""
    clear_retry_topic_when_delete_topic: bool = setting(True, live=True)
    """Whether deleting a topic deletes the pop retry topics of its groups."""
    server_load_balancer_enable: bool = setting(True, live=True)
    """Whether QUERY_ASSIGNMENT shares out queues; else it gives all to each."""
    default_message_request_mode: str = setting("PULL", effect=False)
    """How 5.x consumers that ask are to consume; always PULL, since POP is not served."""
    default_pop_share_queue_num: int = setting(-1, effect=False)
    """Belongs to POP."""
    enable_create_sys_group: bool = setting(True)
    """Whether groups of the broker's own are made where others are not."""

    def __post_init__(self) -> None:
        """ConfigError when the settings cannot be used."""
        for key, name in (
            ("brokerName", self.broker_name),
            ("brokerClusterName", self.broker_cluster_name),
        ):
            if not name.strip():
                raise ConfigError(f"{key} is empty: give it a name, or leave the line out")
        if self.listen_port != 0 and not 2 < self.listen_port < 65_535:
            raise ConfigError(
                "listenPort is 3 to 65534, or 0 for any free one, since the VIP port is two below"
                f" and the one for replication above, not {self.listen_port}"
            )
        for address in filter(None, map(str.strip, self.namesrv_addr.split(";"))):
            port = _ADDRESS.fullmatch(address)
            if port is None or not 0 < int(port[1]) < 65_536:
                raise ConfigError(
                    "namesrvAddr is addresses like 127.0.0.1:9876;192.168.0.1:9876,"
                    f" not {address!r}"
                )

    def become(self, other: BrokerConfig) -> None:
        """Takes all settings of another."""
        for each in fields(self):
            setattr(self, each.name, getattr(other, each.name))
