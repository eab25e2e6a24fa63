# SPDX-License-Identifier: Apache-2.0
"""Pieces of commit log in memory, from the drafts of `stores`; `parsed` is the oracle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.spark.stores import START_MS, Draft, Stored, StoreWriter, drafts
from txrocketmq.remoting.message.record import RECORD


@dataclass
class Log:
    """Records end to end; `first_offset` is the physical offset of the first byte."""

    data: bytes
    first_offset: int
    stored: list[Stored]

    @property
    def buffer(self) -> NDArray[np.uint8]:
        return buffer_of(self.data)

    @property
    def starts(self) -> list[int]:
        """Positions of the records."""
        return [each.physical_offset - self.first_offset for each in self.stored]

    @property
    def parsed(self) -> list[Any]:
        """The records, parsed by the declaration."""
        return [RECORD.parse(self.data[at:]) for at in self.starts]


def buffer_of(data: bytes) -> NDArray[np.uint8]:
    """Returns the bytes as the array that readers take."""
    return np.frombuffer(data, np.uint8)


def log_of(messages: Iterable[Draft], first_offset: int = 0) -> Log:
    """Returns a log of these messages."""
    stored: list[Stored] = []
    at = first_offset
    for number, draft in enumerate(messages):
        # Uses only the part of the writer that makes bytes, not files.
        made = StoreWriter._build(cast(Any, None), draft, number, START_MS + number, at)
        stored.append(made)
        at += made.size
    return Log(b"".join(each.data for each in stored), first_offset, stored)


@st.composite
def logs(draw: st.DrawFn, *, max_size: int = 12) -> Log:
    """Draws logs with messages of every kind, which begin anywhere."""
    messages = draw(st.lists(drafts(), min_size=1, max_size=max_size))
    return log_of(messages, draw(st.sampled_from((0, 1 << 30, 123_456_789_012))))
