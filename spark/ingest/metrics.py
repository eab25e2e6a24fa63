# SPDX-License-Identifier: Apache-2.0
"""Writes what a job did to a text file for the textfile collector of Prometheus' node exporter.

The file is replaced as a whole after each job, successful or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

from txrocketmq.remoting.process.replaced_file import check_replaceable
from txrocketmq.spark.ingest.copy_plan import CopiedRange
from txrocketmq.spark.ingest.job import Commit

_PREFIX = "txrocketmq_ingest"


class State(NamedTuple):
    """The state of the whole table after the job."""

    version: int
    rows: int
    committed_ms: int
    positions: Mapping[str, CopiedRange]


def write_metrics(
    path: str,
    table: str,
    exit_code: int,
    seconds: float,
    commits: Sequence[Commit],
    state: State | None,
    log_ends: Mapping[str, int],
) -> None:
    """Writes the file. `commits` are those of this job.

    `log_ends` says for each broker where its log ends now.
    """
    check_replaceable(Path(path))
    registry = CollectorRegistry()

    def gauge(name: str, doc: str, *labels: str) -> Gauge:
        return Gauge(f"{_PREFIX}_{name}", doc, ["table", *labels], registry=registry)

    gauge("exit_code", "of the job").labels(table).set(exit_code)
    gauge("duration_seconds", "of the job, by the clock on the wall").labels(table).set(seconds)
    gauge("rows", "Messages that the job took").labels(table).set(sum(c.rows for c in commits))
    log_bytes = sum(commit.log_bytes for commit in commits)
    gauge("log_bytes", "Bytes of log that the job took").labels(table).set(log_bytes)
    topics, reasons, lost = _totals(commits)
    by_topic = gauge("topic_rows", "Messages that the job took, by topic", "topic")
    for topic, rows in topics.items():
        by_topic.labels(table, topic).set(rows)
    damaged = gauge("quarantined_records", "Damaged records that the job met", "reason")
    for reason, count in reasons.items():
        damaged.labels(table, reason).set(count)
    gone = gauge("lost_bytes", "Bytes of log that were gone before the job took them", "broker")
    for broker, count in lost.items():
        gone.labels(table, broker).set(count)
    if state is not None:
        gauge("version", "Version of the table").labels(table).set(state.version)
        gauge("table_rows", "Messages of the whole table").labels(table).set(state.rows)
        when = gauge("last_commit_timestamp_seconds", "Time of the newest commit")
        when.labels(table).set(state.committed_ms / 1000)
        position = gauge("position_bytes", "Offset up to which the table has the log", "broker")
        lag = gauge("lag_bytes", "Bytes of log that the table does not have yet", "broker")
        for broker, place in state.positions.items():
            position.labels(table, broker).set(place.next)
            if broker in log_ends:
                lag.labels(table, broker).set(log_ends[broker] - place.next)
    write_to_textfile(path, registry)


def _totals(commits: Sequence[Commit]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Returns rows by topic, damaged records by reason, and lost bytes by broker."""
    lost: Counter[str] = Counter()
    for each in (each for commit in commits for each in commit.all_lost):
        lost[each.broker] += each.end - each.start
    topics = sum((commit.topics for commit in commits), Counter[str]())
    return topics, sum((commit.damaged for commit in commits), Counter[str]()), lost
