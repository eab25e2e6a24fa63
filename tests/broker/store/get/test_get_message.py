# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.damage import Damage, DamagedRecords
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.get.get_message import get_message
from txrocketmq.broker.store.get.get_result import (
    MOST_WORK,
    GetMessageStatus,
    GetResult,
    Request,
    work_of,
)
from txrocketmq.broker.store.get.records import Records
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.log.dispatch import dispatch_units
from txrocketmq.broker.store.queues.consume_queue import PRE_BLANK_SIZE, UNIT, ConsumeQueue
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.remoting.message.message import decode_messages
from txrocketmq.remoting.message.properties import decode_properties

NOW_MS = 1_700_000_000_000
ALL_RECENT = 1 << 40
MANY = 1 << 22
FOUND = GetMessageStatus.FOUND
NO_MATCH = GetMessageStatus.NO_MATCHED_MESSAGE
REMOVING = GetMessageStatus.MESSAGE_WAS_REMOVING


class ByTags:
    """A filter of messages by their tags."""

    def __init__(self, wants: Callable[[str], bool], terms: int) -> None:
        self._wants = wants
        self.terms = terms

    def wants(self, text: str) -> bool:
        return self._wants(decode_properties(text)["TAGS"])


class Rig:
    """A log and its queues; messages of a queue have bodies 0, 1, 2 ... and codes as they come."""

    def __init__(self, files: Any, config: StoreConfig, build: Callable[..., PutMessage]) -> None:
        self.config = config
        self.log = CommitLog(files, config)
        self.queues = ConsumeQueues(files, config)
        self.damaged = DamagedRecords()
        self.found: list[Damage] = []
        self.damaged.listeners.append(lambda damage, _: self.found.append(damage))
        self.records = Records(files, self.log, config, self.damaged)
        self.set_recent(ALL_RECENT)
        self._build = build

    def set_recent(self, recent_bytes: int) -> None:
        """Sets how much of the log is recent, by way of the machine's memory."""
        ratio = self.config.access_message_in_memory_max_ratio
        self.records.physical_bytes = -(-recent_bytes * 100 // ratio)

    def put(self, *messages: tuple[int, int], size: int = 1) -> None:
        """Messages of (queue id, tags code)."""
        batch = self.log.encode(
            [
                self._build(queue_id=queue_id, body=bytes(size), tags_code=code, tags=str(code))
                for queue_id, code in messages
            ],
            self.queues,
            NOW_MS,
        )
        self.log.write(batch)
        dispatch_units(batch)

    @property
    def queue(self) -> ConsumeQueue:
        return self.queues.open("Topic", 0)

    def get(
        self,
        offset: int,
        count: int = 32,
        most: int = MANY,
        codes: set[int] | None = None,
        wants: Callable[[str], bool] | None = None,
        *,
        terms: int = 1,
    ) -> GetResult:
        wanted = None if codes is None else frozenset(codes)
        by_properties = None if wants is None else ByTags(wants, terms)
        request = Request(offset, count, most, wanted, by_properties)
        return get_message(self.records, self.queue, request)

    def offsets(self, result: GetResult) -> list[int]:
        """The queue offsets of what was got, and that the result adds up."""
        data = b"".join(result.buffers)
        messages = decode_messages(data)
        assert result.count == len(messages)
        assert result.size_bytes == len(data)
        return [message.queue_offset for message in messages]


@pytest.fixture
def rig(files: Any, config: Callable[..., StoreConfig], message: Callable[..., PutMessage]) -> Rig:
    return Rig(files, config(), message)


def test_a_queue_that_never_was_has_nothing(rig: Rig) -> None:
    request = Request(7, 32, MANY, None, None)
    result = get_message(rig.records, None, request)
    assert result == GetResult(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
    assert rig.get(7).status is GetMessageStatus.NO_MESSAGE_IN_QUEUE


def test_offsets_out_of_range_are_corrected(rig: Rig) -> None:
    rig.put(*[(0, 0)] * 4)
    rig.queue.min_offset = 2
    got = {offset: rig.get(offset) for offset in (1, 4, 5)}
    assert [(each.status, each.next_begin_offset) for each in got.values()] == [
        (GetMessageStatus.OFFSET_TOO_SMALL, 2),
        (GetMessageStatus.OFFSET_OVERFLOW_ONE, 4),
        (GetMessageStatus.OFFSET_OVERFLOW_BADLY, 4),
    ]
    assert {(each.min_offset, each.max_offset, each.count) for each in got.values()} == {(2, 4, 0)}


@pytest.mark.parametrize(("checks", "expected"), [(False, 99), (True, 4)])
def test_a_slave_leaves_offsets_alone_unless_told(
    files: Any,
    config: Callable[..., StoreConfig],
    message: Callable[..., PutMessage],
    checks: bool,
    expected: int,
) -> None:
    rig = Rig(files, config(broker_role="SLAVE", offset_check_in_slave=checks), message)
    rig.put(*[(0, 0)] * 4)
    assert rig.get(99).next_begin_offset == expected


def test_messages_side_by_side_are_one_slice(rig: Rig) -> None:
    rig.put(*[(0, 0)] * 4)
    result = rig.get(1)
    assert rig.offsets(result) == [1, 2, 3]
    assert len(result.buffers) == 1
    assert (result.status, result.next_begin_offset) == (FOUND, 4)
    assert not result.suggest_slave


def test_messages_with_others_between_come_one_by_one(rig: Rig) -> None:
    rig.put(*[(each % 2, 0) for each in range(8)])
    result = rig.get(0)
    assert rig.offsets(result) == [0, 1, 2, 3]
    assert len(result.buffers) == 4


def test_nothing_is_copied(rig: Rig) -> None:
    rig.put((0, 0), (1, 0), (0, 0))
    for codes in (None, {0}):
        (first, _) = rig.get(0, codes=codes).buffers
        assert first.readonly
        before = first[20]
        rig.log.files.mapped_files[0].map()[20:21] = bytes([before ^ 0xFF])
        assert first[20] == before ^ 0xFF
        rig.log.files.mapped_files[0].map()[20:21] = bytes([before])


@pytest.mark.parametrize("codes", [None, {0}])
@pytest.mark.parametrize("interleaved", [False, True])
def test_limits_of_recent_messages(rig: Rig, codes: set[int] | None, interleaved: bool) -> None:
    others = [(1, 0)] if interleaved else []
    for _ in range(40):
        rig.put((0, 0), *others, size=100)
    size = rig.get(0, 1).size_bytes

    def count(most_messages: int, most_bytes: int = MANY) -> int:
        return len(rig.offsets(rig.get(0, most_messages, most_bytes, codes)))

    file_units = 5  # of a queue file: no more is read at once
    assert count(32) == file_units
    assert count(3) == 3
    assert count(0) == count(-1) == 1, "at least one"
    assert count(32, 3 * size) == 3
    assert count(32, 3 * size - 1) == 2
    assert count(32, 1) == 1


def test_limits_of_the_configuration(
    files: Any, config: Callable[..., StoreConfig], message: Callable[..., PutMessage]
) -> None:
    limits = {
        "max_transfer_count_on_message_in_memory": 20,
        "max_transfer_bytes_on_message_in_memory": 3000,
        "max_transfer_count_on_message_in_disk": 6,
        "max_transfer_bytes_on_message_in_disk": 1000,
    }
    rig = Rig(files, config(mapped_file_size_consume_queue=2000, **limits), message)
    rig.put(*[(0, 0)] * 60, size=1)
    size = rig.get(0, 1).size_bytes
    assert size * 6 < 1000
    assert len(rig.offsets(rig.get(0, 100))) == 20
    rig.set_recent(0)
    assert len(rig.offsets(rig.get(0, 100))) == 6
    assert rig.get(0, 100).suggest_slave
    rig.set_recent(size * 58)  # two messages are older
    assert len(rig.offsets(rig.get(0, 100))) == 20, "the limits of the message that is next"
    rig.put(*[(0, 0)] * 30, size=300)
    rig.set_recent(ALL_RECENT)
    assert len(rig.offsets(rig.get(60, 100))) == 3000 // (size + 299)
    rig.set_recent(0)
    assert len(rig.offsets(rig.get(60, 100))) == 1000 // (size + 299)
    assert len(rig.offsets(rig.get(60, 100, 100))) == 1


def test_tags_are_filtered_by_their_codes(rig: Rig) -> None:
    rig.put((0, 1), (0, 2), (0, 1), (0, 3), (0, 1))
    result = rig.get(0, codes={1, 3})
    assert rig.offsets(result) == [0, 2, 3, 4]
    assert len(result.buffers) == 2
    assert (result.status, result.next_begin_offset) == (FOUND, 5)
    assert rig.offsets(rig.get(0, codes=set())) == []
    nothing = rig.get(0, codes={7})
    assert (nothing.status, nothing.next_begin_offset) == (NO_MATCH, 5)


def test_codes_are_compared_as_java_ints(rig: Rig) -> None:
    rig.put((0, (1 << 40) + 5), (0, -(1 << 31)), (0, (1 << 32) - 7))
    assert rig.offsets(rig.get(0, codes={5})) == [0]
    assert rig.offsets(rig.get(0, codes={-(1 << 31)})) == [1]
    assert rig.offsets(rig.get(0, codes={-7})) == [2]


def test_a_code_that_is_lost_is_taken_for_one_that_is_wanted(rig: Rig) -> None:
    rig.put((0, 5), (0, -(1 << 63)))
    assert rig.offsets(rig.get(0, codes={9})) == [1]


def test_a_filter_sees_the_properties(rig: Rig) -> None:
    rig.put((0, 1), (0, 2), (0, 3), (0, 1))
    seen: list[str] = []

    def wants(tags: str) -> bool:
        seen.append(tags)
        return tags != "3"

    assert rig.offsets(rig.get(0, codes={1, 3}, wants=wants)) == [0, 3]
    assert seen == ["1", "3", "1"]
    assert rig.offsets(rig.get(0, wants=wants)) == [0, 1, 3]
    nothing = rig.get(2, 1, wants=lambda _: False)
    assert (nothing.status, nothing.next_begin_offset) == (NO_MATCH, 4)


def test_a_filter_with_much_to_do_looks_at_few_messages_but_at_one_at_least(
    files: Any, config: Callable[..., StoreConfig], message: Callable[..., PutMessage]
) -> None:
    rig = Rig(files, config(mapped_file_size_consume_queue=40_000), message)
    seen: list[str] = []

    def wants(tags: str) -> bool:
        seen.append(tags)
        return tags == "7"

    rig.put(*[(0, 1)] * 99, (0, 7))
    offset = turns = 0
    while offset < 99:
        before = len(seen)
        result = rig.get(offset, wants=wants, terms=1_000)
        assert 1 <= len(seen) - before <= 4
        assert (result.status, result.next_begin_offset) == (
            NO_MATCH if seen[-1] == "1" else FOUND, len(seen),
        )  # fmt: skip
        offset = result.next_begin_offset
        turns += 1
    assert turns > 20
    assert rig.get(0, wants=wants, terms=1_000_000).next_begin_offset == 1
    assert rig.get(0, wants=wants, terms=1).next_begin_offset == 100


def test_long_properties_are_work_too() -> None:
    assert work_of(1, "") * 400 < MOST_WORK, "what is usual is bounded by the number of units"
    assert work_of(1, "x" * 32_767) * 20 > MOST_WORK
    assert work_of(100, "x" * 32_767) > MOST_WORK / 2


def test_a_filter_looks_through_so_many_units_and_no_more(
    files: Any, config: Callable[..., StoreConfig], message: Callable[..., PutMessage]
) -> None:
    settings = {"mapped_file_size_consume_queue": 40_000, "max_filter_message_size": 190}
    rig = Rig(files, config(**settings), message)
    rig.put(*[(0, 1)] * 30, (0, 2))
    assert rig.get(0, 2, codes={2}).next_begin_offset == 10
    assert rig.get(0, 15, codes={2}).next_begin_offset == 15
    found = rig.get(21, 2, codes={2})
    assert (rig.offsets(found), found.next_begin_offset) == ([30], 31)
    rig.put(*[(0, 1)] * 1_100)
    assert rig.get(31, 2**31 - 1, codes={2}).next_begin_offset == 31 + 1_024


def test_settings_allow_more_at_once_than_push_consumers_ask_for(
    files: Any, config: Callable[..., StoreConfig], message: Callable[..., PutMessage]
) -> None:
    settings = {
        "mapped_file_size_consume_queue": 40_000,
        "max_transfer_count_on_message_in_memory": 1_500,
    }
    rig = Rig(files, config(**settings), message)
    rig.put(*[(0, 1)] * 1_600)
    assert rig.get(0, 1_500).count == 1_500
    assert rig.get(0, 2**31 - 1).count == 1_500


def test_a_pull_looks_through_more_queue_files_if_told(
    files: Any, config: Callable[..., StoreConfig], message: Callable[..., PutMessage]
) -> None:
    rig = Rig(files, config(travel_cq_file_num_when_get_message=3), message)
    rig.put(*[(0, 1)] * 12, (0, 2), (0, 1))
    assert rig.get(0, codes={3}).next_begin_offset == 14
    found = rig.get(0, codes={2})
    assert (rig.offsets(found), found.next_begin_offset) == ([12], 14)
    assert rig.get(0, codes={1}).next_begin_offset == 5, "what is found in the first is enough"


def test_messages_over_the_end_of_a_log_file(rig: Rig) -> None:
    rig.put(*[(0, 0)] * 5, size=3000)
    for codes in (None, {0}):
        result = rig.get(0, codes=codes)
        assert rig.offsets(result) == [0, 1, 2, 3, 4]
        assert len(result.buffers) == 3


def test_messages_that_the_log_has_lost_are_passed_over(rig: Rig) -> None:
    rig.put(*[(0, 0)] * 5, size=3000)
    rig.log.files.take_first(1)
    for codes in (None, {0}):
        result = rig.get(0, codes=codes)
        assert rig.offsets(result) == [2, 3, 4]
        assert (result.status, result.next_begin_offset) == (FOUND, 5)
    rig.log.files.take_first(1)
    rig.log.files.take_first(1)
    result = rig.get(0)
    assert (result.status, result.next_begin_offset, result.count) == (REMOVING, 5, 0)


@pytest.mark.parametrize(
    "unit",
    [
        (0, 0),
        (0, -5),
        (-5, 100),
        (1 << 60, 100),
        (0, 1 << 30),
        (8100, 500),
        (-(1 << 63), (1 << 31) - 1),
    ],
)
@pytest.mark.parametrize("codes", [None, {0}])
def test_a_damaged_unit_is_passed_over(
    rig: Rig, files: Any, unit: tuple[int, int], codes: set[int] | None
) -> None:
    rig.put(*[(0, 0)] * 5)
    mapped = files.maps["/store/consumequeue/Topic/0/" + "0" * 20]
    mapped[40:60] = UNIT.pack(*unit, 0)
    result = rig.get(0, codes=codes)
    assert result.status is FOUND
    assert (rig.offsets(result), result.next_begin_offset) == ([0, 1], 2)
    result = rig.get(2, codes=codes)
    assert (rig.offsets(result), result.next_begin_offset) == ([3, 4], 5)


def test_blank_units_are_passed_over(rig: Rig, files: Any) -> None:
    rig.put(*[(0, 0)] * 5)
    mapped = files.maps["/store/consumequeue/Topic/0/" + "0" * 20]
    mapped[0:40] = UNIT.pack(0, PRE_BLANK_SIZE, 0) * 2
    result = rig.get(0)
    assert rig.offsets(result) == [2, 3, 4]
    mapped[40:100] = UNIT.pack(0, PRE_BLANK_SIZE, 0) * 3
    result = rig.get(0)
    assert (result.status, result.next_begin_offset) == (NO_MATCH, 5)


def test_damaged_units_alone_are_no_end(rig: Rig, files: Any) -> None:
    rig.put(*[(0, 0)] * 5)
    mapped = files.maps["/store/consumequeue/Topic/0/" + "0" * 20]
    mapped[:] = UNIT.pack(77, 0, 0) * 5
    result = rig.get(1)
    assert (result.status, result.next_begin_offset, result.count) == (REMOVING, 5, 0)


def test_a_missing_queue_file_is_passed_over(rig: Rig) -> None:
    rig.put(*[(0, 0)] * 12)
    del rig.queue.files.mapped_files[1]
    result = rig.get(6)
    assert (result.status, result.next_begin_offset) == (GetMessageStatus.OFFSET_FOUND_NULL, 10)


@pytest.mark.parametrize("ratio", [40, 100])
def test_how_much_is_recent_is_a_share_of_the_memory(
    files: Any, config: Callable[..., StoreConfig], ratio: int
) -> None:
    settings = config(access_message_in_memory_max_ratio=ratio)
    records = Records(files, CommitLog(files, settings), settings, DamagedRecords())
    assert records.physical_bytes > 100_000_000
    assert records.recent_from == -(records.physical_bytes * ratio // 100)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 3000)), max_size=25),
    st.data(),
)
def test_whatever_is_put_is_got_in_turn(
    files: Any,
    config: Callable[..., StoreConfig],
    message: Callable[..., PutMessage],
    puts: list[tuple[int, int, int]],
    data: st.DataObject,
) -> None:
    files.maps.clear()
    rig = Rig(files, config(), message)
    rig.set_recent(data.draw(st.sampled_from([0, 5000, ALL_RECENT])))
    for queue_id, code, size in puts:
        rig.put((queue_id, code), size=size)
    codes = data.draw(st.sampled_from([None, {1}, {0, 2}]))
    wants = data.draw(st.sampled_from([None, lambda _: True]))
    mine = [code for queue_id, code, _ in puts if queue_id == 0]
    expected = [at for at, code in enumerate(mine) if codes is None or code in codes]
    found: list[int] = []
    offset = 0
    while offset < len(mine):
        limits = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 9000)))
        result = rig.get(offset, *limits, codes=codes, wants=wants)
        assert result.status in (FOUND, NO_MATCH)
        assert result.count <= limits[0]
        assert result.next_begin_offset > offset
        found += rig.offsets(result)
        offset = result.next_begin_offset
    assert found == expected
