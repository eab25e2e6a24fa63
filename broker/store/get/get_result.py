# SPDX-License-Identifier: Apache-2.0
"""The questions and results of gets, and what all kinds of gets have in common.

Java: GetMessageResult, GetMessageStatus, DefaultMessageStore.isTheBatchFull.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import accumulate
from typing import Final, NamedTuple, Protocol

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.consume_queue_ext import ExtUnit
from txrocketmq.remoting.formats import MAX_BODY_BYTES

_MAX_PULL_BYTES: Final = MAX_BODY_BYTES
"""The original allows 128 MiB, which none of its clients reads."""
_LEAST_PULL_BYTES: Final = 100

MOST_WORK: Final = 6_400
"""How much work for filters one get may be, as `work_of` counts it: some 3 ms. It then ends with
what it has found, and its consumer goes on behind the messages that were looked at. A usual filter
looks at as many messages as the original's get, which is bounded by maxFilterMessageSize only."""
_A_MESSAGE: Final = 4
_CHARS: Final = 64
_A_TERM: Final = 2
_CHARS_OF_TERM: Final = 1024


class PropertiesFilter(Protocol):
    """Looks at the properties of messages."""

    @property
    def terms(self) -> int:
        """How many comparisons a message needs at most."""

    def wants(self, text: str, /) -> bool:
        """Whether the consumer selects a message with these properties."""


def work_of(terms: int, text: str) -> int:
    """How much work a filter has with the properties of a message; 1 is some half microsecond."""
    chars = len(text)
    return _A_MESSAGE + chars // _CHARS + terms * (_A_TERM + chars // _CHARS_OF_TERM)


ExtFilter = Callable[[ExtUnit], bool]
"""Returns whether the consumer may select the message of this unit of an ext file."""


class GetMessageStatus(Enum):
    """The result of a get; the names are the remarks of pull responses."""

    FOUND = auto()
    NO_MATCHED_MESSAGE = auto()
    """None of the examined messages passes the filter: continue behind them."""
    MESSAGE_WAS_REMOVING = auto()
    """The log has lost the examined messages, or they are damaged: continue behind them. Clients of
    all versions do so at once, and change nothing else."""
    OFFSET_FOUND_NULL = auto()
    """The queue lacks a unit that should be there: continue in its next file."""
    OFFSET_OVERFLOW_BADLY = auto()
    OFFSET_OVERFLOW_ONE = auto()
    """There is no message yet."""
    OFFSET_TOO_SMALL = auto()
    NO_MATCHED_LOGIC_QUEUE = auto()
    NO_MESSAGE_IN_QUEUE = auto()
    OFFSET_RESET = auto()
    """Returned by the broker only, when an administrator has moved the offset."""


class QueryResult(NamedTuple):
    """Messages that may have the requested key (hashes are compared), oldest first.

    The last two fields are of the newest item of the index.
    """

    buffers: Sequence[memoryview]
    last_update_timestamp_ms: int
    last_update_offset: int


@dataclass(slots=True)
class GetResult:
    """Messages of a queue, or why there are none; offsets are the queue's.

    `buffers` are adjacent records, `count` messages of `size_bytes` in all. `suggest_slave` is True
    if so much was stored since then that the messages are likely to be on disk only.
    """

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    buffers: Sequence[memoryview] = ()
    count: int = 0
    size_bytes: int = 0
    suggest_slave: bool = False


class Request(NamedTuple):
    """A request: at most `max_count` messages in `max_bytes` from `offset` on, but at least one.

    `tag_codes` are the hashes of the wanted tags, None for all; of those that pass, `filter_ext`
    looks at the units in ext files, if there are any, then `by_properties` at the messages.
    """

    offset: int
    max_count: int
    max_bytes: int
    tag_codes: frozenset[int] | None
    by_properties: PropertiesFilter | None
    filter_ext: ExtFilter | None = None


def elsewhere(
    config: StoreConfig,
    status: GetMessageStatus,
    next_offset: int,
    request: Request,
    queue: ConsumeQueue | None,
) -> GetResult:
    """A result without messages; the consumer is to continue at `next_offset`.

    On a slave it keeps its offset, unless offsetCheckInSlave is set.
    """
    if config.is_slave and not config.offset_check_in_slave:
        next_offset = request.offset
    if queue is None:
        return GetResult(status, next_offset, 0, 0)
    return GetResult(status, next_offset, queue.min_offset, queue.max_offset)


class Limits:
    """The most messages and bytes of a get. Of messages that are not recent there are fewer.

    Messages are recent from the log offset `recent_from` on.
    """

    __slots__ = (
        "_config",
        "_count",
        "_most_bytes",
        "recent_bytes",
        "recent_count",
        "recent_from",
    )

    def __init__(self, config: StoreConfig, request: Request, recent_from: int) -> None:
        # For each get, so without calls.
        count, most_bytes = request.max_count, request.max_bytes
        if most_bytes > _MAX_PULL_BYTES:
            most_bytes = _MAX_PULL_BYTES
        elif most_bytes < _LEAST_PULL_BYTES:
            most_bytes = _LEAST_PULL_BYTES
        self._config, self._count, self._most_bytes = config, count, most_bytes
        self.recent_from = recent_from
        most = config.max_transfer_count_on_message_in_memory
        self.recent_count = count if count < most else most  # noqa: FURB136 - as above
        most = config.max_transfer_bytes_on_message_in_memory
        self.recent_bytes = most_bytes if most_bytes < most else most  # noqa: FURB136 - as above

    @property
    def first_count(self) -> int:
        """How many units are looked at first, if all messages are wanted."""
        count, config = self._count, self._config
        if count > self.recent_count:
            most = config.max_transfer_count_on_message_in_disk
            count = min(count, max(config.max_transfer_count_on_message_in_memory, most))
        return count if count > 0 else 1

    @property
    def older_count(self) -> int:
        """The most messages, when the next one is not recent."""
        return min(self._count, self._config.max_transfer_count_on_message_in_disk)

    @property
    def older_bytes(self) -> int:
        """The most bytes, when the next message is not recent."""
        return min(self._most_bytes, self._config.max_transfer_bytes_on_message_in_disk)

    def fit(self, starts: Sequence[int], sizes: Sequence[int]) -> int:
        """How many of these messages fit, given by their log offsets and sizes: at least one.

        Java: DefaultMessageStore.isTheBatchFull.
        """
        if starts[0] >= self.recent_from:
            if len(sizes) > self.recent_count:
                sizes = sizes[: max(self.recent_count, 1)]
            if sum(sizes) <= self.recent_bytes:
                return len(sizes)
            return max(bisect_right([*accumulate(sizes)], self.recent_bytes), 1)
        total = sizes[0]
        for count in range(1, len(sizes)):
            if self.is_full(count, total, starts[count], sizes[count]):
                return count
            total += sizes[count]
        return len(sizes)

    def is_full(self, count: int, total_bytes: int, start: int, size: int) -> bool:
        """Whether so many messages of so many bytes leave no room for one more."""
        if start >= self.recent_from:
            return count >= self.recent_count or total_bytes + size > self.recent_bytes
        return count >= self.older_count or total_bytes + size > self.older_bytes
