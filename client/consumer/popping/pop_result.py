# SPDX-License-Identifier: Apache-2.0
"""The result of a pop: messages, each with the handle by which it is acknowledged.

A handle is the property POP_CK. The answer tells of each queue where the pop began and which
offsets it took, in the order of the messages; those that come again are of a retry topic, which the
handle remembers, while the message has the topic that was asked for.

Java: MQClientAPIImpl.processPopResponse, DefaultMQPushConsumerImpl.processPopResult.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.client.consumer.queue.pull_result import wanted_messages
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.compression import PlainRoom
from txrocketmq.remoting.message.message import MessageExt, MessageQueue, RecordBytes
from txrocketmq.remoting.message.pop import (
    ReceiptHandle,
    ReceiptHandleError,
    real_topic,
    retry_flag,
)
from txrocketmq.remoting.message.tags import SUB_ALL, SubscriptionData
from txrocketmq.remoting.protocol.body.pop import (
    BatchAck,
    BatchAckMessageRequestBody,
    encode_bit_set,
)
from txrocketmq.remoting.protocol.pop import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    PopMessageResponseHeader,
)

_QUEUE_OFFSET: Final = "qo"

Place = tuple[str, str]
"""The kind of a topic, as in handles, and the id of one of its queues, as text."""


class Popped(NamedTuple):
    """The messages of a pop: those that the subscription takes, and the others."""

    wanted: list[MessageExt]
    unwanted: list[MessageExt]


def popped_messages(
    header: PopMessageResponseHeader,
    body: bytes,
    broker_name: str,
    subscription: SubscriptionData,
    *,
    is_orderly: bool,
) -> Popped:
    """Decodes the messages of a pop and gives each its handle. Raises MessageDecodeError."""
    messages = all_messages(body, broker_name, subscription.topic)
    return with_handles(header, messages, broker_name, subscription, is_orderly=is_orderly)


def all_messages(
    body: RecordBytes,
    broker_name: str,
    topic: str,
    *,
    room: PlainRoom | None = None,
    decompress_bodies: bool = True,
) -> list[MessageExt]:
    """Decodes messages of a pop, which may be a part of them, with `room` for those of all.

    Raises MessageDecodeError.
    """
    everything = SubscriptionData(topic, SUB_ALL)
    queue = MessageQueue(topic, broker_name, 0)  # the id matters to light queues only
    return wanted_messages(body, queue, everything, room=room, decompress_bodies=decompress_bodies)


def with_handles(
    header: PopMessageResponseHeader,
    messages: list[MessageExt],
    broker_name: str,
    subscription: SubscriptionData,
    *,
    is_orderly: bool,
) -> Popped:
    """Gives each of all messages of a pop its handle."""
    starts = _parsed(header.start_offset_info, int)
    taken = _parsed(header.msg_offset_info, _offsets)
    places = [(retry_flag(each.topic), str(each.queue_id)) for each in messages]
    sorted_offsets: dict[Place, list[int]] = defaultdict(list)
    for place, message in zip(places, messages, strict=True):
        sorted_offsets[place].append(message.queue_offset)
    indices = {
        place: {offset: index for index, offset in enumerate(sorted(offsets))}
        for place, offsets in sorted_offsets.items()
    }
    pop_time = str(header.pop_time)
    wanted: list[MessageExt] = []
    unwanted: list[MessageExt] = []
    for place, message in zip(places, messages, strict=True):
        own = message.properties
        if names.POP_CK not in own:
            index, its = indices[place][message.queue_offset], taken.get(place, ())
            # What is popped out of an inner batch has the offset of the batch.
            offset = its[index] if index < len(its) else message.queue_offset
            handle = ReceiptHandle(
                starts.get(place, message.queue_offset), header.pop_time, header.invisible_time,
                header.revive_qid, place[0], broker_name, message.queue_id, offset,
            )  # fmt: skip
            own[names.POP_CK] = str(handle)
        own.setdefault(names.FIRST_POP_TIME, pop_time)
        message.topic = subscription.topic
        is_wanted = subscription.accepts_tags(own.get(names.TAGS))
        (wanted if is_wanted else unwanted).append(message)
    if is_orderly:
        _count_again(header, messages)
    return Popped(wanted, unwanted)


def _count_again(header: PopMessageResponseHeader, messages: Iterable[MessageExt]) -> None:
    """Sets how often messages that are popped in order were popped before."""
    counts = _parsed(header.order_count_info, int)
    for message in messages:
        handle = handle_of(message)
        by_offset = f"{_QUEUE_OFFSET}{handle.queue_id}%{handle.queue_offset}"
        count = counts.get((handle.retry, by_offset))
        if count is None:
            count = counts.get((handle.retry, str(handle.queue_id)), 0)
        if count > 0:
            message.reconsume_times = count


def handle_of(message: MessageExt) -> ReceiptHandle:
    """Returns the handle of a message. Raises MessageIllegal if it was not popped."""
    try:
        return ReceiptHandle.parse(message.properties[names.POP_CK])
    except (KeyError, ReceiptHandleError):
        raise MessageIllegal(
            f"message {message.msg_id} has no receipt handle: only what `receive` or the iterator"
            " has given can be acknowledged"
        ) from None


def ack_of(group: str, topic: str, message: MessageExt) -> AckMessageRequestHeader:
    """Returns the acknowledgement of a message. Raises MessageIllegal."""
    handle = handle_of(message)
    return AckMessageRequestHeader(
        consumer_group=group,
        topic=real_topic(topic, group, handle.retry),
        queue_id=handle.queue_id,
        extra_info=str(handle),
        offset=handle.queue_offset,
        bname=handle.broker_name,
    )


def acks_of(
    group: str, messages: Iterable[tuple[str, MessageExt]]
) -> dict[str, BatchAckMessageRequestBody]:
    """Returns the acknowledgements of messages, by broker; each is given with its topic.

    Raises MessageIllegal.
    """
    return acks_of_handles(group, ((topic, handle_of(message)) for topic, message in messages))


def acks_of_handles(
    group: str, handles: Iterable[tuple[str, ReceiptHandle]]
) -> dict[str, BatchAckMessageRequestBody]:
    """Returns the acknowledgements of messages, by broker; each handle is given with its topic."""
    by_pop: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for topic, handle in handles:
        by_pop[topic, *handle[:-1]].append(handle.queue_offset)
    by_broker: dict[str, list[BatchAck]] = defaultdict(list)
    for (topic, start, pop_ms, invisible_ms, revive, retry, broker, queue), its in by_pop.items():
        ack = BatchAck(
            consumer_group=group,
            topic=topic,
            retry=retry,
            start_offset=start,
            queue_id=queue,
            revive_queue_id=revive,
            pop_time=pop_ms,
            invisible_time=invisible_ms,
            bit_set=encode_bit_set(offset - start for offset in its),
        )
        by_broker[broker].append(ack)
    return {
        broker: BatchAckMessageRequestBody(broker_name=broker, acks=acks)
        for broker, acks in by_broker.items()
    }


def hiding(
    group: str, topic: str, message: MessageExt, invisible_ms: int
) -> ChangeInvisibleTimeRequestHeader:
    """Returns the request that hides a message for `invisible_ms` from now on; MessageIllegal."""
    handle = handle_of(message)
    return ChangeInvisibleTimeRequestHeader(
        consumer_group=group,
        topic=real_topic(topic, group, handle.retry),
        queue_id=handle.queue_id,
        extra_info=str(handle),
        offset=handle.queue_offset,
        invisible_time=invisible_ms,
        bname=handle.broker_name,
    )


def set_new_handle(message: MessageExt, answer: ChangeInvisibleTimeResponseHeader) -> None:
    """Gives a message its new handle; its check point contains no other message."""
    handle = handle_of(message)
    message.properties[names.POP_CK] = str(
        handle._replace(
            start_offset=handle.queue_offset,
            pop_time=answer.pop_time,
            invisible_time=answer.invisible_time,
            revive_queue_id=answer.revive_qid,
        )
    )


def _offsets(word: str) -> list[int]:
    return [int(each) for each in word.split(",")]


def _parsed(text: str | None, parse: Callable[[str], Any]) -> dict[Place, Any]:
    """Parses entries of the form "kind queue value", separated by semicolons."""
    table: dict[Place, Any] = {}
    for entry in (text or "").split(";"):
        words = entry.split(" ")
        if len(words) == 3:
            table[words[0], words[1]] = parse(words[2])
    return table
