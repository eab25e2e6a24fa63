# SPDX-License-Identifier: Apache-2.0
"""Byte strings that stay where they are: a buffer, a position and a length for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from txrocketmq.spark.arrow.gather import Bytes, gather
from txrocketmq.spark.arrow.walk import Positions


class Spans(NamedTuple):
    """One byte string per row; `which` are the numbers of their buffers, by default the first."""

    buffers: tuple[Bytes, ...]
    at: Positions
    length: Positions
    which: NDArray[np.int64] | None = None

    def gather(self) -> pa.BinaryArray:
        """Copies the byte strings into an Arrow array."""
        return gather(self.buffers, self.at, self.length, which=self.which)

    def bytes_of(self, row: int) -> bytes:
        """The byte string of one row."""
        buffer = self.buffers[0 if self.which is None else self.which[row]]
        at = int(self.at[row])
        return buffer[at : at + int(self.length[row])].tobytes()

    def replaced(self, rows: Positions, texts: Sequence[bytes]) -> Spans:
        """Returns these spans with other byte strings in some rows."""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        # One byte goes before the texts, because `Properties` looks at the byte before each.
        more = np.frombuffer(b"\0" + b"\0".join(texts), np.uint8)
        at, length = self.at.copy(), self.length.copy()
        which = np.zeros(len(at), np.int64) if self.which is None else self.which.copy()
        at[rows] = np.cumsum(lengths + 1) - lengths
        length[rows] = lengths
        which[rows] = len(self.buffers)
        return Spans((*self.buffers, more), at, length, which)
