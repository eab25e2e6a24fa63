# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import dataclasses
import io
from collections import Counter

from rich.console import Console

from txrocketmq.spark.ingest.copy_plan import IngestSplit, LostRange, Plan
from txrocketmq.spark.ingest.job import Commit
from txrocketmq.spark.ingest.progress import ProgressBar
from txrocketmq.spark.ingest.task import SplitResult

PLAN = Plan(
    (
        IngestSplit("a", 0, 1 << 20, first_is_boundary=True),
        IngestSplit("a", 1 << 20, 3 << 20, first_is_boundary=True),
    ),
    (LostRange("a", 1, 2),),
)
FIRST = SplitResult(
    PLAN.splits[0], rows=600, records=1000, lost=[LostRange("a", 5, 9)],
    topics=Counter({f"topic{number}": number for number in range(7)}),
)  # fmt: skip
SECOND = SplitResult(
    PLAN.splits[1], rows=634, records=1000, damaged=Counter({"crc": 2, "magic": 1})
)


def shown(*, terminal: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=120)
    with ProgressBar(console) as bar:
        bar.planned(PLAN)
        bar.split_done(FIRST)
        bar.split_done(SECOND)
        bar.committed(Commit(4, (FIRST, SECOND), ()))
    return file.getvalue()


def test_lines_where_there_is_no_terminal() -> None:
    lines = shown(terminal=False).splitlines()
    assert lines[:2] == [
        "deleted before it was copied: a [1, 2)",
        "new: 3.0 MiB of log in 2 splits",
    ]
    assert lines[2].startswith("version 4: 1,234 messages of 2,000 records in 0 files, 0 bytes;")
    assert lines[3:] == [
        "  topic6: 6", "  topic5: 5", "  topic4: 4", "  topic3: 3", "  topic2: 2",
        "  1 more topics: 1",
        "  damaged records in _quarantine: 2 crc, 1 magic",
        "  gone: a [5, 9)",
    ]  # fmt: skip


def test_a_bar_on_a_terminal() -> None:
    text = shown(terminal=True)
    assert "2/2 splits, 1,234 messages" in text
    assert "3.0/3.0 MiB" in text


def test_names_of_topics_do_nothing_to_a_terminal() -> None:
    file = io.StringIO()
    with ProgressBar(Console(file=file, width=120)) as bar:
        bar.planned(PLAN)
        red = dataclasses.replace(FIRST, topics=Counter({"red\x1b[31m": 1}))
        bar.committed(Commit(4, (red,), ()))
    assert "\x1b" not in file.getvalue()
    assert r"  red\x1b[31m: 1" in file.getvalue()
