# SPDX-License-Identifier: Apache-2.0
"""Columns made of the numbers in a record's head."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from txrocketmq.remoting.message.compression import CompressionType
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.spark.arrow import arrays
from txrocketmq.spark.arrow.gather import POOL

TIMESTAMP: Final = pa.timestamp("us", "UTC")
_US_PER_MS: Final = 1000
LAST_MS: Final = (1 << 63) // _US_PER_MS - 1
"""The last time that fits into 64 bits of microseconds; the first one is as far before 1970."""
_TRANSACTION_STATES: Final = ("none", "prepared", "commit", "rollback")
_TRANSACTION_SHIFT: Final = 2
_COMPRESSION_SHIFT: Final = 8
_COMPRESSION_KINDS: Final = (
    "zlib",  # as clients before 4.9.3 wrote it
    *(CompressionType(number).name.lower() for number in (1, 2, 3)),
    *("unknown",) * 4,
)


def timestamps(times_ms: NDArray[np.int64]) -> pa.Array:
    """Times in ms since the epoch; null beyond what microseconds in 64 bits can say."""
    if len(times_ms) and (times_ms.max() > LAST_MS or times_ms.min() < -LAST_MS):
        is_valid = (times_ms <= LAST_MS) & (times_ms >= -LAST_MS)
        times_ms = np.where(is_valid, times_ms, 0)
        return arrays.of_numbers(times_ms * _US_PER_MS, kind=TIMESTAMP, valid=is_valid)
    return arrays.of_numbers(times_ms * _US_PER_MS, kind=TIMESTAMP)


def constant(text: str | None, count: int) -> pa.StringArray:
    """The same text in each row."""
    return _repeated(text, 1 << count.bit_length()).slice(0, count)


@lru_cache(maxsize=16)
def _repeated(text: str | None, count: int) -> pa.StringArray:
    if text is None:
        return pa.nulls(count, pa.string())
    data = text.encode()
    return texts_of_size(data * count, len(data), count)


def texts_of_size(data: bytes | NDArray[Any], size: int, count: int) -> pa.StringArray:
    """Texts of `size` bytes each, which lie end to end."""
    offsets = (np.arange(count + 1) * size).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def chosen_texts(texts: Sequence[str], codes: NDArray[Any]) -> pa.StringArray:
    """Returns the text of each row, whose code is the index of that text."""
    if len(texts) == 1:
        return constant(texts[0], len(codes))
    return pc.take(arrays.of_texts(texts), arrays.of_numbers(codes), memory_pool=POOL)


def transaction_states(sys_flags: NDArray[np.int32]) -> pa.StringArray:
    """Returns the state of the transaction that each `sys_flag` says."""
    kinds = sys_flags & MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
    return chosen_texts(_TRANSACTION_STATES, kinds >> _TRANSACTION_SHIFT)


def compressions(sys_flags: NDArray[np.int32]) -> pa.StringArray:
    """Returns the compression of the body that each `sys_flag` says."""
    kinds = ((sys_flags & MessageSysFlag.COMPRESSION_MASK) >> _COMPRESSION_SHIFT) + 1
    is_compressed = sys_flags & MessageSysFlag.COMPRESSED
    return chosen_texts(("none", *_COMPRESSION_KINDS), kinds * is_compressed)
