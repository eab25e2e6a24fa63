# SPDX-License-Identifier: Apache-2.0
"""Messages: finding them by id, key or time, tracking them, and having them consumed again.

A message has two ids: the unique key that its producer made, and the place where a broker put it.
Both look alike; one whose address is no broker's is a unique key. Brokers find keys by hashes, so
what they give is checked here.

Java: QueryMsgByIdSubCommand, QueryMsgByKeySubCommand, QueryMsgByOffsetSubCommand and others;
MQAdminImpl.queryMessage, DefaultMQAdminExtImpl.messageTrackDetail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from txrocketmq.client.admin.clients import Clients
from txrocketmq.client.admin.destinations import Destinations
from txrocketmq.client.admin.groups import Groups
from txrocketmq.client.admin.offsets import Offsets
from txrocketmq.client.admin.results import BrokerInfo, MessageTrack, TrackType
from txrocketmq.client.admin.topics import Topics
from txrocketmq.client.base.config import TRACE_TOPIC
from txrocketmq.client.base.errors import AdminRefused, GroupOffline, MessageNotFound
from txrocketmq.client.consumer.queue.pull_queue import QueuePull
from txrocketmq.client.core.trace import TraceRecord, decode_records
from txrocketmq.client.producer.producer import Producer
from txrocketmq.client.producer.send_result import SendResult
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.ids import MessageIdError, decode_message_id
from txrocketmq.remoting.message.message import (
    Message,
    MessageExt,
    MessageQueue,
    decode_message,
    decode_messages,
)
from txrocketmq.remoting.message.tags import SUB_ALL, build_subscription_data
from txrocketmq.remoting.protocol import query
from txrocketmq.remoting.protocol.body.client import (
    ConsumeMessageDirectlyResult,
    ConsumerConnection,
)
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import ConsumeMessageDirectlyResultRequestHeader
from txrocketmq.remoting.protocol.pull import TOOLS_GROUP
from txrocketmq.remoting.protocol.query import QueryMessageRequestHeader, ViewMessageRequestHeader
from txrocketmq.remoting.routing.routes import subscribe_queues

RESEND_GROUP: Final = "txrocketmq_admin"
_UNIQUE_KEY_MESSAGES: Final = 32
_LONG_MAX: Final = 2**63 - 1
_PULL_MESSAGES: Final = 32
_PULL_TIMEOUT_MS: Final = 10_000
_KEPT_WHEN_SENT_AGAIN: Final = frozenset({names.TAGS, names.KEYS})


class Messages:
    """The part of the admin client for messages."""

    def __init__(
        self,
        destinations: Destinations,
        topics: Topics,
        groups: Groups,
        clients: Clients,
        offsets: Offsets,
    ) -> None:
        self._servers = destinations
        self._topics = topics
        self._groups = groups
        self._clients = clients
        self._offsets = offsets

    async def message(self, topic: str, msg_id: str) -> MessageExt:
        """Returns the message with an id.

        The id is either the unique key that its producer gave the message, or the id that says
        where a broker stored it. Raises MessageNotFound, NoRoute, AdminRefused and PartlyFailed.
        """
        found = await self._message_at_place(topic, msg_id)
        if found is not None:
            return found
        matches = await self._query(
            topic, msg_id, _UNIQUE_KEY_MESSAGES, 0, _LONG_MAX, is_unique_key=True
        )
        if not matches:
            raise MessageNotFound(
                f"no broker of topic {topic} has a message with the id {msg_id}: check the topic;"
                " it may also have expired, or not be in the index yet"
            )
        return max(matches, key=lambda each: each.store_timestamp)

    async def message_at(self, queue: MessageQueue, offset: int) -> MessageExt:
        """Returns the message at an offset of a queue.

        Raises MessageNotFound, NoRoute and AdminRefused.
        """
        await self._servers.broker_of(queue)
        lowest, highest = (
            await self._offsets.min_offset(queue),
            await self._offsets.max_offset(queue),
        )
        if lowest <= offset < highest:
            pulled = await self._pull_of(queue).pull(
                offset, build_subscription_data(queue.topic, SUB_ALL), posts_subscription=True
            )
            for message in pulled.messages:
                if message.queue_offset == offset:
                    return message
        raise MessageNotFound(f"{queue} has no message at {offset}: it has {lowest} to {highest}")

    async def messages_by_key(
        self,
        topic: str,
        key: str,
        *,
        begin_ms: int = 0,
        end_ms: int | None = None,
        max_messages: int = 64,
    ) -> list[MessageExt]:
        """Returns the messages that were sent with a key, the oldest first.

        If there are more than `max_messages`, these are the newest. A broker gives 64 in one answer
        at most, unless it is configured otherwise. The list may be empty. `begin_ms` and `end_ms`
        limit the time at which the messages were stored. Raises NoRoute, AdminRefused and
        PartlyFailed.
        """
        end_ms = _LONG_MAX if end_ms is None else end_ms
        return await self._query(topic, key, max_messages, begin_ms, end_ms, is_unique_key=False)

    async def messages_between(
        self,
        topic: str,
        begin_ms: int,
        end_ms: int | None = None,
        *,
        expression: str = SUB_ALL,
        max_messages: int = 1_000,
        seen: Callable[[int], None] | None = None,
    ) -> list[MessageExt]:
        """Returns the messages that were stored between two times, the oldest first.

        Both times are included. `expression` selects tags, such as "a || b". At most `max_messages`
        are returned; if there are more, they are those of the first queues. `seen` is called again
        and again with the number of messages found so far; it must be quick and must not call the
        client. Raises NoRoute, AdminRefused and SubscriptionError.
        """
        end_ms = _LONG_MAX if end_ms is None else end_ms
        subscription = build_subscription_data(topic, expression)
        found: list[MessageExt] = []
        for queue in subscribe_queues(topic, await self._servers.route(topic)):
            offset = await self._offsets.search_offset(queue, begin_ms)
            highest = await self._offsets.max_offset(queue)
            pull = self._pull_of(queue)
            is_over = False
            while offset < highest and not is_over and len(found) < max_messages:
                pulled = await pull.pull(offset, subscription, posts_subscription=True)
                is_over = pulled.next_offset <= offset
                offset = pulled.next_offset
                for message in pulled.messages:
                    if message.store_timestamp > end_ms or len(found) == max_messages:
                        is_over = True
                        break
                    if message.store_timestamp >= begin_ms:
                        found.append(message)
                if seen is not None:
                    seen(len(found))
        return sorted(found, key=lambda each: each.store_timestamp)

    async def message_tracks(self, message: MessageExt) -> list[MessageTrack]:
        """Returns for each group of the message's topic whether it has consumed the message.

        Raises NoRoute and AdminRefused.
        """
        return [
            await self._track(message, group)
            for group in await self._topics.topic_groups(message.topic)
        ]

    async def message_trace(
        self, msg_id: str, *, trace_topic: str = TRACE_TOPIC
    ) -> list[TraceRecord]:
        """Returns the traces that clients have written of a message, given its unique key.

        The list may be empty. Raises NoRoute, AdminRefused and PartlyFailed.
        """
        carriers = await self.messages_by_key(trace_topic, msg_id)
        return [
            record
            for carrier in carriers
            for record in decode_records(carrier.body.decode("utf-8", "replace"))
            if getattr(record, "msg_id", None) == msg_id
        ]

    async def consume_directly(
        self, group: str, client_id: str, topic: str, msg_id: str
    ) -> ConsumeMessageDirectlyResult:
        """Makes a connected consumer consume one message now; no offset changes.

        Raises MessageNotFound, NoRoute, and AdminRefused if the consumer is not connected or does
        not answer in time.
        """
        message = await self.message(topic, msg_id)
        host = message.store_host
        reply = await self._servers.ask(
            str(host),
            admin.CONSUME_MESSAGE_DIRECTLY,
            ConsumeMessageDirectlyResultRequestHeader(
                consumer_group=group,
                client_id=client_id,
                msg_id=message.offset_msg_id,
                broker_name=message.broker_name,
                topic=topic,
            ),
            doing=f"having client {client_id} of group {group} consume message {msg_id}",
            timeout_ms=self._servers.config.search_timeout_ms,
        )
        return ConsumeMessageDirectlyResult.decode(reply.body_bytes)

    async def resend(self, topic: str, msg_id: str, *, to_topic: str | None = None) -> SendResult:
        """Sends a message again, to its topic or to another one.

        All groups of that topic receive it. The new message has the body, the tag, the keys and the
        user's properties of the old one. Raises MessageNotFound, NoRoute, and whatever else a send
        raises.
        """
        message = await self.message(topic, msg_id)
        kept = {
            name: value
            for name, value in message.properties.items()
            if name in _KEPT_WHEN_SENT_AGAIN or name not in names.SYSTEM_PROPERTIES
        }
        producer = Producer(self._servers.instance, RESEND_GROUP)
        try:
            return await producer.send(
                Message(to_topic or topic, message.body, message.flag, properties=kept)
            )
        finally:
            await producer.shutdown()

    # -------------------------------------------------------------- finding

    async def _message_at_place(self, topic: str, msg_id: str) -> MessageExt | None:
        try:
            place = decode_message_id(msg_id)
        except MessageIdError:
            return None
        for broker in await self._servers.brokers():
            if broker.address == str(place.store_host):
                break
        else:
            return None
        try:
            reply = await self._servers.ask(
                broker.address,
                query.VIEW_MESSAGE_BY_ID,
                ViewMessageRequestHeader(topic=topic, offset=place.commit_log_offset),
                doing=f"asking for message {msg_id}",
            )
        except AdminRefused as error:
            if error.code != ResponseCode.SYSTEM_ERROR:
                raise
            return None
        message, _ = decode_message(reply.body_bytes)
        if message.topic != topic:
            return None
        message.broker_name = broker.name
        return message

    async def _query(
        self,
        topic: str,
        key: str,
        max_messages: int,
        begin_ms: int,
        end_ms: int,
        *,
        is_unique_key: bool,
    ) -> list[MessageExt]:
        doing = f"searching topic {topic} for {key}"
        header = QueryMessageRequestHeader(
            topic=topic,
            key=key,
            max_num=max_messages,
            begin_timestamp=begin_ms,
            end_timestamp=end_ms,
            unique_key_query=is_unique_key,
        )

        async def ask(broker: BrokerInfo) -> list[MessageExt]:
            try:
                reply = await self._servers.ask(
                    broker.address,
                    query.QUERY_MESSAGE,
                    header,
                    doing=doing,
                    timeout_ms=self._servers.config.search_timeout_ms,
                )
            except AdminRefused as error:
                if error.code == ResponseCode.QUERY_NOT_FOUND:
                    return []
                raise
            found = decode_messages(reply.body_bytes)
            for each in found:
                each.broker_name = broker.name
            return [each for each in found if _has_key(each, topic, key, is_unique_key)]

        answers = await self._servers.each(await self._servers.brokers_of_topic(topic), doing, ask)
        found = [message for answer in answers for message in answer]
        return sorted(found, key=lambda each: each.store_timestamp)[-max_messages:]

    def _pull_of(self, queue: MessageQueue) -> QueuePull:
        return QueuePull(
            self._servers.instance,
            TOOLS_GROUP,
            queue,
            suspend_ms=0,
            timeout_ms=_PULL_TIMEOUT_MS,
            batch_size=_PULL_MESSAGES,
        )

    # --------------------------------------------------------------- tracks

    async def _track(self, message: MessageExt, group: str) -> MessageTrack:
        try:
            connection = await self._clients.consumer_connections(group)
            track = await self._track_of(message, group, connection)
        except GroupOffline:
            track = TrackType.NOT_ONLINE
        except AdminRefused as error:
            return MessageTrack(group=group, track=TrackType.UNKNOWN, detail=str(error))
        return MessageTrack(group=group, track=track)

    async def _track_of(
        self, message: MessageExt, group: str, connection: ConsumerConnection
    ) -> TrackType:
        if connection.message_model == "BROADCASTING":
            return TrackType.CONSUME_BROADCASTING
        progress = await self._groups.progress(group, message.topic)
        queue = MessageQueue(message.topic, message.broker_name or "", message.queue_id)
        offsets = {each.queue: each.consumer_offset for each in progress.queues}
        if offsets.get(queue, 0) <= message.queue_offset:
            return TrackType.NOT_CONSUME_YET
        subscription = connection.subscription_table.get(message.topic)
        if subscription is not None and not subscription.accepts_tags(message.tags):
            return TrackType.CONSUMED_BUT_FILTERED
        return TrackType.CONSUMED


def _has_key(message: MessageExt, topic: str, key: str, is_unique_key: bool) -> bool:  # noqa: FBT001
    if message.topic != topic:
        return False
    if is_unique_key:
        return message.unique_key == key
    return key in (message.properties.get(names.KEYS) or "").split(names.KEY_SEPARATOR)
