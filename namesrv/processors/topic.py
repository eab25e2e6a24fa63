# SPDX-License-Identifier: Apache-2.0
"""Lists of topics, their deletion, and the write permission of a broker.

206, 224, 304, 311, 312, 313; 216, 217; 205, 327. Lists that the configuration withholds are answered
SYSTEM_ERROR "disable". Java: DefaultRequestProcessor.
"""

from __future__ import annotations

from collections.abc import Iterable

from txrocketmq.namesrv.live_config import LiveConfig
from txrocketmq.namesrv.route_table import QueueData, RouteTable
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.flags import TopicSysFlag
from txrocketmq.remoting.protocol import route, topic
from txrocketmq.remoting.protocol.route import (
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)
from txrocketmq.remoting.protocol.topic import (
    DeleteTopicFromNamesrvRequestHeader,
    GetTopicsByClusterRequestHeader,
    RegisterTopicRequestHeader,
)
from txrocketmq.remoting.serialize.json import decode_body, encode_body


class TopicProcessor:
    """What administrators ask and do about topics."""

    def __init__(self, live: LiveConfig, table: RouteTable) -> None:
        self._live = live
        self._table = table

    @serves(topic.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    def all_topics(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """All topics."""
        self._allowed(self._live.config.enable_all_topic_list)
        return _topic_list(self._table.topics())

    @serves(topic.GET_TOPICS_BY_CLUSTER)
    def topics_by_cluster(
        self, request: Request[GetTopicsByClusterRequestHeader]
    ) -> Reply[NoHeader]:
        """Topics with queues in a cluster."""
        self._allowed(self._live.config.enable_topic_list)
        return _topic_list(self._table.topics_of_cluster(request.header.cluster))

    @serves(topic.GET_SYSTEM_TOPIC_LIST_FROM_NS)
    def system_topics(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Names of clusters and brokers, which are topics too; and a broker to ask for more."""
        names, address = self._table.system_topics()
        return _topic_list(names, address)

    @serves(topic.GET_UNIT_TOPIC_LIST)
    def unit_topics(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Topics of units."""
        self._allowed(self._live.config.enable_topic_list)
        return _topic_list(self._table.topics_with(lambda flag: flag & TopicSysFlag.UNIT))

    @serves(topic.GET_HAS_UNIT_SUB_TOPIC_LIST)
    def unit_sub_topics(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Topics that units subscribe to."""
        self._allowed(self._live.config.enable_topic_list)
        return _topic_list(self._table.topics_with(lambda flag: flag & TopicSysFlag.UNIT_SUB))

    @serves(topic.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST)
    def unit_sub_ununit_topics(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Topics of no unit that units subscribe to."""
        self._allowed(self._live.config.enable_topic_list)
        return _topic_list(
            self._table.topics_with(
                lambda flag: flag & TopicSysFlag.UNIT_SUB and not flag & TopicSysFlag.UNIT
            )
        )

    @serves(topic.DELETE_TOPIC_IN_NAMESRV)
    def delete(self, request: Request[DeleteTopicFromNamesrvRequestHeader]) -> Reply[NoHeader]:
        """Forgets a topic, everywhere or in a cluster."""
        self._table.delete_topic(request.header.topic, request.header.cluster_name or None)
        return Reply()

    @serves(topic.REGISTER_TOPIC_IN_NAMESRV)
    def register(self, request: Request[RegisterTopicRequestHeader]) -> Reply[NoHeader]:
        """Queues of one topic (enableSingleTopicRegister)."""
        data = decode_body(request.body) if request.body else {}
        queues = data.get("queueDatas") if isinstance(data, dict) else None
        try:
            self._table.register_topic(
                request.header.topic,
                [
                    QueueData(
                        str(queue["brokerName"]),
                        int(queue["readQueueNums"]),
                        int(queue["writeQueueNums"]),
                        int(queue["perm"]),
                        int(queue.get("topicSysFlag") or 0),
                    )
                    for queue in queues or ()
                ],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR, f"the queue data cannot be read: {error!r}"
            ) from None
        return Reply()

    @serves(route.WIPE_WRITE_PERM_OF_BROKER)
    def wipe_write_perm(
        self, request: Request[WipeWritePermOfBrokerRequestHeader]
    ) -> Reply[WipeWritePermOfBrokerResponseHeader]:
        """Nothing is sent to a broker any more."""
        count = self._table.wipe_write_perm(request.header.broker_name)
        return Reply(WipeWritePermOfBrokerResponseHeader(wipe_topic_count=count))

    @serves(route.ADD_WRITE_PERM_OF_BROKER)
    def add_write_perm(
        self, request: Request[AddWritePermOfBrokerRequestHeader]
    ) -> Reply[AddWritePermOfBrokerResponseHeader]:
        """The reverse."""
        count = self._table.add_write_perm(request.header.broker_name)
        return Reply(AddWritePermOfBrokerResponseHeader(add_topic_count=count))

    @staticmethod
    def _allowed(enabled: bool) -> None:  # noqa: FBT001 - the one fact
        if not enabled:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "disable")


def _topic_list(topics: Iterable[str], broker_addr: str | None = None) -> Reply[NoHeader]:
    return Reply(body=encode_body({"brokerAddr": broker_addr, "topicList": list(topics)}))
