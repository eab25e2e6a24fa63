# SPDX-License-Identifier: Apache-2.0
"""How far streams are behind: from the progress that Spark reports, in the log and for Prometheus.

    spark.streams.addListener(LagListener(metrics_file="/var/lib/node_exporter/streams.prom"))

Spark takes no metrics from a Python source, but it shows the offsets of each source: where the
micro-batch has ended, and where queues and logs ended when it was planned. The lag is the
difference: messages of a cluster's queues, or bytes of the logs of stores, which hold the messages
of all topics.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql.streaming.listener import StreamingQueryListener

from txrocketmq.remoting.process.replaced_file import check_replaceable

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

log = logging.getLogger("txrocketmq.spark")

MESSAGES: Final = "messages"
BYTES: Final = "bytes"
_PREFIX: Final = "txrocketmq_stream"


class Lag(NamedTuple):
    """What a source of a stream has yet to read of a topic, or of the log of a broker."""

    source: int
    """The number of the source in its query, from 0."""
    topic: str
    """Empty for stores, whose logs hold all topics."""
    broker_name: str
    unit: str
    """MESSAGES or BYTES."""
    behind: int


def lags_of(progress: StreamingQueryProgress) -> list[Lag]:
    """Returns the lags of the sources that are of RocketMQ and have told where they end."""
    found: list[Lag] = []
    for number, source in enumerate(progress.sources):
        end, latest = _offset(source.endOffset), _offset(source.latestOffset)
        if end is not None and latest is not None:
            found += _lags(number, end, latest)
    return found


def _offset(text: Any) -> Mapping[str, Any] | None:
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return None
    is_ours = isinstance(value, dict) and "v" in value
    return value if is_ours and value.keys() & {"topics", "brokers"} else None


def _lags(number: int, end: Mapping[str, Any], latest: Mapping[str, Any]) -> Iterator[Lag]:
    for broker, place in latest.get("brokers", {}).items():
        read = end.get("brokers", {}).get(broker, {"log": 0})
        yield Lag(number, "", broker, BYTES, max(0, place["log"] - read["log"]))
    for topic, brokers in latest.get("topics", {}).items():
        for broker, queues in brokers.items():
            read = end.get("topics", {}).get(topic, {}).get(broker, {})
            behind = sum(max(0, offset - read.get(queue, 0)) for queue, offset in queues.items())
            yield Lag(number, topic, broker, MESSAGES, behind)


class LagListener(StreamingQueryListener):
    """Logs the lag of each stream after each micro-batch, and writes it to a file of metrics.

    The file is for the textfile collector of Prometheus' node exporter. It has the streams that run
    now and is replaced as a whole; without `metrics_file`, only the log is written.
    """

    def __init__(self, metrics_file: str | os.PathLike[str] | None = None) -> None:
        self._metrics_file = None if metrics_file is None else os.fspath(metrics_file)
        self._lock = threading.Lock()
        self._running: dict[str, tuple[str, list[Lag]]] = {}
        """By the id of a run: the name of the query and its lags."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's
        """Does nothing: there is no lag before the first micro-batch."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's
        """Does nothing: where nothing comes, the lag stays."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's
        """Logs and writes the lag; an error in that does not end the stream."""
        progress = event.progress
        lags = lags_of(progress)
        if not lags:
            return
        name = progress.name or str(progress.id)
        totals: Counter[str] = Counter()
        for each in lags:
            totals[each.unit] += each.behind
        behind = " and ".join(f"{count:,} {unit}" for unit, count in totals.items())
        log.info("stream %s is %s behind after batch %d", name, behind, progress.batchId)
        with self._lock:
            self._running[str(progress.runId)] = name, lags
            self._write()

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's
        """Takes the stream out of the file."""
        with self._lock:
            if self._running.pop(str(event.runId), None) is not None:
                self._write()

    def _write(self) -> None:
        if self._metrics_file is None:
            return
        try:
            write_metrics(self._metrics_file, self._running.values())
        except OSError as error:
            log.warning("the lag of streams cannot be written: %s", error)


def write_metrics(path: str, streams: Any) -> None:
    """Writes the lags of streams, given as name and lags, to a file for the textfile collector."""
    from prometheus_client import (  # noqa: PLC0415 - only for those who want a file
        CollectorRegistry,
        Gauge,
        write_to_textfile,
    )

    check_replaceable(Path(path))
    registry = CollectorRegistry()
    labels = {
        MESSAGES: ["query", "source", "topic", "broker"],
        BYTES: ["query", "source", "broker"],
    }
    docs = {
        MESSAGES: "Messages of a topic that a stream over a cluster has not read yet",
        BYTES: "Bytes of a broker's log that a stream over stores has not read yet",
    }
    gauges = {
        unit: Gauge(f"{_PREFIX}_lag_{unit}", docs[unit], names, registry=registry)
        for unit, names in labels.items()
    }
    for name, lags in streams:
        for each in lags:
            place = (each.topic, each.broker_name) if each.unit == MESSAGES else (each.broker_name,)
            gauges[each.unit].labels(name, str(each.source), *place).set(each.behind)
    write_to_textfile(path, registry)
