# SPDX-License-Identifier: Apache-2.0
"""Where these reports stand; what they find is in tests/spark/reports/test_duck.py."""

from __future__ import annotations

from txrocketmq.spark.reports.catalog import REPORTS
from txrocketmq.spark.reports.space import COMPRESSION, DISK, RETENTION, SIZES


def test_space_is_the_end_of_the_page() -> None:
    assert REPORTS[-4:] == (SIZES, COMPRESSION, DISK, RETENTION)
