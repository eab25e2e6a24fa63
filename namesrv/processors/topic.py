# SPDX-License-Identifier: Apache-2.0
"""Lists of topics, deleting topics, and the write permission of a broker.

206, 224, 304, 311, 312, 313; 216, 217; 205, 327. Lists that are disabled by the configuration are
answered SYSTEM_ERROR "disable". Long ones are made in several turns: the topics are those of one
moment, and each has the queues that it has when it is looked at. Java: DefaultRequestProcessor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.routes.route_table import RouteTable
from txrocketmq.namesrv.turns import Steps, Turns
from txrocketmq.remoting.call import Peer, PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.flags import TopicSysFlag
from txrocketmq.remoting.protocol import route, topic
from txrocketmq.remoting.protocol.body.route import QueueData, TopicRouteData
from txrocketmq.remoting.protocol.body.topic import TopicList
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
from txrocketmq.remoting.serialize.json import HOLE, encode_around, encode_body
from txrocketmq.remoting.settings.config_file import Configuration


class TopicProcessor:
    """Serves what administrators ask and do about topics; `note` is called with a line for each
    change, and `changed` when the table may have something to clean up.
    """

    def __init__(
        self,
        table: RouteTable,
        configuration: Configuration,
        note: Callable[[str], None],
        changed: Callable[[], None],
        turns: Turns,
    ) -> None:
        self._table = table
        self._configuration = configuration
        self._note = note
        self._changed = changed
        self._turns = turns

    @serves(topic.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    def all_topics(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Returns all topics."""
        if not self._configuration.get(NamesrvConfig).enable_all_topic_list:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "disable")
        return self._turns.answer(request.peer, _listed(self._table.topics_in_turns()))

    @serves(topic.GET_TOPICS_BY_CLUSTER)
    def topics_by_cluster(
        self, request: Request[GetTopicsByClusterRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns the topics with queues in a cluster."""
        names = self._table.broker_names(request.header.cluster)
        return self._list(request.peer, lambda queues: not names.isdisjoint(queues))

    @serves(topic.GET_SYSTEM_TOPIC_LIST_FROM_NS)
    def system_topics(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Returns names of clusters and brokers, topics too, and a broker to ask for more."""
        address, names = self._table.system_topics_in_turns()
        return self._turns.answer(request.peer, _listed(names, address))

    @serves(topic.GET_UNIT_TOPIC_LIST)
    def unit_topics(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Returns the topics of units."""
        return self._list(request.peer, _is_unit)

    @serves(topic.GET_HAS_UNIT_SUB_TOPIC_LIST)
    def unit_sub_topics(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Returns the topics that units subscribe to."""
        return self._list(request.peer, _has_unit_sub)

    @serves(topic.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST)
    def unit_sub_ununit_topics(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Returns the topics of no unit that units subscribe to."""
        return self._list(request.peer, lambda it: _has_unit_sub(it) and not _is_unit(it))

    @serves(topic.DELETE_TOPIC_IN_NAMESRV)
    def delete(self, request: Request[DeleteTopicFromNamesrvRequestHeader]) -> Reply[NoHeader]:
        """Deletes a topic, everywhere or in a cluster."""
        name, cluster = request.header.topic, request.header.cluster_name or None
        self._table.delete_topic(name, cluster)
        self._changed()
        where = f"cluster {cluster}" if cluster else "all clusters"
        self._note(f"{request.peer.remote_address} deleted the topic {name} in {where}")
        return Reply()

    @serves(topic.REGISTER_TOPIC_IN_NAMESRV)
    def register(
        self, request: Request[RegisterTopicRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Registers the queues of one topic (enableSingleTopicRegister)."""
        return self._turns.answer(request.peer, self._register(request), len(request.body))

    def _register(self, request: Request[RegisterTopicRequestHeader]) -> Steps:
        if request.body:
            data = TopicRouteData.decode(request.body)
            self._table.register_topic(request.header.topic, data.queue_datas)
        return Reply()
        yield

    @serves(route.WIPE_WRITE_PERM_OF_BROKER)
    def wipe_write_perm(
        self, request: Request[WipeWritePermOfBrokerRequestHeader]
    ) -> Reply[WipeWritePermOfBrokerResponseHeader] | PendingReply:
        """Takes the permission to write from a broker's topics, so that clients send it nothing."""
        return self._turns.answer(request.peer, self._wipe(request))

    def _wipe(self, request: Request[WipeWritePermOfBrokerRequestHeader]) -> Steps:
        name = request.header.broker_name
        count = yield from self._table.wipe_write_perm(name)
        self._note(f"{request.peer.remote_address} made {count} topics of {name} read-only")
        return Reply(WipeWritePermOfBrokerResponseHeader(wipe_topic_count=count))

    @serves(route.ADD_WRITE_PERM_OF_BROKER)
    def add_write_perm(
        self, request: Request[AddWritePermOfBrokerRequestHeader]
    ) -> Reply[AddWritePermOfBrokerResponseHeader] | PendingReply:
        """Gives the topics of a broker back their write permission."""
        return self._turns.answer(request.peer, self._add(request))

    def _add(self, request: Request[AddWritePermOfBrokerRequestHeader]) -> Steps:
        name = request.header.broker_name
        count = yield from self._table.add_write_perm(name)
        self._note(f"{request.peer.remote_address} made {count} topics of {name} writable")
        return Reply(AddWritePermOfBrokerResponseHeader(add_topic_count=count))

    def _list(
        self, peer: Peer, wanted: Callable[[Mapping[str, QueueData]], bool]
    ) -> Reply[NoHeader] | PendingReply:
        if not self._configuration.get(NamesrvConfig).enable_topic_list:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "disable")
        return self._turns.answer(peer, _listed(self._table.topics_in_turns(wanted)))


def _listed(names: Iterable[Sequence[str]], broker: str | None = None) -> Steps:
    """Answers a TopicList, which is put together from pieces."""
    before, after = encode_around({**TopicList(broker_addr=broker).to_json(), "topicList": HOLE})
    pieces: list[bytes] = []
    opening = before + b"["
    for some in names:
        if some:
            pieces += (opening, encode_body(some)[1:-1])
            opening = b","
        yield
    if not pieces:
        pieces.append(opening)
    return Reply(body=[*pieces, b"]" + after])


def _sys_flag(queues: Mapping[str, QueueData]) -> int:
    """Returns the flag of the first QueueData of a topic."""
    return next((each.topic_sys_flag for each in queues.values()), 0)


def _is_unit(queues: Mapping[str, QueueData]) -> bool:
    return bool(_sys_flag(queues) & TopicSysFlag.UNIT)


def _has_unit_sub(queues: Mapping[str, QueueData]) -> bool:
    return bool(_sys_flag(queues) & TopicSysFlag.UNIT_SUB)
