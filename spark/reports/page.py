# SPDX-License-Identifier: Apache-2.0
"""Results as one HTML page that needs no other file and no network."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from numbers import Number
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from txrocketmq.spark.reports import texts
from txrocketmq.spark.reports.plot import svg
from txrocketmq.spark.reports.report import Result

_TEMPLATE: Final = "page.html.j2"


def page(stores: str, now: datetime, results: Sequence[Result]) -> str:
    """The page; all texts of the stores are escaped."""
    environment = Environment(
        loader=PackageLoader("txrocketmq.spark", "reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["heading"] = texts.heading
    return environment.get_template(_TEMPLATE).render(
        stores=texts.printable(stores),
        now=texts.cell("now", now),
        sections=[_section(result) for result in results],
    )


def _section(result: Result) -> dict[str, Any]:
    drawn = svg(result)
    return {
        "report": result.report,
        "doc": [_inline_code(text) for text in result.report.doc.split("\n\n")],
        "without_rows": texts.printable(result.without_rows),
        "columns": result.columns,
        "rows": [
            [
                (texts.cell(column, row[column]), isinstance(row[column], Number))
                for column in result.columns
            ]
            for row in result.rows
        ],
        "svg": None if drawn is None else Markup(drawn),  # noqa: S704 - matplotlib escapes texts
    }


def _inline_code(text: str) -> Markup:
    """The text with what stands between backticks as code."""
    parts = text.split("`")
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(p) if n % 2 else p for n, p in enumerate(parts))
