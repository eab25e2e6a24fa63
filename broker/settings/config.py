# SPDX-License-Identifier: Apache-2.0
"""The broker's settings, under the names of broker.conf.

Counterpart of BrokerConfig and of the listening half of NettyServerConfig. The store's settings are
in `store/formats/config.py`; both are read from the same file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from txrocketmq.access.acl.files import DEFAULT_FILE
from txrocketmq.access.auth.settings import AuthConfig
from txrocketmq.broker.settings.original_keys import BROKER_KEYS, BROKER_UNSERVED
from txrocketmq.remoting.message.pop import ORDER_REVIVE_QUEUE
from txrocketmq.remoting.message.topics import MAX_QUEUES
from txrocketmq.remoting.primitives.networks import is_host_and_port
from txrocketmq.remoting.process.java_options import system_properties
from txrocketmq.remoting.settings.config_file import (
    LARGEST_PORT,
    LONG_MAX,
    ConfigError,
    Unserved,
    setting,
)


def _plain_file() -> str:
    properties = system_properties(os.environ)
    return properties.get("rocketmq.acl.plain.file", (DEFAULT_FILE,))[0]


@dataclass(frozen=True)
class BrokerConfig(AuthConfig):
    """The settings of a broker. Times are in milliseconds unless the name says otherwise.

    All parts of a broker hold the same instance; see config_file.Configuration for how it changes.
    """

    IGNORED: ClassVar[Mapping[str, str | None]] = BROKER_KEYS
    UNSERVED: ClassVar[tuple[Unserved, ...]] = BROKER_UNSERVED

    broker_name: str = setting("DEFAULT_BROKER")
    """The name of the broker; a master and its slaves share it."""
    broker_cluster_name: str = setting("DefaultCluster")
    """The name of the cluster in which the broker registers."""
    broker_id: int = setting(0, most=LONG_MAX)
    """The id of the broker under its name; 0 is the master."""
    broker_ip1: str = setting("", java="brokerIP1")
    """The address or name that clients are told. Empty means the address that faces the name
    server, or else 127.0.0.1."""
    broker_ip2: str = setting("", java="brokerIP2")
    """The address for replication that name servers are told; empty means the same as brokerIP1."""
    use_tls: bool = setting(False, java="useTLS")
    """Whether connections that the server opens itself are encrypted. It is `true` by default if
    `tls.enable` is `true` or `tls.server.mode` is `enforcing`."""
    listen_port: int = setting(10911, most=LARGEST_PORT)
    """The main port; the VIP port is two below it. 0 means any free port."""
    advertised_port: int = setting(0, most=LARGEST_PORT)
    """The port that clients are told together with brokerIP1, for when another port leads to this
    broker, such as the mapped port of a container. Clients that use the VIP channel connect to the
    port two below it. 0 means listenPort."""
    namesrv_addr: str = setting("", live=True)
    """The addresses of the name servers as HOST:PORT, separated by semicolons."""
    rocketmq_home: str = setting(lambda: os.environ.get("ROCKETMQ_HOME", ""))
    """The folder with conf/plain_acl.yml and conf/acl, the accounts of aclEnable. By default it is
    that of the environment variable ROCKETMQ_HOME; without aclEnable it is not used."""
    acl_enable: bool = setting(False)
    """Whether each request needs the signature of an account of RocketMQ 4.x (ACL 1), from files
    of YAML. Use authenticationEnabled instead of it for the users of 5.x; both cannot be on."""
    acl_plain_file: str = setting(_plain_file)
    """The file, seen from rocketmqHome, to which accounts are added with aclEnable. By default it
    is that of the system property rocketmq.acl.plain.file in JAVA_OPT, or conf/plain_acl.yml."""
    broker_config_path: str = setting("")
    """The file given with -c, to which UPDATE_BROKER_CONFIG writes."""
    config_black_list: str = setting("configBlackList;brokerConfigPath")
    """The keys that UPDATE_BROKER_CONFIG refuses, separated by semicolons."""
    broker_permission: int = setting(6, live=True, most=7)
    """The permission bits of the broker, which limit those of topics: 4 is reading, 2 is writing.
    """
    default_topic_queue_nums: int = setting(8, least=1, most=MAX_QUEUES)
    """The number of queues of the topic that serves as a pattern for new ones (TBW102)."""
    auto_create_topic_enable: bool = setting(True, live=True)
    """Whether sending to an unknown topic creates it."""
    auto_create_topic_names: tuple[str, ...] = setting(())
    """The names of topics that sending may create, such as `orders-*;test`, separated by
    semicolons; `*` stands for any text. Empty means any name. Administrators, retry topics and
    dead-letter topics are not limited by it."""
    auto_create_subscription_group: bool = setting(True, live=True)
    """Whether a heartbeat or a pull of an unknown consumer group creates the group."""
    auto_create_limit: int = setting(100_000, live=True, least=1)
    """How many topics there may be before sends to unknown topics are refused instead of creating
    more, and how many groups before heartbeats and pulls are. Retry topics and dead-letter topics
    are counted by themselves: as many of each are created. Administrators can create more."""
    cluster_topic_enable: bool = setting(True)
    """Whether the topic that is named like the cluster can be read and written."""
    broker_topic_enable: bool = setting(True)
    """Whether the topic that is named like the broker can be read and written."""
    trace_topic_enable: bool = setting(False)
    """Whether the trace topic is created at the start."""
    msg_trace_topic_name: str = setting("RMQ_SYS_TRACE_TOPIC")
    """The name of the trace topic."""
    revive_queue_num: int = setting(8, least=1, most=ORDER_REVIVE_QUEUE)
    """The number of queues of the revive topic, which records what groups have popped."""
    region_id: str = setting("DefaultRegion", live=True)
    """The region that is stored with each message and told to producers (MSG_REGION)."""
    trace_on: bool = setting(True, live=True)
    """Whether clients may trace messages of this broker (TRACE_ON)."""
    reject_transaction_message: bool = setting(False, live=True)
    """Whether half messages are refused."""
    transaction_time_out: int = setting(6_000, live=True, most=LONG_MAX)
    """How old a half message is when its producer may first be asked about it."""
    transaction_check_max: int = setting(15, live=True)
    """How often producers are asked about a half message before the broker gives it up."""
    transaction_check_interval: int = setting(30_000, live=True, least=1)
    """The period between two searches for half messages whose producers have to be asked."""
    transaction_metric_flush_interval: int = setting(10_000, least=1)
    """The period between two writes of the numbers of open half messages to their file."""
    recall_message_enable: bool = setting(False, live=True)
    """Whether producers can withdraw timer messages."""
    allow_recall_when_broker_not_writeable: bool = setting(True, live=True)
    """Whether timer messages can be withdrawn even when brokerPermission does not allow writing."""
    store_reply_message_enable: bool = setting(True, live=True)
    """Whether replies to requests are stored, besides being passed on to the client that asked."""
    start_accept_send_request_time_stamp: int = setting(0, live=True, most=LONG_MAX)
    """The time before which sends are refused, in milliseconds since the epoch."""
    long_polling_enable: bool = setting(True, live=True)
    """Whether pulls wait as long as they ask to for messages, not for shortPollingTimeMills."""
    short_polling_time_mills: int = setting(1_000, live=True, least=1)
    """How long a pull waits when long polling is off."""
    lite_pull_message_enable: bool = setting(True, live=True)
    """Whether LITE_PULL_MESSAGE is served."""
    slave_read_enable: bool = setting(False, live=True)
    """Whether consumers that lag are directed to a slave."""
    notify_consumer_ids_changed_enable: bool = setting(True, live=True)
    """Whether consumers are told when members join or leave their group."""
    real_time_notify_consumer_change: bool = setting(True, live=True)
    """Whether consumers are told of changed members at once; otherwise every 15 seconds."""
    channel_expired_timeout: int = setting(120_000, least=1)
    """How long after its last heartbeat a client is forgotten."""
    flush_consumer_offset_interval: int = setting(5_000, least=1)
    """The longest period between two writes of changed consumer offsets to their file."""
    register_name_server_period: int = setting(30_000)
    """The period between two registrations at the name servers, at least 10 s and at most 60 s."""
    register_broker_timeout_mills: int = setting(24_000, live=True, least=1)
    """How long a name server may take to answer a registration."""
    force_register: bool = setting(True, live=True)
    """Whether to register in each period even if no name server lacks anything."""
    use_server_side_reset_offset: bool = setting(True, live=True)
    """Whether the broker itself resets offsets (as 5.x does); otherwise it tells the consumers to
    do so (as 4.9 does)."""
    enable_broadcast_offset_store: bool = setting(True, live=True)
    """Whether the broker keeps the offsets of members of broadcasting groups."""
    broadcast_offset_expire_second: int = setting(120, live=True, least=1)
    """After how many seconds without a pull a member that has left is forgotten."""
    broadcast_offset_expire_max_second: int = setting(300, live=True, least=1)
    """After how many seconds without a pull a member that is still connected is forgotten."""
    enable_property_filter: bool = setting(False, live=True)
    """Whether consumers may filter by SQL92 expressions."""
    filter_support_retry: bool = setting(False, live=True)
    """Whether an SQL92 subscription to a retry topic filters by that to the original topic."""
    enable_calc_filter_bit_map: bool = setting(False, live=True)
    """Whether ext files record which groups select a message; this needs enableConsumeQueueExt."""
    expect_consumer_num_use_filter: int = setting(32, least=1)
    """The number of groups filtering one topic for which the bitmaps are dimensioned."""
    max_error_rate_of_bloom_filter: int = setting(20, least=1, most=99)
    """How many of 100 messages that do not match a group's filter may pass the bitmap."""
    filter_data_clean_time_span: int = setting(24 * 3600 * 1000, live=True, most=LONG_MAX)
    """How long a filter is kept after the last consumer of its group has left."""
    enable_controller_mode: bool = setting(False)
    """Whether controllers of 5.x choose which broker of the name is master, so that another one
    takes over by itself; brokerRole and brokerId of the file have no meaning then."""
    controller_addr: str = setting("")
    """With enableControllerMode: where the controllers are, HOST:PORT, separated by semicolons."""
    sync_controller_metadata_period: int = setting(10_000, least=1)
    """With enableControllerMode: how often the leader among the controllers is looked for."""
    sync_broker_metadata_period: int = setting(5_000, least=1)
    """With enableControllerMode: how often the controller is asked who is master."""
    check_sync_state_set_period: int = setting(5_000, least=1)
    """With enableControllerMode: how often a master looks which slaves are in sync no more."""
    controller_heart_beat_timeout_mills: int = setting(10_000, least=1)
    """With enableControllerMode: after which silence a controller takes this broker to be gone."""
    broker_election_priority: int = setting(2_147_483_647)
    """With enableControllerMode: of brokers that have as many messages, a controller chooses the
    one with the smallest number."""
    enable_slave_acting_master: bool = setting(False)
    """Whether, as in 5.x, the slave with the smallest id acts as master while there is none, and a
    broker that comes back is not online before it has what the others of its name know. It is to be
    the same at all brokers of a name, with supportActingMaster at the name servers."""
    enable_remote_escape: bool = setting(False)
    """Whether a slave that acts as master delivers delayed messages and timers that are due,
    messages that consumers get again, half messages, and popped messages that were not acknowledged
    in time, by way of other masters of the cluster."""
    skip_pre_online: bool = setting(False)
    """Whether a broker with enableSlaveActingMaster and totalReplicas above 1 is online at once."""
    broker_heartbeat_interval: int = setting(1_000, least=1)
    """With enableSlaveActingMaster: the period between two heartbeats to name servers."""
    broker_not_active_timeout_millis: int = setting(10_000, least=1)
    """With enableSlaveActingMaster: after which silence name servers take a broker to be gone."""
    sync_broker_member_group_period: int = setting(1_000, least=1)
    """With enableSlaveActingMaster: how often name servers are asked for the brokers of the name.
    """
    compatible_with_old_name_srv: bool = setting(True)
    """With enableSlaveActingMaster: whether heartbeats and the brokers of a name go by requests
    that name servers of 4.x serve as well."""
    lock_in_strict_mode: bool = setting(False)
    """Whether a queue is locked for an orderly consumer only if most of totalReplicas brokers lock
    it; this needs enableSlaveActingMaster unless totalReplicas is 1."""
    disable_consume_if_consumer_read_slowly: bool = setting(False, effect=False)
    """Whether groups that lag far behind are shut out."""
    enable_split_metadata: bool = setting(True, live=True)
    """Whether long lists of topics and groups are sent in pages."""
    split_metadata_size: int = setting(2_000, live=True, least=1)
    """The number of entries of such a page."""
    enable_split_registration: bool = setting(False, live=True)
    """Whether topics are registered in parts, as they always are if they do not fit in one frame.
    """
    split_registration_size: int = setting(800, live=True, least=1)
    """The number of topics in such a part."""
    validate_system_topic_when_update_topic: bool = setting(True, live=True)
    """Whether system topics are protected from UPDATE_AND_CREATE_TOPIC."""
    enable_mixed_message_type: bool = setting(False, live=True)
    """Whether topics of `message.type=MIXED`, for messages of all types, can be created."""
    clear_retry_topic_when_delete_topic: bool = setting(True, live=True)
    """Whether deleting a topic also deletes the retry topics into which its popped messages go."""
    server_load_balancer_enable: bool = setting(True, live=True)
    """Whether QUERY_ASSIGNMENT distributes the queues among the members; otherwise each member gets
    all of them."""
    default_message_request_mode: str = setting("PULL", live=True)
    """PULL or POP: how 5.x consumers that ask the broker consume a topic without a mode."""
    default_pop_share_queue_num: int = setting(-1, live=True, least=-1)
    """With how many other members a client that pops shares its queues; -1 means that all members
    pop all queues."""
    revive_interval: int = setting(1_000, least=1)
    """The period between two reads of the revive topic, in which messages that were not
    acknowledged are brought back."""
    enable_pop_buffer_merge: bool = setting(False, live=True)
    """Whether the check points of popped messages are kept in memory for a while, and are never
    written if everything is acknowledged soon. After a crash, such messages are delivered again."""
    pop_ck_stay_buffer_time: int = setting(10_000, live=True)
    """How long a check point is kept in memory at most."""
    pop_ck_stay_buffer_time_out: int = setting(3_000, live=True)
    """How long before the end of its invisible time a check point is written."""
    pop_ck_max_buffer_size: int = setting(200_000, live=True)
    """How many check points are kept in memory at most; further ones are written at once."""
    pop_ck_offset_max_queue_size: int = setting(20_000, live=True)
    """How many check points of one queue and group are kept in memory at most."""
    enable_pop_batch_ack: bool = setting(False, live=True)
    """Whether acknowledgements that were kept in memory are written as one record for each pop."""
    pop_polling_size: int = setting(1_024, live=True)
    """How many pops of a group may wait at one queue."""
    max_pop_polling_size: int = setting(100_000, live=True)
    """How many pops may wait altogether."""
    pop_from_retry_probability: int = setting(20, live=True, most=100)
    """How many of 100 pops take messages that are delivered again before new ones."""
    pop_from_retry_probability_for_priority: int = setting(0, live=True, most=100)
    """How many of 100 pops that go by the priority of messages take messages that are delivered
    again before new ones."""
    priority_order_asc: bool = setting(True, live=True)
    """Whether a pop that goes by priority begins with the queue of the highest number; otherwise it
    begins with the lowest."""
    enable_retry_topic_v2: bool = setting(False, live=True)
    """Whether messages are delivered again by %RETRY%group+topic instead of %RETRY%group_topic."""
    retrieve_message_from_pop_retry_topic_v1: bool = setting(True, live=True)
    """Whether, with enableRetryTopicV2, messages in %RETRY%group_topic are popped as well."""
    pop_response_return_actual_retry_topic: bool = setting(False, live=True)
    """Whether messages that are delivered again carry the name of their retry topic; otherwise they
    look as if they came from the original topic."""
    init_pop_offset_by_check_msg_in_mem: bool = setting(True, live=True)
    """Whether a group that begins with new messages starts with the first one of a young queue."""
    enable_notify_after_pop_order_lock_release: bool = setting(True, live=True)
    """Whether waiting pops are told when a queue that was popped in order is free again."""
    enable_pop_message_threshold: bool = setting(False, live=True)
    """Whether a group gets nothing from a queue while too many messages are not acknowledged."""
    pop_inflight_message_threshold: int = setting(10_000, live=True)
    """The most unacknowledged messages of a group in a queue with enablePopMessageThreshold."""
    skip_when_ck_re_put_reach_max_times: bool = setting(
        False, live=True, java="skipWhenCKRePutReachMaxTimes"
    )
    """Whether the broker gives up a message that it could not bring back in 17 attempts."""
    enable_create_sys_group: bool = setting(True, live=True)
    """Whether the groups that belong to the broker itself are created although others are not."""

    def __post_init__(self) -> None:
        """Checks the settings; raises ConfigError when they cannot be used."""
        super().__post_init__()
        for key, name in (
            ("brokerName", self.broker_name),
            ("brokerClusterName", self.broker_cluster_name),
        ):
            if not name.strip():
                raise ConfigError(f"{key} is empty: give it a name, or leave the line out")
        if self.acl_enable and (self.authentication_enabled or self.authorization_enabled):
            raise ConfigError(
                "aclEnable and authenticationEnabled are two kinds of access control, of RocketMQ 4"
                " and of 5: take one of them out"
            )
        key = "aclEnable" if self.acl_enable else "migrateAuthFromV1Enabled"
        needs_home = self.acl_enable or self.migrate_auth_from_v1_enabled
        if needs_home and not self.rocketmq_home.strip():
            raise ConfigError(
                f"{key}=true needs rocketmqHome, the folder whose conf/plain_acl.yml and"
                " conf/acl have the accounts: set it, or ROCKETMQ_HOME in the environment"
            )
        if self.default_message_request_mode not in ("PULL", "POP"):
            raise ConfigError(
                "defaultMessageRequestMode must be PULL or POP,"
                f" not {self.default_message_request_mode!r}"
            )
        if self.enable_controller_mode:
            self._check_controllers()
        if self.listen_port != 0 and not 2 < self.listen_port < 65_535:
            raise ConfigError(
                "listenPort must be 3 to 65534, or 0 for any free one, since the VIP port is two"
                f" below and the one for replication above, not {self.listen_port}"
            )
        if self.advertised_port != 0 and not 2 < self.advertised_port < 65_536:
            raise ConfigError(
                "advertisedPort must be 3 to 65535, or 0 for listenPort, since clients look for"
                f" the VIP port two below, not {self.advertised_port}"
            )
        addresses = [each for each in map(str.strip, self.namesrv_addr.split(";")) if each]
        if self.namesrv_addr.strip() and not addresses:
            addresses = [self.namesrv_addr]  # only separators, which name nobody
        for address in addresses:
            if not is_host_and_port(address):
                raise ConfigError(
                    "namesrvAddr must be addresses like 127.0.0.1:9876;192.168.0.1:9876,"
                    f" not {address!r}"
                )

    def _check_controllers(self) -> None:
        """Raises ConfigError when no controller can be asked."""
        addresses = list(map(str.strip, self.controller_addr.split(";")))
        if not all(map(is_host_and_port, filter(None, addresses))) or not any(addresses):
            raise ConfigError(
                "enableControllerMode=true needs controllerAddr, the addresses of the controllers"
                f" like 127.0.0.1:9878;192.168.0.1:9878, not {self.controller_addr!r}"
            )
        if not self.listen_port:
            raise ConfigError(
                "enableControllerMode=true needs a listenPort that stays the same: the controller"
                " tells the others where this broker is"
            )
        if self.enable_slave_acting_master:
            raise ConfigError(
                "enableControllerMode and enableSlaveActingMaster are two ways to go on without a"
                " master: take one of them out"
            )
