# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.broker.conftest import Parts
from tests.fakes import refused, reply_of, request
from txrocketmq.broker.processors.pull.query_message import QueryMessageProcessor
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.message import decode_message, decode_messages
from txrocketmq.remoting.protocol.body.query import ConsumeQueueData, QueryConsumeQueueResponseBody
from txrocketmq.remoting.protocol.query import (
    QueryConsumeQueueRequestHeader,
    QueryMessageRequestHeader,
    QueryMessageResponseHeader,
    ViewMessageRequestHeader,
)

HOUR_MS = 3_600_000


@pytest.fixture
def query(parts: Parts) -> QueryMessageProcessor:
    parts.topic("T")
    return QueryMessageProcessor(parts.store, parts.consumers, parts.walks, parts.patience)


def by_key(
    parts: Parts,
    query: QueryMessageProcessor,
    key: str,
    *,
    index_type: str | None = None,
    unique: bool | None = None,
    max_num: int = 32,
) -> Reply[QueryMessageResponseHeader]:
    return reply_of(
        query.by_key(
            request(
                QueryMessageRequestHeader(
                    topic="T",
                    key=key,
                    max_num=max_num,
                    begin_timestamp=parts.now_ms - HOUR_MS,
                    end_timestamp=parts.now_ms + HOUR_MS,
                    index_type=index_type,
                    unique_key_query=unique,
                )
            )
        )
    )


def bodies(reply: Reply[QueryMessageResponseHeader]) -> list[bytes]:
    return [message.body for message in decode_messages(reply.body_bytes)]


def test_messages_by_key(parts: Parts, query: QueryMessageProcessor) -> None:
    parts.put(body=b"one", KEYS="k other", UNIQ_KEY="U1")
    last = parts.put(body=b"two", KEYS="k", UNIQ_KEY="U2")
    reply = by_key(parts, query, "k")
    assert bodies(reply) == [b"one", b"two"]
    assert reply.header == QueryMessageResponseHeader(
        index_last_update_timestamp=parts.now_ms,
        index_last_update_phyoffset=last.physical_offset,
    )
    assert bodies(by_key(parts, query, "other")) == [b"one"]
    assert len(bodies(by_key(parts, query, "k", max_num=1))) == 1


def test_messages_by_unique_key(parts: Parts, query: QueryMessageProcessor) -> None:
    parts.put(body=b"one", KEYS="k", UNIQ_KEY="U1")
    assert bodies(by_key(parts, query, "U1", unique=True, max_num=0)) == [b"one"]
    assert bodies(by_key(parts, query, "U1", index_type="U")) == [b"one"]


def test_a_key_that_finds_nothing(parts: Parts, query: QueryMessageProcessor) -> None:
    parts.put(KEYS="k")
    with pytest.raises(ResponseError) as error:
        by_key(parts, query, "none")
    assert error.value.code == ResponseCode.QUERY_NOT_FOUND
    assert error.value.remark == "can not find message, maybe time range not correct"
    assert isinstance(error.value.header, QueryMessageResponseHeader)


def test_a_message_by_its_offset(parts: Parts, query: QueryMessageProcessor) -> None:
    parts.put(body=b"one")
    second = parts.put(body=b"two")
    reply = query.by_id(request(ViewMessageRequestHeader(offset=second.physical_offset)))
    assert isinstance(reply, Reply)
    assert decode_message(reply.body_bytes)[0].body == b"two"


@pytest.mark.parametrize("offset", [1, -1, 2**60])
def test_an_offset_where_no_message_begins(
    parts: Parts, query: QueryMessageProcessor, offset: int
) -> None:
    parts.put()
    with refused(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}"):
        query.by_id(request(ViewMessageRequestHeader(offset=offset)))


def units(
    query: QueryMessageProcessor, index: int = 0, count: int = 10, group: str | None = None
) -> QueryConsumeQueueResponseBody:
    header = QueryConsumeQueueRequestHeader(
        topic="T", queue_id=0, index=index, count=count, consumer_group=group
    )
    return QueryConsumeQueueResponseBody.decode(
        reply_of(query.queue_units(request(header))).body_bytes
    )


def test_units_of_a_queue(parts: Parts, query: QueryMessageProcessor) -> None:
    put = [parts.put(TAGS="a") for _ in range(3)]
    body = units(query, index=1, count=1)
    assert (body.min_queue_index, body.max_queue_index) == (0, 3)
    assert body.queue_data == (
        ConsumeQueueData(
            physic_offset=put[1].physical_offset, physic_size=put[1].size, tags_code=ord("a")
        ),
    )
    assert (body.subscription_data, body.filter_data) == (None, None)
    assert len(units(query, count=100).queue_data or ()) == 3
    assert units(query, count=-1).queue_data == ()


def test_units_as_a_group_sees_them(parts: Parts, query: QueryMessageProcessor) -> None:
    parts.put()
    assert units(query, group="g").filter_data == "g@T is not online!"
    parts.consumer("g", "c", "T")
    body = units(query, group="g")
    assert body.subscription_data is not None
    assert (body.subscription_data.topic, body.filter_data) == ("T", "null")


def test_queues_and_indexes_that_are_not_there(parts: Parts, query: QueryMessageProcessor) -> None:
    with refused(ResponseCode.SYSTEM_ERROR, "0@T is not exist!"):
        units(query)
    parts.put()
    header = QueryConsumeQueueRequestHeader(topic="T", queue_id=0, index=1, count=1)
    reply = reply_of(query.queue_units(request(header)))
    assert (reply.code, reply.remark, reply.body) == (0, "Index 1 of 0@T is not exist!", b"")
