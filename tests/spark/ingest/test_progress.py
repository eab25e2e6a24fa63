# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io

from rich.console import Console

from txrocketmq.spark.ingest.documents import Commit, Lost, Plan, Position, Split, SplitResult
from txrocketmq.spark.ingest.progress import ProgressBar

PLAN = Plan(
    4, "x", 0,
    (
        Split("a", 0, 1 << 20, first_is_boundary=True),
        Split("a", 1 << 20, 3 << 20, first_is_boundary=True),
    ),
    {"a": Position(3 << 20)}, (Lost("a", 1, 2),),
)  # fmt: skip
COMMIT = Commit(
    run=4, plan_id="x", committed_ms=0, positions={}, starts={}, parts=(), rows=1234, records=2000,
    log_bytes=3 << 20, topics={f"topic{number}": number for number in range(7)},
    quarantined={"crc": 2, "magic": 1}, lost=(Lost("a", 5, 9),), total_rows=1234, total_parts=0,
)  # fmt: skip


def shown(*, terminal: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=120)
    with ProgressBar(console) as bar:
        bar.planned(PLAN, 1 << 20, resumed=True)
        bar.split_done(SplitResult("s", "x", rows=600, size_bytes=1 << 20))
        bar.split_done(SplitResult("t", "x", rows=634, size_bytes=1 << 20))
        bar.committed(PLAN, COMMIT)
    return file.getvalue()


def test_lines_where_there_is_no_terminal() -> None:
    lines = shown(terminal=False).splitlines()
    assert lines[:2] == [
        "gone before it was taken: a [1, 2)",
        "run 4 that was interrupted: 2.0 MiB of log in 2 splits",
    ]
    assert lines[2].startswith(
        "run 4 committed: 1,234 messages of 2,000 records in 0 files, 0 bytes;"
    )
    assert lines[3:] == [
        "  topic6: 6", "  topic5: 5", "  topic4: 4", "  topic3: 3", "  topic2: 2",
        "  2 more topics: 1",
        "  damaged records in _quarantine: 2 crc, 1 magic",
        "  gone: a [5, 9)",
    ]  # fmt: skip


def test_a_bar_on_a_terminal() -> None:
    text = shown(terminal=True)
    assert "2/2 splits, 1,234 messages" in text
    assert "3.0/3.0 MiB" in text
