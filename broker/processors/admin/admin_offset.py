# SPDX-License-Identifier: Apache-2.0
"""Offsets of groups for administrators: reset (222), compare (308), clone (314).

A reset of 5.x is done here: the group's next pull is told its new offset (21). With
useServerSideResetOffset=false it is done as 4.9 did, by telling the group's consumers, which must
be there (206) and not too old (1). Codes else: 17, 26, and 1 for an offset out of range. Java:
AdminBrokerProcessor, Broker2Client.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from txrocketmq.broker.pulls.long_polling import LongPolling
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps, when_in_memory
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.clients import ConsumerGroup, Consumers
from txrocketmq.broker.tables.offset import NOT_FOUND, ConsumerOffsets
from txrocketmq.broker.tables.subscription import SubscriptionGroups
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work.walks import BodyPieces, Walk, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import offset as calls
from txrocketmq.remoting.protocol.body.offset import (
    MessageQueueForC,
    QueryCorrectionOffsetBody,
    ResetOffsetBody,
    ResetOffsetBodyForC,
)
from txrocketmq.remoting.protocol.offset import (
    CloneGroupOffsetRequestHeader,
    QueryCorrectionOffsetHeader,
    ResetOffsetRequestHeader,
)
from txrocketmq.remoting.serialize.json import HOLE, encode_member

_LONG_MAX = 2**63 - 1


class AdminOffsetProcessor:
    """Changes offsets on behalf of administrators."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: Topics,
        groups: SubscriptionGroups,
        consumers: Consumers,
        offsets: ConsumerOffsets,
        store: MessageStore,
        polling: LongPolling,
        walks: Walks,
    ) -> None:
        self._config = config
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._offsets = offsets
        self._store = store
        self._polling = polling
        self._walks = walks

    # ------------------------------------------------------------------ reset

    @serves(calls.INVOKE_BROKER_TO_RESET_OFFSET)
    def reset(self, request: Request[ResetOffsetRequestHeader]) -> Reply[NoHeader] | PendingReply:
        """Moves a group's offsets to a time (negative: the end) or, in one queue, to an offset."""
        return self._walks.answer(self._reset(request))

    def _reset(self, request: Request[ResetOffsetRequestHeader]) -> Walk:
        if self._config.use_server_side_reset_offset:
            table = yield from self._reset_here(request.header)
        else:
            table = yield from self._reset_there(request)
        body = BodyPieces({**ResetOffsetBody().to_json(), "offsetTable": HOLE}, "{}")
        for queue_id, offset in table.items():
            queue = MessageQueue(request.header.topic, self._config.broker_name, queue_id)
            body.add(encode_member(queue, offset))
            yield
        return Reply(body=body.end())

    def _reset_here(self, header: ResetOffsetRequestHeader) -> Steps[dict[int, int]]:
        topic = self._topics.get(header.topic)
        if topic is None:
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST, f"Topic {header.topic} does not exist"
            )
        if self._groups.get(header.group) is None:
            raise ResponseError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {header.group} does not exist"
            )
        table: dict[int, int] = {}
        if header.queue_id >= 0:
            table[header.queue_id] = yield from self._target(header)
        else:
            for queue_id in range(topic.read_queue_nums):
                table[queue_id] = yield from self._at_time(header.topic, queue_id, header.timestamp)
                yield
        if not table:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
        for queue_id, offset in table.items():
            self._offsets.reset(header.group, header.topic, queue_id, offset)
            self._polling.resume_all(header.topic, queue_id)
            yield
        return table

    def _target(self, header: ResetOffsetRequestHeader) -> Steps[int]:
        offset = header.offset
        if offset is None or offset == NOT_FOUND:
            return (yield from self._at_time(header.topic, header.queue_id, header.timestamp))
        low = self._store.min_offset(header.topic, header.queue_id)
        high = self._store.max_offset(header.topic, header.queue_id)
        if not low <= offset <= high + 1:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"Target offset {offset} not in consume queue range [{low}-{high}]",
            )
        return offset

    def _at_time(self, topic: str, queue_id: int, timestamp_ms: int) -> Steps[int]:
        if timestamp_ms < 0:
            return self._store.max_offset(topic, queue_id)
        return (
            yield from when_in_memory(
                partial(self._store.offset_by_time, topic, queue_id, timestamp_ms)
            )
        )

    def _reset_there(self, request: Request[ResetOffsetRequestHeader]) -> Steps[dict[int, int]]:
        header = request.header
        table = yield from self._offsets_to_tell(header)
        group = self._consumers.group(header.group)
        if group is None or not group.members:
            raise ResponseError(
                ResponseCode.CONSUMER_NOT_ONLINE,
                "Consumer not online, so can not reset offset,"
                f" Group: {header.group} Topic: {header.topic} Timestamp: {header.timestamp}",
            )
        self._tell(group, header, self._body(header, table, request.command.language))
        return table

    def _offsets_to_tell(self, header: ResetOffsetRequestHeader) -> Steps[dict[int, int]]:
        topic = self._topics.get(header.topic)
        if topic is None:
            raise ResponseError(
                ResponseCode.TOPIC_NOT_EXIST,
                "[reset-offset] reset offset failed, no topic in this broker."
                f" topic={header.topic}",
            )
        table: dict[int, int] = {}
        for queue_id in range(topic.write_queue_nums):
            consumed = self._offsets.query(header.group, header.topic, queue_id)
            if consumed == NOT_FOUND:
                raise ResponseError(
                    ResponseCode.SYSTEM_ERROR, f"THe consumer group <{header.group}> not exist"
                )
            found = yield from self._at_time(header.topic, queue_id, header.timestamp)
            wanted = max(found, 0)
            table[queue_id] = wanted if header.is_force else min(wanted, consumed)
            yield
        return table

    def _body(
        self, header: ResetOffsetRequestHeader, table: Mapping[int, int], language: str | None
    ) -> bytes:
        name = self._config.broker_name
        if language == "CPP":
            return ResetOffsetBodyForC(
                offset_table=[
                    MessageQueueForC(
                        topic=header.topic, broker_name=name, queue_id=queue_id, offset=offset
                    )
                    for queue_id, offset in table.items()
                ]
            ).encode()
        return ResetOffsetBody(
            offset_table={MessageQueue(header.topic, name, each): at for each, at in table.items()}
        ).encode()

    @staticmethod
    def _tell(group: ConsumerGroup, header: ResetOffsetRequestHeader, body: bytes) -> None:
        told = ResetOffsetRequestHeader(
            group=header.group, topic=header.topic, timestamp=header.timestamp, is_force=False
        )
        for client in list(group.members.values()):
            if client.version < MQVersion.V3_0_7_SNAPSHOT:
                raise ResponseError(
                    ResponseCode.SYSTEM_ERROR,
                    f"the client does not support this feature. version={client.version}",
                )
            client.peer.invoke_oneway(calls.RESET_CONSUMER_CLIENT_OFFSET, told, body)

    # ------------------------------------------------------ compare and clone

    @serves(calls.QUERY_CORRECTION_OFFSET)
    def correction(
        self, request: Request[QueryCorrectionOffsetHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns the smallest offset of all groups but those excluded, for each queue.

        Where the group to compare with is behind that, it is the greatest number there is. The
        original deletes the offsets of the groups that it leaves out; here they stay.
        """
        return self._walks.answer(self._correction(request.header))

    def _correction(self, header: QueryCorrectionOffsetHeader) -> Walk:
        left_out = set((header.filter_groups or "").split(","))
        least: dict[int, int] = {}
        for group in self._offsets.groups_of(header.topic) - left_out:
            for queue_id, offset in self._offsets.of(group, header.topic).items():
                if offset >= self._store.min_offset(header.topic, queue_id):
                    least[queue_id] = min(least.get(queue_id, offset), offset)
            yield
        for queue_id, offset in self._offsets.of(header.compare_group, header.topic).items():
            if least.get(queue_id, offset) > offset:
                least[queue_id] = _LONG_MAX
        return Reply(body=QueryCorrectionOffsetBody(correction_offsets=least).encode())

    @serves(calls.CLONE_GROUP_OFFSET)
    def clone(
        self, request: Request[CloneGroupOffsetRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Gives a group the offsets of another group, of one topic or of all."""
        return self._walks.answer(self._clone(request.header))

    def _clone(self, header: CloneGroupOffsetRequestHeader) -> Walk:
        source = header.src_group
        topics = {header.topic} if header.topic else self._offsets.topics_of(source)
        group = self._consumers.group(source)
        subscribed = group.subscriptions if group is not None else {}
        for topic in topics:
            yield
            if self._topics.get(topic) is None:
                continue
            if not header.offline and subscribed and topic not in subscribed:
                continue
            if self._offsets.of(source, topic):
                self._offsets.clone(source, header.dest_group, topic)
        return Reply()
