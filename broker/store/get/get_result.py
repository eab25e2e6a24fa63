# SPDX-License-Identifier: Apache-2.0
"""The questions and results of gets, and what all kinds of gets have in common.

Java: GetMessageResult, GetMessageStatus, DefaultMessageStore.isTheBatchFull.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from txrocketmq.broker.store.disk.files import Files
from txrocketmq.broker.store.disk.in_memory import unchecked
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.damage import Damage, DamagedRecords
from txrocketmq.broker.store.get.cold_parts import ColdParts
from txrocketmq.broker.store.get.slices import Slices
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.consume_queue_ext import ExtUnit
from txrocketmq.remoting.formats import MAX_BODY_BYTES
from txrocketmq.remoting.message.message import record_properties

_MEMORY_BYTES: Final[int] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
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
        """Whether the consumer wants a message with these properties."""


def work_of(terms: int, text: str) -> int:
    """How much work a filter has with the properties of a message; 1 is some half microsecond."""
    chars = len(text)
    return _A_MESSAGE + chars // _CHARS + terms * (_A_TERM + chars // _CHARS_OF_TERM)


ExtFilter = Callable[[ExtUnit], bool]
"""Returns whether the consumer may want the message of this unit of an ext file."""


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
    """Never returned by the store, only by the broker when an administrator has moved the
    offset."""


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
    looks at the units in ext files, if there are any, then `by_properties` at the messages. With
    `only_in_memory` the get does not wait for the disk.
    """

    offset: int
    max_count: int
    max_bytes: int
    tag_codes: frozenset[int] | None
    by_properties: PropertiesFilter | None
    only_in_memory: bool = False
    filter_ext: ExtFilter | None = None


class StoreReader(ColdParts):
    """What gets need of a store."""

    def __init__(
        self, files: Files, log: CommitLog, config: StoreConfig, damaged: DamagedRecords
    ) -> None:
        super().__init__(files, log)
        self._damaged = damaged
        self.config = config
        self.physical_bytes = _MEMORY_BYTES
        """The size of the machine's memory, in bytes."""

    @property
    def recent_bytes(self) -> int:
        """Messages are taken to be in memory when less than this was stored after them, in
        bytes.
        """
        return self.physical_bytes * self.config.access_message_in_memory_max_ratio // 100

    def note_damage(
        self, physical_offset: int, size_bytes: int, queue: str = "", queue_offset: int = -1
    ) -> None:
        """Notes that no record, or none of this size, is at this log offset."""
        file = self.log.files.find(physical_offset)
        path, position = (
            ("", -1) if file is None else (file.path, physical_offset - file.from_offset)
        )
        self._damaged.found(
            Damage(physical_offset, size_bytes, path, position, queue, queue_offset)
        )

    def elsewhere(
        self,
        status: GetMessageStatus,
        next_offset: int,
        request: Request,
        queue: ConsumeQueue | None,
    ) -> GetResult:
        """A result without messages; the consumer is to continue at `next_offset`.

        On a slave it keeps its offset, unless offsetCheckInSlave is set.
        """
        if self.config.is_slave and not self.config.offset_check_in_slave:
            next_offset = request.offset
        min_offset = queue.min_offset if queue is not None else 0
        max_offset = queue.max_offset if queue is not None else 0
        return GetResult(status, next_offset, min_offset, max_offset)


R = TypeVar("R", bound=StoreReader)
Q = TypeVar("Q", bound=ConsumeQueue)


class Search(Generic[R, Q]):
    """A get under way: what it has found so far, and where it continues."""

    def __init__(self, reader: R, queue: Q, request: Request) -> None:
        self._reader, self._queue, self._request = reader, queue, request
        self._check = reader.check_part if request.only_in_memory else unchecked
        self._status = GetMessageStatus.NO_MATCHED_MESSAGE
        self._next = request.offset
        self._slices = Slices(reader.log)
        self._count = 0
        self._size_bytes = 0
        self._last_physical_offset = 0
        self._work_left = MOST_WORK

    def _is_wanted(self, by_properties: PropertiesFilter) -> bool:
        """Whether the message that was found last is wanted, judging by its properties."""
        text = record_properties(self._slices.found())
        wants = by_properties.wants(text)
        self._work_left -= work_of(by_properties.terms, text)
        return wants

    def _result(self) -> GetResult:
        """The result of the get at its end."""
        behind = self._reader.log.max_offset - self._last_physical_offset
        return GetResult(
            GetMessageStatus.FOUND if self._count else self._status,
            self._next,
            self._queue.min_offset,
            self._queue.max_offset,
            self._slices.end(),
            self._count,
            self._size_bytes,
            behind > self._reader.recent_bytes,
        )


def max_bytes(request: Request) -> int:
    """The most bytes that the request may get."""
    return min(max(request.max_bytes, _LEAST_PULL_BYTES), _MAX_PULL_BYTES)


def limits_of(config: StoreConfig, request: Request) -> tuple[tuple[int, int], tuple[int, int]]:
    """The most messages and bytes, first for recent messages, then for older ones."""
    most = max_bytes(request)
    return (
        (
            min(request.max_count, config.max_transfer_count_on_message_in_memory),
            min(most, config.max_transfer_bytes_on_message_in_memory),
        ),
        (
            min(request.max_count, config.max_transfer_count_on_message_in_disk),
            min(most, config.max_transfer_bytes_on_message_in_disk),
        ),
    )
