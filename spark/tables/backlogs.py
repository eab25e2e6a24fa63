# SPDX-License-Identifier: Apache-2.0
"""Tables of what brokers have yet to do: scheduled messages and open transactions.

Java: ScheduleMessageService, TimerMessageStore, TransactionalMessageServiceImpl.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.topics import (
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_TOPIC,
)
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.spark.arrow.schema import Column
from txrocketmq.spark.columns.decode import Decoder
from txrocketmq.spark.columns.numbers import LAST_MS
from txrocketmq.spark.log.log_reader import read_picks
from txrocketmq.spark.planning.scan import decoded
from txrocketmq.spark.store.queue_files import Queue
from txrocketmq.spark.tables.table import (
    BROKER_NAME,
    CHOOSING_QUEUES,
    CLUSTER,
    READING_PICKS,
    Request,
    Row,
    Table,
)

TRANSACTION_GROUP: Final = "CID_RMQ_SYS_TRANS"
"""The group whose offsets say how far the broker has checked half messages."""
_TIMER_CHECK: Final = fixed(formats.TIMER_CHECK)

_BACKWARD_UNITS: Final = 1024

Message = dict[str, Any]


def messages_of(
    request: Request, queue: Queue, first: int, columns: tuple[str, ...]
) -> Iterator[Message]:
    """Yields the messages of a queue from an offset on, with the tags code of their unit as `due`.

    Raises what badRecords and failOnDataLoss say.
    """
    start = max(first, queue.min_index(request.store.min_offset()))
    decoder = _decoder(request, columns)
    for units in queue.units_in_steps(start, queue.max_index()):
        yield from _decoded(request, decoder, units)


def messages_backwards(
    request: Request, queue: Queue, first: int, columns: tuple[str, ...]
) -> Iterator[Message]:
    """Yields what `messages_of` does, but the last message first; a few are in memory at once."""
    start = max(first, queue.min_index(request.store.min_offset()))
    decoder = _decoder(request, columns)
    steps = queue.units_in_steps(start, queue.max_index(), _BACKWARD_UNITS, last_first=True)
    for units in steps:
        found = list(_decoded(request, decoder, units))
        yield from sorted(found, key=itemgetter("physicalOffset"), reverse=True)


def _decoder(request: Request, columns: tuple[str, ...]) -> Decoder:
    named = tuple(dict.fromkeys((*columns, "physicalOffset")))
    return Decoder(named, broker_name=request.store.broker_name)


def _decoded(request: Request, decoder: Decoder, units: NDArray[Any]) -> Iterator[Message]:
    order = units[np.argsort(units["physical_offset"], kind="stable")]
    codes = dict(zip(order["physical_offset"].tolist(), order["tags_code"].tolist(), strict=True))
    reading = read_picks(request.store, order, pace=request.pace)
    for _, batch in decoded(reading, decoder, request.tell, request.options.batch_bytes):
        for row in batch.to_pylist():
            yield {**row, "due": codes[row["physicalOffset"]]}


def _properties(row: Message) -> dict[str, str]:
    return dict(row["properties"])


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.lstrip("-").isdecimal() else None


# ------------------------------------------------------------------------------ scheduled messages

_WAITING: Final = (
    "queueOffset", "physicalOffset", "bornTimestamp", "storeTimestamp", "bodySize", "tags", "keys",
    "uniqKey",
)  # fmt: skip
"""Columns of messages, which come last in the table."""


def _delay(request: Request, _: Any) -> Iterator[Row]:
    request.check_queue_files()
    yield from _waiting_by_level(request)
    yield from _waiting_by_time(request)
    request.damage.end()


def _waiting_by_level(request: Request) -> Iterator[Row]:
    offsets = request.store.config.delay_offsets()
    wanted = request.wanted
    for queue in request.store.queues_of(SCHEDULE_TOPIC):
        level = queue.queue_id + 1
        for row in messages_of(request, queue, offsets.get(level, 0), ("properties", *_WAITING)):
            properties = _properties(row)
            if wanted.wants_topic(properties.get(names.REAL_TOPIC, "")):
                yield _waiting(row, properties, level, row["due"])


def _waiting_by_time(request: Request) -> Iterator[Row]:
    """Yields timer messages that were not due when the broker last looked.

    Of a message that was put back for later only the newest one counts. A message that cancels
    another one names its key.
    """
    read_until = _timer_read_until(request)
    wanted = request.wanted
    found: dict[str, Row] = {}
    for queue in request.store.queues_of(TIMER_TOPIC):
        for row in messages_of(request, queue, 0, ("properties", *_WAITING)):
            properties = _properties(row)
            due = _number(properties.get(names.TIMER_OUT_MS))
            cancelled = properties.get(names.TIMER_DEL_UNIQKEY)
            if cancelled is not None:
                found.pop(cancelled.rpartition("+")[2], None)
            elif due is not None and due > read_until:
                key = row["uniqKey"] or str(row["physicalOffset"])
                if wanted.wants_topic(properties.get(names.REAL_TOPIC, "")):
                    found[key] = _waiting(row, properties, None, due)
    yield from found.values()


def _timer_read_until(request: Request) -> int:
    """Returns the time, in ms, up to which the timer has delivered."""
    store = request.store
    try:
        data = store.files.read(f"{store.path}/config/timercheck")
    except FileNotFoundError:
        return 0
    if len(data) < _TIMER_CHECK.size:
        return 0
    return int(_TIMER_CHECK.fields(data)["last_read_time_ms"])


def _waiting(row: Message, properties: dict[str, str], level: int | None, due: int) -> Row:
    # For a delay level it may be the address of a lost ext unit, else anything a producer wrote.
    known = due if -LAST_MS <= due <= LAST_MS else None
    place = properties.get(names.REAL_TOPIC), _number(properties.get(names.REAL_QID))
    return *place, level, known, *(row[name] for name in _WAITING)


DELAY: Final = Table(
    "delay",
    "Messages that wait for their time of delivery.",
    (
        BROKER_NAME,
        Column("topic", "string", "where the message is delivered"),
        Column("queueId", "int", "where the message is delivered"),
        Column("delayLevel", "int", "1 to 18; null for a message with a time of its own (5.x)"),
        Column("deliverTimestamp", "timestamp", "when it is due; null if that is not known"),
        Column("queueOffset", "bigint", "offset in the queue in which it waits"),
        Column("physicalOffset", "bigint", "byte offset in the log"),
        Column("bornTimestamp", "timestamp", "by the producer's clock"),
        Column("storeTimestamp", "timestamp", "by the broker's clock"),
        Column("bodySize", "int", "bytes as stored"),
        Column("tags", "string", "tags"),
        Column("keys", "string", "keys"),
        Column("uniqKey", "string", "the producer's message id"),
        CLUSTER,
    ),
    _delay,
    options=CHOOSING_QUEUES | READING_PICKS,
)

# ------------------------------------------------------------------------------------ transactions

_HALF: Final = tuple(name for name in _WAITING if name != "tags")
_SAME_IN_COPIES: Final = ("uniqKey", "bornTimestamp", "bornHost", "bodyCRC", "keys")
"""What the broker does not change in a half message that it puts at the end of its queue again."""


def _transactions(request: Request, _: Any) -> Iterator[Row]:
    request.check_queue_files()
    store, wanted = request.store, request.wanted
    offsets = store.config.consumer_offsets()
    checked = offsets.get((TRANS_HALF_TOPIC, TRANSACTION_GROUP), {})
    for queue in store.queues_of(TRANS_HALF_TOPIC):
        resolved = _resolved(request, queue.queue_id)
        first = checked.get(queue.queue_id, 0)
        for row, properties in _newest_copies(request, queue, first):
            topic = properties.get(names.REAL_TOPIC)
            copied_from = _number(properties.get(names.TRAN_PREPARED_QUEUE_OFFSET))
            is_resolved = row["queueOffset"] in resolved or copied_from in resolved
            if is_resolved or not wanted.wants_topic(topic or ""):
                continue
            yield (
                topic,
                _number(properties.get(names.REAL_QID)),
                properties.get(names.PGROUP),
                properties.get(names.TRANSACTION_ID) or row["uniqKey"],
                _number(properties.get(names.TRANSACTION_CHECK_TIMES)) or 0,
                *(row[name] for name in _HALF),
            )
    request.damage.end()


def _newest_copies(
    request: Request, queue: Queue, first: int
) -> Iterator[tuple[Message, dict[str, str]]]:
    """Yields half messages with their properties, the last one first.

    Each time the broker asks the producer about a message, or leaves it alone because it is too
    young, it puts a copy at the end of the queue. Of these only the last one can be committed, so
    the others are left out: those of which a copy follows.
    """
    copied: set[int] = set()
    columns = ("properties", *_HALF, *_SAME_IN_COPIES)
    for row in messages_backwards(request, queue, first, columns):
        properties = _properties(row)
        key = hash((properties.get(names.REAL_TOPIC), *(row[name] for name in _SAME_IN_COPIES)))
        if key in copied:
            continue
        if properties.keys() & {names.TRANSACTION_CHECK_TIMES, names.TRAN_PREPARED_QUEUE_OFFSET}:
            copied.add(key)
        yield row, properties


def _resolved(request: Request, queue_id: int) -> set[int]:
    """Returns offsets of ended half messages, from the op messages that the broker still reads.

    4.9 writes one offset into a body, 5.x several, separated by commas.
    """
    store = request.store
    offsets = store.config.consumer_offsets().get((TRANS_OP_TOPIC, TRANSACTION_GROUP), {})
    queue = store.queue(TRANS_OP_TOPIC, queue_id)
    if queue is None:
        return set()
    found: set[int] = set()
    for row in messages_of(request, queue, offsets.get(queue_id, 0), ("body",)):
        for text in row["body"].decode("utf-8", "replace").split(","):
            number = _number(text)
            if number is not None:
                found.add(number)
    return found


TRANSACTIONS: Final = Table(
    "transactions",
    "Half messages that were neither committed nor rolled back; each is listed once, however often"
    " its producer was asked.",
    (
        BROKER_NAME,
        Column("topic", "string", "where the message goes when it is committed"),
        Column("queueId", "int", "where the message goes when it is committed"),
        Column("producerGroup", "string", "the group that is asked whether to commit"),
        Column("transactionId", "string", "the producer's id of the transaction"),
        Column("checkTimes", "int", "how often the producer was asked"),
        Column("queueOffset", "bigint", "of the half message"),
        Column("physicalOffset", "bigint", "byte offset in the log"),
        Column("bornTimestamp", "timestamp", "by the producer's clock"),
        Column("storeTimestamp", "timestamp", "by the broker's clock"),
        Column("bodySize", "int", "bytes as stored"),
        Column("keys", "string", "keys"),
        Column("uniqKey", "string", "the producer's message id"),
        CLUSTER,
    ),
    _transactions,
    options=CHOOSING_QUEUES | READING_PICKS,
)
