# SPDX-License-Identifier: Apache-2.0
"""Finds out what of a repeated micro-batch was sent before.

    stream.writeStream.foreachBatch(rocketmq_batch("enrich", {"nameServer": ..., "topic": ...}))

A query that was killed writes its last micro-batch again. Its rows get the same unique keys (see
sink.keys), and rows whose keys are in the broker's index are left out. That costs one question for
each partition of each batch, since a task sends its first row before all others: if that row is not
there, no row is.

A message that has the key of a row but another body is an error: the name of the query was used by
another query, or the rows came in another order.

Writes are "effectively once" under three conditions: the rows of a batch come in the same
partitions and order again, as they do from sources that can be replayed, without a random or
unordered step; no second attempt of a task runs beside the first (no speculation); and every broker
that has a part of the batch can be asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from txrocketmq.remoting.arguments.arguments import checked
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from txrocketmq.spark.arrow.errors import OptionError, SparkSourceError
from txrocketmq.spark.live.wire.cluster import Cluster
from txrocketmq.spark.live.wire.send import stored_keys
from txrocketmq.spark.options.option import Use
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.sink.rows import Outgoing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@checked
def rocketmq_batch(query: str, options: Mapping[str, str]) -> Callable[[DataFrame, int], None]:
    """Returns a function for `foreachBatch` that writes each micro-batch once, even if repeated.

    `query` is a name that no other query may ever have, and that this query keeps as long as its
    checkpoint, because the unique keys are derived from it. `options` are those of
    `df.write.format("rocketmq")`; OptionError when they are wrong.
    """
    if not query.strip():
        raise OptionError("rocketmq_batch needs the name of a query")
    SourceOptions.of(options).check(Use.SINK)

    def write(rows: DataFrame, batch_id: int) -> None:
        named = {**options, "batchKey": f"{query}/{batch_id}"}
        rows.write.format("rocketmq").options(**named).mode("append").save()

    return write


class SentBefore:
    """Finds the rows of a task whose messages are in the cluster; ask for rows in their order.

    `send_alone` sends a message and returns when it is stored.
    """

    def __init__(self, cluster: Cluster, send_alone: Callable[[Outgoing], None]) -> None:
        self._cluster = cluster
        self._send_alone = send_alone
        self._is_replay: bool | None = None

    def left(self, rows: list[Outgoing]) -> list[Outgoing]:
        """Returns the rows that are still to be sent. ClusterError if a broker cannot tell."""
        if self._is_replay is None and rows:
            self._is_replay = bool(self._stored(rows[:1]))
            if not self._is_replay:
                self._send_alone(rows[0])
                return rows[1:]
        if not self._is_replay:
            return rows
        stored = self._stored(rows)
        return [each for each in rows if each.message.unique_key not in stored]

    def _stored(self, rows: Sequence[Outgoing]) -> frozenset[str]:
        keys: defaultdict[str, list[str]] = defaultdict(list)
        row_of: dict[str, Outgoing] = {}
        for each in rows:
            message = each.message
            key = message.properties[names.UNIQ_KEY]
            row_of[key] = each
            keys[message.topic].append(key)
            if names.DELAY in message.properties:
                keys[SCHEDULE_TOPIC].append(key)
            elif names.TIMER_DELIVER_MS in message.properties:
                keys[TIMER_TOPIC].append(key)
        found: set[str] = set()
        for topic, its in keys.items():
            for key, body_crc in stored_keys(self._cluster, topic, its).items():
                if body_crc != crc32(row_of[key].message.body):
                    raise SparkSourceError(_another(row_of[key].row, topic))
                found.add(key)
        return frozenset(found)


def _another(row: int, topic: str) -> str:
    return (
        f"row {row} of the task has the unique key of a message of {topic} with another body: the"
        " name of the query (batchKey) was used before, as by the same query with another"
        " checkpoint, or its rows came in another order; a new checkpoint needs a new name"
    )
