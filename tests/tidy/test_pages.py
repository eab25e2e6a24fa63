# SPDX-License-Identifier: Apache-2.0
"""Pages are easy to read: short lines, and an overview that answers what newcomers ask."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

LINE = 120
OVERVIEW_LINES = 170
"""Three screens or so."""

_NOT_PROSE = re.compile(
    r"^ *```.*?^ *```$|^<!-- begin .*?^<!-- end .*?$|^ *\|.*?$", re.MULTILINE | re.DOTALL
)
QUESTIONS = {
    "PULL_MESSAGE": ("a request code", "request_codes.md"),
    "who serves a request": ("how a request is served", "broker/processors/"),
    "the format of a record": ("the bytes of a message", "remoting/message/record.py"),
    "when messages are deleted": ("what is kept", "broker/store/upkeep/retention.py"),
    "SQL": ("SQL92", "broker/filter/expression.py"),
    "tags": ("by tag", "broker/store/get/get_message.py"),
    "who has members rebalance": ("members of a group", "broker/tables/group_changes.py"),
    "long polling": ("pulls that wait", "broker/pulls/long_polling.py"),
    "delay levels": ("delay levels", "broker/delays/schedule.py"),
    "timers": ("timer messages", "broker/timer/timers.py"),
    "silent brokers": ("silent brokers", "namesrv/routes/route_table.py"),
    "dead letters": ("dead letters", "broker/processors/send/send_back.py"),
    "threads of the client": ("threads that call listeners", "client/thread/executor.py"),
    "what brokers ask producers": ("ask of clients", "client/core/producer_requests.py"),
    "shares of queues": ("share of the queues", "client/consumer/group/rebalance.py"),
}
"""What newcomers ask: words of a row of the overview, and a place that the row has to name."""


def _is_written_by_hand(page: Path) -> bool:
    return page.suffix == ".md" and "<!-- Written by" not in page.read_text("utf-8")


def test_lines_are_short(
    root: Path, repository_files: list[Path], listed: Callable[[list[str]], str]
) -> None:
    """But for code, tables and what is generated; pages of decisions are left as they are."""
    long = []
    for page in filter(_is_written_by_hand, repository_files):
        if page.parent.name == "adr":
            continue
        text = _NOT_PROSE.sub("", page.read_text("utf-8"))
        long += [
            f"{page.relative_to(root)}: {line[:60]}..."
            for line in text.splitlines()
            if len(line) > LINE and not line.startswith(("[", "!["))
        ]
    assert not long, listed(long)


def test_the_overview_is_short(root: Path) -> None:
    text = (root / "docs" / "architecture.md").read_text("utf-8")
    assert len(text.splitlines()) <= OVERVIEW_LINES


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_overview_answers(root: Path, question: str) -> None:
    words, place = QUESTIONS[question]
    text = (root / "docs" / "architecture.md").read_text("utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ")]
    answers = [row[2] for row in rows if words in row[1]]
    assert len(answers) == 1, f"rows about {words!r}: {answers}"
    assert place in answers[0]
