# SPDX-License-Identifier: Apache-2.0
"""Fields and bodies of requests, and requests of one kind that are made by number."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from txrocketmq.remoting.call import CALLS
from txrocketmq.remoting.message.pop import ReceiptHandle
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.heartbeat import (
    ConsumerData,
    HeartbeatData,
    ProducerData,
)
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader

BROKER = "b"
WIDE = 256
"""The number of queues of the topic "W"."""
Fields = Mapping[str, str]
Made = tuple[Fields, bytes]


class Asked(NamedTuple):
    """Requests of one kind, made by number; `most` is how many of them there may be."""

    code: int
    what: str
    made: Callable[[int], Made]
    most: int = 1 << 30
    late: bool = False
    """Whether they may stay without an answer, as polls do."""

    @property
    def name(self) -> str:
        """The name of the request, and what is special."""
        name = CALLS[self.code].name
        return f"{name}, {self.what}" if self.what else name


def now_ms() -> int:
    """The time of the wall clock, in ms."""
    return time.time_ns() // 1_000_000


def send_fields(
    code: int, topic: str, properties: str = "", *, queue_id: int = 0, **more: Any
) -> Fields:
    """The fields of a send."""
    header = CALLS[code].request
    assert issubclass(header, SendMessageRequestHeader)
    made = header(
        producer_group="p", topic=topic, default_topic="TBW102", default_topic_queue_nums=1,
        queue_id=queue_id, sys_flag=int(more.pop("sys_flag", 0)), born_timestamp=now_ms(), flag=0,
        properties=properties, **more,
    )  # fmt: skip
    fields: Fields = made.encode()
    return fields


def property_text(values: Mapping[str, object]) -> str:
    """Properties as they are sent."""
    return "".join(f"{key}\x01{value}\x02" for key, value in values.items())


def pull(topic: str = "T", **more: Any) -> Fields:
    """The fields of a pull."""
    fields = {
        "consumerGroup": "G", "topic": topic, "queueId": 0, "queueOffset": 0, "maxMsgNums": 32,
        "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0, "subVersion": 0,
        "subscription": "*",
    }  # fmt: skip
    return {key: str(value) for key, value in {**fields, **more}.items()}


def pop(topic: str = "T", **more: Any) -> Fields:
    """The fields of a pop."""
    fields = {
        "consumerGroup": "G", "topic": topic, "queueId": -1, "maxMsgNums": 32,
        "invisibleTime": 60_000, "pollTime": 0, "bornTime": now_ms() + 20_000, "initMode": 0,
        "order": "false",
    }  # fmt: skip
    return {key: str(value) for key, value in {**fields, **more}.items()}


def sql(expression: str) -> dict[str, Any]:
    """The fields of an expression in a pull."""
    return {"subscription": expression, "expressionType": "SQL92"}


def always(fields: Fields, body: bytes = b"") -> Callable[[int], Made]:
    """The same request each time."""
    return lambda _: (fields, body)


def handle(number: int) -> str:
    """The handle of a popped message."""
    return str(ReceiptHandle(number, now_ms(), 60_000, number % 8, "0", BROKER, 0, number))


def consumer(group: str, subscriptions: Sequence[SubscriptionData] = ()) -> ConsumerData:
    """A push consumer in a heartbeat."""
    return ConsumerData(
        group_name=group,
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscription_data_set=subscriptions,
    )


def heartbeat(
    number: int, groups: int, subscriptions: Callable[[int], list[SubscriptionData]]
) -> bytes:
    """A client with so many groups that are new."""
    return HeartbeatData(
        client_id=f"client-{number}",
        producer_data_set=[ProducerData(group_name=f"hp{number}-{each}") for each in range(groups)],
        consumer_data_set=[
            consumer(f"hc{number}-{each}", subscriptions(each)) for each in range(groups)
        ],
    ).encode()  # fmt: skip
