# SPDX-License-Identifier: Apache-2.0
"""Spark's interface for writing, `df.write.format("rocketmq")`, and the sink of streams as well.

The driver checks options and columns before a job starts; each task sends its rows as they come. A
task or micro-batch that runs again sends its rows again: at least once. What is sent cannot be
taken back, except for half messages, which the driver commits when all tasks are done, or rolls
back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from txrocketmq.remoting.message import properties as names
from txrocketmq.spark.arrow.errors import ClusterError, OptionError
from txrocketmq.spark.live.wire.cluster import Cluster
from txrocketmq.spark.live.wire.security import Security
from txrocketmq.spark.live.wire.transaction import Decision
from txrocketmq.spark.options.option import Use
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.options.zones import zone_named, zone_of_task
from txrocketmq.spark.sink.half_messages import HalfMessages, end_all
from txrocketmq.spark.sink.keys import Keys, NewKeys, ReplayKeys
from txrocketmq.spark.sink.parcels import Parcels
from txrocketmq.spark.sink.replay import SentBefore
from txrocketmq.spark.sink.rows import Outgoing, RowMessages, check_transactional, unwritable
from txrocketmq.spark.sink.sender import Sender
from txrocketmq.spark.sink.targets import Targets

DEFAULT_GROUP: Final = "txrocketmq-spark"
"""The producer group of a write that names none."""


@dataclass
class Written(WriterCommitMessage):
    """What a task did with its rows."""

    sent: int
    """The number of messages that were sent."""
    sent_before: int
    """The number of messages that a replay found in the cluster."""
    half_messages: HalfMessages | None = None
    """The half messages of a transactional write."""


@dataclass(frozen=True)
class Sink:
    """What tasks need to know; it is sent to them."""

    options: SourceOptions
    rows: RowMessages
    cluster: Cluster

    @classmethod
    def of(cls, options: SourceOptions, fields: Sequence[tuple[str, str]]) -> Sink:
        """Makes the sink for rows with these columns: name, and type as Spark SQL writes it.

        Raises OptionError when options or columns are wrong.
        """
        options.check(Use.SINK)
        if options.transactional:
            check_transactional(fields)
        topics = options.topics or (None,)
        if len(topics) > 1:
            raise OptionError("option topic names several topics; rows are written to one")
        assert options.name_server is not None  # check() has made sure of it
        cluster = Cluster(
            options.name_server,
            timeout_ms=options.send_timeout_ms,
            attempts=options.send_retries + 1,
            security=Security.of(options),
        )
        return cls(options, RowMessages(fields, topics[0]), cluster)

    def write(self, batches: Iterator[pa.RecordBatch], partition: int) -> Written:
        """Sends the rows of a task; returns when all are stored. Raises SparkSourceError."""
        task = _Task(self, partition)
        try:
            return task.run(batches)
        except Exception:
            if task.half_messages is not None:
                with suppress(ClusterError):  # brokers drop undecided messages after a while
                    self._end_all([task.half_messages], Decision.ROLLBACK, attempts=1)
            raise

    def end(self, written: Sequence[WriterCommitMessage | None], decision: Decision) -> None:
        """Commits or rolls back the half messages of the tasks; None stands for a task that failed.

        Raises ClusterError, with numbers, when not all could be.
        """
        halves = [
            each.half_messages
            for each in written
            if isinstance(each, Written) and each.half_messages is not None
        ]
        if halves:
            self._end_all(halves, decision, attempts=self.options.send_retries + 1)

    def _end_all(self, halves: list[HalfMessages], decision: Decision, *, attempts: int) -> None:
        group = self.options.group or DEFAULT_GROUP
        end_all(self.cluster, halves, decision, producer_group=group, attempts=attempts)


class _Task:
    """The rows of one partition on their way to the brokers."""

    def __init__(self, sink: Sink, partition: int) -> None:
        options = sink.options
        group = options.group or DEFAULT_GROUP
        self.half_messages = HalfMessages() if options.transactional else None
        self._rows = sink.rows
        self._zone = zone_named(zone_of_task() or "UTC")
        self._targets = Targets(sink.cluster)
        self._parcels = Parcels(
            options.max_message_bytes, half_of=group if options.transactional else None
        )
        self._sender = Sender(
            sink.cluster,
            self._targets,
            group=group,
            timeout_ms=options.send_timeout_ms,
            retries=options.send_retries,
            first=partition,
            half_messages=self.half_messages,
        )
        self._keys: Keys = NewKeys()
        self._sent_before: SentBefore | None = None
        if options.batch_key is not None:
            self._keys = ReplayKeys(options.batch_key, partition)
            self._sent_before = SentBefore(sink.cluster, self._send_alone)
        self._sent = 0

    def run(self, batches: Iterator[pa.RecordBatch]) -> Written:
        rows = 0
        for batch in batches:
            outgoing = list(self._rows.messages(batch, rows, self._zone))
            for each in outgoing:
                each.message.properties[names.UNIQ_KEY] = self._keys.of(each.row)
            if self._sent_before is not None:
                outgoing = self._sent_before.left(outgoing)
            for each in outgoing:
                self._send(each)
            rows += len(batch)
        self._finish()
        return Written(self._sent, rows - self._sent, self.half_messages)

    def _send(self, outgoing: Outgoing) -> None:
        """Adds the message to the parcels, and sends those that are full."""
        try:
            for packed in self._parcels.add(self._targets.lane(outgoing), outgoing.message):
                self._sender.send(packed)
        except ValueError as error:
            raise unwritable(outgoing.row, error) from None
        self._sent += 1

    def _send_alone(self, outgoing: Outgoing) -> None:
        self._send(outgoing)
        self._finish()

    def _finish(self) -> None:
        for packed in self._parcels.rest():
            self._sender.send(packed)
        self._sender.finish()


class SinkWriter:
    """The methods that Spark calls to write a batch, or each micro-batch of a stream."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._sink = Sink.of(options, [(f.name, f.dataType.simpleString()) for f in schema.fields])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Sends the rows of a task."""
        context = TaskContext.get()  # None outside of Spark
        return self._sink.write(iterator, 0 if context is None else context.partitionId())

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int = 0,  # noqa: N803 - Spark's
    ) -> None:
        """Commits the half messages, since all tasks are done."""
        self._sink.end(messages, Decision.COMMIT)

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int = 0,  # noqa: N803 - Spark's
    ) -> None:
        """Rolls back the half messages, since a task or the commit has failed."""
        self._sink.end(messages, Decision.ROLLBACK)


class BatchWriter(SinkWriter, DataSourceArrowWriter):
    """One `df.write`. Raises OptionError if options, columns or the mode make no sense."""

    def __init__(self, options: SourceOptions, schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise OptionError('messages are appended: write with mode("append")')
        super().__init__(options, schema)
