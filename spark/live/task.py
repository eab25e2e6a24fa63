# SPDX-License-Identifier: Apache-2.0
"""What a task does with a range of a queue: it pulls the range, and makes rows of the answers.

The body of an answer to a pull has the layout of the commit log, so records are found and decoded
as those of stores are; answers are first joined into batches of about batchBytes.

If a broker's log has lost some messages of an answer, the broker gives the others and still says
FOUND (DefaultMessageStore.getMessage). So the task checks that the queue offsets are consecutive.
It cannot do so with tags or SQL92, since only brokers can tell what these leave out.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message import record
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.message.tags import SQL92, SUB_ALL, TAG, SubscriptionData
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.remoting.protocol.body.heartbeat import CheckClientRequestBody
from txrocketmq.remoting.protocol.heartbeat import CHECK_CLIENT_CONFIG
from txrocketmq.remoting.protocol.pull import TOOLS_GROUP
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.arrow.walk import Buffer, Stop, chain
from txrocketmq.spark.columns.decode import MAX_BAD_BYTES, BadRecord
from txrocketmq.spark.columns.messages import plain_messages
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.columns.properties import Properties
from txrocketmq.spark.columns.selection import Selection
from txrocketmq.spark.live.pull import Gone, QueueRange, RangePull
from txrocketmq.spark.live.wire.cluster import Cluster
from txrocketmq.spark.live.wire.rpc import Refused
from txrocketmq.spark.live.wire.security import Security
from txrocketmq.spark.log.losses import lose, names_all
from txrocketmq.spark.options.conditions import Bounds
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.scan import Scan, ScanRows

ROUTE_S: Final = 30
"""How long the tasks of a worker use the same routes, in seconds (pollNameServerInterval)."""
LEFT_OUT: Final = "the broker's answer does not have them"
_HEAD: Final = fixed(record.RECORD_HEAD)
_PHYSICAL_OFFSET: Final = _HEAD.names.index("physical_offset")


@dataclass(frozen=True)
class BrokerOrigin:
    """The origin of records: a broker, and the queue of it that is read."""

    broker_name: str
    cluster: str | None
    uri: str
    messages: str
    """Describes which messages of the queue are read."""

    def file_of(self, physical_offset: int) -> str:
        """Returns no file, since there is none to look at from here."""
        return f"the log behind {self.messages} of {self.uri}"


@dataclass(frozen=True)
class LiveScan:
    """How ranges of queues are read; it is sent to the tasks."""

    scan: Scan
    security: Security

    @classmethod
    def of(cls, options: SourceOptions, output: Output) -> LiveScan:
        """Takes what the options say."""
        return cls(Scan.of(options, output), Security.of(options))

    def read(self, part: QueueRange, *, is_old: bool = False) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a range. Raises ClusterError, DataLossError, BadRecordError.

        In an old plan, what a new plan would not read is left out with a warning.
        """
        queue, options = part.queue, self.scan.options
        assert options.name_server is not None  # SourceOptions.use has made sure of it
        period = int(time.monotonic() // ROUTE_S)
        cluster = _known_cluster(
            options.name_server, options.pull_timeout_ms, self.security, period
        )
        if cluster.route(queue.topic, again=is_old) is None and is_old:
            lose(f"topic {queue.topic} has been deleted since the plan was made", fail=False)
            return
        group = options.group or TOOLS_GROUP
        expression = "||".join(sorted(options.tags)) if options.tags else SUB_ALL
        if options.sql_expression is not None:
            expression = options.sql_expression
            check_expression(cluster, queue, expression, group)
        pulls = RangePull(
            cluster,
            part,
            max_messages=options.pull_batch_size,
            expression=expression,
            expression_type=TAG if options.sql_expression is None else SQL92,
            group=group,
        )
        selection = Selection(tags=options.tags, logical=False)
        bounds = {(queue.topic, queue.queue_id): Bounds(part.start, part.end)}
        wanted = selection.on(queue.broker_name, bounds)
        follow = _followed if expression == SUB_ALL else _as_they_are
        is_compacted = cache(cluster.is_compacted)
        is_old = is_old and not names_all(options, queue.broker_name)

        def gone(found: Gone) -> None:
            if found.reason != LEFT_OUT or not is_compacted(queue):
                is_excused = is_old and _is_outside(cluster, found)
                lose(str(found), fail=options.fail_on_data_loss and not is_excused)

        answers = follow(part, joined(pulls, options.batch_bytes))
        yield from ScanRows(self.scan, _origin(cluster, part, options), wanted, gone).of(
            wanted.apply(each) if isinstance(each, Records) else each for each in answers
        )


def _is_outside(cluster: Cluster, found: Gone) -> bool:
    """Returns whether messages lie in front of what a queue has now, or behind it."""
    queue = found.queue
    first, end = cluster.min_offsets([queue])[queue], cluster.max_offsets([queue])[queue]
    return found.end <= first or found.start >= end


Answers = Iterable[list[bytes] | Gone]
Found = Records | BadRecord | Gone
QueueOffsets = NDArray[np.int64]


def _as_they_are(_part: QueueRange, answers: Answers) -> Iterator[Found]:
    for answer in answers:
        if isinstance(answer, Gone):
            yield answer
        else:
            yield from records_of(answer)


def _followed(part: QueueRange, answers: Answers) -> Iterator[Found]:
    """Yields the contents of the answers, and a Gone for each hole between their queue offsets."""
    after: int | None = part.start
    for answer in answers:
        if isinstance(answer, Gone):
            if after is not None and after < answer.start:
                yield Gone(part.queue, after, answer.start, LEFT_OUT)
            yield answer
            after = answer.end
            continue
        found = list(records_of(answer))
        ends_of = [_ends(each) if isinstance(each, Records) else None for each in found]
        is_whole = all(ends is not None for ends in ends_of)
        for each, ends in zip(found, ends_of, strict=True):
            if is_whole and isinstance(each, Records) and ends is not None and len(ends):
                yield from _holes(part, after, each.queue_offset, ends)
                after = int(ends[-1])
            yield each
        if not is_whole:
            after = None  # how many messages the damaged record held is not known
    if after is not None and after < part.end:
        yield Gone(part.queue, after, part.end, LEFT_OUT)


def _holes(
    part: QueueRange, after: int | None, offsets: QueueOffsets, ends: QueueOffsets
) -> Iterator[Gone]:
    before = np.append(offsets[0] if after is None else after, ends[:-1])
    for at in np.flatnonzero(offsets > before).tolist():
        yield Gone(part.queue, int(before[at]), int(offsets[at]), LEFT_OUT)


def _ends(records: Records) -> QueueOffsets | None:
    """Returns the queue offset after each record; None if an inner batch does not tell its size."""
    counts = np.ones(len(records), np.int64)
    inner = np.flatnonzero(records.sys_flag & MessageSysFlag.INNER_BATCH)
    if len(inner):
        texts = Properties(plain_messages(records.take(inner)).properties).value(names.INNER_NUM)
        numbers = [each for each in texts.to_pylist() if each and each.isdecimal()]
        if len(numbers) < len(inner):
            return None
        counts[inner] = list(map(int, numbers))
    return records.queue_offset + counts


def joined(answers: Iterable[bytes | Gone], batch_bytes: int) -> Iterator[list[bytes] | Gone]:
    """Joins answers into lists of about `batch_bytes` to decode together; passes on each Gone."""
    bodies: list[bytes] = []
    size = 0
    for answer in answers:
        if isinstance(answer, Gone):
            if bodies:
                yield bodies
            bodies, size = [], 0
            yield answer
            continue
        bodies.append(answer)
        size += len(answer)
        if size >= batch_bytes:
            yield bodies
            bodies, size = [], 0
    if bodies:
        yield bodies


def records_of(bodies: list[bytes]) -> Iterator[Records | BadRecord]:
    """Yields the records of some answers, and the damaged ones.

    After a record with a wrong size, the rest of its answer counts as damaged.
    """
    buffer = np.frombuffer(b"".join(bodies), np.uint8)
    found = chain(buffer)
    if found.reason is not Stop.END and len(bodies) > 1:
        for body in bodies:
            yield from records_of([body])
        return
    records = Records(buffer, found.starts)
    damaged = records.inconsistent()
    if found.reason is Stop.END:
        yield records.where(~damaged) if damaged.any() else records
        bad = records.where(damaged)
        for at, size in zip(bad.starts.tolist(), bad.total_size.tolist(), strict=True):
            yield _bad(buffer[at : at + size], "its lengths do not add up")
        return
    sound = int(np.argmax(damaged)) if damaged.any() else len(records)
    yield records.slice(0, sound)
    rest = buffer[int(found.starts[sound]) if sound < len(records) else found.stop :]
    yield _bad(rest, "no whole record is here, and it is unknown where the next one begins")


def _bad(data: Buffer, detail: str) -> BadRecord:
    place = -1
    kept = bytes(data[:MAX_BAD_BYTES])
    if len(kept) >= _HEAD.size:
        place = int(_HEAD.struct.unpack_from(kept)[_PHYSICAL_OFFSET])
    return BadRecord(place, len(data), "chain", f"{detail} (of an answer to a pull)", kept)


def _origin(cluster: Cluster, part: QueueRange, options: SourceOptions) -> BrokerOrigin:
    queue = part.queue
    name = options.cluster or cluster.cluster_of(queue.broker_name)
    uri = f"queue {queue.queue_id} of topic {queue.topic} on {queue.broker_name}"
    messages = f"messages {part.start} to {part.end - 1}"
    return BrokerOrigin(queue.broker_name, name, uri, messages)


def check_expression(cluster: Cluster, queue: MessageQueue, expression: str, group: str) -> None:
    """Raises ClusterError if the queue's broker cannot filter by an SQL92 expression, and why.

    The original answers a pull whose expression it cannot parse with all messages, and nobody would
    notice. Java: MQClientInstance.checkClientInBroker.
    """
    wanted = SubscriptionData(queue.topic, expression, expression_type=SQL92)
    body = CheckClientRequestBody(client_id="spark", group=group, subscription_data=wanted)
    try:
        cluster.ask_each(CHECK_CLIENT_CONFIG, {queue: NoHeader()}, body=body.encode())
    except Refused as error:
        if error.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED:
            why = "cannot read it"
        else:
            why = "does not filter by it (enablePropertyFilter=true in its settings lets it)"
        raise ClusterError(
            f"option sqlExpression: broker {queue.broker_name} {why}: {error.remark}"
        ) from error


@lru_cache(maxsize=8)
def _known_cluster(name_server: str, timeout_ms: int, security: Security, _period: int) -> Cluster:
    """Returns one Cluster, with its known routes, for all tasks of a worker within a period.

    Routes expire since the address of a broker that has gone may belong to another one by now.
    """
    return Cluster(name_server, timeout_ms=timeout_ms, security=security)
