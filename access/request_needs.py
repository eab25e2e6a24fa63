# SPDX-License-Identifier: Apache-2.0
"""What each request needs, by its code.

There is one table for all servers and for both versions of access control. It is that of RocketMQ
5.5.1, where a request of which nothing is known is refused. In 5.4, such a request needs nothing
but an account, so that every account may change the settings of a broker. A request that is served
and not in the table is refused to all but the accounts that may do everything.
Counterpart of the annotations of request headers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar, cast

from txrocketmq.access.needs import Action, Needs, Part, ResourceType
from txrocketmq.remoting.codes import RequestCode as C
from txrocketmq.remoting.protocol.body.base import Body
from txrocketmq.remoting.protocol.body.heartbeat import (
    CheckClientRequestBody,
    HeartbeatData,
    LockBatchRequestBody,
    UnlockBatchRequestBody,
)
from txrocketmq.remoting.protocol.body.pop import (
    BatchAckMessageRequestBody,
    QueryAssignmentRequestBody,
    SetMessageRequestModeRequestBody,
)
from txrocketmq.remoting.protocol.body.topic import (
    CreateTopicListRequestBody,
    SubscriptionGroupConfig,
    SubscriptionGroupList,
)

_TOPIC, _GROUP, _CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
_PUB, _SUB, _GET, _LIST = Action.PUB, Action.SUB, Action.GET, Action.LIST
_CREATE, _UPDATE, _DELETE = Action.CREATE, Action.UPDATE, Action.DELETE

# ----------------------------------------------------------------------------------- bodies

B = TypeVar("B", bound=Body)


def _read(kind: type[B], data: bytes) -> B:
    """Reads a body as its handler does, so that both see the same names."""
    reading = kind.reading(data)
    try:
        while True:
            next(reading)
    except StopIteration as end:
        return cast(B, end.value)


def _consumers(data: bytes) -> Iterator[tuple[ResourceType, str | None]]:
    for consumer in _read(HeartbeatData, data).consumer_data_set:
        yield _GROUP, consumer.group_name
        for subscription in consumer.subscription_data_set:
            yield _TOPIC, subscription.topic


def _locks(
    kind: type[LockBatchRequestBody | UnlockBatchRequestBody],
) -> Callable[[bytes], Iterator[tuple[ResourceType, str | None]]]:
    def read(data: bytes) -> Iterator[tuple[ResourceType, str | None]]:
        content = _read(kind, data)
        yield _GROUP, content.consumer_group
        for topic in sorted({queue.topic for queue in content.mq_set}):
            yield _TOPIC, topic

    return read


def _check_client(data: bytes) -> Iterator[tuple[ResourceType, str | None]]:
    content = _read(CheckClientRequestBody, data)
    yield _GROUP, content.group
    if content.subscription_data is not None:
        yield _TOPIC, content.subscription_data.topic


def _acks(data: bytes) -> Iterator[tuple[ResourceType, str | None]]:
    for ack in _read(BatchAckMessageRequestBody, data).acks:
        yield _GROUP, ack.consumer_group
        yield _TOPIC, ack.topic


def _topics(data: bytes) -> Iterator[tuple[ResourceType, str | None]]:
    for topic in _read(CreateTopicListRequestBody, data).topic_config_list:
        yield _TOPIC, topic.topic_name


def _groups(data: bytes) -> Iterator[tuple[ResourceType, str | None]]:
    for group in _read(SubscriptionGroupList, data).group_config_list:
        yield _GROUP, group.group_name


def _only(
    kind: type[Body], *, topic: str = "", group: str = ""
) -> Callable[[bytes], Iterator[tuple[ResourceType, str | None]]]:
    """Reads the members of a body that hold one topic and one group."""

    def read(data: bytes) -> Iterator[tuple[ResourceType, str | None]]:
        content: Any = _read(kind, data)
        if group:
            yield _GROUP, getattr(content, group)
        if topic:
            yield _TOPIC, getattr(content, topic)

    return read


# ------------------------------------------------------------------------------------ the table


def _topic(*actions: Action, at: tuple[str, ...] = ("topic",), **more: Any) -> Part:
    return Part(_TOPIC, actions, at, **more)


def _group(*actions: Action, at: tuple[str, ...] = ("consumerGroup",), **more: Any) -> Part:
    return Part(_GROUP, actions, at, **more)


def _in_body(read: Callable[[bytes], Any], *actions: Action, retry: bool = True) -> Part:
    return Part(_TOPIC, actions, body=read, retry=retry)


def _every(kind: ResourceType, action: Action) -> Part:
    return Part(kind, (action,))


def _maybe(part: Part) -> Part:
    return Part(part.type, part.actions, part.fields, is_optional=True)


_GROUP_FIELD: Final = ("group",)
_SENT: Final = Needs((_topic(_PUB, at=("b", "topic")),))
"""Handlers of sends take the letter of a field first, whatever the code; so does this."""
_POPPED: Final = Needs((_group(_SUB), _topic(_SUB)))
_SETTLED: Final = Needs((_group(_SUB), _topic(_SUB)), own_pops=True)
_PULLED: Final = Needs((_topic(_SUB, retry=False), _group(_SUB)), own_retry=True)
_OF_TOPIC: Final = Needs((_topic(_GET),))
_OF_GROUP: Final = Needs((_group(_GET),))
_OF_NAMED_GROUP: Final = Needs((_group(_GET, at=_GROUP_FIELD),))
_SEE: Final = Needs((Part(_CLUSTER, (_GET,)),))
_RULE: Final = Needs((Part(_CLUSTER, (_UPDATE,)),))
_TOPIC_NAMES: Final = Needs((_every(_TOPIC, _LIST),))

NEEDS: Final[Mapping[int, Needs]] = {
    # messages
    C.SEND_MESSAGE: _SENT,
    C.SEND_MESSAGE_V2: _SENT,
    C.SEND_BATCH_MESSAGE: _SENT,
    C.SEND_REPLY_MESSAGE: _SENT,
    C.SEND_REPLY_MESSAGE_V2: _SENT,
    C.RECALL_MESSAGE: Needs((_topic(_PUB),)),
    C.END_TRANSACTION: Needs((_maybe(_topic(_PUB)),), may_be_nothing=True),
    C.CONSUMER_SEND_MSG_BACK: Needs((_group(_SUB, at=_GROUP_FIELD),)),
    C.PULL_MESSAGE: _PULLED,
    C.LITE_PULL_MESSAGE: _PULLED,
    C.QUERY_MESSAGE: Needs((_topic(_SUB, _GET),)),
    C.VIEW_MESSAGE_BY_ID: Needs((_maybe(_topic(_GET)),), may_be_nothing=True),
    C.POP_MESSAGE: _POPPED,
    C.ACK_MESSAGE: _SETTLED,
    C.CHANGE_MESSAGE_INVISIBLETIME: _SETTLED,
    C.NOTIFICATION: _POPPED,
    C.PEEK_MESSAGE: _POPPED,
    C.BATCH_ACK_MESSAGE: Needs((_in_body(_acks, _SUB),)),
    C.POLLING_INFO: Needs((_group(_GET), _topic(_GET))),
    # consumers
    C.HEART_BEAT: Needs((_in_body(_consumers, _SUB, retry=False),), may_be_nothing=True),
    C.UNREGISTER_CLIENT: Needs((_maybe(_group(_SUB)),), may_be_nothing=True),
    C.GET_CONSUMER_LIST_BY_GROUP: Needs((_group(_SUB, _GET),)),
    C.QUERY_CONSUMER_OFFSET: Needs((_topic(_SUB, _GET, retry=False), _group(_SUB, _GET))),
    C.UPDATE_CONSUMER_OFFSET: Needs((_topic(_SUB, _UPDATE, retry=False), _group(_SUB, _UPDATE))),
    C.LOCK_BATCH_MQ: Needs((_in_body(_locks(LockBatchRequestBody), _SUB, retry=False),)),
    C.UNLOCK_BATCH_MQ: Needs((_in_body(_locks(UnlockBatchRequestBody), _SUB, retry=False),)),
    C.CHECK_CLIENT_CONFIG: Needs((_in_body(_check_client, _SUB, retry=False),)),
    C.QUERY_ASSIGNMENT: Needs(
        (
            _in_body(
                _only(QueryAssignmentRequestBody, topic="topic", group="consumer_group"),
                _SUB,
            ),
        )
    ),
    # topics
    C.UPDATE_AND_CREATE_TOPIC: Needs((_topic(_CREATE),)),
    C.UPDATE_AND_CREATE_TOPIC_LIST: Needs((_in_body(_topics, _CREATE),)),
    C.UPDATE_AND_CREATE_STATIC_TOPIC: Needs((_topic(_CREATE),)),
    C.DELETE_TOPIC_IN_BROKER: Needs((_topic(_DELETE),)),
    C.GET_ALL_TOPIC_CONFIG: _TOPIC_NAMES,
    C.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: _TOPIC_NAMES,
    C.GET_TIMER_METRICS: _TOPIC_NAMES,
    C.SEARCH_OFFSET_BY_TIMESTAMP: Needs((_topic(_SUB, _GET),)),
    C.GET_MAX_OFFSET: Needs((_topic(_SUB, _GET),)),
    C.GET_MIN_OFFSET: _OF_TOPIC,
    C.GET_EARLIEST_MSG_STORETIME: _OF_TOPIC,
    C.GET_TOPIC_STATS_INFO: _OF_TOPIC,
    C.QUERY_TOPIC_CONSUME_BY_WHO: _OF_TOPIC,
    C.GET_TOPIC_CONFIG: _OF_TOPIC,
    C.CHECK_ROCKSDB_CQ_WRITE_PROGRESS: _OF_TOPIC,
    C.RESUME_CHECK_HALF_MESSAGE: Needs((_topic(_UPDATE),)),
    # groups
    C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: Needs(
        (_in_body(_only(SubscriptionGroupConfig, group="group_name"), _CREATE),)
    ),
    C.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: Needs((_in_body(_groups, _CREATE),)),
    C.DELETE_SUBSCRIPTIONGROUP: Needs((_group(_DELETE, at=("groupName",)),)),
    C.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: Needs((_every(_GROUP, _LIST),)),
    C.GET_CONSUMER_CONNECTION_LIST: _OF_GROUP,
    C.GET_CONSUMER_RUNNING_INFO: _OF_GROUP,
    C.QUERY_TOPICS_BY_CONSUMER: _OF_NAMED_GROUP,
    C.GET_SUBSCRIPTIONGROUP_CONFIG: _OF_NAMED_GROUP,
    C.GET_CONSUME_STATS: Needs(
        (
            _group(_GET),
            _maybe(_topic(_GET)),
            Part(_TOPIC, (_GET,), ("topicList",), is_optional=True, separator=";"),
        )
    ),
    C.QUERY_CONSUME_TIME_SPAN: Needs((_topic(_GET), _group(_GET, at=_GROUP_FIELD))),
    C.QUERY_CONSUME_QUEUE: Needs((_topic(_GET), _maybe(_group(_GET)))),
    C.QUERY_SUBSCRIPTION_BY_CONSUMER: Needs((_maybe(_topic(_GET)), _group(_GET, at=_GROUP_FIELD))),
    C.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: Needs((_topic(_GET), _group(_GET, at=_GROUP_FIELD))),
    C.INVOKE_BROKER_TO_RESET_OFFSET: Needs((_group(_UPDATE, at=_GROUP_FIELD), _topic(_UPDATE))),
    C.CLONE_GROUP_OFFSET: Needs((_group(_UPDATE, at=("destGroup",)), _maybe(_topic(_UPDATE)))),
    C.QUERY_CORRECTION_OFFSET: Needs(
        (
            Part(_GROUP, (_GET,), ("filterGroups",), is_optional=True, separator=","),
            _group(_GET, at=("compareGroup",)),
            _topic(_GET),
        )
    ),
    C.CONSUME_MESSAGE_DIRECTLY: Needs((_group(_SUB), _maybe(_topic(_SUB)))),
    C.UPDATE_AND_GET_GROUP_FORBIDDEN: Needs((_group(_UPDATE, at=_GROUP_FIELD), _topic(_UPDATE))),
    C.SET_MESSAGE_REQUEST_MODE: Needs(
        (
            _in_body(_only(SetMessageRequestModeRequestBody, topic="topic"), _SUB),
            _in_body(_only(SetMessageRequestModeRequestBody, group="consumer_group"), _UPDATE),
        )
    ),
    C.GET_ALL_MESSAGE_REQUEST_MODE: Needs((_every(_TOPIC, _LIST), _every(_GROUP, _LIST))),
    # the broker
    C.GET_PRODUCER_CONNECTION_LIST: _SEE,
    C.VIEW_BROKER_STATS_DATA: _SEE,
    C.GET_BROKER_CONSUME_STATS: _SEE,
    C.GET_ALL_PRODUCER_INFO: _SEE,
    C.EXPORT_ROCKSDB_CONFIG_TO_JSON: _SEE,
    C.GET_BROKER_CONFIG: _SEE,
    C.GET_BROKER_RUNTIME_INFO: _SEE,
    C.GET_ALL_CONSUMER_OFFSET: _SEE,
    C.GET_ALL_DELAY_OFFSET: _SEE,
    C.GET_TIMER_CHECK_POINT: _SEE,
    C.GET_BROKER_HA_STATUS: _SEE,
    C.GET_BROKER_EPOCH_CACHE: _SEE,
    C.UPDATE_BROKER_CONFIG: _RULE,
    C.CLEAN_EXPIRED_CONSUMEQUEUE: _RULE,
    C.CLEAN_UNUSED_TOPIC: _RULE,
    C.DELETE_EXPIRED_COMMITLOG: _RULE,
    C.SET_COMMITLOG_READ_MODE: _RULE,
    C.POP_ROLLBACK: _RULE,
    C.SWITCH_TIMER_ENGINE: _RULE,
    C.RESET_MASTER_FLUSH_OFFSET: _RULE,
    C.EXCHANGE_BROKER_HA_INFO: _RULE,
    C.NOTIFY_MIN_BROKER_ID_CHANGE: _RULE,
    C.NOTIFY_BROKER_ROLE_CHANGED: _RULE,
    C.ADD_BROKER: _RULE,
    C.REMOVE_BROKER: _RULE,
    # accounts
    C.AUTH_CREATE_USER: _RULE,
    C.AUTH_UPDATE_USER: _RULE,
    C.AUTH_DELETE_USER: _RULE,
    C.AUTH_GET_USER: _SEE,
    C.AUTH_LIST_USER: _SEE,
    C.AUTH_CREATE_ACL: _RULE,
    C.AUTH_UPDATE_ACL: _RULE,
    C.AUTH_DELETE_ACL: _RULE,
    C.AUTH_GET_ACL: _SEE,
    C.AUTH_LIST_ACL: _SEE,
    C.UPDATE_AND_CREATE_ACL_CONFIG: _RULE,
    C.DELETE_ACL_CONFIG: _RULE,
    C.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: _RULE,
    C.GET_BROKER_CLUSTER_ACL_INFO: _SEE,
    C.GET_BROKER_CLUSTER_ACL_CONFIG: _SEE,
    # the name server
    C.GET_ROUTEINFO_BY_TOPIC: Needs((_topic(_PUB, _SUB, _GET),)),
    C.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: _TOPIC_NAMES,
    C.GET_TOPICS_BY_CLUSTER: _TOPIC_NAMES,
    C.GET_SYSTEM_TOPIC_LIST_FROM_NS: _TOPIC_NAMES,
    C.GET_UNIT_TOPIC_LIST: _TOPIC_NAMES,
    C.GET_HAS_UNIT_SUB_TOPIC_LIST: _TOPIC_NAMES,
    C.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: _TOPIC_NAMES,
    C.PUT_KV_CONFIG: _RULE,
    C.DELETE_KV_CONFIG: _RULE,
    C.WIPE_WRITE_PERM_OF_BROKER: _RULE,
    C.ADD_WRITE_PERM_OF_BROKER: _RULE,
    C.DELETE_TOPIC_IN_NAMESRV: _RULE,
    C.REGISTER_TOPIC_IN_NAMESRV: _RULE,
    C.REGISTER_BROKER: _RULE,
    C.UNREGISTER_BROKER: _RULE,
    C.BROKER_HEARTBEAT: _RULE,
    C.UPDATE_NAMESRV_CONFIG: _RULE,
    C.GET_KV_CONFIG: _SEE,
    C.GET_KVLIST_BY_NAMESPACE: _SEE,
    C.GET_BROKER_CLUSTER_INFO: _SEE,
    C.GET_NAMESRV_CONFIG: _SEE,
    C.QUERY_DATA_VERSION: _SEE,
    C.GET_BROKER_MEMBER_GROUP: _SEE,
}
"""By code. A test asserts that every request is here that a broker or a name server serves."""
