# SPDX-License-Identifier: Apache-2.0
"""Questions about several brokers or many queues, asked in threads: each waits for a disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_THREADS: Final = 8


def in_threads(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Returns what the function gives for each item, in their order; raises what it raises."""
    if len(items) < 2:
        return [function(each) for each in items]
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(function, items))
