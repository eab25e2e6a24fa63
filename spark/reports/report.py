# SPDX-License-Identifier: Apache-2.0
"""What a report is: a query in SQL, the text that explains it, and how its rows are drawn.

Spark runs the query as it is, and DuckDB does with the functions that `duck` defines. The query
names its tables in braces, and its parameters with a colon. Neither an engine nor matplotlib is
imported here.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

ReportRow = Mapping[str, Any]
"""A row of a result: its values by column."""

PARAMETERS: Final = {
    "now": "the moment that ages are counted to; a timestamp",
    "top": "how many rows a ranking has",
    "reservedHours": "how long the broker keeps files: its setting fileReservedTime",
}
"""The parameters that queries may use, and their meaning."""


def parameters(now: datetime, top: int, reserved_hours: int) -> dict[str, Any]:
    """Returns the values of the parameters of queries."""
    return {"now": now, "top": top, "reservedHours": reserved_hours}


DEFAULT_TOP: Final = 20
DEFAULT_RESERVED_HOURS: Final = 72
"""The default of fileReservedTime in the original."""


class Bars(NamedTuple):
    """Horizontal bars, one a row: longest first, as the query orders them."""

    labels: Sequence[str]
    value: str


class Timeline(NamedTuple):
    """Values over time, one panel each; the rows are the buckets, in order."""

    time: str
    values: Sequence[str]


class Histogram(NamedTuple):
    """Upright bars, one a row, labelled with the column that the buckets are of."""

    bucket: str
    value: str


class Percentiles(NamedTuple):
    """For each row a line from the first value to the last, with a mark at each; log scale."""

    labels: Sequence[str]
    values: Sequence[str]


class Stack(NamedTuple):
    """Horizontal bars, one for each label, made of parts that add up to the whole."""

    label: str
    part: str
    value: str


Plot = Bars | Timeline | Histogram | Percentiles | Stack


class Report(NamedTuple):
    """A report; the name is what `--only` takes."""

    name: str
    title: str
    doc: str
    """What a row is and how to read it, for the page and the documentation."""
    sql: str
    plot: Plot | None = None

    @property
    def frames(self) -> set[str]:
        """The names of the tables that the query reads."""
        return {name for _, name, _, _ in string.Formatter().parse(self.sql) if name}

    def query(self) -> str:
        """The query over views that have the names of the tables."""
        return self.sql.format(**{name: name for name in self.frames})

    @property
    def parameters(self) -> set[str]:
        """The names of the parameters that the query takes."""
        return {name for name in PARAMETERS if f":{name}" in self.sql}


class Result(NamedTuple):
    """What a report found."""

    report: Report
    columns: Sequence[str]
    rows: Sequence[ReportRow]
    problem: str | None = None
    """Why this store cannot tell, such as queues in RocksDB; there are no rows then."""

    @property
    def without_rows(self) -> str:
        """Returns what to say when there are no rows."""
        return self.problem or "Nothing of this kind in the store."


def run_all(
    run: Callable[[Report, Mapping[str, Any]], Result],
    reports: Sequence[Report],
    values: Mapping[str, Any],
    tell: Callable[[int, int], None] = lambda *_: None,
) -> list[Result]:
    """Runs the reports in order by an engine's `run`; `tell` is given the done and all reports."""
    results: list[Result] = []
    for report in reports:
        tell(len(results), len(reports))
        results.append(run(report, values))
    tell(len(results), len(reports))
    return results
