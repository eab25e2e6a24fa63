# SPDX-License-Identifier: Apache-2.0
"""What a large broker is asked while others want to be served: all that it serves, and the worst.

Each row has a request for each number, so that new groups, topics and expressions are new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tests.beside.fields import (
    BROKER,
    WIDE,
    Asked,
    Made,
    always,
    handle,
    heartbeat,
    now_ms,
    pop,
    property_text,
    pull,
    send_fields,
    sql,
)
from tests.broker.test_turns import BODIES, FIELDS, TERMS
from txrocketmq.remoting.message.message import Message, MessageQueue, encode_batch
from txrocketmq.remoting.message.recall_handle import RecallHandle
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.heartbeat import (
    CheckClientRequestBody,
    LockBatchRequestBody,
    UnlockBatchRequestBody,
)
from txrocketmq.remoting.protocol.body.pop import (
    BatchAck,
    BatchAckMessageRequestBody,
    QueryAssignmentRequestBody,
    SetMessageRequestModeRequestBody,
    encode_bit_set,
)
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import CreateTopicListRequestBody

BATCH = encode_batch([Message("T", b"y") for _ in range(3_000)])
LIGHT = property_text({"INNER_MULTI_DISPATCH": ",".join(f"%LMQ%light{each}" for each in range(20))})


def _plain(code: int, number: int) -> Made:
    return send_fields(code, "W", queue_id=number % WIDE), b"x" * 1024


def _reply(code: int, number: int) -> Made:
    properties = property_text({"REPLY_TO_CLIENT": "nobody", "CORRELATION_ID": number})
    return send_fields(code, "W", properties), b"x"


def _sends() -> Iterator[Asked]:
    for code in (10, 310):
        yield Asked(code, "", partial(_plain, code))
    yield Asked(
        320,
        "32 messages",
        always(send_fields(320, "W", batch=True), encode_batch([Message("W", b"y" * 100)] * 32)),
    )
    batch = send_fields(320, "W", batch=True)
    yield Asked(320, "3,000 messages", always(batch, BATCH), 20)
    large = encode_batch([Message("W", bytes(142))]) * 20_000
    yield Asked(320, "20,000 messages", always(batch, large), 4)
    tiny = encode_batch([Message("W", b"y")]) * 65_536
    yield Asked(320, "65,536 tiny messages", always(batch, tiny), 4)
    yield Asked(
        310, "delayed", lambda i: (send_fields(310, "W", property_text({"DELAY": 5})), b"x")
    )
    yield Asked(
        310,
        "a timer",
        lambda i: (send_fields(310, "W", property_text({"TIMER_DELAY_SEC": 3600 + i})), b"x"),
    )
    yield Asked(310, "20 light queues", lambda i: (send_fields(310, "W", LIGHT), b"x"))
    yield Asked(310, "of 1 MiB", lambda i: (send_fields(310, "M2"), b"x" * (1 << 20)), 20)
    yield Asked(310, "to new topics", lambda i: (send_fields(310, f"sent{i}"), b"x"))
    yield Asked(
        36,
        "",
        lambda i: (
            {"offset": "0", "group": "G", "delayLevel": "3", "maxReconsumeTimes": "16"},
            b"",
        ),
    )
    yield Asked(
        36,
        "of new groups",
        lambda i: (
            {"offset": "0", "group": f"back{i}", "delayLevel": "3", "maxReconsumeTimes": "16"},
            b"",
        ),
    )
    for code in (324, 325):
        yield Asked(code, "", partial(_reply, code))
    yield Asked(
        370,
        "",
        lambda i: (
            {
                "producerGroup": "p",
                "topic": "W",
                "recallHandle": RecallHandle(
                    "W", BROKER, str(now_ms() + 3_600_000), f"id{i}"
                ).encode(),
            },
            b"",
        ),
    )
    yield Asked(323, "", always({"topic": "T", "msgId": "7F000001000029FF0000000000000000"}))


def _pulls() -> Iterator[Asked]:
    yield Asked(11, "32 messages", lambda i: (pull(queueOffset=i * 3 % 2_000), b""))
    yield Asked(11, "of 200 KB each", lambda i: (pull("M", queueOffset=i % 40), b""))
    yield Asked(11, "a tag that none has", lambda i: (pull(subscription=f"tag{i % 7}"), b""))
    yield Asked(11, "SQL that matches nothing", lambda i: (pull(**sql("a > 100000")), b""))
    yield Asked(
        11,
        "different SQL",
        lambda i: (pull(**sql(f"a > {i} AND b < {i} OR c IN ({i},2,3,4,5,6,7,8,9)")), b""),
    )
    yield Asked(11, "SQL of 500 terms", lambda i: (pull(**sql(f"{TERMS} OR b = {i}")), b""), 20)
    yield Asked(
        11,
        "SQL of 1,400 equal terms",
        lambda i: (pull(**sql(" OR ".join(f"a={i * 10_000 + n}" for n in range(1_400)))), b""),
        10,
    )
    yield Asked(11, "of new groups", lambda i: (pull(consumerGroup=f"pulls{i}"), b""))
    yield Asked(
        11,
        "that wait",
        lambda i: (
            pull(
                "W", queueId=i % WIDE, queueOffset=1 << 40, sysFlag=6, suspendTimeoutMillis=60_000
            ),
            b"",
        ),
        late=True,
    )
    yield Asked(361, "", lambda i: (pull(sysFlag=20, queueOffset=i % 2_000), b""))


def _pops() -> Iterator[Asked]:
    yield Asked(200050, "32 messages", lambda i: (pop(consumerGroup=f"pops{i % 50}"), b""))
    yield Asked(200050, "of new groups", lambda i: (pop(consumerGroup=f"new pops{i}"), b""))
    yield Asked(200050, "of many queues", lambda i: (pop("W", consumerGroup=f"wide{i % 50}"), b""))
    yield Asked(200050, "SQL", lambda i: (pop(expType="SQL92", exp=f"a > {100_000 + i}"), b""))
    yield Asked(200050, "that wait", lambda i: (pop("E", pollTime=60_000), b""), late=True)
    yield Asked(200052, "", lambda i: (pop("W"), b""))


def _acks() -> Iterator[Asked]:
    yield Asked(200054, "", lambda i: (pop("W"), b""))
    yield Asked(
        200051,
        "",
        lambda i: (
            {
                "consumerGroup": "G",
                "topic": "T",
                "queueId": "0",
                "extraInfo": handle(i),
                "offset": str(i),
            },
            b"",
        ),
    )
    yield Asked(
        200053,
        "",
        lambda i: (
            {
                "consumerGroup": "G",
                "topic": "T",
                "queueId": "0",
                "extraInfo": handle(i),
                "offset": str(i),
                "invisibleTime": "60000",
            },
            b"",
        ),
    )


def _more_acks() -> Iterator[Asked]:
    yield Asked(
        200151,
        "",
        lambda i: (
            {},
            BatchAckMessageRequestBody(
                broker_name=BROKER,
                acks=[
                    BatchAck(
                        consumer_group="G",
                        topic="T",
                        retry="0",
                        start_offset=i,
                        queue_id=0,
                        revive_queue_id=i % 8,
                        pop_time=now_ms(),
                        invisible_time=60_000,
                        bit_set=encode_bit_set(range(32)),
                    )
                ],
            ).encode(),
        ),
    )
    yield Asked(
        200151,
        "much",
        lambda i: (
            {},
            BatchAckMessageRequestBody(
                broker_name=BROKER,
                acks=[
                    BatchAck(
                        consumer_group="G",
                        topic="T",
                        retry="0",
                        start_offset=0,
                        queue_id=0,
                        revive_queue_id=each % 8,
                        pop_time=now_ms() + each,
                        invisible_time=60_000,
                        bit_set=encode_bit_set(range(3_000)),
                    )
                    for each in range(20)
                ],
            ).encode(),
        ),
        20,
    )
    yield Asked(200056, "", always({}))


def _heartbeats() -> Iterator[Asked]:
    none: list[SubscriptionData] = []
    frozenset(MessageQueue("W", BROKER, each) for each in range(1_000))
    yield Asked(34, "", lambda i: ({}, heartbeat(i, 1, lambda _: none)))
    yield Asked(34, "300 new groups", lambda i: ({}, heartbeat(i, 300, lambda _: none)), 20)
    yield Asked(
        34,
        "20 new groups with SQL",
        lambda i: (
            {},
            heartbeat(
                i,
                20,
                lambda each: [
                    SubscriptionData(
                        "T", f"a > {i} AND b < {each}", sub_version=1, expression_type="SQL92"
                    )
                ],
            ),
        ),
        50,
    )
    yield Asked(
        34,
        "1,000 subscriptions",
        lambda i: (
            {},
            heartbeat(
                i,
                1,
                lambda _: [
                    SubscriptionData(f"t{each}", "*", sub_version=i) for each in range(1_000)
                ],
            ),
        ),
        20,
    )
    yield Asked(
        46,
        "",
        lambda i: (
            {},
            CheckClientRequestBody(
                subscription_data=SubscriptionData(
                    "T", f"a > {i} AND b < {i}", expression_type="SQL92"
                )
            ).encode(),
        ),
    )


def _locks() -> Iterator[Asked]:
    many = frozenset(MessageQueue("W", BROKER, each) for each in range(1_000))
    yield Asked(
        35,
        "",
        lambda i: ({"clientID": f"client-{i}", "producerGroup": "p", "consumerGroup": "G"}, b""),
    )
    yield Asked(
        41,
        "",
        lambda i: (
            {},
            LockBatchRequestBody(
                consumer_group="G",
                client_id=f"c{i}",
                mq_set=frozenset([MessageQueue("W", BROKER, 0)]),
            ).encode(),
        ),
    )
    yield Asked(
        41,
        "1,000 queues",
        lambda i: (
            {},
            LockBatchRequestBody(consumer_group="G", client_id=f"c{i % 3}", mq_set=many).encode(),
        ),
        50,
    )
    yield Asked(
        42,
        "1,000 queues",
        lambda i: (
            {},
            UnlockBatchRequestBody(consumer_group="G", client_id=f"c{i % 3}", mq_set=many).encode(),
        ),
        50,
    )
    yield Asked(223, "", always({"topic": "T", "group": "G"}))


def _calls() -> Iterator[Asked]:
    yield Asked(307, "", always({"consumerGroup": "G", "clientId": "c"}))
    yield Asked(
        309,
        "",
        always(
            {"consumerGroup": "G", "clientId": "c", "msgId": "7F000001000029FF0000000000000000"}
        ),
    )
    yield Asked(
        400,
        "",
        lambda i: (
            {},
            QueryAssignmentRequestBody(
                topic="W",
                consumer_group="crowd",
                client_id=f"client-{i}",
                strategy_name="AVG",
                message_model="CLUSTERING",
            ).encode(),
        ),
    )


def _settings() -> Iterator[Asked]:
    yield Asked(25, "", lambda i: ({}, f"maxMessageSize={4_194_304 + i}".encode()))
    yield Asked(26, "", always({}))
    yield Asked(5001, "", always({"engineType": "F"}))


OWN: dict[int, Callable[[int], Made]] = {
    17: lambda i: (
        {**FIELDS[17], "topic": f"made{i}", "readQueueNums": "16", "writeQueueNums": "16"},
        b"",
    ),
    18: lambda i: (
        {},
        CreateTopicListRequestBody(
            topic_config_list=[
                TopicConfig(topic_name=f"list{i}-{each}", read_queue_nums=4, write_queue_nums=4)
                for each in range(100)
            ]
        ).encode(),
    ),
    200: lambda i: ({}, f'{{"groupName":"group{i}"}}'.encode()),
    225: lambda i: (
        {},
        (
            '{"groupConfigList":['
            + ",".join(f'{{"groupName":"list{i}-{each}"}}' for each in range(100))
            + "]}"
        ).encode(),
    ),
    401: lambda i: (
        {},
        SetMessageRequestModeRequestBody(topic=f"t{i}", consumer_group="G", mode="PULL").encode(),
    ),
    29: lambda i: ({**FIELDS[29], "timestamp": str(now_ms() - i * 10)}, b""),
    33: always({"offset": "0"}),
    215: lambda i: ({"topic": f"t{i + 500}"}, b""),
    207: lambda i: ({"groupName": f"g{i + 500}", "cleanOffset": "true"}, b""),
    15: lambda i: ({**FIELDS[15], "consumerGroup": f"commits{i}"}, b""),
    353: lambda i: ({"topic": "T", "group": f"g{i}", "readable": "false"}, b""),
    222: lambda i: (
        {"topic": "W", "group": "G", "timestamp": str(now_ms() - 1000), "isForce": "true"},
        b"",
    ),
    12: always({**FIELDS[12], "endTimestamp": str(1 << 50)}),
}
LISTS = {18, 225}


def _tables() -> Iterator[Asked]:
    for code in sorted(FIELDS, key=lambda code: (code in {207, 215, 353}, code)):
        made = OWN.get(code) or always(FIELDS[code], BODIES.get(code, b""))
        yield Asked(code, "", made, 30 if code in LISTS else 1 << 30)
    yield Asked(
        12,
        "32 of 200 KB each",
        always(
            {
                **FIELDS[12],
                "topic": "M",
                "key": "same",
                "maxNum": "32",
                "endTimestamp": str(1 << 50),
            }
        ),
        300,
    )


def ends(halves: Sequence[tuple[int, int]]) -> Asked:
    """Ends of transactions, given the offsets of their halves in queue and log."""

    def made(number: int) -> Made:
        at, offset = halves[number % len(halves)]
        return {
            "topic": "W",
            "producerGroup": "p",
            "tranStateTableOffset": str(at),
            "commitLogOffset": str(offset),
            "commitOrRollback": "8",
            "msgId": "id",
            "fromTransactionCheck": "false",
        }, b""

    return Asked(37, "", made, len(halves))


def all_asked() -> Iterator[Asked]:
    """All but END_TRANSACTION, which needs halves."""
    yield from _sends()
    yield from _pulls()
    yield from _pops()
    yield from _acks()
    yield from _more_acks()
    yield from _heartbeats()
    yield from _locks()
    yield from _calls()
    yield from _settings()
    yield from _tables()
