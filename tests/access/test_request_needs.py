# SPDX-License-Identifier: Apache-2.0
"""What requests need."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet import task

from tests.broker.test_all_processors import SERVED
from tests.counted import lines_of
from txrocketmq.access.needs import (
    MOST_NEEDS,
    NOT_READABLE,
    NOTHING_KNOWN,
    Action,
    Need,
    ResourceType,
    UnclearNeed,
)
from txrocketmq.access.request_needs import NEEDS
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.service import NameServer
from txrocketmq.remoting.call import CALLS
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.base import MOST_BYTES, SHORT_BYTES
from txrocketmq.remoting.protocol.body.heartbeat import (
    CheckClientRequestBody,
    ConsumerData,
    HeartbeatData,
    LockBatchRequestBody,
    ProducerData,
)
from txrocketmq.remoting.protocol.body.pop import (
    BatchAck,
    BatchAckMessageRequestBody,
    QueryAssignmentRequestBody,
    SetMessageRequestModeRequestBody,
)
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.body.topic import (
    CreateTopicListRequestBody,
    SubscriptionGroupConfig,
    SubscriptionGroupList,
)

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
MOST_LINES = 150_000
"""How many lines of Python may run to tell what one request needs: some 7 ms."""
PUB, SUB, GET, CREATE, UPDATE = Action.PUB, Action.SUB, Action.GET, Action.CREATE, Action.UPDATE


def of(code: int, body: bytes = b"", /, **fields: str) -> tuple[Need, ...]:
    return NEEDS[code].of(fields, body, "C")


def test_nothing_that_is_served_is_missing() -> None:
    names = NameServer(NamesrvConfig(), Clock(task.Clock())).registry().bindings
    assert len(names) > 20
    assert set(NEEDS) >= SERVED | set(names)


@pytest.mark.parametrize("code", sorted(NEEDS), ids=lambda code: RequestCode(code).name)
def test_no_request_needs_nothing(code: int) -> None:
    """A request without fields and body is refused, unless it names its resource by its code."""
    known = NEEDS[code]
    try:
        needs = known.of({}, b"", "C")
    except UnclearNeed:
        return
    named = [each for each in known.parts if not each.fields and each.body is None]
    assert len(needs) == len(named)
    assert named or known.may_be_nothing


def test_only_these_may_need_nothing() -> None:
    assert {code for code, needs in NEEDS.items() if needs.may_be_nothing} == {33, 34, 35, 37}


@pytest.mark.parametrize("code", [10, 310, 320, 324, 325])
@given(
    st.fixed_dictionaries(
        {}, optional={name: st.sampled_from(["A", "B", "%RETRY%g"]) for name in ("b", "topic")}
    )
)
def test_the_topic_of_a_send_is_the_one_that_it_is_stored_in(
    code: int, names: dict[str, str]
) -> None:
    """Headers of sends may have a topic twice, as a letter and as a word."""
    rest = dict.fromkeys("acdefgh", "1")
    try:
        meant = CALLS[code].request.decode({**rest, **names}).topic
    except HeaderError:
        with pytest.raises(UnclearNeed):
            of(code, **names)
        return
    expected = (GROUP, "g", (SUB,)) if meant.startswith("%RETRY%") else (TOPIC, meant, (PUB,))
    assert of(code, **names) == (Need(*expected),)


@pytest.mark.parametrize("code", sorted(NEEDS), ids=lambda code: RequestCode(code).name)
def test_fields_have_the_names_of_headers(code: int) -> None:
    call = CALLS.get(code)
    if call is None:
        return
    known = {each.wire for each in call.request.fields} | {
        each.letter for each in call.request.fields
    }
    assert set(NEEDS[code].fields) <= known


def test_a_pull_of_a_retry_topic() -> None:
    assert of(11, topic="%RETRY%g", consumerGroup="g") == (Need(GROUP, "g", (SUB,)),)
    with pytest.raises(UnclearNeed, match="retry topic does not match consumer group"):
        of(361, topic="%RETRY%other", consumerGroup="g")


@pytest.mark.parametrize(
    "code", [RequestCode.ACK_MESSAGE, RequestCode.CHANGE_MESSAGE_INVISIBLETIME]
)
def test_a_message_that_is_popped_again_is_settled_by_its_group(code: int) -> None:
    """Clients name the retry topic, which begins like that of another group."""
    both = (Need(GROUP, "g", (SUB,)), Need(TOPIC, "T", (SUB,)))
    assert of(code, topic="T", consumerGroup="g") == both
    assert of(code, topic="%RETRY%g_T", consumerGroup="g") == both


def test_several_names_in_a_field() -> None:
    assert of(208, consumerGroup="g", topicList="A;;B") == (
        Need(GROUP, "g", (GET,)),
        Need(TOPIC, "A", (GET,)),
        Need(TOPIC, "B", (GET,)),
    )
    assert [need.name for need in of(308, filterGroups="x,y", compareGroup="g", topic="T")] == [
        "x", "y", "g", "T",
    ]  # fmt: skip


def test_all_resources_of_a_type() -> None:
    (need,) = of(21)
    assert need == Need(TOPIC, None, (Action.LIST,))
    assert need.resource == "Topic:*"
    assert of(25) == (Need(CLUSTER, "C", (UPDATE,)),)
    assert NEEDS[25].is_for_operators
    assert not NEEDS[10].is_for_operators


def test_bodies() -> None:
    beat = HeartbeatData(
        client_id="c",
        producer_data_set=[ProducerData(group_name="p")],
        consumer_data_set=[
            ConsumerData(
                group_name="g",
                subscription_data_set=[SubscriptionData("T"), SubscriptionData("%RETRY%g")],
            )
        ],
    )
    both = (Need(GROUP, "g", (SUB,)), Need(TOPIC, "T", (SUB,)))
    assert of(34, beat.encode()) == both
    assert of(34, HeartbeatData(client_id="c").encode()) == ()
    queues = frozenset(MessageQueue(name, "b", 0) for name in ("T", "%RETRY%g"))
    lock = LockBatchRequestBody(consumer_group="g", client_id="c", mq_set=queues).encode()
    assert of(41, lock) == of(42, lock) == both
    check = CheckClientRequestBody(group="g", subscription_data=SubscriptionData("T")).encode()
    assert of(46, check) == both
    assert of(400, QueryAssignmentRequestBody(topic="T", consumer_group="g").encode()) == both
    acks = BatchAckMessageRequestBody(acks=[BatchAck(consumer_group="g", topic="T")] * 3)
    assert of(200151, acks.encode()) == both
    mode = SetMessageRequestModeRequestBody(topic="T", consumer_group="g").encode()
    assert of(401, mode) == (Need(TOPIC, "T", (SUB,)), Need(GROUP, "g", (UPDATE,)))
    topics = CreateTopicListRequestBody(topic_config_list=[TopicConfig(topic_name="T")])
    assert of(18, topics.encode()) == (Need(TOPIC, "T", (CREATE,)),)
    group = SubscriptionGroupConfig(group_name="g")
    assert of(200, group.encode()) == (Need(GROUP, "g", (CREATE,)),)
    groups = SubscriptionGroupList(group_config_list=[group]).encode()
    assert of(225, groups) == (Need(GROUP, "g", (CREATE,)),)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"3", b'{"consumerGroup":"g"}'])
@pytest.mark.parametrize("code", [18, 34, 41, 42, 46, 200, 225, 400, 401, 200151])
def test_bodies_that_are_none(code: int, body: bytes) -> None:
    try:
        needs = of(code, body)
    except UnclearNeed as error:
        assert str(error) in (
            NOT_READABLE, NOTHING_KNOWN, "topic is null.", "consumer group is null.",
        )  # fmt: skip
    else:
        assert needs or NEEDS[code].may_be_nothing


def topics(count: int) -> bytes:
    names = [{"topicName": f"T{number}"} for number in range(count)]
    return json.dumps({"topicConfigList": names}).encode()


def test_a_request_that_names_too_much() -> None:
    assert len(of(18, topics(MOST_NEEDS - 1))) == MOST_NEEDS - 1
    with pytest.raises(UnclearNeed, match="name fewer at a time"):
        of(18, topics(MOST_NEEDS))
    names = ";".join(f"T{number}" for number in range(MOST_NEEDS + 1))
    with pytest.raises(UnclearNeed, match="name fewer at a time"):
        of(208, consumerGroup="g", topicList=names)
    acks = [BatchAck(consumer_group="g", topic="T")] * (MOST_NEEDS - 1)
    assert len(of(200151, BatchAckMessageRequestBody(acks=acks).encode())) == 2


def test_a_longer_body_is_refused_as_its_handler_would() -> None:
    with pytest.raises(UnclearNeed, match="more than the limit of 1048576 bytes"):
        of(34, b"[" * (MOST_BYTES + 1))
    assert of(25, b"[" * (MOST_BYTES + 1)), "nobody looks at this one"


def test_a_long_body_has_to_be_plain_json_as_its_handler_demands() -> None:
    lenient = b"{topicConfigList:[{topicName:'T'}]}"
    assert of(18, lenient) == (Need(TOPIC, "T", (CREATE,)),)
    with pytest.raises(UnclearNeed, match=NOT_READABLE):
        of(18, lenient + b" " * SHORT_BYTES)


def named(count: int) -> SubscriptionData:
    return SubscriptionData(f"T{count}", sub_version=1)


def largest() -> Iterator[tuple[int, bytes]]:
    """Bodies that are just not refused."""
    most = MOST_NEEDS - 1
    one = ConsumerData(group_name="g", subscription_data_set=[named(n) for n in range(most - 1)])
    yield 34, HeartbeatData(client_id="c", consumer_data_set=[one]).encode()
    alone = [
        ConsumerData(group_name=f"g{n}", subscription_data_set=[named(n)]) for n in range(most // 2)
    ]
    yield 34, HeartbeatData(client_id="c", consumer_data_set=alone).encode()
    tags = frozenset(f"{n}" for n in range(7_500))
    much = SubscriptionData("T", tags_set=tags, code_set=frozenset(range(7_500)), sub_version=1)
    one = ConsumerData(group_name="g", subscription_data_set=[much])
    yield 34, HeartbeatData(client_id="c", consumer_data_set=[one]).encode()
    queues = frozenset(MessageQueue(f"T{n}", "b", n) for n in range(most))
    yield 41, LockBatchRequestBody(consumer_group="g", client_id="c", mq_set=queues).encode()
    acks = [BatchAck(consumer_group=f"g{n // 2}", topic=f"T{n // 2}") for n in range(most)]
    yield 200151, BatchAckMessageRequestBody(acks=acks).encode()
    yield 18, topics(most)


@pytest.mark.parametrize(("code", "body"), list(largest()))
def test_little_runs_in_the_turn_of_the_guard(code: int, body: bytes) -> None:
    with contextlib.suppress(UnclearNeed):
        of(code, body[:100])  # codecs are derived when they are first used
    found: list[tuple[Need, ...]] = []
    lines = lines_of(lambda: found.append(of(code, body)))
    assert found[0]
    assert lines < MOST_LINES, f"{lines} lines of Python in one turn"
