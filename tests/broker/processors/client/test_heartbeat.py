# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.fakes import FakePeer, refused, reply_of, request
from txrocketmq.broker.filter.expression import Expressions
from txrocketmq.broker.processors.client.heartbeat import HeartbeatProcessor
from txrocketmq.broker.store.disk.steps import Steps, finished
from txrocketmq.broker.work.in_order import InOrder
from txrocketmq.broker.work.walks import SLICE_S, Walks
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.tags import SQL92, SubscriptionData
from txrocketmq.remoting.protocol.body.heartbeat import (
    CheckClientRequestBody,
    ConsumerData,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    ProducerData,
)
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.heartbeat import (
    GetConsumerListByGroupRequestHeader,
    HeartbeatRequestHeader,
    UnregisterClientRequestHeader,
)


@pytest.fixture
def processor(parts: Parts) -> HeartbeatProcessor:
    return HeartbeatProcessor(
        parts.topics,
        parts.groups,
        parts.consumers,
        parts.producers,
        parts.filters,
        parts.walks,
        InOrder(parts.walks),
    )


def consumer(group: str = "g", *topics: str, **fields: Any) -> ConsumerData:
    values: dict[str, Any] = {
        "consume_type": "CONSUME_PASSIVELY",
        "message_model": "CLUSTERING",
        "consume_from_where": "CONSUME_FROM_FIRST_OFFSET",
        "subscription_data_set": [SubscriptionData(topic, sub_version=1) for topic in topics],
    }
    return ConsumerData(group_name=group, **{**values, **fields})


def beat(
    processor: HeartbeatProcessor, *consumers: ConsumerData, peer: FakePeer, **fields: Any
) -> str:
    """Sends a heartbeat; gives IS_SUB_CHANGE of the answer."""
    data = HeartbeatData(client_id="c1", consumer_data_set=consumers, **fields)
    reply = processor.heartbeat(
        request(HeartbeatRequestHeader(), data.encode(), peer=peer, version=407, language="GO")
    )
    assert isinstance(reply, Reply)
    assert reply.code == ResponseCode.SUCCESS
    assert reply.ext_fields is not None
    assert reply.ext_fields["IS_SUPPORT_HEART_BEAT_V2"] == "true"
    return reply.ext_fields["IS_SUB_CHANGE"]


def test_a_heartbeat_registers_all_that_a_client_has(
    parts: Parts, processor: HeartbeatProcessor
) -> None:
    peer = FakePeer()
    changed = beat(
        processor,
        consumer("g", "T"),
        peer=peer,
        producer_data_set=[ProducerData(group_name="p")],
    )
    assert changed == "true"
    group = parts.consumers.group("g")
    assert group is not None
    (member,) = group.members.values()
    assert (member.client_id, member.language, member.version) == ("c1", "GO", 407)
    assert member.last_seen_ms == parts.now_ms
    assert set(group.subscriptions) == {"T"}
    assert group.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    assert [each.peer for each in parts.producers.members("p")] == [peer]


def test_it_makes_the_group_and_its_retry_topic(
    parts: Parts, processor: HeartbeatProcessor
) -> None:
    beat(processor, consumer("g", unit_mode=True), peer=FakePeer())
    assert parts.groups.get("g") is not None
    retry = parts.topics.get("%RETRY%g")
    assert retry is not None
    assert (retry.read_queue_nums, retry.perm, retry.topic_sys_flag) == (1, 6, 2)
    parts.groups.update(SubscriptionGroupConfig(group_name="h", retry_queue_nums=3))
    beat(processor, consumer("h"), peer=FakePeer())
    assert parts.topics.all()["%RETRY%h"].read_queue_nums == 3


def test_a_group_that_may_not_be_made_is_passed_over(
    parts: Parts, processor: HeartbeatProcessor
) -> None:
    parts.set(auto_create_subscription_group=False)
    for fingerprint in (5, 6):
        changed = beat(
            processor,
            consumer("g"),
            consumer("CID_RMQ_SYS_x"),
            peer=FakePeer(),
            heartbeat_fingerprint=fingerprint,
        )
        assert changed == ("true" if fingerprint == 6 else "false")
    assert [group.name for group in parts.consumers.groups()] == ["CID_RMQ_SYS_x"]
    assert parts.topics.get("%RETRY%g") is None
    assert processor._fingerprints.keys() == {"CID_RMQ_SYS_x"}


def test_version_2_asks_for_subscriptions_when_they_changed(
    parts: Parts, processor: HeartbeatProcessor
) -> None:
    peer = FakePeer()
    full, bare = consumer("g", "T"), consumer("g")
    assert beat(processor, full, peer=peer, heartbeat_fingerprint=5) == "false"
    assert beat(processor, bare, peer=peer, heartbeat_fingerprint=5, without_sub=True) == "false"
    group = parts.consumers.group("g")
    assert group is not None
    assert set(group.subscriptions) == {"T"}
    assert beat(processor, bare, peer=peer, heartbeat_fingerprint=6, without_sub=True) == "true"


def test_version_2_asks_for_subscriptions_that_it_never_saw(
    parts: Parts, processor: HeartbeatProcessor
) -> None:
    bare = consumer("g")
    answer = beat(processor, bare, peer=FakePeer(), heartbeat_fingerprint=5, without_sub=True)
    assert answer == "true"


def test_without_sub_counts_only_with_a_fingerprint(
    parts: Parts, processor: HeartbeatProcessor
) -> None:
    peer = FakePeer()
    beat(processor, consumer("g", "T"), peer=peer)
    beat(processor, consumer("g"), peer=peer, without_sub=True)
    group = parts.consumers.group("g")
    assert group is not None
    assert not group.subscriptions


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"clientID":"c","consumerDataSet":3}'])
def test_a_body_that_is_none(processor: HeartbeatProcessor, body: bytes) -> None:
    with pytest.raises(HeaderError):
        processor.heartbeat(request(HeartbeatRequestHeader(), body))


def test_a_client_leaves_one_group_at_a_time(parts: Parts, processor: HeartbeatProcessor) -> None:
    peer = FakePeer()
    beat(
        processor,
        consumer("g"),
        consumer("h"),
        peer=peer,
        producer_data_set=[ProducerData(group_name="p")],
    )
    processor.unregister(
        request(UnregisterClientRequestHeader(client_id="c1", consumer_group="g"), peer=peer)
    )
    assert [group.name for group in parts.consumers.groups()] == ["h"]
    assert parts.producers.members("p")
    processor.unregister(
        request(UnregisterClientRequestHeader(client_id="c1", producer_group="p"), peer=peer)
    )
    assert not parts.producers.members("p")
    assert parts.consumers.group("h") is not None


def test_members_of_a_group(parts: Parts, processor: HeartbeatProcessor) -> None:
    for name in ("c2", "c1"):
        parts.consumer("g", name)
    header = GetConsumerListByGroupRequestHeader(consumer_group="g")
    reply = reply_of(processor.members(request(header)))
    assert GetConsumerListByGroupResponseBody.decode(reply.body_bytes).consumer_id_list == (
        "c1",
        "c2",
    )
    with refused(ResponseCode.SYSTEM_ERROR, "no consumer for this group, h"):
        processor.members(request(GetConsumerListByGroupRequestHeader(consumer_group="h")))


def test_expressions_that_can_be_served(processor: HeartbeatProcessor, parts: Parts) -> None:
    def check(kind: str, text: str = "a > 5") -> int:
        body = CheckClientRequestBody(
            client_id="c1",
            group="g",
            subscription_data=SubscriptionData("T", text, expression_type=kind),
        )
        return reply_of(processor.check(request(NoHeader(), body.encode()))).code

    assert check("TAG") == check("") == ResponseCode.SUCCESS
    assert reply_of(processor.check(request(NoHeader()))).code == ResponseCode.SUCCESS
    assert reply_of(processor.check(request(NoHeader(), b"{}"))).code == ResponseCode.SUCCESS
    with refused(ResponseCode.SYSTEM_ERROR, "does not support consumer to filter message by SQL92"):
        check(SQL92)
    parts.set(enable_property_filter=True)
    assert check(SQL92) == ResponseCode.SUCCESS
    parse_failed = ResponseCode.SUBSCRIPTION_PARSE_FAILED
    with refused(parse_failed, 'Invalid MessageSelector. Encountered "<EOF>" at line 1, column 3.'):
        check(SQL92, "a >")
    with refused(parse_failed, "messages are filtered by TAG and SQL92, not by GROOVY"):
        check("GROOVY")


def test_a_heartbeat_tells_what_is_filtered_by(processor: HeartbeatProcessor, parts: Parts) -> None:
    def beat(*texts: str) -> str:
        wanted = [
            SubscriptionData(f"T{number}", text, sub_version=1, expression_type=SQL92)
            for number, text in enumerate(texts)
        ]
        consumer = ConsumerData(group_name="g", subscription_data_set=wanted)
        data = HeartbeatData(client_id="c1", consumer_data_set=[consumer], heartbeat_fingerprint=7)
        answer = processor.heartbeat(request(HeartbeatRequestHeader(), data.encode()))
        assert isinstance(answer, Reply)
        assert answer.code == ResponseCode.SUCCESS
        assert answer.ext_fields is not None
        return answer.ext_fields["IS_SUB_CHANGE"]

    assert beat("a > 5", "a >") == "false"
    assert parts.filters.get("T0", "g") is not None
    assert parts.filters.get("T1", "g") is None
    assert beat("a > 5" + " OR a > 5" * 20_000, "(" * 10_000) == "false"
    assert len(parts.filters) == 1
    long = f"a = '{'x' * 40_000}'"
    assert beat("a > 5", "a >", long, long.upper()) == "true", "it is to tell the rest again"


def test_a_long_expression_is_compiled_in_turns_before_the_heartbeat_is_taken(
    processor: HeartbeatProcessor, parts: Parts
) -> None:
    turns: list[Steps[None]] = []
    parts.filters.expressions = Expressions(in_turns=turns.append)
    long = " OR ".join(f"a > {number}" for number in range(500))

    def asks(peer: FakePeer) -> tuple[Any, ...]:
        wanted = [SubscriptionData("T", long, sub_version=1, expression_type=SQL92)]
        consumer = ConsumerData(group_name="g", subscription_data_set=wanted)
        data = HeartbeatData(client_id="c1", consumer_data_set=[consumer])
        client_request = request(HeartbeatRequestHeader(), data.encode())
        client_request.peer = peer
        check = CheckClientRequestBody(subscription_data=wanted[0])
        parts.set(enable_property_filter=True)
        return processor.heartbeat(client_request), processor.check(
            request(NoHeader(), check.encode())
        )

    there, gone = FakePeer(), FakePeer()
    answers = [*asks(gone), *asks(there)]
    gone.close()
    assert [isinstance(each, PendingReply) and each.done for each in answers] == [False] * 4
    assert parts.consumers.group("g") is None
    finished(turns.pop())
    assert [isinstance(each, PendingReply) and each.done for each in answers] == [
        False, True, True, True,
    ]  # fmt: skip
    found = parts.consumers.group("g")
    assert found is not None
    assert [each.peer for each in found.members.values()] == [there]
    assert parts.filters.get("T", "g") is not None


@pytest.mark.parametrize("goes", [False, True])
def test_a_heartbeat_of_many_groups_is_taken_in_turns(
    parts: Parts, processor: HeartbeatProcessor, *, goes: bool
) -> None:
    """However many groups it names, a turn makes a few; of a client that goes, none more."""
    seconds = iter(range(1_000_000))
    later: list[Callable[[], None]] = []
    processor._walks = Walks(later.append, lambda: next(seconds) * SLICE_S / 10)
    peer = FakePeer()
    data = HeartbeatData(
        client_id="c",
        consumer_data_set=[consumer(f"g{number}", "T") for number in range(300)],
        producer_data_set=[ProducerData(group_name="p")],
    )
    pending = processor.heartbeat(request(HeartbeatRequestHeader(), data.encode(), peer=peer))
    assert isinstance(pending, PendingReply)
    answers: list[Reply[Any] | Exception] = []
    pending.then(answers.append)
    before = parts.groups.count
    while later:
        if goes and parts.groups.count > 100:
            peer.close()
        later.pop(0)()
        assert parts.groups.count - before <= 12
        before = parts.groups.count
    assert len(answers) == 1
    made = sum(parts.topics.get(f"%RETRY%g{number}") is not None for number in range(300))
    assert made == sum(parts.groups.get(f"g{number}") is not None for number in range(300))
    assert (made == 300) is not goes
    assert bool(parts.producers.groups()) is not goes


def test_groups_beyond_the_limit_are_not_made(parts: Parts, processor: HeartbeatProcessor) -> None:
    parts.set(auto_create_limit=parts.groups.count + 1)
    beat(processor, consumer("g", "T"), consumer("h", "T"), peer=FakePeer())
    assert parts.topics.get("%RETRY%g") is not None
    assert parts.topics.get("%RETRY%h") is None
    assert parts.consumers.group("h") is None


def test_no_group_is_made_whose_retry_topic_would_be_one_too_many(
    parts: Parts, processor: HeartbeatProcessor
) -> None:
    parts.groups.find("old")
    parts.set(auto_create_limit=parts.groups.count + 10)
    for number in range(parts.groups.count + 10):
        parts.topics.create_in_heartbeat(f"%RETRY%x{number}", 1)
    groups, topics = parts.groups.all(), parts.topics.all()
    beat(processor, consumer("old", "T"), consumer("new", "T"), peer=FakePeer())
    assert parts.groups.all() == groups
    assert parts.topics.all() == topics
    assert parts.consumers.group("new") is None
    assert parts.consumers.group("old") is not None, "it can do without for now"


@pytest.mark.parametrize("what", ["unregistration", "heartbeat"])
def test_what_comes_behind_a_long_heartbeat_counts_after_it(parts: Parts, what: str) -> None:
    """A client that has left is not registered by what it sent before, and no group is set back."""
    later: list[Callable[[], None]] = []
    now_s = iter(range(10_000))
    walks = Walks(later.append, lambda: next(now_s) * SLICE_S)
    processor = HeartbeatProcessor(
        parts.topics, parts.groups, parts.consumers, parts.producers, parts.filters, walks,
        InOrder(walks),
    )  # fmt: skip
    peer = FakePeer()
    groups = [f"g{number}" for number in range(20)]
    data = HeartbeatData(
        client_id="c1", consumer_data_set=[consumer(group, "old") for group in groups],
        producer_data_set=[ProducerData(group_name="p")],
    )  # fmt: skip
    first = processor.heartbeat(request(HeartbeatRequestHeader(), data.encode(), peer=peer))
    assert isinstance(first, PendingReply)
    behind: list[Any] = []
    if what == "unregistration":
        for group in groups:
            header = UnregisterClientRequestHeader(
                client_id="c1", producer_group="p", consumer_group=group
            )
            behind.append(processor.unregister(request(header, peer=peer)))
    else:
        data = HeartbeatData(client_id="c1", consumer_data_set=[consumer("g19", "new")])
        behind.append(
            processor.heartbeat(request(HeartbeatRequestHeader(), data.encode(), peer=peer))
        )
    while later:
        later.pop(0)()
    for each in behind:
        assert isinstance(reply_of(each), Reply)
    if what == "unregistration":
        assert not parts.consumers.groups()
        assert not parts.producers.members("p")
    else:
        found = parts.consumers.group("g19")
        assert found is not None
        assert set(found.subscriptions) == {"new"}
