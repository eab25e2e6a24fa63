# SPDX-License-Identifier: Apache-2.0
"""What decode's tests leave: which rows are made of which records."""

from __future__ import annotations

import numpy as np

from tests.spark.logs import Log, log_of
from tests.spark.stores import Draft
from txrocketmq.remoting.message.compression import CompressionType
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.columns.messages import plain_messages, unpacked_messages

INNER: tuple[tuple[bytes, dict[str, str]], ...] = ((b"first", {"a": "b"}), (b"second", {}))


def records_of(log: Log) -> Records:
    return Records(log.buffer, np.array(log.starts, np.int64))


def test_a_message_of_each_record() -> None:
    log = log_of([Draft(body=b"x"), Draft(body=b"yy", flag=3)])
    messages = plain_messages(records_of(log))
    assert len(messages) == 2
    assert messages.body.gather().to_pylist() == [b"x", b"yy"]
    assert messages.body_size.tolist() == [1, 2]
    assert messages.flag.tolist() == [0, 3]
    assert messages.queue_offset.tolist() == [0, 1]


def test_only_the_rows_named_are_unpacked() -> None:
    packed = Draft(body=b"z" * 40, compression=CompressionType.ZLIB)
    log = log_of([packed, Draft(inner=INNER), packed, Draft()])
    ((messages, left_out),) = unpacked_messages(records_of(log), np.array([1, 2]), 1000, 1000)
    assert left_out == []
    stored = [each.body for each in log.parsed]
    assert messages.body.gather().to_pylist() == [
        stored[0], b"first", b"second", b"z" * 40, stored[3],
    ]  # fmt: skip
    assert messages.properties.gather().to_pylist()[1] == b"a\x01b\x02"
    assert messages.body_size.tolist() == [len(stored[0]), 5, 6, len(stored[2]), 4]
    assert messages.queue_offset.tolist() == [0, 1, 2, 2, 3]
    assert messages.records.queue_offset.tolist() == [0, 1, 1, 2, 3]


def test_parts_tell_of_their_own_records() -> None:
    good = Draft(body=b"z" * 40, compression=CompressionType.ZLIB)
    bad = Draft(body=b"not packed", sys_flag=1)
    log = log_of([bad, good, good, bad])
    parts = list(unpacked_messages(records_of(log), np.arange(4), 1000, 50))
    assert [len(messages) for messages, _ in parts] == [1, 1]
    assert [[each.row for each in left_out] for _, left_out in parts] == [[0], [3]]
    assert parts[0][1][0].reason == "decompress"


def test_a_batch_of_nothing_has_no_messages() -> None:
    log = log_of([Draft(body=b"", sys_flag=0xC0)])
    ((messages, left_out),) = unpacked_messages(records_of(log), np.array([0]), 1000, 1000)
    assert (len(messages), left_out) == (0, [])
