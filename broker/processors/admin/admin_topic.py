# SPDX-License-Identifier: Apache-2.0
"""Topics for administrators: 17, 18, 215, 21, 351, 202, 305.

Invalid names, names of system topics, queue counts out of range, and MIXED as message type unless
the configuration allows it, are INVALID_PARAMETER (29; 4.9 says 1), invalid attributes are
SYSTEM_ERROR (1), and an unknown topic is TOPIC_NOT_EXIST (17); deleting an unknown topic succeeds.
Changes are answered when they are on disk; changes that come together share one write. Lists come
in pages when the caller asks for them (5.3 and later). Not done: static topics (513, 217). Java:
AdminBrokerProcessor.
"""

from __future__ import annotations

from functools import partial

from txrocketmq.broker.processors.admin.paging import Page
from txrocketmq.broker.pulls.long_polling import LongPolling
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps, when_in_memory
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.attributes import (
    MESSAGE_TYPE,
    MIXED,
    AttributeChangeError,
    parse_changes,
)
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.broker.tables.stats import BrokerStats
from txrocketmq.broker.tables.topic import Topics, validate_topic
from txrocketmq.broker.work.walks import BodyPieces, Walk, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.topics import MAX_QUEUES
from txrocketmq.remoting.protocol import topic
from txrocketmq.remoting.protocol.body.route import (
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigAndQueueMapping,
)
from txrocketmq.remoting.protocol.body.stats import TopicOffset, TopicStatsTable
from txrocketmq.remoting.protocol.body.topic import CreateTopicListRequestBody, TopicList
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import GetTopicStatsInfoRequestHeader
from txrocketmq.remoting.protocol.topic import (
    CreateTopicListRequestHeader,
    CreateTopicRequestHeader,
    DeleteTopicRequestHeader,
    GetAllTopicConfigRequestHeader,
    GetAllTopicConfigResponseHeader,
    GetTopicConfigRequestHeader,
)
from txrocketmq.remoting.serialize.json import HOLE, encode_member

"""How many queues a topic may have. The original has no limit, and fails with too many."""
_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")


class AdminTopicProcessor:
    """Makes, changes, deletes and shows topics."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        offsets: ConsumerOffsets,
        store: MessageStore,
        stats: BrokerStats,
        polling: LongPolling,
        walks: Walks,
    ) -> None:
        self._config = config
        self._topics = topics
        self._offsets = offsets
        self._store = store
        self._stats = stats
        self._polling = polling
        self._walks = walks

    # ---------------------------------------------------------------- changes

    @serves(topic.UPDATE_AND_CREATE_TOPIC)
    def update(self, request: Request[CreateTopicRequestHeader]) -> Reply[NoHeader] | PendingReply:
        """Creates or changes a topic; does nothing if it is already as requested."""
        header = request.header
        self._check_name(header.topic)
        if header.topic_filter_type not in _FILTER_TYPES:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"topicFilterType = [{header.topic_filter_type}] value invalid",
            )
        try:
            changes = parse_changes(header.attributes)
        except AttributeChangeError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None
        wanted = TopicConfig(
            topic_name=header.topic,
            read_queue_nums=header.read_queue_nums,
            write_queue_nums=header.write_queue_nums,
            perm=header.perm,
            topic_filter_type=header.topic_filter_type,
            topic_sys_flag=header.topic_sys_flag or 0,
            order=header.order,
            attributes=changes,
        )
        self._check(wanted)
        self._update(wanted)
        return self._topics.saving.answer(Reply())

    @serves(topic.UPDATE_AND_CREATE_TOPIC_LIST)
    def update_list(
        self, request: Request[CreateTopicListRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Creates or changes several topics; all are checked before the first is created.

        The original stops at a topic that is already as requested; here the others are changed.
        """
        return self._walks.soon(self._update_list(request.body))

    def _update_list(self, body: bytes) -> Walk:
        wanted = (yield from CreateTopicListRequestBody.reading(body)).topic_config_list
        for each in wanted:
            self._check_name(each.topic_name or "")
            self._check(each)
            yield
        for each in wanted:
            self._update(each)
            yield
        return self._topics.saving.answer(Reply())

    def _check_name(self, name: str) -> None:
        wrong = validate_topic(name)
        if wrong is not None:
            raise ResponseError(ResponseCode.INVALID_PARAMETER, wrong)
        self._check_not_system(name)

    def _check_not_system(self, name: str) -> None:
        protected = self._config.validate_system_topic_when_update_topic
        if protected and self._topics.is_system(name):
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER,
                f"The topic[{name}] is conflict with system topic.",
            )

    def _check(self, wanted: TopicConfig) -> None:
        is_mixed = wanted.attributes.get("+" + MESSAGE_TYPE) == MIXED
        if is_mixed and not self._config.enable_mixed_message_type:
            raise ResponseError(
                ResponseCode.INVALID_PARAMETER, "MIXED message type is not supported."
            )
        for count in (wanted.read_queue_nums, wanted.write_queue_nums):
            if not 0 <= count <= MAX_QUEUES:
                raise ResponseError(
                    ResponseCode.INVALID_PARAMETER,
                    f"{wanted.topic_name}: {count} queues; 0 to {MAX_QUEUES} are possible",
                )

    def _update(self, wanted: TopicConfig) -> None:
        try:
            self._topics.update(wanted)
        except AttributeChangeError as error:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, str(error)) from None

    @serves(topic.DELETE_TOPIC_IN_BROKER)
    def delete(self, request: Request[DeleteTopicRequestHeader]) -> Reply[NoHeader] | PendingReply:
        """Deletes a topic with its queues, its groups' offsets and their pop retry topics."""
        name = request.header.topic
        if not name.strip():
            raise ResponseError(ResponseCode.INVALID_PARAMETER, "The specified topic is blank.")
        self._check_not_system(name)
        return self._walks.answer(self._delete_all(name))

    def _delete_all(self, name: str) -> Walk:
        groups = self._offsets.groups_of(name)
        yield from self._delete(name)
        if self._config.clear_retry_topic_when_delete_topic:
            for group in groups:
                for pop_retry_topic in (f"%RETRY%{group}+{name}", f"%RETRY%{group}_{name}"):
                    if self._topics.get(pop_retry_topic):
                        yield from self._delete(pop_retry_topic)
                yield
        return self._topics.saving.answer(Reply())

    def _delete(self, name: str) -> Steps[None]:
        found = self._topics.get(name)
        self._topics.delete(name)
        self._store.delete_topic(name)
        yield from self._stats.remove_topic(name)
        yield from self._offsets.forget_topic(name)
        for queue_id in range(found.read_queue_nums if found is not None else 0):
            self._polling.resume_all(name, queue_id)  # they hear that it does not exist
            yield

    # ---------------------------------------------------------------- queries

    @serves(topic.GET_ALL_TOPIC_CONFIG)
    def all_topics(
        self, request: Request[GetAllTopicConfigRequestHeader]
    ) -> Reply[GetAllTopicConfigResponseHeader] | PendingReply:
        """Returns every topic, or a page of them."""
        return self._walks.answer(self._all_topics(request.header))

    def _all_topics(self, header: GetAllTopicConfigRequestHeader) -> Walk:
        table, data_version = self._topics.all(), self._topics.data_version
        page = table
        if self._config.enable_split_metadata:
            wanted = Page(header.topic_seq, header.max_topic_num, header.data_version)
            page = wanted.of(table, data_version, self._config.split_metadata_size)
        wrapper = TopicConfigAndMappingSerializeWrapper(data_version=data_version).to_json()
        body = BodyPieces({**wrapper, "topicConfigTable": HOLE}, "{}")
        for name, found in page.items():
            body.add(encode_member(name, found.to_json()))
            yield
        return Reply(GetAllTopicConfigResponseHeader(total_topic_num=len(table)), body.end())

    @serves(topic.GET_TOPIC_CONFIG)
    def topic_config(self, request: Request[GetTopicConfigRequestHeader]) -> Reply[NoHeader]:
        """Returns the configuration of one topic."""
        found = self._topics.get(request.header.topic)
        if found is None:
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST,
                f"No topic in this broker. topic: {request.header.topic}",
            )
        return Reply(body=TopicConfigAndQueueMapping.from_json(found.to_json()).encode())

    @serves(topic.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
    def system_topics(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        """Returns the names of the broker's own topics."""
        return Reply(body=TopicList(topic_list=sorted(self._topics.system_topics())).encode())

    @serves(admin.GET_TOPIC_STATS_INFO)
    def topic_stats(
        self, request: Request[GetTopicStatsInfoRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns the bounds of all queues of a topic, and when the last message came."""
        return self._walks.answer(self._topic_stats(request.header.topic))

    def _topic_stats(self, name: str) -> Walk:
        found = self._topics.get(name)
        if found is None:
            raise ResponseError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
        stats = TopicStatsTable(topic_put_tps=self._stats.topic_put_tps(name)).to_json()
        body = BodyPieces({**stats, "offsetTable": HOLE}, "{}")
        for queue_id in range(max(found.write_queue_nums, found.read_queue_nums)):
            high, last_ms = self._store.max_offset(name, queue_id), 0
            if high > 0:
                last_ms = yield from when_in_memory(
                    partial(self._store.store_time_at, name, queue_id, high - 1)
                )
            bounds = TopicOffset(
                min_offset=max(self._store.min_offset(name, queue_id), 0),
                max_offset=high,
                last_update_timestamp=last_ms,
            )
            queue = MessageQueue(name, self._config.broker_name, queue_id)
            body.add(encode_member(queue, bounds.to_json()))
            yield
        return Reply(body=body.end())
