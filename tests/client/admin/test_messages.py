# SPDX-License-Identifier: Apache-2.0
"""Messages: how they are found, and what is made of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.admin.fake_cluster import CONNECTIONS, QUEUE, Cluster, refused
from tests.client.fakes import BROKER_A, BROKER_B, a_route, result_of
from txrocketmq.client.admin.results import TrackType
from txrocketmq.client.base.errors import AdminRefused, MessageNotFound
from txrocketmq.client.core.trace import Recall
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.ids import Host, encode_message_id
from txrocketmq.remoting.message.message import (
    MessageExt,
    MessageQueue,
    decode_message,
    encode_message,
)
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import heartbeat, offset, pull, query, send, topic
from txrocketmq.remoting.protocol.body.client import ConsumeMessageDirectlyResult
from txrocketmq.remoting.protocol.body.stats import ConsumeStats, OffsetWrapper
from txrocketmq.remoting.protocol.body.topic import GroupList
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetResponseHeader,
    GetMinOffsetResponseHeader,
    SearchOffsetResponseHeader,
)
from txrocketmq.remoting.protocol.operations import admin as calls
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader
from txrocketmq.remoting.protocol.query import QueryMessageResponseHeader
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader

HOST = Host("10.0.1.1", 10911)
UNIQUE_KEY = "0A0000090000000000000000000A0001"
FOUND = QueryMessageResponseHeader(index_last_update_timestamp=0, index_last_update_phyoffset=0)
NOT_FOUND = refused(ResponseCode.QUERY_NOT_FOUND)


def a_message(n: int = 0, **properties: str) -> MessageExt:
    return MessageExt(
        "T",
        b"m%d" % n,
        properties={"UNIQ_KEY": UNIQUE_KEY, "KEYS": "k1 k2", "TAGS": "a", **properties},
        queue_offset=n,
        commit_log_offset=100 + n,
        store_timestamp=1_000 + n,
        store_host=HOST,
    )


def records(*messages: MessageExt) -> bytes:
    return b"".join(map(encode_message, messages))


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.on_both(query.QUERY_MESSAGE, NOT_FOUND)
    cluster.on_both(query.VIEW_MESSAGE_BY_ID, refused(remark="can not find message"))
    return cluster


def test_a_message_by_its_place(cluster: Cluster) -> None:
    cluster.connections.on(BROKER_A, query.VIEW_MESSAGE_BY_ID, Reply(body=records(a_message())))
    place = encode_message_id(HOST, 100)
    found = result_of(cluster.admin.message("T", place))
    assert (found.body, found.broker_name) == (b"m0", "broker-a")
    ((_, header),) = cluster.connections.questions(query.VIEW_MESSAGE_BY_ID)
    assert (header.offset, header.topic) == (100, "T")
    cluster.routes["U"] = cluster.routes["T"]
    with pytest.raises(MessageNotFound, match=f"topic U has a message with the id {place}"):
        result_of(cluster.admin.message("U", place))


def test_a_message_by_the_key_of_its_producer_is_the_newest(cluster: Cluster) -> None:
    body = records(a_message(1), a_message(2), a_message(3, UNIQ_KEY="other"))
    cluster.connections.on(BROKER_B, query.QUERY_MESSAGE, Reply(FOUND, body=body))
    found = result_of(cluster.admin.message("T", UNIQUE_KEY))
    assert (found.body, found.broker_name) == (b"m2", "broker-b")
    assert cluster.asked(query.VIEW_MESSAGE_BY_ID) == []  # its address is no broker's
    headers = [header for _, header in cluster.connections.questions(query.QUERY_MESSAGE)]
    assert all(header.unique_key_query for header in headers)


def test_keys_are_checked_since_brokers_know_hashes_only(cluster: Cluster) -> None:
    body = records(a_message(1), a_message(2, KEYS="k1x"))
    cluster.connections.on(BROKER_A, query.QUERY_MESSAGE, Reply(FOUND, body=body))
    (only,) = result_of(cluster.admin.messages_by_key("T", "k1", begin_ms=5, end_ms=9))
    assert only.body == b"m1"
    header: Any = cluster.connections.questions(query.QUERY_MESSAGE)[0][1]
    assert (header.begin_timestamp, header.end_timestamp, header.max_num) == (5, 9, 64)
    assert result_of(cluster.admin.messages_by_key("T", "k")) == []


def test_a_search_that_is_refused(cluster: Cluster) -> None:
    cluster.routes["T"] = a_route({"broker-a": 1})
    cluster.connections.on(BROKER_A, query.QUERY_MESSAGE, refused())
    with pytest.raises(AdminRefused, match="searching topic T for k1"):
        result_of(cluster.admin.messages_by_key("T", "k1"))


@pytest.fixture
def readable(cluster: Cluster) -> Cluster:
    """One queue with five messages of the times 1,000 to 1,004, pulled by two."""
    cluster.routes["T"] = a_route({"broker-a": 1})

    def give(_: str, header: Any, __: bytes) -> Reply[Any]:
        first = header.queue_offset
        last = min(first + 2, 5)
        answer = PullMessageResponseHeader(
            suggest_which_broker_id=0, next_begin_offset=last, min_offset=0, max_offset=5
        )
        return Reply(answer, body=records(*map(a_message, range(first, last))))

    on = cluster.connections.on
    on(BROKER_A, pull.PULL_MESSAGE, give)
    on(BROKER_A, offset.GET_MIN_OFFSET, Reply(GetMinOffsetResponseHeader(offset=0)))
    on(BROKER_A, offset.GET_MAX_OFFSET, Reply(GetMaxOffsetResponseHeader(offset=5)))
    searched = Reply(SearchOffsetResponseHeader(offset=1))
    on(BROKER_A, offset.SEARCH_OFFSET_BY_TIMESTAMP, searched)
    return cluster


def test_messages_of_a_time(readable: Cluster) -> None:
    seen: list[int] = []
    between = readable.admin.messages_between
    found = result_of(between("T", 1_001, 1_003, seen=seen.append))
    assert [each.body for each in found] == [b"m1", b"m2", b"m3"]
    assert seen[-1] == 3
    assert len(result_of(between("T", 1_001, max_messages=2))) == 2
    assert len(result_of(between("T", 1_001))) == 4
    assert result_of(between("T", 1_001, expression="b")) == []


def test_a_message_at_an_offset(readable: Cluster) -> None:
    assert result_of(readable.admin.message_at(QUEUE, 3)).body == b"m3"
    with pytest.raises(MessageNotFound, match="no message at 5: it has 0 to 5"):
        result_of(readable.admin.message_at(QUEUE, 5))


@pytest.mark.parametrize(
    ("come", "tags", "track"),
    [
        (3, "a", TrackType.NOT_CONSUME_YET),
        (4, "a", TrackType.CONSUMED),
        (4, "b", TrackType.CONSUMED_BUT_FILTERED),
    ],
)
def test_what_a_group_has_made_of_a_message(
    cluster: Cluster, come: int, tags: str, track: TrackType
) -> None:
    cluster.routes["T"] = a_route({"broker-a": 1})
    groups: Reply[Any] = Reply(body=GroupList(group_list=("g",)).encode())
    cluster.connections.on(BROKER_A, topic.QUERY_TOPIC_CONSUME_BY_WHO, groups)
    cluster.on_both(calls.GET_CONSUMER_CONNECTION_LIST, Reply(body=CONNECTIONS))
    stats = ConsumeStats(offset_table={QUEUE: OffsetWrapper(consumer_offset=come)})
    cluster.connections.on(BROKER_A, calls.GET_CONSUME_STATS, Reply(body=stats.encode()))
    message = a_message(3, TAGS=tags)
    message.broker_name = "broker-a"
    (told,) = result_of(cluster.admin.message_tracks(message))
    assert (told.group, told.track) == ("g", track)


@pytest.mark.parametrize(
    ("answer", "track"),
    [
        (refused(ResponseCode.CONSUMER_NOT_ONLINE), TrackType.NOT_ONLINE),
        (refused(), TrackType.UNKNOWN),
        (
            Reply(body=CONNECTIONS.replace(b"CLUSTERING", b"BROADCASTING")),
            TrackType.CONSUME_BROADCASTING,
        ),
    ],
)
def test_groups_of_which_nothing_is_known(
    cluster: Cluster, answer: Reply[Any], track: TrackType
) -> None:
    groups: Reply[Any] = Reply(body=GroupList(group_list=("g",)).encode())
    cluster.on_both(topic.QUERY_TOPIC_CONSUME_BY_WHO, groups)
    cluster.on_both(calls.GET_CONSUMER_CONNECTION_LIST, answer)
    (told,) = result_of(cluster.admin.message_tracks(a_message()))
    assert told.track is track
    assert bool(told.detail) is (track is TrackType.UNKNOWN)


def test_a_consumer_gets_the_message_of_its_broker(cluster: Cluster) -> None:
    cluster.connections.on(BROKER_A, query.QUERY_MESSAGE, Reply(FOUND, body=records(a_message(1))))
    result = ConsumeMessageDirectlyResult(consume_result="CR_SUCCESS")
    cluster.connections.on(BROKER_A, calls.CONSUME_MESSAGE_DIRECTLY, Reply(body=result.encode()))
    told = result_of(cluster.admin.consume_directly("g", "c1", "T", UNIQUE_KEY))
    assert told.consume_result == "CR_SUCCESS"
    ((_, header),) = cluster.connections.questions(calls.CONSUME_MESSAGE_DIRECTLY)
    assert header.msg_id == encode_message_id(HOST, 101)
    assert (header.consumer_group, header.client_id) == ("g", "c1")


def test_a_message_is_sent_again_with_what_is_the_programs(cluster: Cluster) -> None:
    stored = a_message(1, own="1", MSG_REGION="R", DELAY="3")
    cluster.connections.on(BROKER_A, query.QUERY_MESSAGE, Reply(FOUND, body=records(stored)))
    sent = Reply(SendMessageResponseHeader(msg_id="O", queue_id=0, queue_offset=7))
    cluster.on_both(send.SEND_MESSAGE_V2, sent)
    cluster.on_both(heartbeat.UNREGISTER_CLIENT, Reply())
    cluster.routes["U"] = cluster.routes["T"]
    result = result_of(cluster.admin.resend("T", UNIQUE_KEY, to_topic="U"))
    assert result.queue_offset == 7
    ((_, header),) = cluster.connections.questions(send.SEND_MESSAGE_V2)
    properties = decode_properties(header.properties)
    assert header.topic == "U"
    assert (properties["own"], properties["TAGS"], properties["KEYS"]) == ("1", "a", "k1 k2")
    assert properties["UNIQ_KEY"] != UNIQUE_KEY
    assert "DELAY" not in properties
    assert cluster.client.producer_of("txrocketmq_admin") is None


def test_traces_of_a_message(cluster: Cluster) -> None:
    def record(msg_id: str) -> Recall:
        return Recall(timestamp_ms=1, region="R", group="g", topic="T", msg_id=msg_id, success=True)

    own = record(UNIQUE_KEY)
    carrier = a_message(1, KEYS=f"{UNIQUE_KEY} other")
    carrier.topic, carrier.body = "traces", (own.data + record("other").data).encode()
    cluster.routes["traces"] = a_route({"broker-a": 1})
    cluster.connections.on(BROKER_A, query.QUERY_MESSAGE, Reply(FOUND, body=records(carrier)))
    assert result_of(cluster.admin.message_trace(UNIQUE_KEY, trace_topic="traces")) == [own]


def test_the_records_here_are_those_of_brokers() -> None:
    message, _ = decode_message(records(a_message(3)))
    assert message.queue_offset == 3
    assert MessageQueue("T", "broker-a", message.queue_id) == QUEUE
