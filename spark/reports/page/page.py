# SPDX-License-Identifier: Apache-2.0
"""Results as one HTML page that needs no other file and no network."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from numbers import Number
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from txrocketmq.remoting.primitives.plain_text import plain
from txrocketmq.spark.reports import texts
from txrocketmq.spark.reports.findings import NO_FINDINGS, Finding
from txrocketmq.spark.reports.page.plot import caption, svg
from txrocketmq.spark.reports.report import Result

_TEMPLATE: Final = "page.html.j2"
_LONG_CHARACTERS: Final = 60
"""Longer texts are wrapped; others never are, since the table scrolls instead."""
_FOLDED_ROWS: Final = 25
"""A longer table is folded up if there is a plot; the reader can open it."""


def page(stores: str, now: datetime, found: Sequence[Finding], results: Sequence[Result]) -> str:
    """Returns the page; all texts from the stores are escaped."""
    environment = Environment(
        loader=PackageLoader("txrocketmq.spark.reports", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["heading"] = texts.heading
    return environment.get_template(_TEMPLATE).render(
        stores=plain(stores),
        now=texts.cell("now", now),
        findings=found,
        no_findings=NO_FINDINGS,
        titles={result.report.name: result.report.title for result in results},
        sections=[_section(result) for result in results],
    )


def _section(result: Result) -> dict[str, Any]:
    drawn = svg(result)
    return {
        "report": result.report,
        "doc": [_inline_code(text) for text in result.report.doc.split("\n\n")],
        "without_rows": plain(result.without_rows),
        "columns": [
            {"name": column, "is_number": any(_is_number(row[column]) for row in result.rows)}
            for column in result.columns
        ],
        "rows": [[_cell(column, row[column]) for column in result.columns] for row in result.rows],
        "folded": drawn is not None and len(result.rows) > _FOLDED_ROWS,
        "svg": None if drawn is None else Markup(drawn),  # noqa: S704 - matplotlib escapes texts
        "caption": caption(result),
    }


def _cell(column: str, value: Any) -> tuple[str, str]:
    """Returns the text of a cell and its class."""
    text = texts.cell(column, value)
    if _is_number(value):
        return text, "number"
    return text, "long" if len(text) > _LONG_CHARACTERS else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool)


def _inline_code(text: str) -> Markup:
    """Returns the text as HTML, in which backticks mark code."""
    parts = text.split("`")
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(p) if n % 2 else p for n, p in enumerate(parts))
