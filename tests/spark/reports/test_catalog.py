# SPDX-License-Identifier: Apache-2.0
"""What holds for every report; what each one finds is in tests/spark/reports/test_duck.py."""

from __future__ import annotations

import re

import pytest

from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.reports.catalog import REPORTS, chosen
from txrocketmq.spark.reports.frames import FRAMES, MESSAGES
from txrocketmq.spark.reports.report import PARAMETERS, Report

ALL = pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)


def test_names_and_titles_are_their_own() -> None:
    assert len({report.name for report in REPORTS}) == len(REPORTS)
    assert len({report.title for report in REPORTS}) == len(REPORTS)


@ALL
def test_a_report_reads_known_frames_and_parameters(report: Report) -> None:
    assert report.frames
    assert report.frames <= {MESSAGES, *FRAMES}
    assert set(re.findall(r":([a-z]\w*)", report.sql)) <= set(PARAMETERS)


@ALL
def test_a_report_has_an_order_and_is_explained(report: Report) -> None:
    assert "ORDER BY" in report.sql.rsplit("FROM", 1)[1], "rows in any order"
    assert report.doc.endswith(".")
    assert report.sql.endswith("\n")
    assert max(map(len, report.sql.splitlines())) <= 100
    assert re.fullmatch("[a-z]+", report.name)


@ALL
def test_a_plot_shows_columns_of_the_query(report: Report) -> None:
    """Their names stand in the last SELECT."""
    final = report.sql[report.sql.rindex("\nSELECT " if "\nSELECT " in report.sql else "SELECT ") :]
    for value in report.plot or ():
        for column in [value] if isinstance(value, str) else value:
            assert re.search(rf"\b{column}\b", final), column


def test_reports_are_chosen_by_name_in_the_order_of_the_page() -> None:
    assert chosen([]) == list(REPORTS)
    assert [report.name for report in chosen(["topics", "lag"])] == ["lag", "topics"]
    with pytest.raises(OptionError, match=r"only='lags' is not valid; valid: overview, lag"):
        chosen(["lags"])
