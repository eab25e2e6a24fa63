# SPDX-License-Identifier: Apache-2.0
"""The encoder without a store: messages and ends of queues go in; records, units and entries come
out, byte for byte as the original writes them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
from construct import ConstructError
from hypothesis import strategies as st

from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH, PutMessage, PutStatus
from txrocketmq.broker.store.log.encode import IPV4_LAYOUT, Batch, Usable, encode, fits
from txrocketmq.broker.store.queues.consume_queues import encode_topic
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import body_crc
from txrocketmq.remoting.message.record import (
    BLANK,
    MAGIC_BLANK,
    RECORD,
    build_record,
)
from txrocketmq.remoting.message.tags import tags_code

NOW_MS = 1_700_000_000_000
HOST = bytes([10, 0, 0, 7]) + (50_000).to_bytes(4, "big")
OWN_HOST = bytes([127, 0, 0, 1]) + (10_911).to_bytes(4, "big")
FILE_BYTES = 1_000
MOST_BYTES = 600
HALF = MessageSysFlag.TRANSACTION_PREPARED_TYPE
BLANK_MAGIC = MAGIC_BLANK.to_bytes(4, "big", signed=True)
ROLLED_BACK = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


class End:
    """The end of a queue, and nothing else of a queue."""

    def __init__(self, topic: str, next_offset: int = 0) -> None:
        self.magic, self.record_topic = encode_topic(topic)
        self.next_offset = next_offset
        self.pending: list[int] = []


def no_other(batch: Batch[End], message: PutMessage) -> Usable[End] | PutStatus:
    raise AssertionError(f"{message} is not usual")


def packed(host: Any) -> bytes:
    return bytes(host.ip) + int(host.port).to_bytes(4, "big")


def records_in(log: bytes) -> list[tuple[int, Any]]:
    """The records in a file of the log, with their positions."""
    found, at = [], 0
    while at < len(log):
        size = int.from_bytes(log[at : at + 4], "big")
        try:
            record = RECORD.parse(log[at : at + size])
        except ConstructError:
            assert log[at + 4 : at + 8] in (bytes(4), BLANK_MAGIC)
            break
        found.append((at, record))
        at += size
    return found


def test_the_records_of_the_originals_are_made_again(
    golden_store: Callable[[str], Path], golden_version: str
) -> None:
    store = golden_store(golden_version) / "clean"
    count = 0
    for path in sorted((store / "commitlog").iterdir()):
        log, begin = path.read_bytes(), int(path.name)
        for at, record in records_in(log):
            topic = record.topic.decode()
            end = End(topic, record.queue_offset)
            message = PutMessage(
                topic, record.queue_id, record.body, record.properties, tags_code("x"),
                record.born_timestamp, packed(record.born_host), packed(record.store_host), None,
                "key", None, record.flag, record.sys_flag, record.reconsume_times,
                record.prepared_transaction_offset,
            )  # fmt: skip
            batch: Batch[End] = Batch(record.store_timestamp)
            room = begin + at, begin + len(log), len(log)
            encode(batch, [message], {topic: {record.queue_id: end}}, room, 1 << 20, no_other)
            size = record.total_size
            assert batch.pieces == [(log[at : at + size], begin + at + size)]
            assert batch.places == [(begin + at, size, record.queue_offset)]
            assert batch.entries == [(topic, None, "key", None, begin + at, batch.stored_ms)]
            assert end.pending == [begin + at, size, tags_code("x")]
            folder = store / "consumequeue" / topic / str(record.queue_id)
            file_bytes = next(iter(folder.iterdir())).stat().st_size
            unit_at = record.queue_offset * 20
            units = (folder / f"{unit_at - unit_at % file_bytes:020}").read_bytes()
            assert struct.unpack_from(">qi", units, unit_at % file_bytes) == (begin + at, size)
            count += 1
    assert count > 300


MESSAGES = st.lists(
    st.builds(
        PutMessage,
        topic=st.sampled_from(["T", "\u00e9", "x" * 130, "unknown"]),
        queue_id=st.integers(0, 2),
        body=st.sampled_from([b"", b"body", bytes(200), bytes(601)]),
        properties=st.sampled_from([b"", b"K\x01v\x02", bytes(300)]),
        tags_code=st.integers(-(2**63), 2**63 - 1),
        born_timestamp_ms=st.integers(0, 2**63 - 1) | st.just(2**63),
        born_host=st.sampled_from([HOST, HOST, HOST, bytes(20)]),
        store_host=st.just(OWN_HOST),
        uniq_key=st.none() | st.text(max_size=5),
        keys=st.none() | st.just("a b"),
        tags=st.none() | st.just("tag"),
        flag=st.integers(-(2**31), 2**31 - 1),
        sys_flag=st.sampled_from([0, 0, 1, HALF, ROLLED_BACK, MULTI_DISPATCH]),
        reconsume_times=st.integers(0, 20),
        prepared_transaction_offset=st.integers(0, 2**40),
    ),
    max_size=12,
)


def is_unusual(message: PutMessage) -> bool:
    return (
        message.topic == "unknown"
        or message.queue_id == 2
        or len(message.body) + len(message.properties) > MOST_BYTES
        or message.born_host != HOST
        or bool(message.sys_flag & MULTI_DISPATCH)
    )


class Reference:
    """Makes records from the declaration of their format, one after the other, and slowly."""

    def __init__(self, begin: int, ends: dict[str, dict[int, End]]) -> None:
        self.files = {begin - begin % FILE_BYTES: b""}
        self.offset = begin
        self.next = {(t, q): end.next_offset for t, its in ends.items() for q, end in its.items()}
        self.units: dict[tuple[str, int], list[int]] = {place: [] for place in self.next}
        self.entries: list[Any] = []
        self.hidden: list[tuple[str, int]] = []
        self.places: list[tuple[int, int, int]] = []

    def roll(self, size: int) -> bool:
        """Ends the file if so many bytes, and a blank behind them, do not fit into it."""
        file = max(self.files)
        if self.offset + size + BLANK.sizeof() <= file + FILE_BYTES:
            return False
        self.files[file] += struct.pack(">i", file + FILE_BYTES - self.offset) + BLANK_MAGIC
        self.offset = file + FILE_BYTES
        self.files[self.offset] = b""
        return True

    def put(self, message: PutMessage, properties: bytes) -> None:
        place = message.topic, message.queue_id
        magic, _ = encode_topic(message.topic)
        in_queue = not message.sys_flag & HALF
        fields: dict[str, Any] = {
            "magic": magic,
            "body_crc": body_crc(message.body), "queue_id": message.queue_id, "flag": message.flag,
            "queue_offset": self.next[place] if in_queue else 0, "sys_flag": message.sys_flag,
            "born_timestamp": message.born_timestamp_ms,
            "born_host": {"ip": HOST[:4], "port": 50_000}, "store_timestamp": NOW_MS,
            "store_host": {"ip": OWN_HOST[:4], "port": 10_911},
            "reconsume_times": message.reconsume_times,
            "prepared_transaction_offset": message.prepared_transaction_offset,
            "body": message.body, "topic": message.topic.encode(), "properties": properties,
        }  # fmt: skip
        record = build_record({**fields, "physical_offset": self.offset})
        if self.roll(len(record)):
            record = build_record({**fields, "physical_offset": self.offset})
        self.files[max(self.files)] += record
        self.places.append((self.offset, len(record), fields["queue_offset"]))
        if in_queue:
            self.units[place] += [self.offset, len(record), message.tags_code]
            self.next[place] += 1
        else:
            self.hidden.append((message.topic, len(record)))
        if message.sys_flag & ROLLED_BACK != ROLLED_BACK:
            entry = message.topic, message.uniq_key, message.keys, message.tags
            self.entries.append((*entry, self.offset, NOW_MS))
        self.offset += len(record)


@hypothesis.given(
    messages=MESSAGES,
    file=st.sampled_from([0, 3 * FILE_BYTES]),
    at=st.integers(0, FILE_BYTES - BLANK.sizeof()),
    first=st.integers(0, 99),
)
def test_any_run_is_encoded_as_it_is_declared(
    messages: list[PutMessage], file: int, at: int, first: int
) -> None:
    begin = file + at
    ends = {t: {q: End(t, first + q) for q in (0, 1)} for t in ("T", "\u00e9", "x" * 130)}
    reference = Reference(begin, ends)
    asked = []

    def unusual(batch: Batch[End], message: PutMessage) -> Usable[End] | PutStatus:
        """Takes what only has the mark of light queues, and adds something to its properties."""
        asked.append(message)
        plain = message._replace(sys_flag=message.sys_flag & ~MULTI_DISPATCH)
        if is_unusual(plain):
            return PutStatus.PROPERTIES_SIZE_EXCEEDED
        end = ends[message.topic][message.queue_id]
        return Usable(end, IPV4_LAYOUT, plain.sys_flag, message.properties + b"more")

    refused: dict[int, PutStatus] = {}
    for index, message in enumerate(messages):
        plain = message._replace(sys_flag=message.sys_flag & ~MULTI_DISPATCH)
        if is_unusual(plain):
            refused[index] = PutStatus.PROPERTIES_SIZE_EXCEEDED
        elif message.born_timestamp_ms == 2**63:
            refused[index] = PutStatus.MESSAGE_ILLEGAL
            topic = encode_topic(message.topic)[1]
            more_bytes = 4 * bool(message.sys_flag & MULTI_DISPATCH) + 2
            texts_bytes = len(message.body) + len(topic) + len(message.properties)
            reference.roll(IPV4_LAYOUT.size + texts_bytes + more_bytes)
        else:
            more = b"more" if message.sys_flag & MULTI_DISPATCH else b""
            reference.put(plain, message.properties + more)
            continue
        reference.places.append((-1, 0, -1))
    batch: Batch[End] = Batch(NOW_MS)
    room = begin, file + FILE_BYTES, FILE_BYTES
    encode(batch, [tuple(each) for each in messages], ends, room, MOST_BYTES, unusual)  # type: ignore[misc]
    assert asked == [each for each in messages if is_unusual(each)]
    assert batch.refused == refused
    assert batch.places == reference.places
    assert [data for data, _ in batch.pieces] == [data for data in reference.files.values() if data]
    assert batch.end_offset == reference.offset
    assert (batch.entries, list(batch.hidden)) == (reference.entries, reference.hidden)
    pending = {(t, q): end.pending for t, its in ends.items() for q, end in its.items()}
    assert pending == reference.units
    touched = [end for its in ends.values() for end in its.values() if end.pending]
    assert sorted(map(id, batch.queues)) == sorted(map(id, touched))
    assert [each.status for each in batch.results] == [
        refused.get(index, PutStatus.PUT_OK) for index in range(len(messages))
    ]


def test_what_is_wrong_with_a_message_is_known_before_anything_is_done_for_it() -> None:
    message = PutMessage("T", 0, b"", b"", 0, 1, HOST, OWN_HOST, None, None, None)
    assert fits(message, IPV4_LAYOUT, 0)
    assert not fits(message._replace(queue_id=1 << 31), IPV4_LAYOUT, 0)
    assert not fits(message, IPV4_LAYOUT, MULTI_DISPATCH)


def test_a_batch_may_refuse_everything() -> None:
    batch: Batch[End] = Batch.refusing(2, PutStatus.SERVICE_NOT_AVAILABLE, NOW_MS)
    assert [each.status for each in batch.results] == [PutStatus.SERVICE_NOT_AVAILABLE] * 2
    assert (batch.places, batch.end_offset) == ([(-1, 0, -1)] * 2, 0)


def test_more_may_have_been_refused_before() -> None:
    batch: Batch[End] = Batch(1)
    batch.places += [(10, 5, 0), (-1, 0, -1), (15, 5, 1)]
    batch.refused[1] = PutStatus.MESSAGE_ILLEGAL
    lacking = PutStatus.IN_SYNC_REPLICAS_NOT_ENOUGH
    batch.refuse_besides({0: lacking, 3: lacking})
    none = (-1, 0, -1)
    assert batch.places == [none, (10, 5, 0), none, none, (15, 5, 1)]
    assert batch.refused == {0: lacking, 2: PutStatus.MESSAGE_ILLEGAL, 3: lacking}
