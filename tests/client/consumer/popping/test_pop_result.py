# SPDX-License-Identifier: Apache-2.0
"""Handles of popped messages, as the Java client makes them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.client.consumer.popping.pop_result import (
    Popped,
    ack_of,
    acks_of,
    handle_of,
    hiding,
    popped_messages,
    set_new_handle,
)
from txrocketmq.remoting.message.message import MessageDecodeError, MessageExt, encode_message
from txrocketmq.remoting.message.tags import build_subscription_data
from txrocketmq.remoting.protocol.pop import (
    ChangeInvisibleTimeResponseHeader,
    PopMessageResponseHeader,
)

RETRY = "%RETRY%g_T"
RETRY_V2 = "%RETRY%g+T"


def popped(
    *messages: MessageExt,
    starts: str | None = None,
    taken: str | None = None,
    counts: str | None = None,
    expression: str = "*",
    revive: int = 3,
    is_orderly: bool = False,
) -> Popped:
    header = PopMessageResponseHeader(
        pop_time=1000,
        invisible_time=60,
        revive_qid=revive,
        rest_num=0,
        start_offset_info=starts,
        msg_offset_info=taken,
        order_count_info=counts,
    )
    body = b"".join(map(encode_message, messages))
    subscription = build_subscription_data("T", expression)
    return popped_messages(header, body, "broker-a", subscription, is_orderly=is_orderly)


def a_message(offset: int, topic: str = "T", queue_id: int = 0, **properties: str) -> MessageExt:
    return MessageExt(
        topic, b"m%d" % offset, properties=properties, queue_id=queue_id, queue_offset=offset
    )


def handles(result: Popped) -> list[str]:
    return [message.properties["POP_CK"] for message in result.wanted]


def test_each_message_has_the_handle_of_its_queue_and_the_topic_that_was_asked_for() -> None:
    result = popped(
        a_message(5),
        a_message(6),
        a_message(7, queue_id=1),
        a_message(2, RETRY),
        a_message(9, RETRY_V2, queue_id=1),
        starts="0 0 5;0 1 4;1 0 2;2 1 8",
        taken="0 0 5,6;0 1 7;1 0 2;2 1 9",
    )
    assert handles(result) == [
        "5 1000 60 3 0 broker-a 0 5",
        "5 1000 60 3 0 broker-a 0 6",
        "4 1000 60 3 0 broker-a 1 7",
        "2 1000 60 3 1 broker-a 0 2",
        "8 1000 60 3 2 broker-a 1 9",
    ]
    assert {(each.topic, each.broker_name) for each in result.wanted} == {("T", "broker-a")}
    assert {each.properties["1ST_POP_TIME"] for each in result.wanted} == {"1000"}
    assert result.unwanted == []


def test_what_the_message_knows_already_stays() -> None:
    its: dict[str, Any] = {"POP_CK": "1 2 3 4 0 b 0 5", "1ST_POP_TIME": "900"}
    (message,) = popped(a_message(5, **its), starts="0 0 5", taken="0 0 5").wanted
    assert {name: message.properties[name] for name in its} == its


def test_the_offsets_that_are_told_count_where_the_record_has_another() -> None:
    result = popped(a_message(6), a_message(5), starts="0 0 5", taken="0 0 50,60")
    assert [handle_of(each).queue_offset for each in result.wanted] == [60, 50]


def test_without_them_the_handle_is_of_the_message_alone() -> None:
    assert handles(popped(a_message(5))) == ["5 1000 60 3 0 broker-a 0 5"]
    assert handles(popped(a_message(5), starts="", taken="rubbish")) == handles(
        popped(a_message(5))
    )


def test_messages_of_a_light_queue_have_handles_of_that_queue() -> None:
    """As by MQClientAPIImpl.processPopResponse, whatever queues they were sent to."""
    messages = [
        a_message(
            7, topic, queue_id, INNER_MULTI_DISPATCH="%LMQ%a", INNER_MULTI_QUEUE_OFFSET=str(offset)
        )
        for topic, queue_id, offset in (("S", 2, 4), ("T", 1, 5))
    ]
    header = PopMessageResponseHeader(
        pop_time=1000, invisible_time=60, revive_qid=3, rest_num=0,
        start_offset_info="0 0 4", msg_offset_info="0 0 4,5",
    )  # fmt: skip
    result = popped_messages(
        header, b"".join(map(encode_message, messages)), "broker-a",
        build_subscription_data("%LMQ%a", "*"), is_orderly=False,
    )  # fmt: skip
    assert handles(result) == [
        "4 1000 60 3 0 broker-a 0 4",
        "4 1000 60 3 0 broker-a 0 5",
    ]


def test_messages_of_other_tags_are_told_apart() -> None:
    result = popped(
        a_message(5, TAGS="a"), a_message(6, TAGS="b"), a_message(7), expression="a",
        starts="0 0 5", taken="0 0 5,6,7",
    )  # fmt: skip
    assert [each.queue_offset for each in result.wanted] == [5]
    assert [each.queue_offset for each in result.unwanted] == [6, 7]
    assert all("POP_CK" in each.properties for each in result.unwanted)


def test_in_order_messages_know_how_often_they_were_popped() -> None:
    counts = "0 0 2;0 qo0%6 4"
    messages = a_message(5), a_message(6), a_message(7, queue_id=1)
    orderly = popped(*messages, counts=counts, is_orderly=True, revive=999)
    assert [each.reconsume_times for each in orderly.wanted] == [2, 4, 0]
    assert [each.reconsume_times for each in popped(*messages, counts=counts).wanted] == [0, 0, 0]


def test_bytes_that_are_no_messages_are_told() -> None:
    header = PopMessageResponseHeader(pop_time=1, invisible_time=1, revive_qid=0, rest_num=0)
    with pytest.raises(MessageDecodeError):
        popped_messages(header, b"x" * 40, "b", build_subscription_data("T", "*"), is_orderly=False)


def test_an_ack_names_the_real_topic() -> None:
    plain, again = popped(a_message(5), a_message(2, RETRY), starts="0 0 5;1 0 2").wanted
    for message, topic, offset in ((plain, "T", 5), (again, RETRY, 2)):
        header = ack_of("g", "T", message)
        assert (header.topic, header.queue_id, header.offset) == (topic, 0, offset)
        assert header.extra_info == message.properties["POP_CK"]
        hidden = hiding("g", "T", message, 7)
        assert (hidden.topic, hidden.offset, hidden.invisible_time) == (topic, offset, 7)


def test_another_invisible_time_makes_another_handle() -> None:
    (message,) = popped(a_message(6), starts="0 0 5", taken="0 0 6").wanted
    answer = ChangeInvisibleTimeResponseHeader(pop_time=2000, invisible_time=90, revive_qid=1)
    set_new_handle(message, answer)
    assert message.properties["POP_CK"] == "6 2000 90 1 0 broker-a 0 6"


@pytest.mark.parametrize("handle", [None, "", "1 2 3", "a b c d e f"])
def test_a_message_without_a_handle_was_not_popped(handle: str | None) -> None:
    message = a_message(5)
    if handle is not None:
        message.properties["POP_CK"] = handle
    for make in (ack_of, lambda g, t, m: hiding(g, t, m, 1), lambda g, t, m: acks_of(g, [(t, m)])):
        with pytest.raises(MessageIllegal, match="has no receipt handle"):
            make("g", "T", message)


Where = tuple[str, int, int, int]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["b1", "b2"]), st.integers(0, 2), st.integers(0, 3), st.integers(0, 40)
        ),
        unique=True,
    )
)
def test_many_acks_are_those_of_each_one(places: list[Where]) -> None:
    """Each is a broker, a queue, a pop and how far from its start."""
    messages = []
    for broker, queue, pop, distance in places:
        message = a_message(0)
        offset = 100 * pop + distance
        message.properties["POP_CK"] = f"{100 * pop} {pop} 60 3 0 {broker} {queue} {offset}"
        messages.append(("T", message))
    found = {
        (broker, ack.queue_id, ack.pop_time, offset - ack.start_offset)
        for broker, body in acks_of("g", messages).items()
        for ack in body.acks
        for offset in ack.offsets(ack.within(0, 2**62))
    }
    assert found == set(places)
    pops = {(broker, queue, pop) for broker, queue, pop, _ in places}
    assert sum(len(body.acks) for body in acks_of("g", messages).values()) == len(pops)
