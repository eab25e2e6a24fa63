# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reports.md from the catalogue of reports; `make docs` runs it."""

from __future__ import annotations

from pathlib import Path

from txrocketmq.spark.reports.catalog import REPORTS
from txrocketmq.spark.reports.report import (
    DEFAULT_RESERVED_HOURS,
    DEFAULT_TOP,
    PARAMETERS,
    Report,
)

PAGE = Path(__file__).with_name("reports.md")
VALUES = {"now": "now", "top": str(DEFAULT_TOP), "reservedHours": str(DEFAULT_RESERVED_HOURS)}

INTRODUCTION = """\
# Reports

<!-- Written by docs/generate_reports.py from spark/reports; run `make docs`. -->

`txrocketmq report` tells administrators what stands out in the stores of brokers, running or
stopped, and what they contain. It begins with findings: which groups lag or have lost messages,
which queues are uneven, which files are deleted next and what looks wrong. Each is one sentence
with its figure and the report that has the details. The result is printed as tables, as JSON, or
written as an HTML page with plots that needs no other file. The command needs the extra `reports`
(`pip install 'txrocketmq[reports]'`), and neither Java nor Spark.

```sh
txrocketmq report --store /data/rocketmq/store
txrocketmq report --store /data/broker-a/store /data/broker-b/store --html report.html
txrocketmq report --store /data/rocketmq/store --only lag topics --json
txrocketmq report --store /data/rocketmq/store --option startingTimestamp=2026-11-20T00:00:00
```

- The log is read only once, for all reports together. Only the columns that the reports need are
  read, never a body. They are kept in a [DuckDB](https://duckdb.org) file in a temporary folder
  (`TMPDIR` says where) that takes a few hundredths of the size of the log and is removed at the
  end.
- On a terminal, the command shows its progress on standard error.
- Times are in UTC. Ages are counted up to the present, or to the time given with `--now`, which is
  useful for a copy of a store.
- `--option` takes any option of the [Spark source](spark_options.md) that chooses what is read. For
  example, `badRecords=skip` continues behind a damaged record.
- The command runs on this machine and uses all cores. For stores that outgrow it, a script that
  calls `txrocketmq.cli.spark.report.main()` can be run with `spark-submit`: Spark's workers then
  read the stores and Spark runs the queries, and the result is the same. `spark-submit` puts what
  Python writes to standard error on standard output as well, so with `--json` only the last line of
  its output is the JSON object.
- The exit code is 0 when the report was made, 1 when it failed or a store or the value of an option
  is wrong (a sentence on standard error says why), and 2 when the flags are not understood.

## As queries

Each report is one query in plain SQL that you can copy and change. Spark runs it as it stands here,
once one call has registered the views that the queries read. Their columns are those of the
[tables of the source](spark_options.md) of the same name; `messages` and `records` are the table
`messages` in the views `logical` and `physical`, with the columns that the reports use, and
`dead_letters` has the dead letters with their properties.

"""

LOADING = """\
```python
from datetime import UTC, datetime

from txrocketmq.spark.reports.views import register_views

register_views(spark, path)  # options of the source can follow, such as startingTimestamp="..."
now = datetime.now(UTC)
```

Each view is read once, when a query first needs it, and then kept in Spark's memory and on its
disks until `spark.catalog.clearCache()`. In DuckDB, the queries run where the macros of
`txrocketmq.spark.reports.duck.FUNCTIONS` are defined and parameters are written `$now` instead of
`:now`.
"""

INDEX = """
## The reports

| name for `--only` | report |
|---|---|
"""


def _parameters() -> str:
    lines = [f"- `:{name}`: {text}.\n" for name, text in PARAMETERS.items()]
    return "\nThe queries have these parameters:\n\n" + "".join(lines)


def _section(report: Report) -> str:
    arguments = ", ".join(f'"{name}": {VALUES[name]}' for name in sorted(report.parameters))
    call = f"    args={{{arguments}}},\n" if arguments else ""
    return (
        f"\n### {report.title}\n\n{report.doc}\n\n"
        f'```python\nresult = spark.sql(\n    """\n{report.query()}    """,\n{call})\n```\n'
    )


def pages() -> dict[Path, str]:
    """Each page's path and what it has to be."""
    index = "".join(
        f"| `{r.name}` | [{r.title}](#{r.title.lower().replace(' ', '-')}) |\n" for r in REPORTS
    )
    sections = "".join(map(_section, REPORTS))
    text = INTRODUCTION + LOADING + _parameters() + INDEX + index + sections
    return {PAGE: text}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
