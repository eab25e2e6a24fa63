# SPDX-License-Identifier: Apache-2.0
"""Writes docs/spark_options.md from the declarations of the Spark source; `make docs` runs it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from txrocketmq.remoting.settings.field_texts import field_texts
from txrocketmq.spark.arrow.schema import MESSAGES, Column
from txrocketmq.spark.columns.output import KAFKA_COLUMNS
from txrocketmq.spark.options.option import USE_NAMES, Use
from txrocketmq.spark.options.options import SourceOptions, declared_options
from txrocketmq.spark.sink.rows import KAFKA_SINK_COLUMNS, SINK_COLUMNS, SinkColumn
from txrocketmq.spark.tables.reading import TABLES

PAGE = Path(__file__).with_name("spark_options.md")

INTRODUCTION = """\
# Options, columns and tables of `format("rocketmq")`

<!-- Written by docs/generate_spark_options.py from the declarations; run `make docs`. -->

This page is the reference of the Spark source; [spark.md](spark.md) is the guide. The names of
options are not case-sensitive. An unknown option, an invalid value and an option that has no
meaning for the operation are reported as errors before any job starts. Sizes can have the suffixes
`k`, `m` and `g`.

The option `path`, which `load(path)` sets, means the same as `storePath`.

## Options
"""

AFTER_OPTIONS = """\
## Columns of `messages`

Columns marked as on demand are present only when the option `columns` or a schema names them.
Columns that are not asked for are not decoded.
"""

KAFKA = """\
### With kafkaNames=true

The columns of Spark's Kafka source, and the name of the broker, without which topic, partition and
offset are no unique key; all the others on demand.
"""

SINK = """\
## Columns that are written

`df.write.format("rocketmq").mode("append")` and `writeStream.format("rocketmq")` send a message for
each row, at least once. Other columns are refused: `select` some of these.
"""

KAFKA_SINK = """\
The names of Spark's Kafka source are understood as well. Beside `value`, its columns `offset`,
`timestamp` and `timestampType` are left out.
"""

TABLES_TEXT = """\
## Tables

`option("table", NAME)` with `storePath`. Each query reads them afresh. All tables take
the options `columns`, `brokerName` and `cluster`; further ones are named with each table.
"""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _options() -> list[str]:
    texts = field_texts(SourceOptions)
    lines = ["| option | default | for | meaning |", "|---|---|---|---|"]
    for attribute, option in declared_options().items():
        default = f"`{option.shown_default}`" if option.shown_default else ""
        uses = _uses(option.uses)
        lines.append(f"| `{option.name}` | {default} | {uses} | {_cell(texts[attribute])} |")
    return lines


def _uses(uses: Use) -> str:
    if Use.MESSAGES | Use.TABLE in uses:
        return "reading, writing" if Use.SINK in uses else "reading"
    return ", ".join(name for use, name in USE_NAMES.items() if use in uses)


def _columns(columns: Iterable[Column]) -> list[str]:
    lines = ["| column | type | what it is |", "|---|---|---|"]
    for column in columns:
        doc = column.doc + (" (on demand)" if column.on_demand else "")
        lines.append(f"| `{column.name}` | {column.type} | {_cell(doc)} |")
    return lines


def _written(column: SinkColumn) -> Column:
    return Column(column.name, " or ".join(column.types), column.doc)


def pages() -> dict[Path, str]:
    """Each page's path and what it has to be."""
    lines = [INTRODUCTION, *_options(), "", AFTER_OPTIONS, *_columns(MESSAGES), ""]
    lines += [KAFKA, *_columns(KAFKA_COLUMNS), "", SINK]
    lines += [*_columns(map(_written, SINK_COLUMNS)), "", KAFKA_SINK]
    lines += [*_columns(map(_written, KAFKA_SINK_COLUMNS)), "", TABLES_TEXT]
    declared = declared_options().values()
    for table in TABLES.values():
        takes = ", ".join(f"`{o.name}`" for o in declared if o.name in table.options)
        doc = f"{table.doc} Options: {takes}." if takes else table.doc
        lines += [f"### {table.name}", "", doc, "", *_columns(table.columns), ""]
    return {PAGE: "\n".join(lines).rstrip() + "\n"}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
