# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.spark.columns.numbers import (
    chosen_texts,
    compressions,
    constant,
    texts_of_size,
    timestamps,
    transaction_states,
)


@pytest.mark.parametrize("text", ["broker-a", "", "größe"])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_the_same_text_in_each_row(text: str, count: int) -> None:
    array = constant(text, count)
    array.validate(full=True)
    assert array.to_pylist() == [text] * count
    assert constant(None, count).to_pylist() == [None] * count


def test_texts_of_one_size() -> None:
    assert texts_of_size(b"abcdef", 2, 3).to_pylist() == ["ab", "cd", "ef"]


def test_texts_by_code() -> None:
    assert chosen_texts(["a", "b"], np.array([1, 0, 1])).to_pylist() == ["b", "a", "b"]
    assert chosen_texts(["a"], np.array([0, 0])).to_pylist() == ["a", "a"]
    assert chosen_texts(["a"], np.array([], np.int64)).to_pylist() == []


def test_timestamps_are_microseconds_in_utc() -> None:
    limit = ((1 << 63) - 1) // 1000
    array = timestamps(np.array([0, 1, -5, limit - 1, limit + 1, -(1 << 63)]))
    assert array.type == pa.timestamp("us", "UTC")
    assert array.cast(pa.int64()).to_pylist() == [
        0, 1000, -5000, (limit - 1) * 1000, None, None,
    ]  # fmt: skip
    assert timestamps(np.array([], np.int64)).to_pylist() == []


def test_flags_in_words() -> None:
    flags = np.array([0, 4, 8, 12, 12 | 1], np.int32)
    states = transaction_states(flags).to_pylist()
    assert states == ["none", "prepared", "commit", "rollback", "rollback"]
    compressed = MessageSysFlag.COMPRESSED
    flags = np.array(
        [
            0,
            MessageSysFlag.COMPRESSION_LZ4,
            compressed,
            compressed | MessageSysFlag.COMPRESSION_LZ4,
            compressed | MessageSysFlag.COMPRESSION_ZSTD,
            compressed | MessageSysFlag.COMPRESSION_ZLIB,
            compressed | MessageSysFlag.COMPRESSION_MASK,
        ],
        np.int32,
    )
    kinds = ["none", "none", "zlib", "lz4", "zstd", "zlib", "unknown"]
    assert compressions(flags).to_pylist() == kinds
