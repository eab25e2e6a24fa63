# SPDX-License-Identifier: Apache-2.0
"""The reference of a kernel's ends of transactions: their half messages, and what becomes of these.

A half message is found by its offset in the log and cut into its parts. Whoever ends it has to name
its place in its queue, and to be of its producer group. Whether it has ended before is not decided
here: a run says which half messages it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from txrocketmq.broker.kernel.header_holes import EndHoles
from txrocketmq.broker.store.log.encode import IPV4_LAYOUT, IPV6_FLAGS, LENGTH_BYTES
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.properties import (
    MAX_PROPERTIES_BYTES,
    PGROUP,
    REAL_QID,
    REAL_TOPIC,
    UNIQ_KEY,
)
from txrocketmq.remoting.message.record import MAGIC_V1, TOPIC_LENGTH_V1

MOST_HALF_BYTES: Final = 256 * 1024
"""How many bytes of half messages are read for one run: those of a small frame may be many."""
MOST_TARGETS: Final = 4_096
_TRANSACTION_BITS: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE
_TOPIC_LENGTH_BYTES: Final = TOPIC_LENGTH_V1.sizeof()

LastFile = tuple[memoryview, int, int, int]
"""The last file of the log, its first log offset, how many bytes it has, and the log offset from
which on it is in memory."""
LogFinder = Callable[[], LastFile | None]
Pairs = Callable[[bytes, frozenset[bytes]], "dict[bytes, bytes] | None"]


class Ending(NamedTuple):
    """What is known of the ends of one place."""

    group: bytes
    is_commit: bool
    is_oneway: bool
    code: int


class TakenEnd(NamedTuple):
    """A half message that a run ends; `target` is the number of where it is to go."""

    queue_id: int
    queue_offset: int
    born_timestamp_ms: int
    target: int
    is_commit: bool


class StoredHalf(NamedTuple):
    """A half message in the log, cut into its parts; `text` is that of its properties, with 0x02
    after each pair.
    """

    queue_id: int
    queue_offset: int
    commit_log_offset: int
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_host: bytes
    reconsume_times: int
    body: bytes
    topic: bytes
    text: bytes
    size: int


class TakenHalf(NamedTuple):
    """A half message, and what becomes of it: the number of its queue, and the stored text."""

    half: StoredHalf
    target: int
    queue: int
    properties: bytes
    pairs: Mapping[bytes, bytes]

    @property
    def sys_flag(self) -> int:
        """The system flag of a message that is committed."""
        flag = self.half.sys_flag & ~_TRANSACTION_BITS
        return flag | MessageSysFlag.TRANSACTION_COMMIT_TYPE


class ReferenceEnds:
    """What ends are checked with, and where their messages go.

    `topic` is that of half messages, as records have it; one with a property of `touched` is not
    taken.
    """

    def __init__(self, topic: bytes, touched: list[bytes]) -> None:
        self._topic = topic
        self._touched = frozenset(touched)
        self._targets: dict[tuple[int, bytes], tuple[int, int]] = {}

    def add(self, queue: int, real: bytes, sys_flag: int) -> int:
        """Adds where half messages with this flag and these two properties are to go; returns its
        number. Raises ValueError if it is known, or if there are enough.
        """
        number = len(self._targets)
        if number >= MOST_TARGETS or (sys_flag, real) in self._targets:
            raise ValueError("it is known already, or there are enough")
        self._targets[sys_flag, real] = number, queue
        return number

    def take(self, log: LastFile, holes: EndHoles, ending: Ending, pairs_of: Pairs) -> Any:
        """Returns a TakenHalf; None if anything is unusual."""
        half = _half(log, holes.log_offset)
        if half is None or not half.body:
            return None
        if half.topic != self._topic or half.queue_offset != holes.queue_offset:
            return None
        pairs = pairs_of(half.text, self._touched)
        if pairs is None or pairs.get(PGROUP.encode()) != ending.group:
            return None
        if not pairs.get(UNIQ_KEY.encode(), b"x").isalnum():  # of bytes: only ASCII is
            return None
        topic, queue_id = (pairs.get(name.encode(), b"") for name in (REAL_TOPIC, REAL_QID))
        real = b"%b\x01%b\x02%b\x01%b" % (REAL_TOPIC.encode(), topic, REAL_QID.encode(), queue_id)
        target = self._targets.get((half.sys_flag, real))
        if target is None or b"\x02" + real + b"\x02" not in half.text:
            return None
        properties = half.text.replace(b"\x02" + real + b"\x02", b"\x02")
        if ending.is_commit and len(properties) > MAX_PROPERTIES_BYTES:
            return None
        return TakenHalf(half, *target, properties, pairs)


def _half(log: LastFile, offset: int) -> StoredHalf | None:
    """Cuts the record at a log offset, if it is in memory and sound as far as its lengths say."""
    view, from_offset, end, least = log
    at = offset - from_offset
    if offset < least or not 0 <= at <= end - IPV4_LAYOUT.size:
        return None
    (
        size, magic, _, queue_id, flag, queue_offset, physical_offset, sys_flag, born_ms,
        born_host, _, store_host, reconsume_times, _, body_bytes,
    ) = IPV4_LAYOUT.unpack_from(view, at)  # fmt: skip
    if magic != MAGIC_V1 or physical_offset != offset or sys_flag & IPV6_FLAGS or at + size > end:
        return None
    record = bytes(view[at : at + max(size, 0)])
    body_end = IPV4_LAYOUT.size + body_bytes
    if body_bytes < 0 or body_end + _TOPIC_LENGTH_BYTES > len(record) or not record[-1]:
        return None
    topic_end = body_end + _TOPIC_LENGTH_BYTES + record[body_end]
    text = record[topic_end + LENGTH_BYTES :]
    if [*record[topic_end : topic_end + LENGTH_BYTES]] != [*divmod(len(text), 256)]:
        return None
    return StoredHalf(
        queue_id, queue_offset, physical_offset, flag, sys_flag, born_ms, born_host, store_host,
        reconsume_times, record[IPV4_LAYOUT.size : body_end], record[body_end:topic_end],
        text if text.endswith(b"\x02") else text + b"\x02", size,
    )  # fmt: skip
