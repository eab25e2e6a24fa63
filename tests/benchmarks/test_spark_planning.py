# SPDX-License-Identifier: Apache-2.0
"""The store that is planned: readers find in it what was written."""

from __future__ import annotations

from pathlib import Path

from benchmarks.spark_planning import IN_A_FILE, Timings, measure, write_store
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.reading import Reading


def test_it_is_a_store(tmp_path: Path) -> None:
    messages = write_store(tmp_path / "broker-a/store", queues=110, files=30)
    assert messages == 30 * IN_A_FILE
    of_second = sum(number % 110 >= 100 for number in range(300))
    for options, count in (({}, 300), ({"topic": "topic-1"}, of_second)):
        chosen = SourceOptions.of({
            "storePath": str(tmp_path / "broker-a/store"), "columns": "body", **options,
        })  # fmt: skip
        reading = Reading(chosen, Output.of(chosen))
        rows = sum(len(batch) for part in reading.parts() for batch in reading.batches(part))
        assert rows == count


def test_it_is_measured(tmp_path: Path) -> None:
    write_store(tmp_path / "broker-a/store", queues=110, files=30)
    timings = Timings()
    measure(tmp_path / "broker-a/store", timings)
    assert timings._table.row_count == 10
