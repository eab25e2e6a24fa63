# SPDX-License-Identifier: Apache-2.0
"""Requests of mqadmin and similar tools: settings, cleaning, statistics, connections, clients.

Java: AdminBrokerProcessor; DefaultRequestProcessor of the name server for its own configuration;
ClientRemotingProcessor for what is relayed to a client.
"""

from __future__ import annotations

from txrocketmq.remoting.call import define
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.header import Header, Int, Long, NoHeader, field, header
from txrocketmq.remoting.protocol.base import RpcRequestHeader, TopicRequestHeader


@header("org.apache.rocketmq.remoting.protocol.header.GetBrokerConfigResponseHeader")
class GetBrokerConfigResponseHeader(Header):
    """The DataVersion of the broker's configuration, as JSON text; the body has the properties."""

    version: str


@header("org.apache.rocketmq.remoting.protocol.header.GetTopicStatsInfoRequestHeader")
class GetTopicStatsInfoRequestHeader(TopicRequestHeader):
    """Asks where each queue of a topic begins and ends."""

    topic: str


@header("org.apache.rocketmq.remoting.protocol.header.GetConsumeStatsRequestHeader")
class GetConsumeStatsRequestHeader(TopicRequestHeader):
    """Asks how far a group has come; the names in `topic_list` are separated by semicolons."""

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.GetConsumeStatsInBrokerHeader")
class GetConsumeStatsInBrokerHeader(Header):
    """Asks how far all groups of a broker have come; `is_order` limits it to order topics."""

    is_order: bool


@header("org.apache.rocketmq.remoting.protocol.header.GetConsumerConnectionListRequestHeader")
class GetConsumerConnectionListRequestHeader(RpcRequestHeader):
    """Asks for the connections of a group of consumers."""

    consumer_group: str


@header("org.apache.rocketmq.remoting.protocol.header.GetProducerConnectionListRequestHeader")
class GetProducerConnectionListRequestHeader(RpcRequestHeader):
    """Asks for the connections of a group of producers."""

    producer_group: str


@header("org.apache.rocketmq.remoting.protocol.header.QueryConsumeTimeSpanRequestHeader")
class QueryConsumeTimeSpanRequestHeader(TopicRequestHeader):
    """Asks when the messages of each queue were stored, and how far behind a group is."""

    topic: str
    group: str


@header("org.apache.rocketmq.remoting.protocol.header.ViewBrokerStatsDataRequestHeader")
class ViewBrokerStatsDataRequestHeader(Header):
    """Asks for one counter of the broker's statistics."""

    stats_name: str
    stats_key: str


@header("org.apache.rocketmq.remoting.protocol.header.GetConsumerRunningInfoRequestHeader")
class GetConsumerRunningInfoRequestHeader(RpcRequestHeader):
    """Asks what a consumer is doing; the broker relays the request to it.

    `jstack_enable` asks for the stacks of its threads, too.
    """

    consumer_group: str
    client_id: str
    jstack_enable: bool = False


@header("org.apache.rocketmq.remoting.protocol.header.ConsumeMessageDirectlyResultRequestHeader")
class ConsumeMessageDirectlyResultRequestHeader(TopicRequestHeader):
    """Makes a consumer consume one message now; the broker relays the request to it."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None


@header("org.apache.rocketmq.remoting.protocol.header.CheckRocksdbCqWriteProgressRequestHeader")
class CheckRocksdbCqWriteProgressRequestHeader(Header):
    """Makes the broker compare the consume queues in files with those in RocksDB."""

    topic: str
    check_store_time: Long = 0


@header("org.apache.rocketmq.remoting.protocol.header.ExportRocksDBConfigToJsonRequestHeader")
class ExportRocksDBConfigToJsonRequestHeader(Header):
    """Exports configuration tables, whose names are separated by semicolons in `config_type`."""

    config_type: str


@header("org.apache.rocketmq.common.protocol.header.filtersrv.RegisterFilterServerRequestHeader")
class RegisterFilterServerRequestHeader(Header):
    """Registers a filter server of 3.x and 4.x; no later version serves this request."""

    filter_server_addr: str


@header("org.apache.rocketmq.common.protocol.header.filtersrv.RegisterFilterServerResponseHeader")
class RegisterFilterServerResponseHeader(Header):
    """The broker to which the filter server belongs."""

    broker_name: str
    broker_id: Long


@header(
    "org.apache.rocketmq.common.protocol.header.filtersrv.RegisterMessageFilterClassRequestHeader"
)
class RegisterMessageFilterClassRequestHeader(Header):
    """Registers a filter class of 3.x and 4.x; no later version serves this request."""

    consumer_group: str
    topic: str
    class_name: str
    class_crc: Int = field(wire="classCRC")


@header("")
class SwitchTimerEngineRequestHeader(Header):
    """Chooses the timer: "F" (file) or "R" (RocksDB). The original has no class for this header."""

    engine_type: str | None = field(wire="E_T", default=None)


@header("")
class SetCommitLogReadModeRequestHeader(Header):
    """Sets how the commit log is read: 0 is normal, 1 is random.

    The original has no class for this header.
    """

    read_ahead_mode: str | None = field(wire="READ_AHEAD_MODE", default=None)


UPDATE_BROKER_CONFIG = define(RequestCode.UPDATE_BROKER_CONFIG, NoHeader, NoHeader)
GET_BROKER_CONFIG = define(RequestCode.GET_BROKER_CONFIG, NoHeader, GetBrokerConfigResponseHeader)
UPDATE_NAMESRV_CONFIG = define(RequestCode.UPDATE_NAMESRV_CONFIG, NoHeader, NoHeader)
GET_NAMESRV_CONFIG = define(RequestCode.GET_NAMESRV_CONFIG, NoHeader, NoHeader)
GET_BROKER_RUNTIME_INFO = define(RequestCode.GET_BROKER_RUNTIME_INFO, NoHeader, NoHeader)
TRIGGER_DELETE_FILES = define(RequestCode.TRIGGER_DELETE_FILES, NoHeader, NoHeader)
CLEAN_EXPIRED_CONSUMEQUEUE = define(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, NoHeader, NoHeader)
DELETE_EXPIRED_COMMITLOG = define(RequestCode.DELETE_EXPIRED_COMMITLOG, NoHeader, NoHeader)
CLEAN_UNUSED_TOPIC = define(RequestCode.CLEAN_UNUSED_TOPIC, NoHeader, NoHeader)
GET_TOPIC_STATS_INFO = define(
    RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsInfoRequestHeader, NoHeader
)
GET_CONSUME_STATS = define(RequestCode.GET_CONSUME_STATS, GetConsumeStatsRequestHeader, NoHeader)
GET_BROKER_CONSUME_STATS = define(
    RequestCode.GET_BROKER_CONSUME_STATS, GetConsumeStatsInBrokerHeader, NoHeader
)
QUERY_CONSUME_TIME_SPAN = define(
    RequestCode.QUERY_CONSUME_TIME_SPAN, QueryConsumeTimeSpanRequestHeader, NoHeader
)
VIEW_BROKER_STATS_DATA = define(
    RequestCode.VIEW_BROKER_STATS_DATA, ViewBrokerStatsDataRequestHeader, NoHeader
)
GET_CONSUMER_CONNECTION_LIST = define(
    RequestCode.GET_CONSUMER_CONNECTION_LIST, GetConsumerConnectionListRequestHeader, NoHeader
)
GET_PRODUCER_CONNECTION_LIST = define(
    RequestCode.GET_PRODUCER_CONNECTION_LIST, GetProducerConnectionListRequestHeader, NoHeader
)
GET_ALL_PRODUCER_INFO = define(RequestCode.GET_ALL_PRODUCER_INFO, NoHeader, NoHeader)
GET_CONSUMER_RUNNING_INFO = define(
    RequestCode.GET_CONSUMER_RUNNING_INFO, GetConsumerRunningInfoRequestHeader, NoHeader
)
CONSUME_MESSAGE_DIRECTLY = define(
    RequestCode.CONSUME_MESSAGE_DIRECTLY, ConsumeMessageDirectlyResultRequestHeader, NoHeader
)
SUSPEND_CONSUMER = define(RequestCode.SUSPEND_CONSUMER, NoHeader, NoHeader)
RESUME_CONSUMER = define(RequestCode.RESUME_CONSUMER, NoHeader, NoHeader)
ADJUST_CONSUMER_THREAD_POOL = define(RequestCode.ADJUST_CONSUMER_THREAD_POOL, NoHeader, NoHeader)
WHO_CONSUME_THE_MESSAGE = define(RequestCode.WHO_CONSUME_THE_MESSAGE, NoHeader, NoHeader)
REGISTER_FILTER_SERVER = define(
    RequestCode.REGISTER_FILTER_SERVER,
    RegisterFilterServerRequestHeader,
    RegisterFilterServerResponseHeader,
)
REGISTER_MESSAGE_FILTER_CLASS = define(
    RequestCode.REGISTER_MESSAGE_FILTER_CLASS, RegisterMessageFilterClassRequestHeader, NoHeader
)
GET_TIMER_CHECK_POINT = define(RequestCode.GET_TIMER_CHECK_POINT, NoHeader, NoHeader)
GET_TIMER_METRICS = define(RequestCode.GET_TIMER_METRICS, NoHeader, NoHeader)
SWITCH_TIMER_ENGINE = define(
    RequestCode.SWITCH_TIMER_ENGINE, SwitchTimerEngineRequestHeader, NoHeader
)
CHECK_ROCKSDB_CQ_WRITE_PROGRESS = define(
    RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS, CheckRocksdbCqWriteProgressRequestHeader, NoHeader
)
EXPORT_ROCKSDB_CONFIG_TO_JSON = define(
    RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON, ExportRocksDBConfigToJsonRequestHeader, NoHeader
)
UPDATE_COLD_DATA_FLOW_CTR_CONFIG = define(
    RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG, NoHeader, NoHeader
)
REMOVE_COLD_DATA_FLOW_CTR_CONFIG = define(
    RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, NoHeader, NoHeader
)
GET_COLD_DATA_FLOW_CTR_INFO = define(RequestCode.GET_COLD_DATA_FLOW_CTR_INFO, NoHeader, NoHeader)
SET_COMMITLOG_READ_MODE = define(
    RequestCode.SET_COMMITLOG_READ_MODE, SetCommitLogReadModeRequestHeader, NoHeader
)
