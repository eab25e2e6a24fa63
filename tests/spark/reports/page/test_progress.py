# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io

from rich.console import Console

from txrocketmq.spark.reports.page.progress import Progress


def shown(*, terminal: bool) -> str:
    file = io.StringIO()
    with Progress(Console(file=file, force_terminal=terminal, width=120)) as progress:
        progress.reading(3, 8)
        progress.asking(5, 17)
    return file.getvalue()


def test_what_is_done_is_seen_on_a_terminal() -> None:
    text = shown(terminal=True)
    assert "reading the stores" in text
    assert "3/8" in text
    assert "making reports" in text
    assert "5/17" in text


def test_before_anything_is_done_the_lines_are_there() -> None:
    file = io.StringIO()
    with Progress(Console(file=file, force_terminal=True, width=120)):
        pass
    assert "making reports" in file.getvalue()


def test_nothing_is_shown_elsewhere() -> None:
    assert shown(terminal=False) == ""
