# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.spark.reports.report import Report


def test_a_query_says_what_it_reads_and_takes() -> None:
    report = Report("a", "A", "", "SELECT :top FROM {records} JOIN {offsets} JOIN {records}")
    assert report.frames == {"records", "offsets"}
    assert report.parameters == {"top"}
    assert report.query() == "SELECT :top FROM records JOIN offsets JOIN records"
