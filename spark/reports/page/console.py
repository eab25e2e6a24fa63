# SPDX-License-Identifier: Apache-2.0
"""Shows results as tables on a terminal, or as plain text if the output is not a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from txrocketmq.remoting.primitives.plain_text import plain
from txrocketmq.spark.reports import texts
from txrocketmq.spark.reports.findings import NO_FINDINGS, Finding
from txrocketmq.spark.reports.report import Result

_STYLES: Final = {"problem": "red", "warning": "yellow", "note": ""}


def show(console: Console, found: Sequence[Finding], results: Sequence[Result]) -> None:
    """Prints what stands out, then each result under its title."""
    console.print(Text("Findings", style="bold"))
    for each in found:
        console.print(Text(f"{each.level}: {each.text} [{each.report}]", style=_STYLES[each.level]))
    if not found:
        console.print(Text(NO_FINDINGS, style="dim"))
    for result in results:
        console.print()
        console.print(Text(result.report.title, style="bold"))
        if result.rows:
            console.print(_table(result))
        else:
            console.print(Text(plain(result.without_rows), style="dim"))


def _table(result: Result) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in result.columns:
        is_number = any(isinstance(row[column], Number) for row in result.rows)
        table.add_column(
            Text(texts.heading(column)),
            justify="right" if is_number else "left",
            overflow="fold",
        )
    for row in result.rows:
        table.add_row(*(Text(texts.cell(column, row[column])) for column in result.columns))
    return table
