# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reports.md from the catalogue of reports; `make docs` runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from txrocketmq.spark.reports.catalog import REPORTS
from txrocketmq.spark.reports.frames import FRAMES, columns_of
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

<!-- Written by docs/generate_reports.py from spark/reports/catalog.py; run `make docs`. -->

`txrocketmq report` reads the stores of brokers, running or stopped, and says what is in them: as
tables on the terminal, as JSON, or as one HTML page with plots that needs no other file. It needs
the extra `spark` (`pip install 'txrocketmq[spark]'`) and Java 17.

```sh
txrocketmq report --store /data/rocketmq/store
txrocketmq report --store /data/broker-a/store /data/broker-b/store --html report.html
txrocketmq report --store /data/rocketmq/store --only lag topics --json
txrocketmq report --store /data/rocketmq/store --option startingTimestamp=2026-11-20T00:00:00
```

- The log is read once, whatever the number of reports, with the columns that they need and never a
  body, while Spark starts; the queries run over what was taken. That is in a folder of its own
  among temporary files (`TMPDIR` says where), some hundredths of the log, and gone at the end.
- On a terminal it shows how far it is, on standard error.
- Times are UTC. Ages are counted to the clock's time, or to `--now`: give that for a copy of a
  store.
- `--option` takes any option of the [Spark source](spark_options.md) that chooses what is read;
  `badRecords=skip` reads on behind a damaged record.
- It runs on this machine, on all cores; `spark-submit` with a script that calls
  `txrocketmq.cli.report.main()` runs it elsewhere: there Spark's workers read the stores, and Spark
  keeps what they read in memory, or on its local disk as far as it does not fit.
- Exit codes: 0 done; 1 failed, or a store or the value of an option is wrong, with one sentence on
  standard error; 2 flags that are not understood.

## As queries

Each report is one query in Spark SQL, here to be copied and changed. They read these views, whose
columns [are described here](spark_options.md):

"""

LOADING = """\
```python
from datetime import UTC, datetime


def view(name, **options):
    spark.read.format("rocketmq").options(**options).load(path).createOrReplaceTempView(name)
    spark.catalog.cacheTable(name)  # several queries, one read


now = datetime.now(UTC)
columns = (
"""

INDEX = """
## What there is

| name for `--only` | report |
|---|---|
"""


def _loading() -> Iterator[str]:
    yield LOADING + _column_lines() + ")\n"
    used = set[str]().union(*(report.frames for report in REPORTS))
    for name, options in FRAMES.items():
        if name in used:
            given = {key: f'"{value}"' for key, value in options.items()}
            if name in {"messages", "records"}:
                given["columns"] = "columns"
            text = ", ".join([f'"{name}"', *(f"{key}={value}" for key, value in given.items())])
            line = f"view({text})\n"
            yield line if len(line) <= 100 else f"view(\n    {text}\n)\n"
    yield "```\n"


def _column_lines() -> str:
    lines = [""]
    for column in columns_of(REPORTS):
        if len(lines[-1]) + len(column) > 80:
            lines.append("")
        lines[-1] += f"{column},"
    lines[-1] = lines[-1].removesuffix(",")
    return "".join(f'    "{line}"\n' for line in lines)


def _parameters() -> str:
    lines = [f"- `:{name}`: {text}.\n" for name, text in PARAMETERS.items()]
    return "\nParameters of queries:\n\n" + "".join(lines)


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
    text = INTRODUCTION + "".join(_loading()) + _parameters() + INDEX + index + sections
    return {PAGE: text}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
