# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus
from txrocketmq.broker.store.log.commit_log import CommitLog, QueueBatch
from txrocketmq.broker.store.log.dispatch import dispatch_units
from txrocketmq.broker.store.queues.consume_queues import ConsumeQueues
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import body_crc
from txrocketmq.remoting.message.record import BLANK, MAGIC_BLANK, MAGIC_V1, MAGIC_V2, RECORD

NOW_MS = 1_700_000_000_000
FILE_BYTES = 8192
HOST_V6 = bytes(15) + b"\1" + (10911).to_bytes(4, "big")
OK, ILLEGAL = PutStatus.PUT_OK, PutStatus.MESSAGE_ILLEGAL


class Rig:
    """A log with its queues, put to in both halves."""

    def __init__(self, files: Any, config: StoreConfig) -> None:
        self.log = CommitLog(files, config)
        self.queues = ConsumeQueues(files, config)

    def put(self, *messages: PutMessage) -> QueueBatch:
        batch = self.log.encode(messages, self.queues, NOW_MS)
        self.log.write(batch)
        dispatch_units(batch)
        return batch


@pytest.fixture
def rig(files: Any, config: Callable[..., StoreConfig]) -> Rig:
    return Rig(files, config(max_message_size=4000))


def test_a_record_has_every_field(rig: Rig, message: Callable[..., PutMessage]) -> None:
    put = message(
        "T", 3, b"body", tags="A", flag=5, sys_flag=1, reconsume_times=2,
        prepared_transaction_offset=77, born_timestamp_ms=11,
    )  # fmt: skip
    rig.put(message("T", 3), put)
    (_, result) = rig.put(put, put).results
    record = rig.log.record_at(result.physical_offset)
    assert record is not None
    assert len(record) == result.size
    parsed = RECORD.parse(bytes(record))
    assert parsed.magic == MAGIC_V1
    assert (parsed.queue_id, parsed.queue_offset) == (3, 3)
    assert parsed.physical_offset == result.physical_offset
    assert (parsed.flag, parsed.sys_flag, parsed.reconsume_times) == (5, 1, 2)
    assert (parsed.born_timestamp, parsed.store_timestamp) == (11, NOW_MS)
    assert parsed.prepared_transaction_offset == 77
    assert (bytes(parsed.born_host.ip), parsed.born_host.port) == (bytes([127, 0, 0, 1]), 10911)
    assert (parsed.topic, parsed.body, parsed.properties) == (b"T", b"body", b"TAGS\x01A\x02")
    assert parsed.body_crc == body_crc(b"body")
    assert rig.log.store_time_ms(result.physical_offset, result.size) == NOW_MS


@pytest.mark.parametrize(
    ("hosts", "flags"),
    [
        ({"born_host": HOST_V6}, MessageSysFlag.BORN_HOST_V6),
        ({"store_host": HOST_V6}, MessageSysFlag.STORE_HOST_V6),
        (
            {"born_host": HOST_V6, "store_host": HOST_V6},
            MessageSysFlag.BORN_HOST_V6 | MessageSysFlag.STORE_HOST_V6,
        ),
        ({"sys_flag": MessageSysFlag.BORN_HOST_V6}, 0),
    ],
)
def test_the_flags_say_what_the_hosts_are(
    rig: Rig, message: Callable[..., PutMessage], hosts: dict[str, Any], flags: int
) -> None:
    (result,) = rig.put(message(**hosts)).results
    record = rig.log.record_at(result.physical_offset)
    assert record is not None
    assert RECORD.parse(bytes(record)).sys_flag == flags
    assert rig.log.store_time_ms(result.physical_offset, result.size) == NOW_MS


def test_long_topics_need_the_second_magic(rig: Rig, message: Callable[..., PutMessage]) -> None:
    short, long = rig.put(message("x" * 127), message("x" * 128)).results
    magics = []
    for result in (short, long):
        record = rig.log.record_at(result.physical_offset)
        assert record is not None
        magics.append(RECORD.parse(bytes(record)).magic)
    assert magics == [MAGIC_V1, MAGIC_V2]


def test_half_and_rolled_back_messages_enter_no_queue(
    rig: Rig, message: Callable[..., PutMessage]
) -> None:
    kinds = (
        MessageSysFlag.TRANSACTION_NOT_TYPE,
        MessageSysFlag.TRANSACTION_PREPARED_TYPE,
        MessageSysFlag.TRANSACTION_COMMIT_TYPE,
        MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
    )
    batch = rig.put(*(message(sys_flag=kind, keys=str(kind)) for kind in kinds))
    assert [result.queue_offset for result in batch.results] == [0, 0, 1, 0]
    queue = rig.queues.find("Topic", 0)
    assert queue is not None
    assert queue.max_offset == 2
    assert [entry[2] for entry in batch.entries] == ["0", "4", "8"], "the last is not indexed"


def blanks(files: Any) -> dict[str, int]:
    """Where the blank of each log file is."""
    found = {}
    blank_magic = (MAGIC_BLANK & 0xFFFFFFFF).to_bytes(4, "big")
    for path, mapped in files.maps.items():
        if "commitlog" in path:
            at = mapped[:].find(blank_magic) - 4
            if at >= 0:
                found[path.rpartition("/")[2]] = at
                assert BLANK.parse(mapped[at:]).room == FILE_BYTES - at
                assert not any(mapped[at + 8 :]), "the rest is zero"
    return found


def test_records_never_cross_files(
    rig: Rig, files: Any, message: Callable[..., PutMessage]
) -> None:
    results = rig.put(*(message(body=bytes(1000)) for _ in range(30))).results
    size = results[0].size
    per_file = (FILE_BYTES - 8) // size
    assert [result.physical_offset for result in results] == [
        each // per_file * FILE_BYTES + each % per_file * size for each in range(30)
    ]
    assert set(blanks(files).values()) == {per_file * size}
    assert rig.log.max_offset == results[-1].physical_offset + size
    assert [result.queue_offset for result in results] == list(range(30))


@pytest.mark.parametrize(("spare", "rolls"), [(8, False), (7, True)])
def test_a_file_keeps_eight_bytes_for_its_blank(
    rig: Rig, files: Any, message: Callable[..., PutMessage], spare: int, rolls: bool
) -> None:
    (first,) = rig.put(message()).results
    body = bytes(2000)
    besides = rig.put(message(body=body)).results[0].size - len(body)
    rig.put(message(body=body), message(body=body))
    room = FILE_BYTES - rig.log.max_offset
    (last,) = rig.put(message(body=bytes(room - besides - spare))).results
    assert (last.physical_offset >= FILE_BYTES) is rolls
    (after,) = rig.put(message()).results
    assert after.physical_offset == FILE_BYTES + (last.size if rolls else 0)
    assert len(blanks(files)) == 1
    assert first.physical_offset == 0


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"body": bytes(4001)}, ILLEGAL),
        ({"properties": bytes(32_768)}, PutStatus.PROPERTIES_SIZE_EXCEEDED),
        ({"body": bytes(4000), "properties": bytes(4200)}, ILLEGAL),
        ({"topic": "a/b"}, ILLEGAL),
        ({"topic": "x" * 256}, ILLEGAL),
        ({"queue_id": -1}, ILLEGAL),
        ({"born_host": b"123"}, ILLEGAL),
        ({"store_host": b""}, ILLEGAL),
        ({"flag": 1 << 31}, ILLEGAL),
        ({"born_timestamp_ms": 1 << 63}, ILLEGAL),
        ({"sys_flag": -(1 << 32)}, ILLEGAL),
    ],
)
def test_what_does_not_fit_is_refused_and_the_rest_is_stored(
    rig: Rig, message: Callable[..., PutMessage], changes: dict[str, Any], status: PutStatus
) -> None:
    good = message()
    batch = rig.put(good, good._replace(**changes), good)
    assert [result.status for result in batch.results] == [OK, status, OK]
    assert batch.refused == {1: status}
    first, _, last = batch.results
    assert last.physical_offset == first.physical_offset + first.size
    assert last.queue_offset == 1


@pytest.mark.parametrize("besides", [0, 1])
def test_a_message_may_fill_a_file_and_no_more(
    rig: Rig, message: Callable[..., PutMessage], besides: int
) -> None:
    (small,) = rig.put(message(body=b"")).results
    room = FILE_BYTES - 8 - small.size + besides
    put = message(body=bytes(4000))._replace(properties=bytes(room - 4000))
    (result,) = rig.put(put).results
    assert result.status is (ILLEGAL if besides else OK)


def test_without_room_nothing_has_happened(
    rig: Rig, files: Any, message: Callable[..., PutMessage]
) -> None:
    rig.put(message("A"), message("B"))
    end = rig.log.max_offset
    files.room_bytes = 0
    batch = [message("A", 0, bytes(3000)), message("B"), message("C")] * 4
    with pytest.raises(OSError, match="No space"):
        rig.log.encode(batch, rig.queues, NOW_MS)
    assert rig.log.max_offset == end
    for queue in rig.queues:
        assert queue.pending == []
        assert queue.next_offset == queue.max_offset
    files.room_bytes = None
    results = rig.put(*batch).results
    assert {result.status for result in results} == {OK}
    assert results[0].physical_offset == end
    assert [result.queue_offset for result in results[::3]] == [1, 2, 3, 4]


def test_records_are_found_only_where_they_start(
    rig: Rig, message: Callable[..., PutMessage]
) -> None:
    (first, second) = rig.put(message(), message()).results
    found = rig.log.record_at(second.physical_offset)
    assert found is not None
    assert rig.log.headed_at(second.physical_offset) == found
    for offset in (-1, 1, second.physical_offset + 1, rig.log.max_offset, 1 << 40):
        assert rig.log.record_at(offset) is None
        assert rig.log.headed_at(offset) is None
    assert rig.log.store_time_ms(1 << 40, 100) == -1
    assert first.physical_offset == 0


def test_whoever_asks_by_the_head_examines_the_lengths(
    rig: Rig, message: Callable[..., PutMessage]
) -> None:
    (put,) = rig.put(message("T", 0, b"body", tags="A")).results
    found = rig.log.record_at(put.physical_offset)
    assert found is not None
    file = rig.log.files.last
    assert file is not None
    file.overwrite(put.physical_offset + 84, b"\0\0\1")  # another length of the body
    assert rig.log.record_at(put.physical_offset) is None
    assert rig.log.headed_at(put.physical_offset) == found
    file.overwrite(put.physical_offset, b"\x7f")  # a size behind the end of the log
    assert rig.log.headed_at(put.physical_offset) is None


def test_the_log_may_have_its_own_directory(
    files: Any, config: Callable[..., StoreConfig], message: Callable[..., PutMessage]
) -> None:
    rig = Rig(files, config(store_path_commit_log="/elsewhere"))
    rig.put(message())
    assert "/elsewhere/" + "0" * 20 in files.maps
