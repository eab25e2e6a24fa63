# SPDX-License-Identifier: Apache-2.0
"""Questions about several brokers or many queues, asked in threads, as each waits for an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_THREADS: Final = 8
_FAR_THREADS: Final = 32
"""So many requests over a network wait at once, for each of the brokers that are asked together."""


def in_threads(function: Callable[[T], R], items: Sequence[T], threads: int = _THREADS) -> list[R]:
    """Returns what the function gives for each item, in their order; raises what it raises."""
    if threads < 2 or len(items) < 2:
        return [function(each) for each in items]
    with ThreadPoolExecutor(min(threads, len(items))) as pool:
        return list(pool.map(function, items))


def asked(function: Callable[[T], R], items: Sequence[T], *, is_remote: bool) -> list[R]:
    """Does what in_threads does where each answer comes over a network.

    Of local files the answers come one after the other: a thread would cost more than it spares.
    """
    return in_threads(function, items, _FAR_THREADS if is_remote else 1)
