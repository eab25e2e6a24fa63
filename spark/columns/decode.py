# SPDX-License-Identifier: Apache-2.0
"""Turns records into Arrow batches of the table `messages`, with only the requested columns.

A record that no message can be made from is left out and reported as a BadRecord; decoding raises
no errors and drops nothing in silence. Texts that are not UTF-8 are read with U+FFFD, as in Java,
and do not make a record bad.

Java: MessageDecoder.decode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.compression import DEFAULT_MAX_BYTES
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.primitives.checksum import crc32
from txrocketmq.spark.arrow import arrays, schema
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.arrow.gather import utf8
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.arrow.walk import Positions
from txrocketmq.spark.columns import numbers
from txrocketmq.spark.columns.hosts import BORN, STORE, hosts, message_ids
from txrocketmq.spark.columns.messages import (
    INNER_BATCH,
    Messages,
    Undecodable,
    plain_messages,
    unpacked_messages,
)
from txrocketmq.spark.columns.properties import Properties

MAX_BAD_BYTES: Final = 64 << 10
"""How much of a damaged record a BadRecord keeps."""
MAX_UNPACKED_BYTES: Final = 32 << 20
"""How much the bodies decompressed for one batch take at most, unless one body alone is larger."""
_CRC_MASK: Final = 0x7FFFFFFF


class BadRecord(NamedTuple):
    """A damaged record; `length` is the number of bytes that it is known or believed to take.

    The reasons are magic, length, chain, crc and decompress.
    """

    physical_offset: int
    length: int
    reason: str
    detail: str
    data: bytes
    """The record, at most MAX_BAD_BYTES of it."""


class Decoded(NamedTuple):
    """A batch of messages, and the records that no message could be made from."""

    batch: pa.RecordBatch
    bad: list[BadRecord]


class Decoder:
    """Makes batches with the named columns of schema.MESSAGES, in the order of the names.

    `properties_format` is a key of schema.PROPERTIES_TYPES. Without `decompress` bodies stay as
    they are stored, but inner batches are still taken apart. With `check_crc` a record is left out
    when its body does not match its CRC. `max_body_bytes` limits the size of one decompressed body.
    Raises OptionError for unknown names.
    """

    def __init__(
        self,
        columns: Sequence[str],
        *,
        broker_name: str,
        cluster: str | None = None,
        decompress: bool = True,
        properties_format: str = "map",
        check_crc: bool = False,
        max_body_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        if properties_format not in schema.PROPERTIES_TYPES:
            raise OptionError.of("propertiesFormat", properties_format, schema.PROPERTIES_TYPES)
        self._properties_format = properties_format
        self._decompress = decompress
        self._check_crc = check_crc
        self._max_body_bytes = max_body_bytes
        chosen = schema.columns_named(columns, schema.MESSAGES)
        _keep_freed_memory()
        self._names = [column.name for column in chosen]
        self._constants = {"brokerName": broker_name, "cluster": cluster}
        properties_type = schema.PROPERTIES_TYPES[properties_format]
        self.schema = schema.arrow_schema(
            [
                column._replace(type=properties_type) if column.name == "properties" else column
                for column in chosen
            ]
        )

    def decode(self, records: Records) -> Iterator[Decoded]:
        """The messages of these records, nearly always in one batch.

        More batches come when compressed bodies grow large, so that memory is bounded.
        """
        inconsistent = records.inconsistent()
        bad: list[BadRecord] = []
        if inconsistent.any():
            bad = [_inconsistent(records, row) for row in np.flatnonzero(inconsistent).tolist()]
            records = records.where(~inconsistent)
        if self._check_crc:
            wrong = ~_crc_is_right(records)
            if wrong.any():
                rows = np.flatnonzero(wrong).tolist()
                bad += [_with_wrong_crc(records, row) for row in rows]
                records = records.where(~wrong)
        packed = self._packed_rows(records)
        if not len(packed):
            yield Decoded(self._batch(plain_messages(records)), bad)
            return
        parts = unpacked_messages(records, packed, self._max_body_bytes, MAX_UNPACKED_BYTES)
        for messages, left_out in parts:
            bad += [_undecodable(records, each) for each in left_out]
            yield Decoded(self._batch(messages), bad)
            bad = []

    def _packed_rows(self, records: Records) -> Positions:
        """Returns the rows of records whose body has to be decompressed or taken apart."""
        flags = records.sys_flag
        is_batch = (flags & INNER_BATCH) == INNER_BATCH
        is_compressed = (flags & MessageSysFlag.COMPRESSED) != 0
        if not self._decompress or "body" not in self._names:
            return np.flatnonzero(is_batch)
        return np.flatnonzero(is_batch | is_compressed)

    def _batch(self, messages: Messages) -> pa.RecordBatch:
        columns = _Columns(messages, self._constants, self._properties_format)
        # Bodies come last, since they leave little else in the processor's caches.
        arrays = {
            name: _MAKERS[name](columns)
            for name in sorted(self._names, key=lambda name: name == "body")
        }
        return pa.RecordBatch.from_arrays(
            [arrays[name] for name in self._names], schema=self.schema
        )


class _Columns:
    """The sources of the columns of one batch."""

    def __init__(
        self, messages: Messages, constants: Mapping[str, str | None], properties_format: str
    ) -> None:
        self.messages = messages
        self.records = messages.records
        self.constants = constants
        self.properties_format = properties_format
        self.properties = Properties(messages.properties)

    def constant(self, name: str) -> pa.StringArray:
        return numbers.constant(self.constants[name], len(self.messages))

    def all_properties(self) -> pa.Array:
        if self.properties_format == "json":
            return self.properties.json()
        if self.properties_format == "raw":
            return self.properties.raw()
        return self.properties.map()


def _keep_freed_memory() -> None:
    """Makes this process keep freed memory, so that the next batch uses it again.

    glibc returns large pieces to the system, and each batch would then fault in new pages, which
    costs up to a sixth of the CPU time. glibc raises its threshold to the largest piece ever freed
    (mallopt(3), M_MMAP_THRESHOLD), so this allocates and frees one, untouched, of nearly 32 MiB,
    the highest value that glibc accepts. With other C libraries it does nothing.
    """
    np.empty(30 << 20, np.uint8)


_MAKERS: Final[Mapping[str, Callable[[_Columns], pa.Array]]] = {
    "topic": lambda columns: utf8(columns.records.topic_texts()),
    "queueId": lambda columns: arrays.of_numbers(columns.records.queue_id),
    "queueOffset": lambda columns: arrays.of_numbers(columns.messages.queue_offset),
    "body": lambda columns: columns.messages.body.gather(),
    "properties": _Columns.all_properties,
    "brokerName": lambda columns: columns.constant("brokerName"),
    "flag": lambda columns: arrays.of_numbers(columns.messages.flag),
    "bornTimestamp": lambda columns: numbers.timestamps(columns.records.born_timestamp),
    "storeTimestamp": lambda columns: numbers.timestamps(columns.records.store_timestamp),
    "tags": lambda columns: columns.properties.value(names.TAGS),
    "keys": lambda columns: columns.properties.value(names.KEYS),
    "uniqKey": lambda columns: columns.properties.value(names.UNIQ_KEY),
    "bornHost": lambda columns: hosts(columns.records, BORN),
    "storeHost": lambda columns: hosts(columns.records, STORE),
    "physicalOffset": lambda columns: arrays.of_numbers(columns.records.physical_offset),
    "storeSize": lambda columns: arrays.of_numbers(columns.messages.store_size),
    "bodySize": lambda columns: arrays.of_numbers(columns.messages.body_size.astype(np.int32)),
    "bodyCRC": lambda columns: arrays.of_numbers(columns.records.body_crc),
    "sysFlag": lambda columns: arrays.of_numbers(columns.records.sys_flag),
    "reconsumeTimes": lambda columns: arrays.of_numbers(columns.records.reconsume_times),
    "preparedTransactionOffset": lambda columns: arrays.of_numbers(
        columns.records.prepared_transaction_offset
    ),
    "msgId": lambda columns: message_ids(columns.records),
    "crcOk": lambda columns: arrays.of_numbers(_crc_is_right(columns.records)),
    "transactionState": lambda columns: numbers.transaction_states(columns.records.sys_flag),
    "compression": lambda columns: numbers.compressions(columns.records.sys_flag),
    "cluster": lambda columns: columns.constant("cluster"),
}


def _crc_is_right(records: Records) -> NDArray[np.bool_]:
    """Returns whether the body of each record, as stored, matches the record's CRC."""
    is_right: NDArray[np.bool_] = _body_crcs(records) == records.body_crc
    return is_right


def _body_crcs(records: Records) -> NDArray[np.int32]:
    buffer = records.buffer.data
    starts = records.body_at
    ends = starts + records.body_length
    crcs = [
        crc32(buffer[at:end]) & _CRC_MASK
        for at, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    return np.array(crcs, np.int32)


def _inconsistent(records: Records, row: int) -> BadRecord:
    one = records.slice(row, row + 1)
    magic = int(one.magic[0])
    if magic not in (record.MAGIC_V1, record.MAGIC_V2):
        return _bad(records, row, "magic", f"unknown magic {magic & 0xFFFFFFFF:#010x}")
    detail = (
        f"body, topic and properties make {int(one.parts_size[0])} bytes of a record that says it "
        f"has {int(one.total_size[0])}"
    )
    return _bad(records, row, "length", detail)


def _with_wrong_crc(records: Records, row: int) -> BadRecord:
    one = records.slice(row, row + 1)
    detail = (
        f"the body has CRC {int(_body_crcs(one)[0]):#010x}, not the {int(one.body_crc[0]):#010x} "
        "of the record"
    )
    return _bad(records, row, "crc", detail)


def _undecodable(records: Records, undecodable: Undecodable) -> BadRecord:
    return _bad(records, undecodable.row, undecodable.reason, undecodable.detail)


def _bad(records: Records, row: int, reason: str, detail: str) -> BadRecord:
    one = records.slice(row, row + 1)
    start = int(one.starts[0])
    length = max(0, int(one.total_size[0]))
    data = records.buffer[start : start + min(length, MAX_BAD_BYTES)].tobytes()
    return BadRecord(int(one.physical_offset[0]), length, reason, detail, data)
