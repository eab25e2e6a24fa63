# SPDX-License-Identifier: Apache-2.0
"""The way of a message through txrocketmq, compiled.

The broker has a form of all this in Python, which is the reference. Whatever is not taken here goes
that way, so there are no partial results. If something in here fails, `take` and `learn` take
nothing, and the others raise RuntimeError; nothing has been written then but what lies behind the
end of the log.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, final

from typing_extensions import Buffer

SEAM: Final[int]
"""Which seam this is: it changes with every change of what is below."""
__version__: Final[str]

def walk(
    map: Buffer, from_offset: int, start: int, end: int, check_crc: bool, /
) -> tuple[int, int, bytes]:
    """Walks over the sound records of a file of the log, whose first byte has this log offset.

    It goes from one position to another, and over no more than 16,384 records. Returns where the
    next record would start, how many there were, and a row for each: "=qqqqiiiiii", log offset,
    queue offset, store time in ms, hash of the tag, size, queue id, system flag, where the topic is
    in the map, how many bytes it has, and whether the properties are plain. If they are not, the
    hash is 0, and the unit may need more than the hash of a tag.
    """

def follow(
    map: Buffer, from_offset: int, start: int, end: int, rows: Rows | None, /
) -> tuple[int, int, int, list[tuple[bytes, int, int, tuple[int, bytes, int]]]]:
    """Finds what follows for queues and the index from sound records, whose CRC is not examined.

    It ends before the first record that is in any way unusual, and after 1,024 records. Rows for
    the index are added to `rows`. Returns where the next record would start, how many there were,
    when the last was stored, in ms, and for each queue its topic, its id, the offset of the first
    unit, and the packed units between the log offsets of their first message and behind their last;
    a queue comes again where its offsets do not follow one another.
    """

@final
class Table:
    """The places of sends that were learned. Topics, permissions and settings are as they were when
    it was made: when one of them changes, another table is to be made.

    `touched` are the names of properties with which a message, or a batch, is not plain;
    `touched_in_batch` those for entries of batches, and `touched_in_half` those for half messages;
    `own` are the properties that the broker adds.
    """

    def __init__(
        self, touched: list[bytes], touched_in_batch: list[bytes], touched_in_half: list[bytes],
        own: bytes, /,
    ) -> None: ...  # fmt: skip
    def add_queue(self, queue: object, record_topic: bytes, magic: int, queue_id: int, /) -> int:
        """Adds a queue; returns its number. Raises ValueError for what is no topic of a record."""

    def add_half(self, queue_id: int, before: bytes, behind: bytes, /) -> int:
        """Adds where half messages are to go once they are committed; returns its number.

        `queue_id` is for their answers. `before` and `behind` are put around the unique key, and
        the whole behind the properties that were sent.
        """

    def add_account(self, key: bytes, /) -> int:
        """Adds an account that signs requests; returns its number.

        `key` is its secret as HMAC uses it, of 64 bytes. It cannot be read again. Raises ValueError
        for another length.
        """

    def wipe(self) -> None:
        """Forgets all places and accounts, whose secrets are overwritten. Queues stay, for runs
        that are under way.
        """

    def learn(
        self, kind: int, header: bytes, queue: int, is_batch: bool, oneway: bool, flag: int,
        sys_flag: int, reconsume: int, code: int, half: int | None, origin: int,
        account: int | None, /,
    ) -> bool:  # fmt: skip
        """Learns where headers like this one go, which was decoded and checked.

        `kind` is its serialization. `half` is a number of `add_half` for half messages, of which
        `queue` has to be the half queue then: only such are taken, with TRAN_MSG. `account` is a
        number of `add_account` for requests that are signed, and `origin` stands for the address
        from which they are allowed: only from there, and with the right signature, are they taken.
        For others these are None and 0. Returns whether such headers can be told from others.
        """

    def expect_ends(self, topic: bytes, touched: list[bytes], /) -> None:
        """Has ends of transactions taken, too: `topic` is that of half messages, as records have
        it, and a half message with one of the properties `touched` is not taken.
        """

    def add_target(self, queue: int, real: bytes, sys_flag: int, /) -> int:
        """Adds where half messages are to go that have this system flag and, behind one another,
        these two properties, REAL_TOPIC and REAL_QID; returns its number.

        Raises ValueError if it is known, if there are 4,096, or if no ends are expected.
        """

    def learn_end(
        self, kind: int, header: bytes, group: bytes, is_commit: bool, oneway: bool, code: int, /
    ) -> bool:
        """Learns ends with headers like this one, which was decoded and is not signed; `group` is
        the producer group. Returns whether they can be told from others.
        """

    def take(
        self, data: bytes, origin: int,
        log: Callable[[], tuple[Buffer, int, int, int] | None] | None = None, /,
    ) -> Run | None:  # fmt: skip
        """Takes the longest beginning of whole frames that are plain sends from an origin; it never
        raises.

        `log` is called once the kernel comes to an end of a transaction. It returns the last file
        of the log, its first log offset, how many bytes are written, and the log offset from which
        on it is in memory for certain. With it, ends are taken, too, if their half messages are
        there, of their producer group, where they say, and in no way unusual. Whether these have
        ended before is not examined: see Run.ends.

        All that is taken waits for confirmation, or none of it does; there are no more than 256
        requests and 1,024 messages.
        """

@final
class Run:
    """Sends and ends that were taken together."""

    @property
    def at(self) -> int:
        """How many bytes were taken."""

    @property
    def commands(self) -> int:
        """How many requests there are."""

    @property
    def answered(self) -> int:
        """How many of them want an answer."""

    @property
    def messages(self) -> int:
        """How many messages there are."""

    @property
    def size_bytes(self) -> int:
        """How many bytes their records have."""

    @property
    def most_bytes(self) -> int:
        """The most that a message has of body and properties, or a batch of body, in bytes."""

    @property
    def waits(self) -> bool:
        """Whether their senders wait for the confirmation."""

    def kinds(self) -> list[tuple[int, bool, int]]:
        """Code, whether it is one-way, and number, for each kind of these requests."""

    def opaques(self) -> list[int]:
        """The opaques of those that want an answer."""

    def halves(self) -> list[tuple[int, int]]:
        """The numbers of `add_half` that half messages have, and how many there are of each."""

    def ends(self) -> list[tuple[int, int, int, int, bool]]:
        """The half messages that are ended: the queue, the offset in it, when they were born, in
        ms, the number of `add_target`, and whether they are committed.
        """

    def queues(self, table: Table, /) -> list[tuple[Any, int, int]]:
        """The queues in the order of their first use, with the messages and bytes of each."""

    def write(
        self, table: Table, map: Buffer, at: int, offset: int, nexts: list[int], now_ms: int,
        born: bytes, host: bytes, rows: Rows | None, /,
    ) -> list[tuple[Any, int, tuple[int, bytes, int]]]:  # fmt: skip
        """Writes the records into the map, where there is room for them, and adds their rows.

        `at` is where in the map, `offset` that place in the log, `nexts` the offset of the next
        message of each queue; hosts are packed. Returns for each queue itself, that offset, and its
        packed units between the log offsets of its first message and behind its last. Raises
        ValueError before anything is written.
        """

    def answers(
        self, table: Table, pieces: list[bytes], batch: list[bytes], host: bytes, /
    ) -> bytes:
        """The answers, once the records are written; `host` is that of message ids.

        Of JSON, `pieces` are the six around msgId, queueId, queueOffset, transactionId and opaque,
        and `batch` the five without transactionId. Of binary headers there are seven: what is
        before the opaque and behind it, all fixed fields, and the four names; and no others.
        """

def pull_answer(
    units: Buffer, log: Buffer, from_offset: int, end: int, least: int, magic: int, most: int,
    most_bytes: int, pieces: list[bytes], opaque: int, offsets: tuple[int, int, int], /,
) -> tuple[int, int, bytes, list[tuple[int, int]]] | None:  # fmt: skip
    """Answers a pull by the records that the units of a queue name, as many of the first as fit in
    `most` and `most_bytes`, but at least one.

    `log` is a file of the log that begins at `from_offset` and is written up to `end`. None if a
    unit, or one of these records, is in any way unusual: in another file, before the log offset
    `least`, of another magic, or perhaps damaged. `offsets` are the queue offset of the first unit,
    and where the queue begins and ends. Returns how many messages and bytes there are, the head of
    the answer, and where the records lie in the file; none if they are copied behind the head.
    Raises ValueError for a file that is shorter, or for other pieces.

    Of JSON, `pieces` are the five around the offset of the next pull, those of the queue, and the
    opaque. Of binary headers there are six: what is before the opaque and behind it, what is before
    each of the offsets, and what is behind them.
    """

@final
class Pulls:
    """The headers of pulls that were learned."""

    def __init__(self) -> None: ...
    def add_account(self, key: bytes, /) -> int:
        """Adds an account that signs pulls, as Table.add_account does."""

    def wipe(self) -> None:
        """Forgets all places and accounts, whose secrets are overwritten."""

    def learn(self, kind: int, header: bytes, origin: int, account: int | None, /) -> int | None:
        """Learns headers like this one, which was decoded and checked; `origin` and `account` are
        as those of Table.learn.

        Returns their number, which is the next one unless they are known; None if they cannot be
        told from others, or if there are 4,096.
        """

    def take(self, data: bytes, at: int, origin: int, /) -> tuple[int, int, int, int, int] | None:
        """Takes the pull from an origin that begins at a place; it never raises. Returns the number
        of its header, where it ends, its opaque, where in the queue it begins, and how far its
        group has come.
        """

@final
class Rows:
    """Rows that wait to be written to the index."""

    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def add(
        self, entries: Iterable[tuple[str, str | None, str | None, str | None, int, int]], /
    ) -> None:
        """Adds the rows of messages: topic, unique key, keys, tag, log offset, store time in ms."""

    def extend(self, other: Rows, /) -> None:
        """Adds the rows of others, which stay there as well."""

    def put(self, map: Buffer, slots: int, items_at: int, first: int, begin_ms: int, /) -> int:
        """Writes the first rows as items from number `first` on, then the header, then slots.

        Returns how many it has written and forgotten: no more than 1,024, and than there is room
        for. Raises ValueError, with nothing written, if the map is no index file.
        """
