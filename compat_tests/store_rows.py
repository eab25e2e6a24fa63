# SPDX-License-Identifier: Apache-2.0
"""What the Spark source reads of a broker's store, without Spark."""

from pathlib import Path
from typing import Any

from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning.reading import Reading
from txrocketmq.spark.tables.reading import TableReading, table_columns


def rows(store: Path, columns: str, **options: str) -> list[tuple[Any, ...]]:
    """Returns the columns of its messages, or of another table, part after part."""
    parsed = SourceOptions.of({"storePath": str(store), "columns": columns, **options})
    reading: Any
    if "table" in options:
        reading = TableReading(parsed, table_columns(parsed))
    else:
        reading = Reading(parsed, Output.of(parsed))
    return [
        tuple(row.values())
        for part in reading.parts()
        for batch in reading.batches(part)
        for row in batch.to_pylist()
    ]


def log_alone(store: Path, folder: Path) -> Path:
    """Makes a store without queues from this one, in a new folder."""
    folder.mkdir()
    (folder / "commitlog").symlink_to(store / "commitlog")
    return folder
