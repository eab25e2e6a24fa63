# SPDX-License-Identifier: Apache-2.0
"""Topics and subscription groups: create, change, delete, list, permissions.

The Java counterpart is DefaultRequestProcessor for codes that a name server serves, else the
broker's AdminBrokerProcessor.
"""

from __future__ import annotations

from txrocketmq.remoting.call import define
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.header import Header, Int, NoHeader, header
from txrocketmq.remoting.protocol.base import RpcRequestHeader, TopicRequestHeader


@header("org.apache.rocketmq.remoting.protocol.header.CreateTopicRequestHeader")
class CreateTopicRequestHeader(TopicRequestHeader):
    """Creates or changes a topic; `attributes` are written as "+key=value,-key"."""

    topic: str
    default_topic: str
    read_queue_nums: Int
    write_queue_nums: Int
    perm: Int
    topic_filter_type: str
    topic_sys_flag: Int | None = None
    order: bool = False
    attributes: str | None = None
    force: bool = False


@header("org.apache.rocketmq.remoting.protocol.header.CreateTopicListRequestHeader")
class CreateTopicListRequestHeader(RpcRequestHeader):
    """Creates topics. It has no field of its own; the body is CreateTopicListRequestBody."""


@header("org.apache.rocketmq.remoting.protocol.header.DeleteTopicRequestHeader")
class DeleteTopicRequestHeader(TopicRequestHeader):
    """Deletes a topic from a broker."""

    topic: str


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.DeleteTopicFromNamesrvRequestHeader")
class DeleteTopicFromNamesrvRequestHeader(TopicRequestHeader):
    """Deletes a topic from a name server, or only its queues in one cluster."""

    topic: str
    cluster_name: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.namesrv.RegisterTopicRequestHeader")
class RegisterTopicRequestHeader(TopicRequestHeader):
    """Registers one topic at a name server; the body is TopicRouteData."""

    topic: str


@header("org.apache.rocketmq.remoting.protocol.header.GetAllTopicConfigRequestHeader")
class GetAllTopicConfigRequestHeader(Header):
    """Asks for a page of the topics' configurations, from number `topic_seq` on.

    Callers of 4.9 and older send no field and ask for all topics.
    """

    topic_seq: Int | None = None
    data_version: str | None = None
    max_topic_num: Int | None = None


@header("org.apache.rocketmq.remoting.protocol.header.GetAllTopicConfigResponseHeader")
class GetAllTopicConfigResponseHeader(Header):
    """How many topics there are; 4.9 does not say."""

    total_topic_num: Int | None = None


@header("org.apache.rocketmq.remoting.protocol.header.GetTopicConfigRequestHeader")
class GetTopicConfigRequestHeader(TopicRequestHeader):
    """Asks for the configuration of one topic."""

    topic: str


@header("org.apache.rocketmq.remoting.protocol.header.GetTopicsByClusterRequestHeader")
class GetTopicsByClusterRequestHeader(Header):
    """Asks for the topics of a cluster."""

    cluster: str


@header("org.apache.rocketmq.remoting.protocol.header.QueryTopicConsumeByWhoRequestHeader")
class QueryTopicConsumeByWhoRequestHeader(TopicRequestHeader):
    """Asks which groups consume a topic."""

    topic: str


@header("org.apache.rocketmq.remoting.protocol.header.QueryTopicsByConsumerRequestHeader")
class QueryTopicsByConsumerRequestHeader(RpcRequestHeader):
    """Asks which topics a group consumes."""

    group: str


@header("org.apache.rocketmq.remoting.protocol.header.QuerySubscriptionByConsumerRequestHeader")
class QuerySubscriptionByConsumerRequestHeader(TopicRequestHeader):
    """Asks for the subscription of a group to a topic."""

    group: str
    topic: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.GetAllSubscriptionGroupRequestHeader")
class GetAllSubscriptionGroupRequestHeader(Header):
    """Asks for a page of the groups' configurations, from number `group_seq` on.

    Older callers send no field and ask for all groups.
    """

    group_seq: Int | None = None
    data_version: str | None = None
    max_group_num: Int | None = None


@header("org.apache.rocketmq.remoting.protocol.header.GetAllSubscriptionGroupResponseHeader")
class GetAllSubscriptionGroupResponseHeader(Header):
    """How many groups there are; 4.9 does not say."""

    total_group_num: Int | None = None


@header("org.apache.rocketmq.remoting.protocol.header.GetSubscriptionGroupConfigRequestHeader")
class GetSubscriptionGroupConfigRequestHeader(RpcRequestHeader):
    """Asks for the configuration of one group."""

    group: str


@header("org.apache.rocketmq.remoting.protocol.header.DeleteSubscriptionGroupRequestHeader")
class DeleteSubscriptionGroupRequestHeader(RpcRequestHeader):
    """Deletes a group, and its offsets if `clean_offset` or `remove_offset` is set.

    The latter is what 4.9.7 calls the flag.
    """

    group_name: str
    clean_offset: bool = False
    remove_offset: bool = False


@header("org.apache.rocketmq.remoting.protocol.header.UpdateGroupForbiddenRequestHeader")
class UpdateGroupForbiddenRequestHeader(TopicRequestHeader):
    """Sets whether a group may read a topic, or asks for it if `readable` is absent."""

    group: str
    topic: str
    readable: bool | None = None


UPDATE_AND_CREATE_TOPIC = define(
    RequestCode.UPDATE_AND_CREATE_TOPIC,
    CreateTopicRequestHeader,
    NoHeader,
    at_slave=ResponseCode.SYSTEM_ERROR,
)
UPDATE_AND_CREATE_TOPIC_LIST = define(
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,
    CreateTopicListRequestHeader,
    NoHeader,
    at_slave=ResponseCode.SYSTEM_ERROR,
)
UPDATE_AND_CREATE_STATIC_TOPIC = define(
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC,
    CreateTopicRequestHeader,
    NoHeader,
    at_slave=ResponseCode.SYSTEM_ERROR,
)
DELETE_TOPIC_IN_BROKER = define(
    RequestCode.DELETE_TOPIC_IN_BROKER,
    DeleteTopicRequestHeader,
    NoHeader,
    at_slave=ResponseCode.SYSTEM_ERROR,
)
DELETE_TOPIC_IN_NAMESRV = define(
    RequestCode.DELETE_TOPIC_IN_NAMESRV, DeleteTopicFromNamesrvRequestHeader, NoHeader
)
REGISTER_TOPIC_IN_NAMESRV = define(
    RequestCode.REGISTER_TOPIC_IN_NAMESRV, RegisterTopicRequestHeader, NoHeader
)
GET_ALL_TOPIC_CONFIG = define(
    RequestCode.GET_ALL_TOPIC_CONFIG,
    GetAllTopicConfigRequestHeader,
    GetAllTopicConfigResponseHeader,
)
GET_TOPIC_CONFIG = define(RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequestHeader, NoHeader)
GET_TOPIC_CONFIG_LIST = define(RequestCode.GET_TOPIC_CONFIG_LIST, NoHeader, NoHeader)
GET_TOPIC_NAME_LIST = define(RequestCode.GET_TOPIC_NAME_LIST, NoHeader, NoHeader)
GET_ALL_TOPIC_LIST_FROM_NAMESERVER = define(
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, NoHeader, NoHeader
)
GET_TOPICS_BY_CLUSTER = define(
    RequestCode.GET_TOPICS_BY_CLUSTER, GetTopicsByClusterRequestHeader, NoHeader
)
GET_SYSTEM_TOPIC_LIST_FROM_NS = define(
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, NoHeader, NoHeader
)
GET_SYSTEM_TOPIC_LIST_FROM_BROKER = define(
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, NoHeader, NoHeader
)
GET_UNIT_TOPIC_LIST = define(RequestCode.GET_UNIT_TOPIC_LIST, NoHeader, NoHeader)
GET_HAS_UNIT_SUB_TOPIC_LIST = define(RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, NoHeader, NoHeader)
GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST = define(
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, NoHeader, NoHeader
)
QUERY_TOPIC_CONSUME_BY_WHO = define(
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, QueryTopicConsumeByWhoRequestHeader, NoHeader
)
QUERY_TOPICS_BY_CONSUMER = define(
    RequestCode.QUERY_TOPICS_BY_CONSUMER, QueryTopicsByConsumerRequestHeader, NoHeader
)
QUERY_SUBSCRIPTION_BY_CONSUMER = define(
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, QuerySubscriptionByConsumerRequestHeader, NoHeader
)
UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = define(
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
    NoHeader,
    NoHeader,
    at_slave=ResponseCode.SYSTEM_ERROR,
)
UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST = define(
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST,
    NoHeader,
    NoHeader,
    at_slave=ResponseCode.SYSTEM_ERROR,
)
GET_ALL_SUBSCRIPTIONGROUP_CONFIG = define(
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    GetAllSubscriptionGroupRequestHeader,
    GetAllSubscriptionGroupResponseHeader,
)
GET_SUBSCRIPTIONGROUP_CONFIG = define(
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, GetSubscriptionGroupConfigRequestHeader, NoHeader
)
DELETE_SUBSCRIPTIONGROUP = define(
    RequestCode.DELETE_SUBSCRIPTIONGROUP,
    DeleteSubscriptionGroupRequestHeader,
    NoHeader,
    at_slave=ResponseCode.SYSTEM_ERROR,
)
UPDATE_AND_GET_GROUP_FORBIDDEN = define(
    RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, UpdateGroupForbiddenRequestHeader, NoHeader
)
