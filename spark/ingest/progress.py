# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of a run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from txrocketmq.remoting.primitives.plain_text import plain
from txrocketmq.spark.ingest.copy_plan import Plan
from txrocketmq.spark.ingest.job import Commit
from txrocketmq.spark.ingest.task import SplitResult

_TOPICS_SHOWN: Final = 5


class ProgressBar(Progress):
    """A listener that shows a bar of bytes of the log, since the plan says how many are left."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            BarColumn(),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[splits]} splits, {task.fields[rows]:,} messages"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task: TaskID | None = None
        self._rows = 0
        self._splits_done = 0
        self._splits = 0
        self._began = 0.0

    def planned(self, plan: Plan) -> None:
        """Announces the plan and starts the bar."""
        self._rows = self._splits_done = 0
        self._splits = len(plan.splits)
        self._began = time.monotonic()
        for lost in plan.lost:
            self._say(f"deleted before it was copied: {lost}")
        splits = "1 split" if self._splits == 1 else f"{self._splits} splits"
        self._say(f"new: {_size(plan.size_bytes)} of log in {splits}")
        self._task = self.add_task("", total=plan.size_bytes, rows=0, splits=f"0/{self._splits}")

    def split_done(self, result: SplitResult) -> None:
        """A split of the run is done."""
        assert self._task is not None
        self._rows += result.rows
        self._splits_done += 1
        self.update(
            self._task,
            advance=result.split.size_bytes,
            rows=self._rows,
            splits=f"{self._splits_done}/{self._splits}",
        )

    def committed(self, commit: Commit) -> None:
        """Splits are part of the table."""
        seconds = max(time.monotonic() - self._began, 1e-3)
        self._began = time.monotonic()
        parts = [part for result in commit.results for part in result.parts]
        written = sum(part.size_bytes for part in parts)
        self._say(
            f"version {commit.version}: {commit.rows:,} messages of {commit.records:,} records in"
            f" {len(parts):,} files, {_size(written)}; {commit.rows / seconds:,.0f}"
            f" messages/s, {_size(commit.log_bytes / seconds)}/s of log"
        )
        largest = sorted(commit.topics.items(), key=lambda each: (-each[1], each[0]))
        for topic, rows in largest[:_TOPICS_SHOWN]:
            self._say(f"  {topic}: {rows:,}")
        if len(largest) > _TOPICS_SHOWN:
            rest = sum(rows for _, rows in largest[_TOPICS_SHOWN:])
            self._say(f"  {len(largest) - _TOPICS_SHOWN:,} more topics: {rest:,}")
        if commit.damaged:
            reasons = ", ".join(f"{n:,} {reason}" for reason, n in commit.damaged.items())
            self._say(f"  damaged records in _quarantine: {reasons}")
        for lost in commit.all_lost:
            self._say(f"  gone: {lost}")

    def _say(self, text: str) -> None:
        self.console.print(Text(plain(text)), soft_wrap=True)


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"
