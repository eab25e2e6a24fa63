# SPDX-License-Identifier: Apache-2.0
"""The broker's settings, under the names of broker.conf.

Counterpart of BrokerConfig and of the listening half of NettyServerConfig. The store's settings are
in `store/config.py`; both are read from the same file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from txrocketmq.broker.original_keys import BROKER_KEYS, BROKER_UNSERVED
from txrocketmq.remoting.config_file import ConfigError, Unserved, setting
from txrocketmq.remoting.metrics_config import MetricsConfig

_PERCENT = 100
_ADDRESS = re.compile(r"(?:[^\s:]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})")


@dataclass(frozen=True)
class BrokerConfig(MetricsConfig):
    """One broker. Times are in milliseconds unless the name says otherwise.

    All parts of a broker hold the same instance; see config_file.Configuration for how it changes.
    """

    IGNORED: ClassVar[Mapping[str, str | None]] = BROKER_KEYS
    UNSERVED: ClassVar[tuple[Unserved, ...]] = BROKER_UNSERVED

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
    advertised_port: int = setting(0)
    """Port that clients are told with brokerIP1, where another one leads here, as a container's
    mapped port does; those who use the VIP channel look two below it. 0: listenPort."""
    namesrv_addr: str = setting("", live=True)
    """Name servers, "host:port" separated by semicolons."""
    rocketmq_home: str = setting(lambda: os.environ.get("ROCKETMQ_HOME", ""), effect=False)
    """Unused but for GET_BROKER_CONFIG."""
    broker_config_path: str = setting("")
    """The file given with -c; UPDATE_BROKER_CONFIG writes to it."""
    config_black_list: str = setting("configBlackList;brokerConfigPath")
    """Keys that UPDATE_BROKER_CONFIG refuses, separated by semicolons."""
    broker_permission: int = setting(6, live=True, least=0)
    """Permission bits of the broker, applied to every topic: 4 read, 2 write."""
    default_topic_queue_nums: int = setting(8)
    """Queues of the topic that new ones are modelled on (TBW102)."""
    auto_create_topic_enable: bool = setting(True, live=True)
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
    revive_queue_num: int = setting(8, least=1)
    """Queues of the revive topic, where it is written down what groups have popped."""
    region_id: str = setting("DefaultRegion", live=True)
    """Stored with each message and told to producers (MSG_REGION)."""
    trace_on: bool = setting(True, live=True)
    """Whether clients may trace messages of this broker (TRACE_ON)."""
    reject_transaction_message: bool = setting(False, live=True)
    """Whether half messages are refused."""
    transaction_time_out: int = setting(6_000, live=True)
    """Age of a half message at which its producer may first be asked for it."""
    transaction_check_max: int = setting(15, live=True)
    """How often a producer is asked for a half message before that is given up."""
    transaction_check_interval: int = setting(30_000, live=True, least=1)
    """How often the broker looks for half messages whose producers are to be asked."""
    transaction_metric_flush_interval: int = setting(10_000, least=1)
    """How often the numbers of open half messages are written to their file."""
    recall_message_enable: bool = setting(False, live=True)
    """Whether producers may take back timer messages."""
    allow_recall_when_broker_not_writeable: bool = setting(True, live=True)
    """Whether they may also when brokerPermission allows no writing."""
    store_reply_message_enable: bool = setting(True, live=True)
    """Whether replies to requests are stored, beside being handed to who asked."""
    start_accept_send_request_time_stamp: int = setting(0, live=True, least=0)
    """Time before which sends are refused, in ms since the epoch."""
    long_polling_enable: bool = setting(True, live=True)
    """Whether pulls wait as long as they ask to; else for shortPollingTimeMills."""
    short_polling_time_mills: int = setting(1_000, live=True, least=1)
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
    register_broker_timeout_mills: int = setting(24_000, live=True, least=1)
    """How long a name server may take to answer."""
    force_register: bool = setting(True, live=True)
    """Whether to register even if no name server misses anything."""
    use_server_side_reset_offset: bool = setting(True, live=True)
    """Whether a reset of offsets is done here (5.x), or by telling the consumers (4.9)."""
    enable_broadcast_offset_store: bool = setting(True, live=True)
    """Whether the broker remembers how far members of broadcasting groups have pulled."""
    broadcast_offset_expire_second: int = setting(120, live=True, least=1)
    """After how many seconds without a pull a member that has left is forgotten."""
    broadcast_offset_expire_max_second: int = setting(300, live=True, least=1)
    """After how many one is forgotten that is still there."""
    enable_property_filter: bool = setting(False, live=True)
    """Whether consumers may filter by SQL92 expressions."""
    filter_support_retry: bool = setting(False, live=True)
    """Whether an SQL92 subscription to a retry topic filters by the one to the original topic."""
    enable_calc_filter_bit_map: bool = setting(False, live=True)
    """Whether ext files of queues tell which groups want a message; with enableConsumeQueueExt."""
    expect_consumer_num_use_filter: int = setting(32, least=1)
    """For how many groups that filter one topic a bitmap is made."""
    max_error_rate_of_bloom_filter: int = setting(20, least=1)
    """Of 100 messages that a group does not want, so many pass the bitmap all the same; 1 to 99."""
    filter_data_clean_time_span: int = setting(24 * 3600 * 1000, live=True)
    """How long a filter is kept after its group's last consumer has left."""
    disable_consume_if_consumer_read_slowly: bool = setting(False, effect=False)
    """Whether groups that lag far behind are shut out."""
    enable_split_metadata: bool = setting(True, live=True)
    """Whether long lists of topics and groups are sent in pages."""
    split_metadata_size: int = setting(2_000, live=True, least=1)
    """Entries of a page."""
    validate_system_topic_when_update_topic: bool = setting(True, live=True)
    """Whether system topics are protected from UPDATE_AND_CREATE_TOPIC."""
    clear_retry_topic_when_delete_topic: bool = setting(True, live=True)
    """Whether deleting a topic deletes the pop retry topics of its groups."""
    server_load_balancer_enable: bool = setting(True, live=True)
    """Whether QUERY_ASSIGNMENT shares out queues; else it gives all to each."""
    default_message_request_mode: str = setting("PULL", live=True)
    """How 5.x consumers that ask are to consume where nothing else was set: PULL or POP."""
    default_pop_share_queue_num: int = setting(-1, live=True)
    """With how many others a client that pops shares its queues; -1: all pop all queues."""
    revive_interval: int = setting(1_000, least=1)
    """How often the revive topic is read, and messages are brought back."""
    enable_pop_buffer_merge: bool = setting(False, live=True)
    """Whether what is popped is kept in memory for a while, and not written if all is acknowledged
    soon. A crash brings it back."""
    pop_ck_stay_buffer_time: int = setting(10_000, live=True, least=0)
    """How long it is kept there at most."""
    pop_ck_stay_buffer_time_out: int = setting(3_000, live=True, least=0)
    """How long before its invisible time is over it is written."""
    pop_ck_max_buffer_size: int = setting(200_000, live=True, least=0)
    """How many pops are kept there at most; others are written at once."""
    pop_ck_offset_max_queue_size: int = setting(20_000, live=True, least=0)
    """How many of them of one queue and group."""
    enable_pop_batch_ack: bool = setting(False, live=True)
    """Whether acknowledgements that were kept in memory are written as one record for each pop."""
    pop_polling_size: int = setting(1_024, live=True, least=0)
    """How many pops of a group may wait at one queue."""
    max_pop_polling_size: int = setting(100_000, live=True, least=0)
    """How many pops may wait at all."""
    pop_from_retry_probability: int = setting(20, live=True, least=0)
    """Of 100 pops, so many take messages that come back before others."""
    enable_retry_topic_v2: bool = setting(False, live=True)
    """Whether messages that come back go to %RETRY%group+topic, instead of %RETRY%group_topic."""
    retrieve_message_from_pop_retry_topic_v1: bool = setting(True, live=True)
    """Whether those that are in %RETRY%group_topic are popped then, too."""
    pop_response_return_actual_retry_topic: bool = setting(False, live=True)
    """Whether messages that come back say so, or look as if they came from their topic."""
    init_pop_offset_by_check_msg_in_mem: bool = setting(True, live=True)
    """Whether a new group that wants new messages only begins with the first of a young queue."""
    enable_notify_after_pop_order_lock_release: bool = setting(True, live=True)
    """Whether waiting pops are told that a queue that was popped in order is free again."""
    enable_pop_message_threshold: bool = setting(False, live=True)
    """Whether a group gets no more of a queue while too much of it is not acknowledged."""
    pop_inflight_message_threshold: int = setting(10_000, live=True, least=0)
    """How much that is, in messages."""
    skip_when_ck_re_put_reach_max_times: bool = setting(
        False, live=True, java="skipWhenCKRePutReachMaxTimes"
    )
    """Whether a message that cannot be brought back in 17 attempts is given up."""
    enable_create_sys_group: bool = setting(True, live=True)
    """Whether groups of the broker's own are made where others are not."""

    def __post_init__(self) -> None:
        """ConfigError when the settings cannot be used."""
        super().__post_init__()
        for key, name in (
            ("brokerName", self.broker_name),
            ("brokerClusterName", self.broker_cluster_name),
        ):
            if not name.strip():
                raise ConfigError(f"{key} is empty: give it a name, or leave the line out")
        if self.default_message_request_mode not in ("PULL", "POP"):
            raise ConfigError(
                "defaultMessageRequestMode is PULL or POP,"
                f" not {self.default_message_request_mode!r}"
            )
        if self.max_error_rate_of_bloom_filter >= _PERCENT:
            raise ConfigError(
                "maxErrorRateOfBloomFilter is 1 to 99 percent,"
                f" not {self.max_error_rate_of_bloom_filter}"
            )
        if self.listen_port != 0 and not 2 < self.listen_port < 65_535:
            raise ConfigError(
                "listenPort is 3 to 65534, or 0 for any free one, since the VIP port is two below"
                f" and the one for replication above, not {self.listen_port}"
            )
        if self.advertised_port != 0 and not 2 < self.advertised_port < 65_536:
            raise ConfigError(
                "advertisedPort is 3 to 65535, or 0 for listenPort, since clients look for the VIP"
                f" port two below, not {self.advertised_port}"
            )
        for address in filter(None, map(str.strip, self.namesrv_addr.split(";"))):
            port = _ADDRESS.fullmatch(address)
            if port is None or not 0 < int(port[1]) < 65_536:
                raise ConfigError(
                    "namesrvAddr is addresses like 127.0.0.1:9876;192.168.0.1:9876,"
                    f" not {address!r}"
                )
