# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import Message, decode_batch
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.spark.sink import parcels as module
from txrocketmq.spark.sink.parcels import MAX_PARCEL_MESSAGES, PARCEL_BYTES, Packed, Parcels
from txrocketmq.spark.sink.targets import Lane

LANE = Lane("T")


def contents(packed: Packed) -> list[Message]:
    """The messages of a parcel."""
    parcel = packed.parcel
    if parcel.is_batch:
        return decode_batch(parcel.body, packed.lane.topic)
    properties = decode_properties(parcel.properties)
    assert properties.pop("WAIT") == "true"
    return [Message(packed.lane.topic, parcel.body, parcel.flag, properties)]


def gathered(parcels: Parcels, *sent: tuple[Lane, Message]) -> list[Packed]:
    found = [packed for lane, message in sent for packed in parcels.add(lane, message)]
    return [*found, *parcels.rest()]


@given(
    st.lists(
        st.tuples(
            st.sampled_from((LANE, Lane("T", "a", 1), Lane("%RETRY%g"))),
            st.integers(1, 3000),
            st.sampled_from(({}, {"TAGS": "A"}, {"DELAY": "3"}, {"TIMER_DELIVER_MS": "5"})),
        ),
        max_size=60,
    )
)
def test_each_lane_keeps_its_messages_in_order_within_the_limits(
    drafts: list[tuple[Lane, int, dict[str, str]]],
) -> None:
    sent = [
        (
            lane,
            Message(lane.topic, bytes([number]) * size, number, {**more, "UNIQ_KEY": f"{number}"}),
        )
        for number, (lane, size, more) in enumerate(drafts)
    ]
    found = gathered(Parcels(4096), *sent)
    for lane in {lane for lane, _ in sent}:
        arrived = [one for packed in found if packed.lane == lane for one in contents(packed)]
        assert arrived == [message for its, message in sent if its == lane]
    for packed in found:
        assert len(packed.parcel.body) <= 4096
        assert packed.messages == len(contents(packed))
        assert packed.parcel.is_batch == (packed.messages > 1)
        if packed.parcel.is_batch:
            assert not packed.lane.topic.startswith("%RETRY%")
            assert not any(
                name in one.properties
                for one in contents(packed)
                for name in ("DELAY", "TIMER_DELIVER_MS")
            )
            # The original adds a batch's properties to each message: a key would replace theirs.
            assert decode_properties(packed.parcel.properties) == {"WAIT": "true"}


def test_a_batch_is_full_at_half_a_mebibyte_or_at_a_number_of_messages() -> None:
    large = [(LANE, Message("T", bytes(100_000)))] * 12
    assert [packed.messages for packed in gathered(Parcels(1 << 22), *large)] == [5, 5, 2]
    assert 5 * 100_000 < PARCEL_BYTES < 6 * 100_000
    small = [(LANE, Message("T", b"x"))] * (MAX_PARCEL_MESSAGES + 1)
    assert [p.messages for p in gathered(Parcels(1 << 22), *small)] == [MAX_PARCEL_MESSAGES, 1]


def test_a_message_larger_than_a_batch_travels_alone() -> None:
    sent = [(LANE, Message("T", bytes(size))) for size in (10, PARCEL_BYTES, 10)]
    assert [packed.messages for packed in gathered(Parcels(1 << 22), *sent)] == [1, 1, 1]


def test_a_message_larger_than_brokers_take_is_an_error() -> None:
    with pytest.raises(ValueError, match="1025 bytes, more than maxMessageBytes, 1024"):
        gathered(Parcels(1024), (LANE, Message("T", bytes(1025))))


def test_properties_that_do_not_fit_are_an_error() -> None:
    with pytest.raises(ValueError, match="longer than 32767 bytes"):
        gathered(Parcels(1 << 22), (LANE, Message("T", b"x", 0, {"a": "x" * 32_767})))


def test_what_waits_in_all_lanes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING_BYTES", 10_000)
    parcels = Parcels(1 << 22)
    sizes = [3000, 4000, 2000, 1500]
    found = [
        packed.lane.queue_id
        for number, size in enumerate(sizes)
        for packed in parcels.add(Lane("T", "a", number), Message("T", bytes(size)))
    ]
    assert found == [1], "the fullest"
    assert [packed.lane.queue_id for packed in parcels.rest()] == [0, 2, 3]


def test_half_messages_travel_alone() -> None:
    sent = [(LANE, Message("T", b"%d" % number, 0, {"UNIQ_KEY": "K"})) for number in range(3)]
    parcels = Parcels(4096, half_of="g")
    assert [one.parcel.body for one in gathered(parcels, *sent[:2])] == [b"0", b"1"]
    (packed,) = parcels.add(*sent[2])
    assert packed.parcel.sys_flag == MessageSysFlag.TRANSACTION_PREPARED_TYPE
    assert packed.messages == 1
    properties = decode_properties(packed.parcel.properties)
    assert (properties["TRAN_MSG"], properties["PGROUP"]) == ("true", "g")
    with pytest.raises(ValueError, match="more than maxMessageBytes"):
        next(parcels.add(LANE, Message("T", bytes(4097))))
