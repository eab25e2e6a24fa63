# SPDX-License-Identifier: Apache-2.0
"""The largest requests of each kind: as much as one frame may carry, or as the broker takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.fakes import NOW_MS
from txrocketmq.broker.processors.admin import admin_config
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.pop import ReceiptHandle
from txrocketmq.remoting.message.tags import MOST_TAGS, SubscriptionData
from txrocketmq.remoting.protocol.body.base import MOST_BYTES, Body
from txrocketmq.remoting.protocol.body.heartbeat import (
    ConsumerData,
    HeartbeatData,
    LockBatchRequestBody,
    ProducerData,
    UnlockBatchRequestBody,
)
from txrocketmq.remoting.protocol.body.pop import (
    BatchAck,
    BatchAckMessageRequestBody,
    QueryAssignmentRequestBody,
    encode_bit_set,
)
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import (
    CreateTopicListRequestBody,
    SubscriptionGroupConfig,
    SubscriptionGroupList,
)

MANY_PROPERTIES: Final = "".join(f"k{each}\x01v\x02" for each in range(3_400))
"""Almost as many as a message may have: 32 KB."""
MANY_KEYS: Final = f"KEYS\x01{' '.join(f'k{each}' for each in range(4_700))}\x02"
MANY_LIGHT: Final = "".join(
    ("INNER_MULTI_DISPATCH\x01", ",".join(f"%LMQ%{each}" for each in range(2_000)), "\x02")
)
END: Final = {
    "producerGroup": "p", "tranStateTableOffset": "0", "commitLogOffset": "0",
    "commitOrRollback": "8", "fromTransactionCheck": "false", "msgId": "id",
}  # fmt: skip


class Largest(NamedTuple):
    """A request, and how many times it comes in one read."""

    code: int
    what: str
    fields: dict[str, str]
    body: bytes = b""
    times: int = 1


def send_fields(properties: str, **more: str) -> dict[str, str]:
    """The fields of a send to the topic "W"."""
    return {
        "producerGroup": "p", "topic": "W", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4",
        "queueId": "0", "sysFlag": "0", "bornTimestamp": str(NOW_MS), "flag": "0",
        "properties": properties, **more,
    }  # fmt: skip


def short_names(fields: dict[str, str]) -> dict[str, str]:
    """The same fields as SEND_MESSAGE_V2 has them."""
    names = dict(zip("abcdefghi", fields, strict=False))
    return {letter: fields[name] for letter, name in names.items()}


def _sends() -> Iterator[Largest]:
    texts = {"properties": MANY_PROPERTIES, "keys": MANY_KEYS, "light queues": MANY_LIGHT}
    for what, text in texts.items():
        yield Largest(10, f"with many {what}", send_fields(text), b"x")
        yield Largest(310, f"with many {what}", short_names(send_fields(text)), b"x")
        yield Largest(10, f"many with {what}", send_fields(text[: len(text) // 16]), b"x", 16)
    yield Largest(10, "many", send_fields("a\x01b\x02"), b"x", 256)
    new = [send_fields("", topic=f"new{each}") for each in range(2)]
    yield Largest(10, "many to a new topic", new[0], b"x", 256)
    reply = f"REPLY_TO_CLIENT\x01nobody\x02{MANY_PROPERTIES}"
    yield Largest(324, "", send_fields(reply), b"x")
    yield Largest(325, "", short_names(send_fields(reply)), b"x")
    back = {"offset": "0", "group": "G", "delayLevel": "3", "maxReconsumeTimes": "16"}
    yield Largest(36, "", back)
    message_id = "7F000001000029FF0000000000000000"
    yield Largest(323, "", {"topic": "T", "msgId": message_id})
    yield Largest(370, "", {"producerGroup": "p", "topic": "W", "recallHandle": "x" * 32_000})
    yield Largest(37, "many", END, times=256)
    member = {"consumerGroup": "crowd", "clientId": "c1", "msgId": message_id}
    yield Largest(307, "", member)
    yield Largest(309, "", member)
    yield Largest(223, "of a crowd", {"topic": "T", "group": "crowd"})
    yield Largest(35, "", {"clientID": "c1", "producerGroup": "crowd", "consumerGroup": "crowd"})


def _acks() -> Iterator[Largest]:
    handle = str(ReceiptHandle(3, NOW_MS, 60_000, 3, "0", "b", 0, 3))
    ack = {
        "consumerGroup": "G", "topic": "T", "queueId": "0", "extraInfo": handle, "offset": "3",
        "invisibleTime": "60000",
    }  # fmt: skip
    yield Largest(200051, "many", ack, times=256)
    yield Largest(200053, "", ack)
    yield Largest(200056, "", {}, bytes(1 << 20))
    for what, count, bits in ("many", 4_000, 32), ("long", 150, 8 * 4_096), ("far", 150, 1):
        acks = [
            BatchAck(
                consumer_group="G", topic="T", retry="0", start_offset=0 if what != "far" else 5,
                queue_id=0, revive_queue_id=0, pop_time=NOW_MS + each, invisible_time=60_000,
                bit_set=encode_bit_set(range(bits)),
            )
            for each in range(count)
        ]  # fmt: skip
        yield _of(200151, what, BatchAckMessageRequestBody(broker_name="b", acks=acks))


def _of(code: int, what: str, body: Body) -> Largest:
    data = body.encode()
    assert len(data) <= MOST_BYTES, f"{len(data)} bytes"
    return Largest(code, what, {}, data)


def _lists() -> Iterator[Largest]:
    queues = frozenset(MessageQueue("W", "b", each) for each in range(21_000))
    yield _of(41, "", LockBatchRequestBody(consumer_group="L", client_id="c", mq_set=queues))
    yield _of(42, "", UnlockBatchRequestBody(consumer_group="crowd", client_id="c1", mq_set=queues))
    wanted = [SubscriptionData(f"t{each}", sub_version=1) for each in range(7_500)]
    consumer = ConsumerData(group_name="G", subscription_data_set=wanted)
    yield _of(34, "subscriptions", HeartbeatData(client_id="c", consumer_data_set=[consumer]))
    tags = frozenset(f"{each}" for each in range(MOST_TAGS))
    much = SubscriptionData("T", tags_set=tags, code_set=frozenset(range(MOST_TAGS)), sub_version=1)
    consumer = ConsumerData(group_name="G", subscription_data_set=[much])
    yield _of(34, "tags", HeartbeatData(client_id="c", consumer_data_set=[consumer]))
    producers = [ProducerData(group_name=f"p{each}") for each in range(40_000)]
    yield _of(34, "producers", HeartbeatData(client_id="c", producer_data_set=producers))
    topics = [TopicConfig(topic_name=f"new{each}") for each in range(5_000)]
    yield _of(18, "", CreateTopicListRequestBody(topic_config_list=topics))
    groups = [SubscriptionGroupConfig(group_name=f"new{each}") for each in range(2_000)]
    yield _of(225, "", SubscriptionGroupList(group_config_list=groups))
    for strategy in "AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH":
        yield _of(
            400,
            strategy,
            QueryAssignmentRequestBody(
                topic="W", consumer_group="crowd", client_id="c1", strategy_name=strategy,
                message_model="CLUSTERING",
            ),
        )  # fmt: skip


def _settings() -> Iterator[Largest]:
    most = admin_config.MOST_BYTES
    yield Largest(26, "", {})
    yield Largest(5001, "", {"engineType": "F"})
    yield Largest(
        25, "that nobody knows", {}, b"".join(b"%04x\n" % each for each in range(most // 5))
    )
    yield Largest(25, "long", {}, b"maxMessageSize=" + b" " * (most - 22) + b"4194305")


def all_asked() -> Iterator[Largest]:
    """All of them but batches, of which there are more kinds."""
    yield from _sends()
    yield from _acks()
    yield from _lists()
    yield from _settings()
