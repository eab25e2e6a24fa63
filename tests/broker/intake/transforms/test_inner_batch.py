# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import NotTaken, Transforms
from txrocketmq.broker.intake.transforms.inner_batch import InnerBatch, count_entries
from txrocketmq.broker.store.queues.batch_queue import MAX_BATCH_MESSAGES
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import Message, encode_batch

ATTRIBUTES = {
    "Batches": {"queue.type": "BatchCQ"},
    "Compacted": {"cleanup.policy": "COMPACTION"},
    "Plain": {"queue.type": "SimpleCQ", "cleanup.policy": "DELETE"},
}
TWO = encode_batch([Message("T", b"a"), Message("T", b"b", properties={"k": "v"})])


@pytest.fixture
def transforms() -> Transforms:
    return Transforms([InnerBatch(ATTRIBUTES.get)], ATTRIBUTES.get)


def message(
    topic: str = "T", way: Way = Way.SEND, body: bytes = b"body", **properties: str
) -> InnerMessage:
    return InnerMessage(topic, 1, body, 1, bytes(8), bytes(8), properties, way=way)


def batch(topic: str, body: bytes, number: str, way: Way = Way.BATCH) -> InnerMessage:
    made = message(topic, way, body, INNER_NUM=number)
    made.sys_flag = MessageSysFlag.INNER_BATCH
    return made


@pytest.mark.parametrize("way", [Way.SEND, Way.BATCH, Way.SEND_BACK])
def test_batches_belong_into_topics_of_batches(transforms: Transforms, way: Way) -> None:
    transforms.apply(batch("Batches", TWO, "2", way), 0)
    for topic in ("Plain", "Unknown"):
        with pytest.raises(NotTaken, match="MESSAGE_ILLEGAL"):
            transforms.apply(batch(topic, TWO, "2", way), 0)


@pytest.mark.parametrize(
    ("body", "number"), [(TWO, "1"), (TWO, "3"), (TWO[:-1], "2"), (b"", "0"), (TWO, "x")]
)
def test_batches_know_their_size(transforms: Transforms, body: bytes, number: str) -> None:
    with pytest.raises(NotTaken, match="MESSAGE_ILLEGAL"):
        transforms.apply(batch("Batches", body, number), 0)


def test_a_unit_has_room_for_the_number(transforms: Transforms) -> None:
    one = encode_batch([Message("T", b"")])
    transforms.apply(batch("Batches", one * MAX_BATCH_MESSAGES, str(MAX_BATCH_MESSAGES)), 0)
    more = MAX_BATCH_MESSAGES + 1
    with pytest.raises(NotTaken, match="MESSAGE_ILLEGAL"):
        transforms.apply(batch("Batches", one * more, str(more)), 0)


def test_without_the_flag_there_is_no_batch(transforms: Transforms) -> None:
    for topic in ("Batches", "Plain"):
        with pytest.raises(NotTaken, match="MESSAGE_ILLEGAL"):
            transforms.apply(message(topic, INNER_NUM="2"), 0)
        transforms.apply(message(topic), 0)


def test_topics_of_what_is_not_served_take_nothing(transforms: Transforms) -> None:
    for way in (Way.SEND, Way.BATCH, Way.SEND_BACK):
        with pytest.raises(ResponseError, match="topic Compacted takes no messages here: "):
            transforms.apply(message("Compacted", way), 0)


@given(bodies=st.lists(st.binary(max_size=20), max_size=5), cut=st.integers(1, 30))
def test_entries_are_counted(bodies: list[bytes], cut: int) -> None:
    entries = [encode_batch([Message("T", body)]) for body in bodies]
    assert count_entries(b"".join(entries)) == len(bodies)
    if entries and cut < len(entries[-1]):
        assert count_entries(b"".join(entries)[:-cut]) == 0
