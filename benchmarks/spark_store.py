# SPDX-License-Identifier: Apache-2.0
"""Writes a whole store directory with many messages, for benchmarks of readers.

    .venv/bin/python -m benchmarks.spark_store DIR [--gib 4] [--kind uniform|mixed]

`uniform` is what a Java producer's load test leaves: one topic with 16 queues, bodies of 1 KiB.
`mixed` is a business: 20 topics whose shares fall as 1/rank, with 8 queues each, JSON bodies of
lognormal size (500 bytes on average), tags, keys, 2 to 6 properties, 2 % of the bodies compressed
by zlib, 1 % of the hosts IPv6, one topic so long that its records are V2.

The commit log, the consume queues, config/*.json and the checkpoint are as a broker leaves them
after an orderly stop, with the default file sizes; there is no index. It is fast because a block of
records is made once and laid end to end, with fresh offsets, times, keys and unique keys each time.
"""

import argparse
import itertools
import json
import math
import random
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy
from numpy.typing import NDArray

from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.remoting.message.record import BLANK, MAGIC_BLANK, RECORD_HEAD
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.primitives.packing import dtype, fixed

KINDS: Final = ("uniform", "mixed")
FILE_BYTES: Final = 1 << 30
QUEUE_FILE_BYTES: Final = 6_000_000
BLOCK_BYTES: Final = 24 << 20
UNIFORM_QUEUES: Final = 16
UNIFORM_BODY_BYTES: Final = 1024
MIXED_QUEUES: Final = 8
MIXED_TOPICS: Final = (*(f"orders-{number}" for number in range(19)), "V2-" + "long-" * 30)
TAGS: Final = ("created", "paid", "shipped", "delivered", "returned")
FIRST_MS: Final = 1_790_000_000_000
PER_MS: Final = 20
"""The number of messages stored in each millisecond."""

_HEX: Final = numpy.frombuffer(b"0123456789ABCDEF", "u1")
_COUNTER: Final = "00000000"
_BLANK: Final = fixed(BLANK)
_UNIT: Final = dtype(formats.CONSUME_QUEUE_UNIT)
_HEAD: Final = dtype(RECORD_HEAD)
_STORED_AFTER: Final = {False: 8, True: 20}
"""The size of the born host, which precedes the store timestamp, by whether it is IPv6."""


class Block(NamedTuple):
    """Records end to end, and the positions of what differs each time they are written."""

    data: NDArray[numpy.uint8]
    starts: NDArray[numpy.int64]
    sizes: NDArray[numpy.int64]
    stored_at: NDArray[numpy.int64]
    counters_at: NDArray[numpy.int64]
    """Positions of eight hexadecimal digits in unique keys and keys, of records `counters_of`."""
    counters_of: NDArray[numpy.int64]
    queues: NDArray[numpy.int64]
    """The number of each record's queue among all queues of all topics."""
    ranks: NDArray[numpy.int64]
    """For each record, the number of earlier records of the block in the same queue."""
    tags_codes: NDArray[numpy.int64]


def uniform_messages() -> Iterator[tuple[MessageExt, int]]:
    """Yields the messages of a load test, each with the number of its queue."""
    properties = {
        "UNIQ_KEY": f"7F00000100A118B4AAC21A2B{_COUNTER}",
        "WAIT": "true",
        "CLUSTER": "DefaultCluster",
        "TAGS": "bench",
    }
    body = b"message " * (UNIFORM_BODY_BYTES // 8)
    for queue_id in itertools.cycle(range(UNIFORM_QUEUES)):
        yield _message("bench", body, properties, queue_id=queue_id), queue_id


def mixed_messages() -> Iterator[tuple[MessageExt, int]]:
    """Yields the messages of a business, each with the number of its queue; always the same."""
    draw = random.Random(1)
    while True:
        yield _mixed_message(draw)


def _mixed_message(draw: random.Random) -> tuple[MessageExt, int]:
    shares = [1 / rank for rank in range(1, len(MIXED_TOPICS) + 1)]
    (topic_number,) = draw.choices(range(len(MIXED_TOPICS)), shares)
    queue_id = draw.randrange(MIXED_QUEUES)
    properties = {
        "UNIQ_KEY": f"0A00{draw.randrange(1 << 16):04X}00A118B4AAC21A2B{_COUNTER}",
        "TAGS": draw.choice(TAGS),
    }
    if draw.random() < 0.8:
        properties["KEYS"] = f"order-{_COUNTER}"
    more = {
        "WAIT": "true",
        "CLUSTER": "DefaultCluster",
        "traceId": f"{draw.getrandbits(64):016x}",
        "region": draw.choice(("eu-central-1", "us-east-1", "ap-south-1")),
    }
    for name in list(more)[: draw.randrange(4)]:
        properties[name] = more[name]
    body = _json_body(draw, max(60, int(draw.lognormvariate(math.log(420), 0.6))))
    message = _message(MIXED_TOPICS[topic_number], body, properties, queue_id=queue_id)
    if draw.random() < 0.02:
        message.body = zlib.compress(body)
        message.sys_flag = MessageSysFlag.COMPRESSED | MessageSysFlag.COMPRESSION_ZLIB
    if draw.random() < 0.01:
        message.born_host = Host("2001:db8::7", 40000 + draw.randrange(16))
    else:
        message.born_host = Host(f"10.0.{draw.randrange(4)}.{draw.randrange(16)}", 40123)
    return message, topic_number * MIXED_QUEUES + queue_id


def _message(topic: str, body: bytes, properties: dict[str, str], *, queue_id: int) -> MessageExt:
    message = MessageExt(topic, body, 0, properties, queue_id=queue_id, born_timestamp=FIRST_MS)
    message.born_host = Host("127.0.0.1", 40123)
    message.store_host = Host("127.0.0.1", 10911)
    return message


def _json_body(draw: random.Random, size_bytes: int) -> bytes:
    order = {"order": draw.getrandbits(40), "customer": f"c{draw.randrange(100_000)}", "items": []}
    items: list[object] = []
    used = 60
    while used < size_bytes:
        items.append({"sku": f"{draw.getrandbits(48):x}", "price": round(draw.random() * 90, 2)})
        used += 40
    return json.dumps({**order, "items": items}).encode()


def make_block(kind: str) -> Block:
    """Makes records of about BLOCK_BYTES, always the same."""
    messages = uniform_messages() if kind == "uniform" else mixed_messages()
    parts: list[bytes] = []
    rows: list[tuple[int, int, int, int, int, int]] = []
    counters: list[tuple[int, int]] = []
    seen: dict[int, int] = {}
    at = 0
    while at < BLOCK_BYTES:
        message, queue = next(messages)
        data = encode_message(message)
        rank = seen.get(queue, 0)
        seen[queue] = rank + 1
        stored_at = at + _HEAD.itemsize + _STORED_AFTER[message.born_host.is_ipv6]
        code = tags_code(message.tags or "")
        rows.append((at, len(data), stored_at, queue, rank, code))
        found = data.rfind(_COUNTER.encode())
        while found > 0:
            counters.append((at + found, len(parts)))
            found = data.rfind(_COUNTER.encode(), len(data) - len(_properties(message)), found)
        parts.append(data)
        at += len(data)
    columns = numpy.array(rows, "i8").T.copy()
    counters_at, counters_of = numpy.array(counters, "i8").T.copy()
    starts, sizes, stored, queues, ranks, codes = columns
    data_array = numpy.frombuffer(bytearray(b"".join(parts)), "u1")
    return Block(data_array, starts, sizes, stored, counters_at, counters_of, queues, ranks, codes)


def _properties(message: MessageExt) -> str:
    return "".join(f"{name}{value}  " for name, value in message.properties.items())


def big_endian(values: NDArray[numpy.int64]) -> NDArray[numpy.uint8]:
    """Returns the eight bytes of each value."""
    return values.astype(">i8").view("u1").reshape(-1, 8)


def hexadecimal(values: NDArray[numpy.int64]) -> NDArray[numpy.uint8]:
    """Returns the eight hexadecimal digits of each value."""
    digits: NDArray[numpy.uint8] = _HEX[(values[:, None] >> numpy.arange(28, -4, -4)) & 15]
    return digits


class StoreDirectory:
    """Writes a store directory."""

    def __init__(self, root: Path, kind: str) -> None:
        self.root = root
        self.topics = ("bench",) if kind == "uniform" else MIXED_TOPICS
        self.queues_per_topic = UNIFORM_QUEUES if kind == "uniform" else MIXED_QUEUES
        self.block = make_block(kind)
        self.messages = 0
        queue_count = len(self.topics) * self.queues_per_topic
        self._queue_offsets = numpy.zeros(queue_count, "i8")
        self._per_block = numpy.bincount(self.block.queues, minlength=queue_count)
        self._order = numpy.argsort(self.block.queues, kind="stable")
        self._units: list[list[bytes]] = [[] for _ in range(queue_count)]

    def write(self, files: int) -> None:
        """Writes so many log files, each filled with whole records, and everything else."""
        (self.root / "commitlog").mkdir(parents=True)
        at_record = len(self.block.starts)
        placed = self.block.data
        for number in range(files):
            base = number * FILE_BYTES
            with (self.root / "commitlog" / f"{base:020d}").open("wb") as file:
                room = FILE_BYTES
                while True:
                    if at_record == len(self.block.starts):
                        at_record = 0
                        placed = self._fresh()
                    end = self._fitting(at_record, room)
                    if end == at_record:
                        break
                    first = int(self.block.starts[at_record])
                    last = int(self.block.starts[end - 1] + self.block.sizes[end - 1])
                    self._place(placed, at_record, end, base + FILE_BYTES - room)
                    file.write(placed[first:last].data)
                    room -= last - first
                    at_record = end
                file.write(_BLANK.struct.pack(room, MAGIC_BLANK))
                file.truncate(FILE_BYTES)
        self._write_queues(self.block.queues[at_record:])
        self._write_config()

    def _fitting(self, at_record: int, room: int) -> int:
        ends = self.block.starts + self.block.sizes - self.block.starts[at_record]
        return max(at_record, int(numpy.searchsorted(ends, room - _BLANK.size, "right")))

    def _fresh(self) -> NDArray[numpy.uint8]:
        """Returns the block with new values of all that does not depend on the place in the log."""
        block = self.block
        numbers = self.messages + numpy.arange(len(block.starts))
        eight = numpy.arange(8)
        queue_offsets = self._queue_offsets[block.queues] + block.ranks
        queue_at = block.starts + _HEAD.fields["queue_offset"][1]  # type: ignore[index]
        born_at = block.starts + _HEAD.fields["born_timestamp"][1]  # type: ignore[index]
        now_ms = FIRST_MS + numbers // PER_MS
        block.data[queue_at[:, None] + eight] = big_endian(queue_offsets)
        block.data[born_at[:, None] + eight] = big_endian(now_ms - numbers % 7)
        block.data[block.stored_at[:, None] + eight] = big_endian(now_ms)
        digits = hexadecimal(numbers[block.counters_of])
        block.data[block.counters_at[:, None] + eight] = digits
        self._queue_offsets += self._per_block
        self.messages += len(numbers)
        return block.data

    def _place(self, data: NDArray[numpy.uint8], start: int, end: int, log_offset: int) -> None:
        """Sets the physical offsets of these records, and adds their consume queue units."""
        block = self.block
        offsets = log_offset + block.starts[start:end] - block.starts[start]
        places = block.starts[start:end] + _HEAD.fields["physical_offset"][1]  # type: ignore[index]
        data[places[:, None] + numpy.arange(8)] = big_endian(offsets)
        units = numpy.zeros(end - start, _UNIT)
        units["physical_offset"] = offsets
        units["size"] = block.sizes[start:end]
        units["tags_code"] = block.tags_codes[start:end]
        order = numpy.argsort(block.queues[start:end], kind="stable")
        counts = numpy.bincount(block.queues[start:end], minlength=len(self._units))
        for queue, part in enumerate(numpy.split(units[order], numpy.cumsum(counts)[:-1])):
            self._units[queue].append(part.tobytes())

    def _write_queues(self, not_stored: NDArray[numpy.int64]) -> None:
        self.messages -= len(not_stored)
        self._queue_offsets -= numpy.bincount(not_stored, minlength=len(self._queue_offsets))
        for number, parts in enumerate(self._units):
            topic, queue_id = divmod(number, self.queues_per_topic)
            directory = self.root / "consumequeue" / self.topics[topic] / str(queue_id)
            directory.mkdir(parents=True)
            data = b"".join(parts)
            assert len(data) == self._queue_offsets[number] * _UNIT.itemsize
            for start in range(0, max(1, len(data)), QUEUE_FILE_BYTES):
                path = directory / f"{start:020d}"
                path.write_bytes(data[start : start + QUEUE_FILE_BYTES])
                with path.open("r+b") as file:
                    file.truncate(QUEUE_FILE_BYTES)

    def _write_config(self) -> None:
        config = self.root / "config"
        config.mkdir()
        version = {"counter": 1, "timestamp": FIRST_MS}
        topics = {
            topic: {
                "order": False,
                "perm": 6,
                "readQueueNums": self.queues_per_topic,
                "topicFilterType": "SINGLE_TAG",
                "topicName": topic,
                "topicSysFlag": 0,
                "writeQueueNums": self.queues_per_topic,
            }
            for topic in self.topics
        }
        consumed = {
            f"{topic}@readers": {
                str(queue): int(self._queue_offsets[number * self.queues_per_topic + queue]) // 2
                for queue in range(self.queues_per_topic)
            }
            for number, topic in enumerate(self.topics)
        }
        group = {"groupName": "readers", "consumeEnable": True, "retryQueueNums": 1}
        tables = {
            "topics": {"dataVersion": version, "topicConfigTable": topics},
            "subscriptionGroup": {
                "dataVersion": version,
                "subscriptionGroupTable": {"readers": group},
            },
            "consumerOffset": {"offsetTable": consumed},
            "delayOffset": {"offsetTable": {}},
            "consumerFilter": {},
        }
        for name, table in tables.items():
            (config / f"{name}.json").write_text(json.dumps(table, indent="\t"))
        last_ms = FIRST_MS + self.messages // PER_MS
        checkpoint = fixed(formats.CHECKPOINT_V4).struct.pack(last_ms, last_ms, 0)
        data = checkpoint.ljust(formats.CHECKPOINT_FILE_BYTES, b"\0")
        (self.root / "checkpoint").write_bytes(data)


def write_store(root: Path, kind: str, files: int) -> int:
    """Writes a store with so many commit-log files; returns the number of messages."""
    store = StoreDirectory(root, kind)
    store.write(files)
    return store.messages


def main() -> None:
    """Writes a store into a new directory."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--gib", type=int, default=4)
    parser.add_argument("--kind", choices=KINDS, default="mixed")
    arguments = parser.parse_args()
    started = time.monotonic()
    messages = write_store(arguments.directory, arguments.kind, arguments.gib)
    print(
        f"{arguments.directory}: {messages:,} messages in {arguments.gib} GiB of commit log, "
        f"{time.monotonic() - started:.0f} s"
    )


if __name__ == "__main__":
    main()
