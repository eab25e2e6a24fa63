# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from tests.counted import lines_of
from txrocketmq.broker.pop import messages
from txrocketmq.broker.pop.messages import (
    AT_ONCE,
    MOST_BEGUN,
    MOST_KNOWN,
    MOST_QUEUED,
    STRIDE,
    KnownBatches,
    in_record,
    offsets_of,
    one_by_one,
    records_of,
)
from txrocketmq.broker.store.disk.in_memory import NotYet
from txrocketmq.broker.store.get.get_result import GetMessageStatus, GetResult
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.compression import CompressionType, compress
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import (
    Message,
    MessageDecodeError,
    MessageExt,
    decode_message,
    encode_batch,
    encode_message,
)

BATCH = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP


def record(offset: int, *bodies: str, number: str | None = None, sys_flag: int = BATCH) -> bytes:
    """A batch of these bodies, or a message of the one."""
    if len(bodies) == 1:
        return encode_message(MessageExt("B", bodies[0].encode(), queue_offset=offset))
    entries = [
        Message("B", each.encode(), at, {"TAGS": each}) for at, each in enumerate(bodies, offset)
    ]
    properties = {"INNER_NUM": str(len(bodies)) if number is None else number, "CLUSTER": "c"}
    batch = MessageExt(
        "B", encode_batch(entries), 9, properties, None, 3, offset, sys_flag, 17,
        commit_log_offset=1_000 + offset, store_timestamp=18, reconsume_times=2,
    )  # fmt: skip
    return encode_message(batch)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the records that are decoded from now on."""
    lengths: list[int] = []

    def counted(record: memoryview, *, max_body_bytes: int) -> tuple[MessageExt, int]:
        lengths.append(len(record))
        return decode_message(record, max_body_bytes=max_body_bytes)

    monkeypatch.setattr(messages, "decode_message", counted)
    return lengths


def got(*records: bytes, next_offset: int) -> GetResult:
    return GetResult(
        GetMessageStatus.FOUND, next_offset, 0, 100, [memoryview(b"".join(records))], 50, 5_000
    )


FIVE_ONE_THREE = (record(0, *"abcde"), record(5, "f"), record(6, *"ghi"))
ALL = [*enumerate("abcdefghi")]


def read(result: GetResult) -> list[tuple[int, str]]:
    taken = [decode_message(each)[0] for each in records_of(result.buffers)]
    assert len(taken) == result.count
    assert result.size_bytes == sum(map(len, result.buffers))
    assert offsets_of("B", result.buffers) == [each.queue_offset for each in taken]
    return [(each.queue_offset, each.body.decode()) for each in taken]


def test_from_each_offset_as_many_as_are_wanted() -> None:
    for offset in range(9):
        for count in range(1, 12):
            records = [
                each for each, end in zip(FIVE_ONE_THREE, (5, 6, 9), strict=True) if end > offset
            ]
            result = one_by_one(got(*records, next_offset=9), offset, count, KnownBatches())
            assert read(result) == ALL[offset : offset + count]
            assert result.next_begin_offset == min(offset + count, 9)
            assert (result.status, result.max_offset) == (GetMessageStatus.FOUND, 100)


def test_a_message_looks_as_to_a_client_that_has_taken_it_apart() -> None:
    (taken,) = one_by_one(got(record(4, *"xyz"), next_offset=7), 5, 1, KnownBatches()).buffers
    message, end = decode_message(taken)
    assert end == len(taken)
    assert (message.body, message.flag, message.properties) == (b"y", 5, {"TAGS": "y"})
    assert (message.topic, message.queue_id, message.queue_offset) == ("B", 3, 5)
    assert (message.sys_flag, message.born_timestamp, message.store_timestamp) == (0, 17, 18)
    assert (message.commit_log_offset, message.reconsume_times) == (1_004, 2)


def test_what_is_passed_over_before_the_first_stays_passed_over() -> None:
    """A filter has passed what was at the offset itself."""
    result = one_by_one(got(record(10, *"xyz"), next_offset=20), 4, 32, KnownBatches())
    assert read(result) == [(10, "x"), (11, "y"), (12, "z")]
    assert result.next_begin_offset == 20


def test_nothing_is_nothing() -> None:
    nothing = GetResult(GetMessageStatus.NO_MATCHED_MESSAGE, 7, 0, 9)
    assert one_by_one(nothing, 3, 32, KnownBatches()) == replace(nothing, buffers=[])


@pytest.mark.parametrize("number", ["2", "4", "", "x", "0", "99999999"])
def test_a_batch_that_does_not_know_its_size_is_one_message(number: str) -> None:
    broken = record(4, *"xyz", number=number)
    result = one_by_one(got(broken, next_offset=7), 4, 32, KnownBatches())
    assert [bytes(each) for each in result.buffers] == [broken]
    assert (result.count, result.next_begin_offset) == (1, 7)
    assert [each.queue_offset for each in in_record(memoryview(broken), KnownBatches())] == [4]
    again = one_by_one(got(broken, next_offset=7), 5, 32, KnownBatches())
    assert (again.count, again.next_begin_offset) == (0, 7)
    assert again.status is GetMessageStatus.NO_MATCHED_MESSAGE


def test_a_batch_that_clients_do_not_take_apart_is_one_message() -> None:
    alone = record(4, *"xyz", sys_flag=MessageSysFlag.INNER_BATCH)
    assert one_by_one(got(alone, next_offset=7), 4, 32, KnownBatches()).count == 1
    assert len(in_record(memoryview(alone), KnownBatches())) == 1


def test_bodies_cut_short_at_each_byte() -> None:
    whole = decode_message(record(0, *"xyz"))[0]
    assert whole.sys_flag == BATCH
    for size in range(len(whole.body)):
        whole_but = replace(whole, body=whole.body[:size])
        cut = encode_message(whole_but)
        assert one_by_one(got(cut, next_offset=3), 0, 32, KnownBatches()).count == 1
        assert len(in_record(memoryview(cut), KnownBatches())) == 1


def test_properties_that_are_no_text_go_as_they_are() -> None:
    """Read as text they would be longer than properties may be."""
    properties = b"a\x01" + b"\xff" * 32_000
    entry = bytes(16) + (1).to_bytes(4, "big") + b"x"
    entry += len(properties).to_bytes(2, "big") + properties
    batch = MessageExt("B", 2 * entry, properties={"INNER_NUM": "2"}, sys_flag=BATCH)
    result = one_by_one(got(encode_message(batch), next_offset=2), 0, 32, KnownBatches())
    assert result.count == 2
    assert all(bytes(each).endswith(properties) for each in result.buffers)


def test_what_is_in_a_record() -> None:
    found = [in_record(memoryview(each), KnownBatches()) for each in FIVE_ONE_THREE]
    assert [(each.queue_offset, each.body.decode()) for one in found for each in one] == ALL
    assert {each.sys_flag for one in found for each in one} == {0}
    with pytest.raises(MessageDecodeError):
        in_record(memoryview(FIVE_ONE_THREE[1])[:-1], KnownBatches())


def long_record(offset: int, count: int, *, is_sound: bool = True) -> bytes:
    """A batch of the numbers from 0 on."""
    entries = encode_batch([Message("B", b"%05d" % each) for each in range(count)])
    properties = {"INNER_NUM": str(count if is_sound else count + 1)}
    return encode_message(
        MessageExt("B", entries, 0, properties, None, 3, offset, BATCH, commit_log_offset=offset)
    )


def taken_at_last(result: GetResult, offset: int, most: int, batches: KnownBatches) -> GetResult:
    """Asks until a long batch is looked through."""
    for _ in range(1_000):
        try:
            return one_by_one(result, offset, most, batches)
        except NotYet:
            pass
    raise AssertionError("it is never looked through")


def test_a_long_batch_is_looked_through_in_steps_and_once() -> None:
    count = 5 * AT_ONCE
    result, batches = got(long_record(7, count), next_offset=7 + count), KnownBatches()

    def ask() -> None:
        with pytest.raises(NotYet):
            one_by_one(result, 7, 32, batches)

    lines = [lines_of(ask) for _ in range(4)]
    assert max(lines) < 9 * AT_ONCE
    assert read(taken_at_last(result, 7, 32, batches)) == [(7 + n, f"{n:05d}") for n in range(32)]
    end = 7 + count - 3
    most = lines_of(lambda: one_by_one(result, end, 32, batches))
    assert most < 16 * STRIDE
    assert [each for each, _ in read(one_by_one(result, end, 32, batches))] == [
        end,
        end + 1,
        end + 2,
    ]
    record = records_of(result.buffers)[0]
    assert lines_of(lambda: in_record(record, batches, end)) < 16 * STRIDE
    assert [each.body for each in in_record(record, batches, end)] == [b"%05d" % (count - 3)]
    assert in_record(record, batches, 7 + count) == []


def test_a_long_batch_that_does_not_know_its_size_is_one_message() -> None:
    broken = long_record(0, AT_ONCE + 1, is_sound=False)
    batches = KnownBatches()
    result = got(broken, next_offset=AT_ONCE + 2)
    assert [*map(bytes, taken_at_last(result, 0, 32, batches).buffers)] == [broken]
    assert lines_of(lambda: one_by_one(result, 0, 32, batches)) < 9 * STRIDE


def test_many_long_batches_at_the_same_time_all_come_to_an_end() -> None:
    results = [got(long_record(at, AT_ONCE + 1), next_offset=at + AT_ONCE + 1) for at in range(9)]
    batches, left = KnownBatches(), [*range(9)]
    one_by_one(got(record(0, *"ab"), next_offset=2), 0, 1, batches)
    for _ in range(200):
        for at in [*left]:
            try:
                result = one_by_one(results[at], at, 2, batches)
            except NotYet:
                continue
            assert [each for each, _ in read(result)] == [at, at + 1]
            left.remove(at)
    assert not left
    assert len(batches._begun) <= 4


def test_further_long_batches_wait_for_those_that_are_looked_through() -> None:
    """Those who asked for the first ones never ask again; nobody does more than a step."""
    count = 3 * AT_ONCE
    results = [got(long_record(at, count), next_offset=at + count) for at in range(MOST_BEGUN + 1)]
    batches = KnownBatches()

    def ask(at: int) -> None:
        with pytest.raises(NotYet):
            one_by_one(results[at], at, 2, batches)

    for at in range(MOST_BEGUN):
        ask(at)
    assert max(lines_of(lambda: ask(MOST_BEGUN)) for _ in range(2)) < 9 * AT_ONCE
    assert len(batches._begun) == MOST_BEGUN - 1  # the first one is known
    assert read(one_by_one(results[0], 0, 1, batches)) == [(0, "00000")]
    found = taken_at_last(results[-1], MOST_BEGUN, 1, batches)
    assert read(found) == [(MOST_BEGUN, "00000")]
    assert not batches._queued


def test_when_too_many_long_batches_wait_one_more_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(messages, "STRIDE", 2)
    monkeypatch.setattr(messages, "AT_ONCE", 2)
    count = 4 * MOST_QUEUED
    first = MOST_BEGUN + MOST_QUEUED
    results = [got(long_record(at, count), next_offset=at + count) for at in range(first + 1)]
    batches = KnownBatches()
    for at in range(first):
        with pytest.raises(NotYet):
            one_by_one(results[at], at, 2, batches)
    assert (len(batches._begun), len(batches._queued)) == (MOST_BEGUN, MOST_QUEUED)
    with pytest.raises(ResponseError) as refused:
        one_by_one(results[first], first, 2, batches)
    assert refused.value.code == ResponseCode.SYSTEM_BUSY
    assert "pop again later" in (refused.value.remark or "")
    short = got(record(0, *"ab"), next_offset=2)
    assert read(one_by_one(short, 0, 2, batches)) == [(0, "a"), (1, "b")]
    # Nobody but one asks any more, so the others lose their places before long.
    for _ in range(5 * MOST_QUEUED):
        with contextlib.suppress(NotYet):
            one_by_one(results[first - 1], first - 1, 2, batches)
    assert read(taken_at_last(results[first], first, 1, batches)) == [(first, "00000")]


@pytest.mark.parametrize("kind", CompressionType)
def test_a_compressed_batch_is_decompressed_once(kind: CompressionType, decoded: list[int]) -> None:
    count = 3_000
    results = []
    for at in (0, count):
        plain = decode_message(long_record(at, count))[0]
        plain.body = compress(plain.body, kind)
        plain.sys_flag |= MessageSysFlag.COMPRESSED | kind.flag
        results.append(got(encode_message(plain), next_offset=at + count))
    batches, found = KnownBatches(), []
    for at in range(0, count, 32):
        for number, result in enumerate(results):
            found += read(one_by_one(result, number * count + at, 32, batches))
    assert sorted(found) == [(at, f"{at % count:05d}") for at in range(2 * count)]
    assert len(decoded) == 2


def test_no_more_bodies_are_kept_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MOST_KEPT_BYTES", 1_000)
    batches = KnownBatches()
    for at in range(50):
        for again in (at, max(at - 1, 0)):
            one_by_one(got(long_record(again, 10), next_offset=again + 10), again, 1, batches)
            kept = sum(len(each.body) for each in batches._kept.values())
            assert kept == batches._kept_bytes <= 1_000
    assert len(batches._kept) == 1_000 // len(next(iter(batches._kept.values())).body)
    one_by_one(got(long_record(99, 100), next_offset=199), 99, 1, batches)
    assert len(batches._kept) == 1  # a single one may be longer


def test_a_compressed_batch_that_becomes_too_long_is_one_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = decode_message(long_record(0, 100))[0]
    monkeypatch.setattr(messages, "MOST_PLAIN_BYTES", len(plain.body) - 1)
    plain.body = compress(plain.body, CompressionType.ZLIB)
    plain.sys_flag |= MessageSysFlag.COMPRESSED
    whole = encode_message(plain)
    result = one_by_one(got(whole, next_offset=100), 0, 32, KnownBatches())
    assert [*map(bytes, result.buffers)] == [whole]


def test_no_more_batches_are_kept_in_mind_than_the_limit() -> None:
    batches = KnownBatches()
    for at in range(MOST_KNOWN + 9):
        one_by_one(got(record(at, *"ab"), next_offset=at + 2), at, 1, batches)
    assert len(batches._known) == len(batches._kept) == MOST_KNOWN


def test_a_short_batch_that_was_popped_lately_is_decoded_once(decoded: list[int]) -> None:
    batches = KnownBatches()
    result = got(record(5, *"abc"), next_offset=8)
    found = [read(one_by_one(result, at, 1, batches)) for at in (5, 6, 7)]
    assert found == [[(5, "a")], [(6, "b")], [(7, "c")]]
    assert len(decoded) == 1
