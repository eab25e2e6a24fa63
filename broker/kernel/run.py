# SPDX-License-Identifier: Apache-2.0
"""The reference of a kernel's run: sends and ends that were taken, and what follows from them.

It follows what encode.py, send_answers.py and IndexFile do for messages that come one by one. What
it writes is judged by them: tests/broker/kernel has two brokers get the same bytes.
"""

from __future__ import annotations

from collections import Counter
from mmap import mmap
from typing import Any, Final, NamedTuple

from txrocketmq.broker.kernel.ends import StoredHalf, TakenEnd
from txrocketmq.broker.store.formats import formats
from txrocketmq.broker.store.formats.packed import PackedEnd, PackedUnits, QueueUnits
from txrocketmq.broker.store.log.encode import IPV4_HOST_BYTES, IPV4_LAYOUT, LENGTH_BYTES
from txrocketmq.remoting import formats as wire
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.primitives.checksum import crc32
from txrocketmq.remoting.primitives.packing import fixed

_LENGTH: Final = fixed(record.PROPERTIES_LENGTH).struct
_UNIT: Final = fixed(formats.CONSUME_QUEUE_UNIT).struct
_PREFIX: Final = fixed(wire.FRAME_PREFIX).struct
_INT: Final = fixed(wire.BINARY_VALUE_LENGTH).struct
_TOPIC_LENGTH_BYTES: Final = {
    record.MAGIC_V1: fixed(record.TOPIC_LENGTH_V1).size,
    record.MAGIC_V2: fixed(record.TOPIC_LENGTH_V2).size,
}
_JSON_PIECES: Final = 6


class EndOfQueue(NamedTuple):
    """A queue as records need it: `queue` is the store's, `record_topic` as records end with it."""

    queue: Any
    record_topic: bytes
    magic: int
    queue_id: int

    @property
    def topic(self) -> str:
        """The topic."""
        return self.record_topic[_TOPIC_LENGTH_BYTES[self.magic] :].decode()


class TakenMessage(NamedTuple):
    """One message; `properties` is the text that is stored."""

    body: bytes
    properties: bytes
    uniq_key: str | None
    keys: str | None
    tags: str | None
    flag: int


class TakenSend(NamedTuple):
    """One request, with its messages; `queue` is the index of their queue in the table.

    `half` is the index of where a half message is to go, and `queue_id` the queue of the answer.
    """

    queue: int
    code: int
    is_oneway: bool
    sys_flag: int
    reconsume_times: int
    opaque: int
    born_timestamp_ms: int
    key: bytes | None
    waits: bool
    messages: list[TakenMessage]
    batch_bytes: int
    """How many bytes the body of a batch has."""
    half: int | None
    queue_id: int
    origin: StoredHalf | None = None
    """The half message of a message that is committed."""


class ReferenceRun:
    """The run."""

    def __init__(self) -> None:
        self.at = 0
        self.messages = 0
        self.size_bytes = 0
        self.most_bytes = 0
        self.half_bytes = 0
        """How many bytes the half messages have that it ends."""
        self._waits: bool | None = None
        self._sends: list[TakenSend] = []
        self._ends: dict[int, tuple[int, int]] = {}
        """By queue: how many messages and bytes it gets."""
        self._ended: list[TakenEnd] = []
        self._places: list[list[tuple[int, int]]] = []
        """For each request: the log offsets and queue offsets of its messages, once written."""

    @property
    def waits(self) -> bool:
        """Whether senders wait for the confirmation."""
        return self._waits is True

    @property
    def commands(self) -> int:
        """How many requests there are."""
        return len(self._sends)

    @property
    def answered(self) -> int:
        """How many of them want an answer."""
        return sum(not send.is_oneway for send in self._sends)

    def takes(self, send: TakenSend, most_messages: int) -> bool:
        """Whether another request can be added."""
        if not self._sends:
            return True
        is_like = self._waits is None or send.waits == self._waits
        return is_like and self.messages + len(send.messages) <= most_messages

    def add(self, send: TakenSend, end: EndOfQueue, at: int) -> None:
        """Adds a request for this queue, which ends at a place in the bytes."""
        self.at, self._waits = at, send.waits
        self._add(send, end)

    def end(self, send: TakenSend, end: EndOfQueue, ended: TakenEnd, half_bytes: int) -> None:
        """Adds the end of a transaction, whose half message has so many bytes."""
        self._ended.append(ended)
        self.half_bytes += half_bytes
        self._add(send, end)

    def _add(self, send: TakenSend, end: EndOfQueue) -> None:
        self._sends.append(send)
        if not send.messages:
            return
        sizes = [_size(message, end) for message in send.messages]
        count, size_bytes = self._ends.get(send.queue, (0, 0))
        self._ends[send.queue] = count + len(sizes), size_bytes + sum(sizes)
        self.messages += len(sizes)
        self.size_bytes += sum(sizes)
        most = max(len(each.body) + len(each.properties) for each in send.messages)
        self.most_bytes = max(self.most_bytes, send.batch_bytes, most)

    def queues(self, table: Any) -> list[PackedEnd]:
        """The queues that the messages are for, in the order in which they come first."""
        return [(table.queues[at].queue, *counts) for at, counts in self._ends.items()]

    def write(
        self, table: Any, mapped: mmap, at: int, offset: int, nexts: list[int], now_ms: int,
        born: bytes, host: bytes, rows: Any,
    ) -> list[QueueUnits]:  # fmt: skip
        """Writes the records; see SendRun. Raises ValueError, and writes nothing, without room."""
        if len(born) != IPV4_HOST_BYTES or len(host) != IPV4_HOST_BYTES or self._places:
            raise ValueError("addresses have eight bytes, and a run is written once")
        if at + self.size_bytes > len(mapped) or len(nexts) != len(self._ends):
            raise ValueError("the records do not fit into the file, or queues are missing")
        next_of = dict(zip(self._ends, nexts, strict=True))
        units: dict[int, list[bytes]] = {queue: [] for queue in self._ends}
        entries: list[Any] = []
        for send in self._sends:
            end, places = table.queues[send.queue], []
            for message in send.messages:
                size = _size(message, end)
                origin = _origin(send, born, now_ms, host)
                queue_offset = next_of[send.queue]
                head = IPV4_LAYOUT.pack(
                    size, end.magic, crc32(message.body) & 0x7FFFFFFF, end.queue_id, message.flag,
                    queue_offset, offset, send.sys_flag, send.born_timestamp_ms, *origin,
                    len(message.body),
                )  # fmt: skip
                mapped[at : at + size] = b"".join((
                    head, message.body, end.record_topic, _LENGTH.pack(len(message.properties)),
                    message.properties,
                ))  # fmt: skip
                units[send.queue].append(_UNIT.pack(offset, size, tags_code(message.tags)))
                entries.append(
                    (end.topic, message.uniq_key, message.keys, message.tags, offset, now_ms)
                )
                places.append((offset, queue_offset))
                next_of[send.queue] += 1
                at, offset = at + size, offset + size
            self._places.append(places)
        if rows is not None:
            rows.add(entries)
        return [
            (table.queues[queue].queue, first, packed_units(b"".join(units[queue])))
            for queue, first in zip(self._ends, nexts, strict=True)
        ]

    def answers(self, table: Any, pieces: list[bytes], batch: list[bytes], host: bytes) -> bytes:
        """The answers; for JSON of six pieces, for binary headers of seven."""
        out: list[bytes] = []
        for send, places in zip(self._sends, self._places, strict=True):
            if send.is_oneway:
                continue
            ids = b",".join([b"%b%016X" % (host, place[0]) for place in places])
            values = [ids, b"%d" % send.queue_id, b"%d" % places[0][1]]
            if send.key is not None:
                values.append(send.key)
            if len(pieces) == _JSON_PIECES:
                form = batch if send.key is None else pieces
                values.append(b"%d" % send.opaque)
                out.append(_json(form, values))
            else:
                out.append(_binary(pieces, values, send.opaque))
        return b"".join(out)

    def kinds(self) -> list[tuple[int, bool, int]]:
        """Code, whether it is one-way, and number, for each kind of these requests."""
        counted = Counter((send.code, send.is_oneway) for send in self._sends)
        return [(*kind, count) for kind, count in counted.items()]

    def ends(self) -> list[TakenEnd]:
        """The half messages that it ends."""
        return self._ended

    def halves(self) -> list[tuple[int, int]]:
        """How many half messages there are for each place where some are to go."""
        return list(Counter(each.half for each in self._sends if each.half is not None).items())


def _origin(send: TakenSend, born: bytes, now_ms: int, host: bytes) -> tuple[Any, ...]:
    half, attempts = send.origin, send.reconsume_times
    if half is None:
        return born, now_ms, host, attempts, 0
    return half.born_host, now_ms, half.store_host, attempts, half.commit_log_offset


def packed_units(data: bytes) -> PackedUnits:
    """Returns units with the log offsets between which their messages lie."""
    last, size_bytes, _ = _UNIT.unpack_from(data, len(data) - _UNIT.size)
    return _UNIT.unpack_from(data)[0], data, last + size_bytes


def _size(message: TakenMessage, end: EndOfQueue) -> int:
    body_bytes, properties_bytes = len(message.body), len(message.properties)
    fixed_bytes = IPV4_LAYOUT.size + len(end.record_topic) + LENGTH_BYTES
    return fixed_bytes + body_bytes + properties_bytes


def _json(form: list[bytes], values: list[bytes]) -> bytes:
    header = form[0] + b"".join(
        [part for pair in zip(values, form[1:], strict=True) for part in pair]
    )
    return _PREFIX.pack(len(header) + 4, len(header)) + header


def _binary(pieces: list[bytes], values: list[bytes], opaque: int) -> bytes:
    before, between, fields, *names = pieces
    fields += b"".join(
        [name + _INT.pack(len(value)) + value for name, value in zip(names, values, strict=False)]
    )
    header = b"".join((before, _INT.pack(opaque), between, _INT.pack(len(fields)), fields))
    return _PREFIX.pack(len(header) + 4, SerializeType.ROCKETMQ << 24 | len(header)) + header
